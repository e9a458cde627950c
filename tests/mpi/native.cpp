#include "conformance/communicator_failures.hpp"
#include "mpi/mpi_main.hpp"

#include <lockstep/comm/mpi.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

/// MPI's own reductions: in another order, so with their own test of values; failures as with all communicators.
namespace conformance {

struct NativeMpi {
    using Comm = lockstep::MpiCommunicator;
    static constexpr bool shares_memory = false;

    static std::vector<int> worker_counts() { return {processes()}; }

    template <class Body>
    static void run(int workers, Body const& body) {
        Comm::launch({.num_workers = workers, .timeout_seconds = 60}, body,
                     {.reduction = lockstep::MpiReduction::native, .native_elements = 1000});
    }
};

INSTANTIATE_TYPED_TEST_SUITE_P(NativeMpi, CommunicatorFailures, NativeMpi);

template <class T>
void expect_sums() {
    NativeMpi::run(processes(), [](auto& comm) {
        for (std::size_t const count :
             {0U, 1U, 7U, 16U, 17U, 997U, 1000U, 1001U, 12345U}) { // up to 13 reductions of at most 1000
            std::vector<T> data(count);
            std::iota(data.begin(), data.end(), static_cast<T>(comm.rank()));
            comm.all_reduce(std::span{data});
            auto const size = static_cast<std::size_t>(comm.size());
            for (std::size_t i = 0; i < count; ++i) {
                ASSERT_EQ(data[i], static_cast<T>(size * i + size * (size - 1) / 2)) << "element " << i << " of " << count;
            }
        }
    });
}

TEST(NativeReduction, Sums) { // whole numbers, exact in any order
    expect_sums<float>();
    expect_sums<double>();
    expect_sums<std::int64_t>();
    expect_sums<std::uint64_t>();
}

} // namespace conformance

int main(int argc, char** argv) { return conformance::mpi_main(argc, argv); }
