# What Lockstep's own tests, examples and benchmarks share. Nothing of it reaches users.

# Link to it for the library as its developers see it.
add_library(lockstep_dev INTERFACE)
target_link_libraries(lockstep_dev INTERFACE lockstep::lockstep)
if(LOCKSTEP_DEV)
    target_compile_options(
        lockstep_dev INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror
    )
endif()

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD_REQUIRED ON)

# lockstep_require(<package> <the option that does without it> <Debian package>)
macro(lockstep_require package option debian_package)
    find_package(${package} QUIET)
    if(NOT ${package}_FOUND)
        message(FATAL_ERROR "Lockstep: ${package} not found (Debian: ${debian_package}), or set ${option}=OFF")
    endif()
endmacro()

# lockstep_add_symbol_test(<executable target> <symbol>)
# A test that the linked program refers to <symbol>: that BLAS, say, is really called and not quietly replaced.
function(lockstep_add_symbol_test target symbol)
    find_program(LOCKSTEP_NM NAMES nm)
    mark_as_advanced(LOCKSTEP_NM)
    if(NOT LOCKSTEP_NM)
        message(FATAL_ERROR "Lockstep: nm not found (Debian: binutils), or set LOCKSTEP_BUILD_TESTS=OFF")
    endif()
    add_test(
        NAME symbols.${target}.${symbol}
        COMMAND
            "${CMAKE_COMMAND}" "-DNM=${LOCKSTEP_NM}" "-DFILE=$<TARGET_FILE:${target}>" "-DSYMBOL=${symbol}"
            -P "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../tests/symbols/check.cmake"
    )
    set_tests_properties(symbols.${target}.${symbol} PROPERTIES TIMEOUT 60 LABELS symbols)
endfunction()
