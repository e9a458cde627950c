#include "communicator_failures.hpp"
#include "communicator_suite.hpp"

#include <lockstep/comm/thread.hpp>

#include <vector>

namespace conformance {

struct Threads {
    using Comm = lockstep::ThreadCommunicator;
    static constexpr bool shares_memory = true;

    static std::vector<int> worker_counts() { return {1, 2, 3, 4, 7, 8}; }
    static int barrier_rounds(int workers) { return workers == 7 ? 2'000 : workers <= 2 ? 1'000'000 : 100'000; }

    template <class Body>
    static void run(int workers, Body const& body) {
        lockstep::launch<Comm>({.num_workers = workers}, body);
    }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Threads, CommunicatorSuite, Threads);
INSTANTIATE_TYPED_TEST_SUITE_P(Threads, CommunicatorFailures, Threads);

} // namespace conformance
