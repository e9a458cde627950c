#pragma once

#include "lockstep/comm/launch.hpp"
#include "lockstep/comm/mpi_environment.hpp"
#include "lockstep/core/aligned_buffer.hpp"
#include "lockstep/core/error.hpp"

#include <cstddef>

namespace lockstep {

/// Who adds in `all_reduce`.
enum class MpiReduction {
    fixed_order, ///< Lockstep, in the tree of comm/tree_sum.hpp: the same bits as with threads, and again in every run
    native       ///< MPI_Allreduce, in an order of its own; `reduce_update` keeps the tree. When a worker is lost within it, no
                 ///< exception can be thrown: the program ends after the timeout, as by an uncaught WorkerError
};

struct MpiOptions {
    MPI_Comm communicator = MPI_COMM_WORLD; ///< its processes are the workers; it is duplicated, not used
    MpiReduction reduction = MpiReduction::fixed_order;
    std::size_t message_bytes = std::size_t{1} << 20U;   ///< large data travel in messages of at most so many bytes
    std::size_t native_elements = std::size_t{1} << 30U; ///< one MPI_Allreduce takes at most so many elements
};

namespace detail {

/// Throws ArgumentError for what no launch can begin with. MPI must have been initialised.
inline void check_communicator(MPI_Comm communicator) {
    if (communicator == MPI_COMM_NULL) { throw ArgumentError("MpiOptions: expected a communicator, got MPI_COMM_NULL"); }
    int joins_two_groups = 0;
    check_mpi(MPI_Comm_test_inter(communicator, &joins_two_groups), "MPI_Comm_test_inter");
    if (joins_two_groups != 0) {
        throw ArgumentError("MpiOptions: expected a communicator of one group of processes, got an intercommunicator");
    }
}

/// Throws ArgumentError for options that cannot be, and when num_workers is given and is not the number of processes.
inline void check_options(Scaling const& scaling, MpiOptions const& options, int processes) {
    if (int const workers = scaling.num_workers.value_or(processes); workers != processes) {
        throw ArgumentError(concat("num_workers is ", workers, ", but MPI has ", processes,
                                   processes == 1 ? " process" : " processes", ": start the program with mpirun -n ", workers));
    }
    constexpr std::size_t largest = std::size_t{1} << 30U; // MPI counts in int
    if (options.message_bytes < alignment || options.message_bytes > largest || options.native_elements < 1 ||
        options.native_elements > largest) {
        throw ArgumentError(concat("MpiOptions: expected message_bytes from ", alignment, " and native_elements from 1, both to ",
                                   largest, ", got ", options.message_bytes, " and ", options.native_elements));
    }
}

} // namespace detail

} // namespace lockstep
