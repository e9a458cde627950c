#include <lockstep/comm/thread.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

#ifdef SANITIZED

TEST(ThreadCommunicator, CollectivesAllocateNothing) { GTEST_SKIP() << "a sanitizer brings its own operator new"; }

#else

namespace {

std::atomic<long> allocations{0};

void* count_and_allocate(std::size_t size, std::size_t align) {
    ++allocations;
    void* const result = std::aligned_alloc(align, (size + align - 1) / align * align);
    if (result == nullptr) { throw std::bad_alloc(); }
    return result;
}

} // namespace

// Not inlined, since GCC would see malloc's family through one of a pair and warn of a mismatch.
void* operator new(std::size_t size) { return count_and_allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t align) { return count_and_allocate(size, static_cast<std::size_t>(align)); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t /*align*/) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/, std::align_val_t /*align*/) noexcept {
    std::free(memory);
}

namespace {

TEST(ThreadCommunicator, CollectivesAllocateNothing) {
    long const start = allocations;
    auto const probe = std::make_unique<int>(1);
    ASSERT_GT(allocations, start) << "the counter does not count";
    for (int const workers : {1, 2, 3, 4, 8}) {
        std::atomic<long> counted{0};
        lockstep::launch<lockstep::ThreadCommunicator>({.num_workers = workers}, [&](auto& comm) {
            std::vector<float> gradients(10'000);
            std::vector<float> parameters(10'000);
            comm.barrier();
            long const before = allocations;
            comm.barrier();
            for (int round = 0; round < 20; ++round) {
                comm.broadcast(std::span<float>{gradients}, comm.size() - 1);
                comm.all_reduce(std::span<float>{gradients});
                comm.all_reduce(std::span<float>{gradients}.first(5));
                static_cast<void>(lockstep::all_reduce_sum(comm, 1.0));
                comm.reduce_update(0.0, std::span<float>{gradients}, std::span<float>{parameters},
                                   [](std::size_t, std::span<float> p, std::span<float const> g) { p[0] += g[0]; });
            }
            comm.barrier();
            counted += allocations - before;
            comm.barrier();
        });
        EXPECT_EQ(counted, 0) << workers << " workers";
    }
}

} // namespace

#endif
