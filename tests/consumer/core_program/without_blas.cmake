# Included by the consumers of lockstep::core: BLAS and MPI are not there, and the compiler stumbles over headers of theirs and of xtensor.
set(CMAKE_DISABLE_FIND_PACKAGE_BLAS ON)
set(CMAKE_DISABLE_FIND_PACKAGE_MPI ON)
include_directories(BEFORE "${CMAKE_CURRENT_LIST_DIR}/hidden")
