#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>

/// What the processor can do at this moment. The cores of a virtual machine move: two of them may share a last-level cache, lie
/// far apart, or be siblings of one core, and that changes within minutes. So every repeat of a benchmark measures this before
/// and after itself.
namespace lockstep::benchmarks {

enum class CoreState { near, far, siblings, mixed };

[[nodiscard]] inline char const* name_of(CoreState state) {
    switch (state) {
    case CoreState::near:
        return "near";
    case CoreState::far:
        return "far";
    case CoreState::siblings:
        return "siblings";
    case CoreState::mixed:
        break;
    }
    return "mixed";
}

struct MachineState {
    double peak_one_thread = 0;  ///< GFLOP/s, float, fused multiply-adds
    double peak_two_threads = 0; ///< GFLOP/s of both together
    double ping_pong_ns = 0;     ///< one way of a cache line between two cores

    /// Limits measured on AMD Zen: one shared last-level cache answers within 110 ns, another one only after 150.
    [[nodiscard]] CoreState state() const {
        if (peak_two_threads < 1.3 * peak_one_thread) { return CoreState::siblings; }
        return ping_pong_ns < 110 ? CoreState::near : ping_pong_ns > 150 ? CoreState::far : CoreState::mixed;
    }
};

namespace detail {

[[nodiscard]] inline double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline void pin(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<unsigned>(core), &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

/// Independent chains of multiply-adds for `seconds`; GFLOP/s. Inlined into functions that are compiled for one instruction set.
template <std::size_t Bytes, std::size_t Chains>
[[gnu::always_inline]] inline double multiply_adds(double seconds) {
    using Vector [[gnu::vector_size(Bytes)]] = float;
    Vector sums[Chains];
    for (std::size_t i = 0; i < Chains; ++i) { sums[i] = Vector{} + 1e-3F * static_cast<float>(i); }
    Vector factor = Vector{} + 0.999F;
    Vector addend = Vector{} + 1e-4F;
    double const start = now();
    double elapsed = 0;
    std::uint64_t rounds = 0;
    do {
        for (int round = 0; round < 20000; ++round) {
#pragma GCC unroll 32
            for (std::size_t i = 0; i < Chains; ++i) { sums[i] = sums[i] * factor + addend; }
        }
        rounds += 20000;
        elapsed = now() - start;
    } while (elapsed < seconds);
    for (std::size_t i = 1; i < Chains; ++i) { sums[0] += sums[i]; }
    volatile float sink = sums[0][0];
    static_cast<void>(sink);
    return static_cast<double>(rounds) * Chains * (Bytes / 4) * 2 / elapsed / 1e9;
}

#if defined(__x86_64__)
[[gnu::target("avx512f"), gnu::noinline]] inline double multiply_adds_avx512(double seconds) {
    return multiply_adds<64, 24>(seconds);
}
[[gnu::target("avx2,fma"), gnu::noinline]] inline double multiply_adds_avx2(double seconds) {
    return multiply_adds<32, 12>(seconds);
}
#endif
[[gnu::noinline]] inline double multiply_adds_baseline(double seconds) { return multiply_adds<16, 12>(seconds); }

[[nodiscard]] inline double peak_of_this_thread(double seconds) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) { return multiply_adds_avx512(seconds); }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) { return multiply_adds_avx2(seconds); }
#endif
    return multiply_adds_baseline(seconds);
}

[[nodiscard]] inline double peak(int threads, double seconds) {
    std::vector<double> rates(static_cast<std::size_t>(threads));
    std::atomic<int> ready{0};
    std::vector<std::thread> workers;
    for (int i = 0; i < threads; ++i) {
        workers.emplace_back([&, i] {
            pin(i);
            ++ready;
            while (ready < threads) {}
            rates[static_cast<std::size_t>(i)] = peak_of_this_thread(seconds);
        });
    }
    double sum = 0;
    for (auto& worker : workers) { worker.join(); }
    for (auto const rate : rates) { sum += rate; }
    return sum;
}

[[nodiscard]] inline double ping_pong_ns() {
    constexpr int rounds = 20000;
    alignas(128) std::atomic<int> turn{0};
    double elapsed = 0;
    auto const player = [&](int core, int parity) {
        pin(core);
        for (int i = 0; i < 1000; ++i) { // warm up: both run, the line is in motion
            while (turn.load(std::memory_order_acquire) != 2 * i + parity) {}
            turn.store(2 * i + parity + 1, std::memory_order_release);
        }
        double const start = now();
        for (int i = 1000; i < 1000 + rounds; ++i) {
            while (turn.load(std::memory_order_acquire) != 2 * i + parity) {}
            turn.store(2 * i + parity + 1, std::memory_order_release);
        }
        if (parity == 0) { elapsed = now() - start; }
    };
    std::thread first{player, 0, 0};
    std::thread second{player, 1, 1};
    first.join();
    second.join();
    return elapsed / rounds / 2 * 1e9;
}

} // namespace detail

/// Takes about 0.1 s. With one core only: no ping-pong, both peaks equal.
[[nodiscard]] inline MachineState measure_machine() {
    MachineState state;
    state.peak_one_thread = detail::peak(1, 0.03);
    if (std::thread::hardware_concurrency() < 2) {
        state.peak_two_threads = state.peak_one_thread;
        return state;
    }
    state.peak_two_threads = detail::peak(2, 0.03);
    state.ping_pong_ns = detail::ping_pong_ns();
    return state;
}

} // namespace lockstep::benchmarks
