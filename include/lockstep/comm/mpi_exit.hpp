#pragma once

#include "lockstep/comm/launch.hpp"

#include <algorithm>
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
    std::atomic<bool> stuck{false};           ///< MPI_Finalize does not return
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

/// The error of a program whose work is done, and yet does not end.
[[nodiscard]] inline std::string stuck_text(double seconds) {
    return concat("MPI_Finalize did not return within ", seconds, " s, though all processes had come to it");
}

/// Ends the process when it lives for longer than the limit: while it does, MPI_Finalize runs, after all processes have come to
/// it. A supervised process ends with the exit code that it was going to have, another one as by an uncaught WorkerError: what
/// main has returned cannot be kept there.
class MpiFinalizeGuard {
public:
    static constexpr double limit_seconds = 10;

    MpiFinalizeGuard(int rank, int size) : rank_{rank}, size_{size} {
        try {
            thread_.emplace([this] { watch(); });
        } catch (std::system_error const&) {} // then without a guard
    }
    MpiFinalizeGuard(MpiFinalizeGuard const&) = delete;
    MpiFinalizeGuard& operator=(MpiFinalizeGuard const&) = delete;
    ~MpiFinalizeGuard() {
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
        // The first process that fails makes MPI end the others: one after the other, so that not all tell the user. Supervised
        // ones end together, each with its own exit code.
        double const turn_seconds = Farewell::own() == nullptr ? 0.3 * std::min(rank_, 10) : 0;
        double waited_seconds = 0;
        std::unique_lock lock{mutex_};
        while (waited_seconds < limit_seconds + turn_seconds) {
            auto const before = SteadyClock::now();
            if (wake_.wait_for(lock, std::chrono::milliseconds{100}, [this] { return returned_; })) { return; }
            // A process that was stopped itself has not waited meanwhile.
            waited_seconds += std::min(std::chrono::duration<double>(SteadyClock::now() - before).count(), 1.0);
        }
        std::fflush(nullptr); // what exit would have done
        if (auto* const farewell = Farewell::own()) {
            farewell->stuck = true;
            std::raise(SIGKILL); // the supervisor takes it from here
        }
        end_program(WorkerError(rank_, size_, stuck_text(limit_seconds)));
    }

    int const rank_;
    int const size_;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool returned_ = false;
    std::optional<std::thread> thread_; // last: it uses the others
};

} // namespace lockstep::detail
