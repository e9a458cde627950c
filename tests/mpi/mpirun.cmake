# Runs a test program on MPI processes, with what Open MPI asks for as root, in containers and with more processes than cores:
# cmake -DMPIRUN=<mpirun> -DPROCESSES=<n> "-DCOMMAND=<program;arguments>" -P mpirun.cmake
set(ENV{OMPI_ALLOW_RUN_AS_ROOT} 1)
set(ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} 1)
set(ENV{OMPI_MCA_rmaps_base_oversubscribe} 1)
set(ENV{OMPI_MCA_hwloc_base_binding_policy} none)
set(ENV{OMPI_MCA_btl_vader_single_copy_mechanism} none)
execute_process(COMMAND "${MPIRUN}" -n "${PROCESSES}" ${COMMAND} RESULT_VARIABLE result)
if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed on ${PROCESSES} processes: ${result}")
endif()
