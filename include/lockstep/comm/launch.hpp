#pragma once

#include "lockstep/comm/call.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/core/error.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace lockstep {

/// How a job is spread out.
struct Scaling {
    std::optional<int> num_workers{}; ///< none: one worker; with MPI as many as there are processes
    double timeout_seconds = 300;     ///< so long a worker waits for others in one collective operation before the run ends
};

/// The first error of a launched job, and the worker that had it: "rank 1 of 2: the original text". Where that worker lives in
/// this process, the original exception is nested in it (std::rethrow_if_nested).
struct WorkerError : Error {
    WorkerError(int failed_rank, int size, std::string const& text, bool report = true)
        : Error(detail::concat("rank ", failed_rank, " of ", size, ": ", text)), rank{failed_rank}, to_report{report} {}

    int rank;
    bool to_report; ///< where several processes get the same error, true on one of them: the one that should tell the user
};

namespace detail {

[[noreturn]] inline void throw_worker_error(int rank, int size, std::exception_ptr const& original, bool to_report = true) {
    try {
        std::rethrow_exception(original);
    } catch (...) { std::throw_with_nested(WorkerError(rank, size, text_of(original), to_report)); }
}

inline void check_scaling(Scaling const& scaling) {
    if (scaling.num_workers && *scaling.num_workers < 1) {
        throw ArgumentError(concat("num_workers must be at least 1, got ", *scaling.num_workers));
    }
    if (!(scaling.timeout_seconds > 0)) {
        throw ArgumentError(concat("timeout_seconds must be more than 0, got ", scaling.timeout_seconds));
    }
}

using SteadyClock = std::chrono::steady_clock;

/// The time `seconds` from now. Infinity, or what a clock cannot hold, is some thirty years.
[[nodiscard]] inline SteadyClock::time_point deadline_after(double seconds) {
    std::chrono::duration<double> const wait{std::min(seconds, 1e9)};
    return SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(wait);
}

/// Ends the program as an uncaught WorkerError does (std::terminate prints it): for runs that cannot end otherwise.
[[noreturn]] inline void end_program(WorkerError const& error) noexcept {
    struct Uncaught {
        [[noreturn]] static void raise(WorkerError const& cause) { throw cause; }
    };
    Uncaught::raise(error);
}

/// Lives while this thread runs a worker's body. std::exit there would leave the others waiting, or end their work unfinished
/// with an exit code of its choice; it becomes an uncaught WorkerError.
class WorkerScope {
public:
    WorkerScope(int rank, int size) : rank_{rank}, size_{size}, outer_{std::exchange(innermost(), this)} {
        static int const registered = std::atexit(check_exit);
        static_cast<void>(registered);
    }
    WorkerScope(WorkerScope const&) = delete;
    WorkerScope& operator=(WorkerScope const&) = delete;
    ~WorkerScope() { innermost() = outer_; }

    /// What std::exit calls.
    static void check_exit() noexcept {
        if (auto const* const scope = innermost()) {
            end_program(WorkerError(scope->rank_, scope->size_, "called exit before the body of launch had returned"));
        }
    }

private:
    [[nodiscard]] static WorkerScope const*& innermost() noexcept {
        thread_local WorkerScope const* scope = nullptr;
        return scope;
    }

    int rank_;
    int size_;
    WorkerScope const* outer_;
};

/// A place for what a body returns, so that void needs no special case elsewhere.
template <class R>
class ResultSlot {
    static_assert(!std::is_reference_v<R>, "The body given to launch must return a value or nothing, not a reference.");

public:
    template <class Call>
    void fill(Call const& call) {
        value_.emplace(call());
    }
    [[nodiscard]] R take() { return std::move(*value_); }

private:
    std::optional<R> value_;
};

template <>
class ResultSlot<void> {
public:
    template <class Call>
    void fill(Call const& call) {
        call();
    }
    void take() {}
};

} // namespace detail

/// Runs body(comm) on every worker of a new group, comm being the worker's own Comm&, and returns what rank 0's body returned;
/// where workers are processes, each process returns what its own body returned. Workers of one process share the one body, so it
/// must be safe to call concurrently. When a worker fails, or makes others wait for longer than the timeout, all end, and the
/// first error is thrown as a `WorkerError`, in every process. A launch leaves nothing behind: the next one starts afresh;
/// launches may be nested, and concurrent where workers are threads. A worker that cannot be ended (it never comes back from a
/// computation of its own after a failure) ends the program by std::terminate. Throws ArgumentError when Comm cannot run that
/// many workers.
template <Communicator Comm, class Body>
auto launch(Scaling const& scaling, Body&& body) {
    return Comm::launch(scaling, body);
}

} // namespace lockstep
