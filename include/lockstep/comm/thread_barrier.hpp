#pragma once

#include "lockstep/comm/launch.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

namespace lockstep {

/// How a thread waits for the others. `automatic`: as `spin_then_block` when every worker can have a core of its own, as `block`
/// when there are more workers than cores.
enum class Waiting { automatic, spin_then_block, block };

namespace detail {

/// Atomics written by different threads are this far apart (two lines, since processors fetch lines in pairs). Fixed, so that
/// layouts do not depend on compiler flags.
inline constexpr std::size_t interference_bytes = 128;

inline void pause_briefly() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// How waiting at a barrier ended.
enum class Arrival { complete, interrupted, timed_out };

/// A central generation barrier for a fixed number of threads that can be interrupted for good when one of them will not come.
/// Source: J. M. Mellor-Crummey, M. L. Scott, "Algorithms for Scalable Synchronization on Shared-Memory Multiprocessors", ACM
/// TOCS 9(1), 1991 (the centralised barrier; a generation number takes the place of the sense).
class ThreadBarrier {
public:
    ThreadBarrier(unsigned size, Waiting waiting, double timeout_seconds = 1e9)
        : size_{size}, spins_{spins(size, waiting)}, timeout_seconds_{timeout_seconds} {}

    /// Waits until all threads have called it. What a thread wrote before its call, all can read after theirs. When it was
    /// interrupted before that, or one thread has waited for longer than the timeout, it will never be complete for anybody.
    [[nodiscard]] Arrival arrive_and_wait() {
        std::uint64_t const before = state_.fetch_add(one_arrival, std::memory_order_acq_rel);
        if ((before & broken) != 0) {
            state_.fetch_sub(one_arrival); // else those who wait might take it for the last one
            wake();
            return Arrival::interrupted;
        }
        if (arrived(before) + 1 != size_) { return wait(generation(before)); }
        // From `size` arrivals to none of the next generation, in one step that keeps an interruption.
        state_.fetch_add(one_generation - size_ * one_arrival);
        if (sleepers_.load() != 0) { wake(); }
        return Arrival::complete;
    }

    /// Lets go all who wait at an incomplete barrier and all who arrive later. A barrier that is complete stays so, also for
    /// threads that have not noticed yet.
    void interrupt() {
        state_.fetch_or(broken);
        wake();
    }

private:
    // All that decides is one number, so that a barrier cannot be complete for some threads and given up by another: bit 0
    // broken, bits 1 to 31 arrivals, bits 32 to 63 the generation.
    static constexpr std::uint64_t broken = 1;
    static constexpr std::uint64_t one_arrival = 2;
    static constexpr std::uint64_t one_generation = std::uint64_t{1} << 32U;
    static constexpr std::uint32_t generation(std::uint64_t state) { return static_cast<std::uint32_t>(state >> 32U); }
    static constexpr std::uint32_t arrived(std::uint64_t state) { return static_cast<std::uint32_t>(state) >> 1U; }

    static bool spins(unsigned size, Waiting waiting) {
        if (waiting == Waiting::automatic) { return size <= std::thread::hardware_concurrency(); }
        return waiting == Waiting::spin_then_block;
    }

    /// Nothing while the barrier of this generation is neither complete nor broken.
    [[nodiscard]] std::optional<Arrival> outcome(std::uint32_t mine) const noexcept {
        std::uint64_t const state = state_.load();
        if (generation(state) != mine) { return Arrival::complete; }
        // All have arrived: the last one is about to say so.
        if ((state & broken) != 0 && arrived(state) != size_) { return Arrival::interrupted; }
        return std::nullopt;
    }

    /// The one place where a thread waits for others.
    [[nodiscard]] Arrival wait(std::uint32_t mine) {
        auto result = spins_ ? spin(mine) : outcome(mine);
        if (!result) {
            std::unique_lock lock{mutex_};
            // Sequentially consistent, as are the stores and the load of who wakes: either that sees this sleeper, or this sees
            // its store. Between the test and the sleep it cannot slip through, since it takes the mutex.
            sleepers_.fetch_add(1);
            auto const known = [&] { return (result = outcome(mine)).has_value(); };
            if (!wake_.wait_until(lock, deadline_after(timeout_seconds_), known)) { result = give_up(mine); }
            sleepers_.fetch_sub(1);
        }
        return *result;
    }

    /// Breaks the barrier, unless all have arrived meanwhile.
    [[nodiscard]] Arrival give_up(std::uint32_t mine) {
        std::uint64_t state = state_.load();
        for (;;) {
            if (auto const result = outcome(mine)) { return *result; }
            if (arrived(state) != size_ && generation(state) == mine && state_.compare_exchange_weak(state, state | broken)) {
                wake_.notify_all();
                return Arrival::timed_out;
            }
            state = state_.load();
        }
    }

    [[nodiscard]] std::optional<Arrival> spin(std::uint32_t mine) const noexcept {
        constexpr auto patience = std::chrono::microseconds{50}; // about what falling asleep and waking cost
        SteadyClock::time_point end{};
        for (unsigned turn = 0;; ++turn) {
            auto const result = outcome(mine);
            if (result) { return result; }
            pause_briefly();
            if (turn % 64 == 63) { // reading the clock costs more than a pause
                auto const now = SteadyClock::now();
                if (end == SteadyClock::time_point{}) { end = now + patience; }
                if (now >= end) { return std::nullopt; }
            }
        }
    }

    void wake() {
        { std::lock_guard const lock{mutex_}; }
        wake_.notify_all();
    }

    unsigned const size_;
    bool const spins_;
    double const timeout_seconds_;
    alignas(interference_bytes) std::atomic<std::uint64_t> state_{0};
    alignas(interference_bytes) std::atomic<unsigned> sleepers_{0};
    std::mutex mutex_;
    std::condition_variable wake_;
};

} // namespace detail
} // namespace lockstep
