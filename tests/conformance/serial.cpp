#include "communicator_failures.hpp"
#include "communicator_suite.hpp"

#include <lockstep/comm/serial.hpp>

#include <vector>

namespace conformance {

struct Serial {
    using Comm = lockstep::SerialCommunicator;
    static constexpr bool shares_memory = true;

    static std::vector<int> worker_counts() { return {1}; }
    static int barrier_rounds(int /*workers*/) { return 1'000'000; }

    template <class Body>
    static void run(int workers, Body const& body) {
        lockstep::launch<Comm>({.num_workers = workers}, body);
    }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Serial, CommunicatorSuite, Serial);
INSTANTIATE_TYPED_TEST_SUITE_P(Serial, CommunicatorFailures, Serial);

} // namespace conformance
