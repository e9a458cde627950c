# Passes when FILE refers to SYMBOL, defined in it or in a library. Needs NM.

execute_process(COMMAND "${NM}" "${FILE}" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
if(NOT "${symbols}\n" MATCHES " [UTtWi] ${SYMBOL}(@[^\n]*)?\n")
    message(FATAL_ERROR "${FILE} does not refer to ${SYMBOL}")
endif()
