# One step of a consumer test. Needs PROJECT_DIR, SCRATCH, COMPILER, GENERATOR and STEP:
#   install              installs Lockstep and moves the prefix elsewhere
#   archive              packs what a release would hold
#   use      WAY         configures, builds and runs the consumer tests/consumer/<WAY>, and sees that nothing leaked into it; with
#                        MPIRUN and MPI_CXX_COMPILER it is built with that MPI and run on 2 processes
#   missing  WAY WHAT    hides a dependency and expects the one line about it

cmake_minimum_required(VERSION 3.22)

set(prefix "${SCRATCH}/moved/prefix")
set(archive "${SCRATCH}/lockstep.tar.gz")
set(strict -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror)

# A tester's own flags are nobody's leak.
unset(ENV{CXXFLAGS})
unset(ENV{LDFLAGS})

# configure(<variable for the output> <variable for the status> <source> <build> <option>...), always from scratch
function(configure output status source build)
    file(REMOVE_RECURSE "${build}")
    execute_process(
        COMMAND "${CMAKE_COMMAND}" -S "${source}" -B "${build}" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" ${ARGN}
        RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text
    )
    set(${output} "${text}" PARENT_SCOPE)
    set(${status} "${result}" PARENT_SCOPE)
endfunction()

function(run)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT status EQUAL 0)
        list(JOIN ARGN " " command)
        fail("${command}" "${output}")
    endif()
endfunction()

function(fail what output)
    string(REPLACE "\n" "\n  " output "${output}") # CMake rewraps lines that are not indented
    message(FATAL_ERROR "${what}\n  ${output}")
endfunction()

# The compile commands hold the consumer's own flags, include directories and the standard, and nothing else. What CMake's FindMPI
# gives to everybody who uses MPI is not Lockstep's either.
function(check_commands build)
    file(READ "${build}/compile_commands.json" json)
    string(JSON count LENGTH "${json}")
    math(EXPR last "${count} - 1")
    foreach(index RANGE ${last})
        string(JSON command GET "${json}" ${index} command)
        separate_arguments(words UNIX_COMMAND "${command}")
        list(REMOVE_AT words 0)
        list(REMOVE_ITEM words ${strict})
        while(words)
            list(POP_FRONT words word)
            if(word MATCHES "^-(isystem|o|c)$")
                list(POP_FRONT words ignored)
            elseif(MPIRUN AND word MATCHES "^-D(MPICH_SKIP_MPICXX|OMPI_SKIP_MPICXX|_MPICC_H)$")
                continue()
            elseif(NOT word MATCHES "^-I|^-std=(gnu|c)\\+\\+(20|2a)$")
                fail("Lockstep gives its user the flag ${word}" "${command}")
            endif()
        endwhile()
    endforeach()
endfunction()

# No switches without the LOCKSTEP_ prefix, no build type forced, no tests or examples of ours in the user's build.
function(check_cache build)
    file(STRINGS "${build}/CMakeCache.txt" switches REGEX "^[^#/]*:BOOL=")
    list(FILTER switches EXCLUDE REGEX "^(LOCKSTEP|CMAKE|FETCHCONTENT)_")
    if(switches)
        fail("Lockstep gives its user these switches" "${switches}")
    endif()
    file(STRINGS "${build}/CMakeCache.txt" forced REGEX "^CMAKE_BUILD_TYPE:[A-Z]+=.|^LOCKSTEP_(BUILD.*|INSTALL):BOOL=ON|^arch_native")
    if(forced)
        fail("Lockstep sets in its user's build" "${forced}")
    endif()
endfunction()

if(STEP STREQUAL "install")
    file(REMOVE_RECURSE "${SCRATCH}/moved" "${SCRATCH}/installed")
    set(build "${SCRATCH}/install")
    configure(
        output status "${PROJECT_DIR}" "${build}"
        -DLOCKSTEP_BUILD_TESTS=OFF -DLOCKSTEP_BUILD_EXAMPLES=OFF -DLOCKSTEP_BUILD_BENCHMARKS=OFF
    )
    if(NOT status EQUAL 0)
        fail("configure" "${output}")
    endif()
    run("${CMAKE_COMMAND}" --install "${build}" --prefix "${SCRATCH}/installed")
    file(GLOB_RECURSE files "${SCRATCH}/installed/*.cmake")
    foreach(file IN LISTS files)
        file(READ "${file}" text)
        foreach(path IN ITEMS "${PROJECT_DIR}" "${SCRATCH}" "/usr/lib/" "/usr/include")
            string(FIND "${text}" "${path}" position)
            if(NOT position EQUAL -1)
                fail("not relocatable: ${file} names ${path}" "${text}")
            endif()
        endforeach()
    endforeach()
    file(MAKE_DIRECTORY "${SCRATCH}/moved")
    file(RENAME "${SCRATCH}/installed" "${prefix}")

