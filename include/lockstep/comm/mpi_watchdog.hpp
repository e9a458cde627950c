#pragma once

#include "lockstep/comm/call.hpp"
#include "lockstep/comm/launch.hpp"
#include "lockstep/comm/mpi_exit.hpp"
#include "lockstep/comm/progress.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace lockstep::detail {

/// Watches calls of MPI that block, which nobody can be called back from: a thread that ends the program, as an uncaught
/// WorkerError does, when one takes longer than the timeout. It makes no calls of MPI itself.
class MpiWatchdog {
public:
    MpiWatchdog(int rank, int size, double timeout_seconds)
        : rank_{rank}, size_{size}, timeout_seconds_{timeout_seconds}, thread_{[this] { watch(); }} {}
    MpiWatchdog(MpiWatchdog const&) = delete;
    MpiWatchdog& operator=(MpiWatchdog const&) = delete;
    ~MpiWatchdog() {
        {
            std::lock_guard const lock{mutex_};
            leaves_ = true;
        }
        wake_.notify_one();
        thread_.join();
    }

    /// Runs run(), which belongs to `call` of this worker.
    template <class Run>
    void guard(Call const& call, Progress const& progress, Run const& run) {
        Guarded const guarded{*this, call, progress};
        run();
    }

private:
    struct Guarded {
        Guarded(MpiWatchdog& watchdog, Call const& call, Progress const& progress) : dog{watchdog} {
            std::lock_guard const lock{dog.mutex_};
            dog.call_ = call;
            dog.progress_ = progress;
            dog.waited_seconds_ = 0;
            dog.seen_ = SteadyClock::now();
            dog.armed_ = true;
        }
        Guarded(Guarded const&) = delete;
        Guarded& operator=(Guarded const&) = delete;
        ~Guarded() {
            std::lock_guard const lock{dog.mutex_};
            dog.armed_ = false;
        }
        MpiWatchdog& dog;
    };

    void watch() noexcept {
        // It looks now and then instead of being woken for every call, which would cost more than many a call takes.
        constexpr std::chrono::milliseconds pause{100};
        double const turn = turn_seconds(rank_);
        std::unique_lock lock{mutex_};
        while (!wake_.wait_for(lock, pause, [this] { return leaves_; })) {
            auto const before = std::exchange(seen_, SteadyClock::now());
            // A process that was stopped itself has not waited meanwhile: the others have, for it.
            waited_seconds_ += std::min(std::chrono::duration<double>(seen_ - before).count(), 1.0);
            if (armed_ && waited_seconds_ > timeout_seconds_ + turn) {
                end_program(WorkerError(rank_, size_,
                                        concat(call_.describe(), " did not end within ", timeout_seconds_,
                                               " s, though all workers had come to it; this one is in ", progress_.describe())));
            }
        }
    }

    int const rank_;
    int const size_;
    double const timeout_seconds_;
    std::mutex mutex_; // for all that follows
    std::condition_variable wake_;
    bool leaves_ = false;
    bool armed_ = false;
    Call call_{};
    Progress progress_{};
    double waited_seconds_ = 0;
    SteadyClock::time_point seen_{}; // when it was added to last
    std::thread thread_;             // last: it uses the others
};

} // namespace lockstep::detail
