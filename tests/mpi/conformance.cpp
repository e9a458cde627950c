#include "conformance/communicator_failures.hpp"
#include "conformance/communicator_suite.hpp"
#include "mpi/mpi_main.hpp"

#include <lockstep/comm/mpi.hpp>

#include <vector>

namespace conformance {

/// Every process runs all tests; `mpirun -n` says how many workers there are.
struct Mpi {
    using Comm = lockstep::MpiCommunicator;
    static constexpr bool shares_memory = false;
    static constexpr lockstep::MpiReduction reduction = lockstep::MpiReduction::fixed_order;

    static std::vector<int> worker_counts() { return {processes()}; }
    static int barrier_rounds(int workers) { return workers <= 2 ? 100'000 : 2'000; }

    template <class Body>
    static void run(int workers, Body const& body) {
        Comm::launch({.num_workers = workers, .timeout_seconds = 60}, body, {.reduction = reduction});
    }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Mpi, CommunicatorSuite, Mpi);
INSTANTIATE_TYPED_TEST_SUITE_P(Mpi, CommunicatorFailures, Mpi);

} // namespace conformance

int main(int argc, char** argv) { return conformance::mpi_main(argc, argv); }
