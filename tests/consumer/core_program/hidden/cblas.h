#error "lockstep::core needs neither BLAS, xtensor nor MPI"
