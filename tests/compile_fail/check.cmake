# Runs one case: see CMakeLists.txt. Needs FILE, COMPILER, INCLUDE_DIRS and PRECOMPILED, a header that each case includes first.
# Without a FILE it is that header that is precompiled.

cmake_minimum_required(VERSION 3.22)

set(command "${COMPILER}" -std=c++20 -fdiagnostics-color=never)
foreach(directory IN LISTS INCLUDE_DIRS)
    if(directory)
        list(APPEND command "-I${directory}")
    endif()
endforeach()

if(NOT FILE)
    execute_process(COMMAND ${command} -x c++-header "${PRECOMPILED}" -o "${PRECOMPILED}.gch" COMMAND_ERROR_IS_FATAL ANY)
    return()
endif()
list(APPEND command -fsyntax-only -include "${PRECOMPILED}")

execute_process(
    COMMAND ${command} -DLOCKSTEP_CONTROL "${FILE}"
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output
)
if(NOT status EQUAL 0)
    string(REPLACE "\n" "\n  " output "${output}") # CMake rewraps lines that are not indented
    message(FATAL_ERROR "the control does not compile:\n  ${output}")
endif()

execute_process(COMMAND ${command} "${FILE}" RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(status EQUAL 0)
    message(FATAL_ERROR "this compiles and should not: ${FILE}")
endif()

# The compilers quote differently, by locale too; the expectations need not care.
string(REGEX REPLACE "‘|’|`" "'" output "${output}")
string(REGEX MATCH "[^\n]*error: [^\n]*" first_error "${output}")
string(REPLACE "\n" "\n  " output "  ${output}")

# Brackets and semicolons would confuse CMake's lists, so the comments are taken out of the text one by one.
file(READ "${FILE}" rest)
set(expectations 0)
while(rest MATCHES "(^|\n)// expect(-first)?: ([^\n]*)")
    set(kind "${CMAKE_MATCH_2}")
    set(regex "${CMAKE_MATCH_3}")
    math(EXPR expectations "${expectations} + 1")
    string(FIND "${rest}" "// expect${kind}: ${regex}" position)
    string(LENGTH "// expect${kind}: ${regex}" length)
    math(EXPR position "${position} + ${length}")
    string(SUBSTRING "${rest}" ${position} -1 rest)
    if(kind AND NOT first_error MATCHES "${regex}")
        message(FATAL_ERROR "the first error is not\n  ${regex}\nbut\n  ${first_error}\nin\n${output}")
    elseif(NOT output MATCHES "${regex}")
        message(FATAL_ERROR "nothing in the output matches\n  ${regex}\nThe output is\n${output}")
    endif()
endwhile()
if(expectations EQUAL 0)
    message(FATAL_ERROR "no expectation in ${FILE}")
endif()
