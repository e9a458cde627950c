#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
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

/// A central generation barrier for a fixed number of threads that can be interrupted for good when one of them will not come.
/// Source: J. M. Mellor-Crummey, M. L. Scott, "Algorithms for Scalable Synchronization on Shared-Memory Multiprocessors", ACM
/// TOCS 9(1), 1991 (the centralised barrier; a generation number takes the place of the sense).
class ThreadBarrier {
public:
    ThreadBarrier(unsigned size, Waiting waiting) : size_{size}, spins_{spins(size, waiting)} {}

    /// Waits until all threads have called it: true. False when interrupted before that. What a thread wrote before its call, all
    /// can read after theirs.
    [[nodiscard]] bool arrive_and_wait() {
        // A thread is interrupted for, or gone, only between two barriers, so it cannot have arrived at this one, nor ever will.
        if (interrupted_.load(std::memory_order_acquire)) { return false; }
        std::uint32_t const generation = generation_.load(std::memory_order_relaxed); // cannot change before this thread arrives
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 != size_) { return wait(generation); }
        arrived_.store(0, std::memory_order_relaxed); // published by the next line; nobody arrives again before that
        generation_.store(generation + 1);
        if (sleepers_.load() != 0) { wake(); }
        return true;
    }

    /// Lets go all who wait at an incomplete barrier and all who arrive later. A barrier that is complete stays so, also for
    /// threads that have not noticed yet.
    void interrupt() {
        interrupted_.store(true);
        wake();
    }

private:
    enum class Outcome { waiting, complete, interrupted };

    static bool spins(unsigned size, Waiting waiting) {
        if (waiting == Waiting::automatic) { return size <= std::thread::hardware_concurrency(); }
        return waiting == Waiting::spin_then_block;
    }

    [[nodiscard]] Outcome outcome(std::uint32_t generation) const noexcept {
        // This order matters: who completes a barrier and then interrupts (its body returns) has advanced the generation first,
        // so whoever sees the interruption sees the completion too.
        bool const interrupted = interrupted_.load();
        if (generation_.load() != generation) { return Outcome::complete; }
        return interrupted ? Outcome::interrupted : Outcome::waiting;
    }

    /// The one place where a thread waits for others. A deadline belongs into the wait on the condition variable: spinning is
    /// short.
    [[nodiscard]] bool wait(std::uint32_t generation) {
        Outcome result = spins_ ? spin(generation) : outcome(generation);
        if (result == Outcome::waiting) {
            std::unique_lock lock{mutex_};
            // Sequentially consistent, as are the stores and the load of who wakes: either that sees this sleeper, or this sees
            // its store. Between the test and the sleep it cannot slip through, since it takes the mutex.
            sleepers_.fetch_add(1);
            wake_.wait(lock, [&] { return (result = outcome(generation)) != Outcome::waiting; });
            sleepers_.fetch_sub(1);
        }
        return result == Outcome::complete;
    }

    [[nodiscard]] Outcome spin(std::uint32_t generation) const noexcept {
        using Clock = std::chrono::steady_clock;
        constexpr auto patience = std::chrono::microseconds{50}; // about what falling asleep and waking cost
        Clock::time_point end{};
        for (unsigned turn = 0;; ++turn) {
            Outcome const result = outcome(generation);
            if (result != Outcome::waiting) { return result; }
            pause_briefly();
            if (turn % 64 == 63) { // reading the clock costs more than a pause
                auto const now = Clock::now();
                if (end == Clock::time_point{}) { end = now + patience; }
                if (now >= end) { return Outcome::waiting; }
            }
        }
    }

    void wake() {
        { std::lock_guard const lock{mutex_}; }
        wake_.notify_all();
    }

    unsigned const size_;
    bool const spins_;
    alignas(interference_bytes) std::atomic<unsigned> arrived_{0};
    alignas(interference_bytes) std::atomic<std::uint32_t> generation_{0};
    std::atomic<bool> interrupted_{false};
    alignas(interference_bytes) std::atomic<unsigned> sleepers_{0};
    std::mutex mutex_;
    std::condition_variable wake_;
};

} // namespace detail
} // namespace lockstep
