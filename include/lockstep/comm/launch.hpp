#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/core/error.hpp"

#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace lockstep {

/// How a job is spread out.
struct Scaling {
    int num_workers = 1;
};

/// The first error of a launched job, and the worker that had it: "rank 1 of 2: the original text". The original exception is
/// nested in it (std::rethrow_if_nested).
struct WorkerError : Error {
    WorkerError(int failed_rank, int size, std::string const& text)
        : Error(detail::concat("rank ", failed_rank, " of ", size, ": ", text)), rank{failed_rank} {}

    int rank;
};

namespace detail {

[[noreturn]] inline void throw_worker_error(int rank, int size, std::exception_ptr const& original) {
    try {
        std::rethrow_exception(original);
    } catch (std::exception const& error) { std::throw_with_nested(WorkerError(rank, size, error.what())); } catch (...) {
        std::throw_with_nested(WorkerError(rank, size, "an exception that is not derived from std::exception"));
    }
}

inline void check_num_workers(Scaling const& scaling) {
    if (scaling.num_workers < 1) { throw ArgumentError(concat("num_workers must be at least 1, got ", scaling.num_workers)); }
}

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

/// Runs body(comm) on every worker of a new group, comm being the worker's own Comm&, and returns what rank 0's body returned.
/// All workers share the one body, so it must be safe to call concurrently. When a worker fails, all end, and the first error is
/// thrown as a `WorkerError`. A launch leaves nothing behind: the next one starts afresh; launches may be nested and concurrent.
/// Throws ArgumentError when Comm cannot run that many workers.
template <Communicator Comm, class Body>
auto launch(Scaling const& scaling, Body&& body) {
    return Comm::launch(scaling, body);
}

} // namespace lockstep