elseif(STEP STREQUAL "archive")
    execute_process(
        COMMAND "${CMAKE_COMMAND}" -E tar czf "${archive}" CMakeLists.txt LICENSE cmake include
        WORKING_DIRECTORY "${PROJECT_DIR}" COMMAND_ERROR_IS_FATAL ANY
    )

elseif(STEP STREQUAL "use")
    set(build "${SCRATCH}/${WAY}")
    set(from "${PROJECT_DIR}")
    if(WAY STREQUAL "fetch_content")
        set(from "${archive}")
    endif()
    set(mpi "")
    if(MPIRUN)
        set(mpi "-DMPI_CXX_COMPILER=${MPI_CXX_COMPILER}")
    endif()
    list(JOIN strict " " flags)
    configure(
        output status "${CMAKE_CURRENT_LIST_DIR}/${WAY}" "${build}"
        "-DCMAKE_CXX_FLAGS=${flags}" -DCMAKE_NO_SYSTEM_FROM_IMPORTED=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
        "-DCMAKE_PREFIX_PATH=${prefix}" "-DLOCKSTEP_FROM=${from}" ${mpi}
    )
    if(NOT status EQUAL 0)
        fail("configure" "${output}")
    endif()
    check_commands("${build}")
    check_cache("${build}")
    run("${CMAKE_COMMAND}" --build "${build}")
    if(MPIRUN)
        run(
            "${CMAKE_COMMAND}" "-DMPIRUN=${MPIRUN}" -DPROCESSES=2 "-DCOMMAND=${build}/program"
            -P "${CMAKE_CURRENT_LIST_DIR}/../mpi/mpirun.cmake"
        )
    else()
        run("${build}/program")
    endif()

elseif(STEP STREQUAL "missing")
    set(build "${SCRATCH}/missing_${WHAT}_${WAY}")
    set(options "-DCMAKE_PREFIX_PATH=${prefix}" "-DLOCKSTEP_FROM=${PROJECT_DIR}")
    if(WHAT STREQUAL "xtensor")
        set(expected "Lockstep: xtensor not found (Debian: libxtensor-dev)")
        list(APPEND options "-DCMAKE_IGNORE_PATH=/usr/include;/usr/local/include" -DZLIB_INCLUDE_DIR=/somewhere)
    elseif(WHAT STREQUAL "xtensor_blas")
        set(expected "Lockstep: xtensor-blas not found (Debian: libxtensor-blas-dev)")
        list(
            APPEND options "-DCMAKE_IGNORE_PATH=/usr/include;/usr/local/include" -DZLIB_INCLUDE_DIR=/somewhere
            "-DLOCKSTEP_XTENSOR_INCLUDE_DIR=/somewhere" "-DLOCKSTEP_XTL_INCLUDE_DIR=/somewhere"
        )
    elseif(WHAT STREQUAL "blas")
        set(expected "Lockstep: BLAS not found (Debian: libopenblas-dev)")
        list(APPEND options "-DCMAKE_DISABLE_FIND_PACKAGE_BLAS=ON")
    elseif(WHAT STREQUAL "cblas")
        set(expected "Lockstep: the BLAS found has no cblas_sgemm (Debian: libopenblas-dev)")
        list(APPEND options "-DCMAKE_PROJECT_consumer_INCLUDE=${CMAKE_CURRENT_LIST_DIR}/blas_without_cblas.cmake")
    elseif(WHAT STREQUAL "zlib")
        set(expected "Lockstep: zlib not found (Debian: zlib1g-dev)")
        list(APPEND options "-DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON")
    elseif(WHAT STREQUAL "mpi")
        set(expected "Lockstep: MPI not found (Debian: libopenmpi-dev, or libmpich-dev)")
        list(APPEND options "-DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON" "-DLOCKSTEP_MPI=ON" -DLOCKSTEP_COMPONENTS=mpi)
    elseif(WHAT STREQUAL "unneeded_mpi")
        set(expected "")
        list(APPEND options "-DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON")
    elseif(WHAT STREQUAL "component")
        set(expected "Lockstep: there is no component \"teleport\"")
        list(APPEND options "-DLOCKSTEP_COMPONENTS=teleport")
    else()
        set(expected "")
    endif()
    configure(output status "${CMAKE_CURRENT_LIST_DIR}/${WAY}" "${build}" ${options})
    if(NOT expected)
        if(NOT status EQUAL 0)
            fail("nothing that is needed is missing, and yet" "${output}")
        endif()
        return()
    endif()
    string(FIND "${output}" "${expected}\n" position)
    if(status EQUAL 0 OR position EQUAL -1)
        fail("expected, as one line, \"${expected}\", and found" "${output}")
    endif()
    # Who builds Lockstep with the own project hears of the way without.
    if(WAY STREQUAL "add_subdirectory" AND WHAT MATCHES "xtensor|blas" AND NOT output MATCHES "\n *or set LOCKSTEP_BLAS=OFF: ")
        fail("expected a line about LOCKSTEP_BLAS=OFF, and found" "${output}")
    endif()

else()
    message(FATAL_ERROR "no such step: ${STEP}")
endif()
