#pragma once

#include "lockstep/comm/launch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

namespace lockstep::detail {

/// What a program tells the process that supervises it (comm/mpi_supervisor.hpp), in memory that both see.
struct Farewell {
    std::atomic<bool> exits{false};           ///< it has left main, or called std::exit
    std::atomic<bool> owes_nothing{false};    ///< and has finalised MPI, or never initialised it
    std::atomic<bool> told{false};            ///< std::terminate has told the user of a WorkerError
    std::atomic<bool> stuck{false};           ///< a call of MPI does not return
    std::array<char, 128> stuck_text{};       ///< which: set before `stuck`
    std::atomic<int> exit_code{EXIT_FAILURE}; ///< that it was going to end with, as far as that can be known

    /// Null where nobody supervises this process.
    [[nodiscard]] static Farewell*& own() noexcept {
        static Farewell* farewell = nullptr;
        return farewell;
    }

    /// From here on std::exit, and the end of main, note their exit code before they destroy what is static already.
    static bool note_exit_code() noexcept {
#ifdef __GLIBC__
        return ::on_exit([](int code, void*) { own() != nullptr ? own()->exit_code.store(code) : void(); }, nullptr) == 0;
#else
        return false; // C's own atexit does not tell it
#endif
    }
};

/// The first process that ends in failure makes MPI end the others, which takes it a moment (measured with Open MPI 4.1: 1 s
/// where a process is stopped). Those who know the same wait for so long before they end, too, so that one of them tells the
/// user.
[[nodiscard]] constexpr double turn_seconds(int rank) noexcept { return 2.0 * std::min(rank, 2); }

/// Ends the process when it lives for longer than the limit: while it does, MPI_Init or MPI_Finalize runs. A
/// supervised process whose work is done ends with the exit code that it was going to have, another one as by an uncaught
/// WorkerError: what main has returned cannot be kept there.
class MpiCallGuard {
public:
    enum class At { start, end };

    MpiCallGuard(At at, int rank, int size, double limit_seconds)
        : text_{at == At::start
                    ? concat("MPI_Init did not return within ", limit_seconds, " s: not all processes have come to it")
                    : concat("MPI_Finalize did not return within ", limit_seconds, " s, though all processes had come to it")},
          at_{at}, rank_{rank}, size_{size}, limit_seconds_{limit_seconds} {
        try {
            thread_.emplace([this] { watch(); });
        } catch (std::system_error const&) {} // then without a guard
    }
    MpiCallGuard(MpiCallGuard const&) = delete;
    MpiCallGuard& operator=(MpiCallGuard const&) = delete;
    ~MpiCallGuard() {
        if (!thread_) { return; }
        {
            std::lock_guard const lock{mutex_};
            returned_ = true;
        }
        wake_.notify_one();
        thread_->join();
    }

private:
    void watch() noexcept {
        // Supervised ones end together, each with its own exit code.
        double const turn = at_ == At::start || Farewell::own() == nullptr ? turn_seconds(rank_) : 0;
        double waited_seconds = 0;
        std::unique_lock lock{mutex_};
        while (waited_seconds < limit_seconds_ + turn) {
            auto const before = SteadyClock::now();
            if (wake_.wait_for(lock, std::chrono::milliseconds{100}, [this] { return returned_; })) { return; }
            // A process that was stopped itself has not waited meanwhile.
            waited_seconds += std::min(std::chrono::duration<double>(SteadyClock::now() - before).count(), 1.0);
        }
        std::fflush(nullptr); // what exit would have done
        if (auto* const farewell = Farewell::own(); farewell != nullptr && at_ == At::end) {
            text_.copy(farewell->stuck_text.data(), farewell->stuck_text.size() - 1);
            farewell->stuck = true;
            std::raise(SIGKILL); // the supervisor takes it from here
        }
        end_program(WorkerError(rank_, size_, text_));
    }

    std::string const text_;
    At const at_;
    int const rank_;
    int const size_;
    double const limit_seconds_;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool returned_ = false;
    std::optional<std::thread> thread_; // last: it uses the others
};

} // namespace lockstep::detail
