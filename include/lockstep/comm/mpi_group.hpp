#pragma once

#include "lockstep/comm/call.hpp"
#include "lockstep/comm/launch.hpp"
#include "lockstep/comm/mpi_environment.hpp"
#include "lockstep/comm/mpi_messages.hpp"
#include "lockstep/comm/mpi_notices.hpp"
#include "lockstep/comm/mpi_watchdog.hpp"
#include "lockstep/comm/progress.hpp"
#include "lockstep/core/shard_tree.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::detail {

/// What a block of neighbouring ranks brings to a meeting.
struct MpiPost {
    Call call{};         ///< of the block's first rank
    int other_rank = -1; ///< the first rank of the block that called something else, and what
    Call other{};
    alignas(8) std::array<std::byte, value_bytes> value{};
    std::uint64_t losses_size = 0;
    std::array<double, max_nodes> losses{}; ///< that reduce_update sums along: those of the nodes of the block's leaves

    /// What of it is sent.
    [[nodiscard]] std::size_t bytes() const noexcept { return offsetof(MpiPost, losses) + losses_size * sizeof(double); }
};

/// The messages of one launch among MPI processes: who waits for whom, for how long, and how all of them end.
///
/// A worker waits by testing its requests, so that it can look for the notices of workers that leave, and at the clock. A worker
/// that leaves an operation before its end cancels its receives and takes in what others are still sending to it, until its own
/// messages have been taken in: then nothing refers to its memory any more (`abandon`). In `close`, at the end of the launch, all
/// wait until all have settled in this way. After a timeout nobody can settle: MPI_Finalize then ends the job.
class MpiGroup {
public:
    MpiGroup(MPI_Comm parent, double timeout_seconds)
        : comm_{parent, timeout_seconds}, timeout_seconds_{timeout_seconds}, notices_{comm_.get(), rank(), size()},
          messages_{comm_.get(), 8 * static_cast<std::size_t>(size())} {}
    MpiGroup(MpiGroup const&) = delete;
    MpiGroup& operator=(MpiGroup const&) = delete;

    [[nodiscard]] int rank() const noexcept { return comm_.rank(); }
    [[nodiscard]] int size() const noexcept { return comm_.size(); }
    [[nodiscard]] double timeout_seconds() const noexcept { return timeout_seconds_; }

    Progress progress{}; ///< of this worker
    bool yields = false; ///< there are more workers than processors

    MpiPost incoming; ///< of the meeting; here, so that a message that comes after a timeout finds its place
    MpiPost outgoing;

    /// Begins a collective operation that has a meeting. Throws Released when the group has failed.
    void begin(Call const& call) {
        if (notices_.sent()) { throw Released{}; }
        call_ = call;
        ++meetings_;
    }
    /// All have come to the meeting.
    void met() noexcept { seen_ = progress; }
    /// This worker has gone through with the operation.
    void end() noexcept { finished_ = meetings_; }

    void send(void const* data, std::size_t bytes, int to, Tag tag) { messages_.send(data, bytes, to, tag); }
    void receive(void* data, std::size_t bytes, int from, Tag tag) { messages_.receive(data, bytes, from, tag); }
    /// MPI's own reduction, of at most INT_MAX elements, after a meeting. It blocks: measured, MPI_Iallreduce may take twice the
    /// time of MPI_Allreduce.
    void reduce_natively(void* data, std::size_t count, MPI_Datatype type) {
        if (!watchdog_) { watchdog_.emplace(rank(), size(), timeout_seconds_); }
        watchdog_->guard(call_, progress, [&] {
            check_mpi(MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count), type, MPI_SUM, comm_.get()), "MPI_Allreduce");
        });
    }

    /// Waits until all that was begun is complete. The one place where a worker waits for others within its work.
    void wait() {
        auto const start = SteadyClock::now();
        for (unsigned turn = 1; !messages_.complete(); ++turn) {
            if (turn % 32 == 0 || yields) { look_around(start); }
        }
        messages_.clear();
    }

    /// Leaves the operation because of an error of this worker, or of another one (no error). The first call counts.
    void abandon(Leaving how, std::string const& error = {}) {
        if (notices_.sent()) { return; }
        announce(how, error);
        messages_.cancel_receives();
        if (broken_) { return; }
        auto const deadline = deadline_after(timeout_seconds_);
        while (!messages_.complete()) {
            settle();
            if (SteadyClock::now() > deadline) {
                broken_ = true;
                return;
            }
        }
        messages_.clear();
    }

    /// The end of the launch: waits for all, then throws the first error of any worker as a WorkerError.
    void close(std::exception_ptr const& error) {
        if (error && !notices_.sent()) { abandon(Leaving::failed, text_of(error)); }
        if (!broken_) { broken_ = !settle_with_all(); }
        if (!broken_) {
            notices_.close();
            comm_.free();
        }
        throw_first_error(error);
    }

private:
    using Time = SteadyClock::time_point;
    static constexpr double grace_seconds = 1.5; // for those who also wait, to say so

    /// Between two looks at the requests: throws when there is nothing to wait for any more.
    void look_around(Time start) {
        notices_.poll();
        for (int other = 0; other < size(); ++other) {
            auto const& notice = notices_.of(other);
            if (!notice) { continue; }
            if (notice->how == Leaving::timed_out) { time_out(start); }
            // What it has gone through with, this worker can, too: all see the same operations fail.
            if (notice->finished >= meetings_) { continue; }
            if (notice->how == Leaving::returned) { throw Error(already_returned(rank(), call_, other)); }
            abandon(Leaving::released);
            throw Released{};
        }
        pause(start);
        if (seconds_since(start) > timeout_seconds_) { time_out(start); }
    }

    [[nodiscard]] static double seconds_since(Time start) {
        return std::chrono::duration<double>(SteadyClock::now() - start).count();
    }

    /// Leaves the processor to others, the more readily the longer it has waited.
    void pause(Time start) const {
        if (seconds_since(start) > 0.1) {
            std::this_thread::sleep_for(std::chrono::microseconds{100});
        } else if (yields) {
            std::this_thread::yield();
        }
    }

    void announce(Leaving how, std::string const& error) {
        Notice notice{.how = how, .finished = finished_, .progress = progress};
        notice.settled = messages_.none() ? 1 : 0;
        notice.set_text(error);
        notices_.send(notice);
    }

    /// One who has waited for too long asks who else waits; the others are missing. A worker that hears of it and has only just
    /// come is one of those.
    [[noreturn]] void time_out(Time start) {
        bool const late = seconds_since(start) < timeout_seconds_ / 2;
        broken_ = true;
        abandon(late ? Leaving::released : Leaving::timed_out);
        if (late) { throw Released{}; }
        auto const deadline = deadline_after(grace_seconds);
        auto missing = not_heard_of();
        for (; !missing.empty() && SteadyClock::now() < deadline; missing = not_heard_of()) {
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
            notices_.poll();
        }
        if (missing.empty()) { missing.push_back({rank(), seen_}); } // all wait: messages do not get through
        timeout_rank_ = missing.front().rank;
        timeout_text_ = timeout_text(missing, call_, timeout_seconds_, rank(), progress);
        throw Error(timeout_text_);
    }

    [[nodiscard]] std::vector<Missing> not_heard_of() const {
        std::vector<Missing> missing;
        for (int other = 0; other < size(); ++other) {
            if (other != rank() && !notices_.of(other)) { missing.push_back({other, seen_}); }
        }
        return missing;
    }

    /// Takes in what others are still sending.
    void settle() {
        notices_.poll();
        messages_.discard();
        std::this_thread::yield();
    }

    /// Waits until nothing is under way in the whole group. False when that takes too long, or cannot be.
    [[nodiscard]] bool settle_with_all() {
        if (!notices_.sent()) { announce(Leaving::returned, {}); }
        auto const start = SteadyClock::now();
        bool told = notices_.own().settled != 0;
        for (;;) {
            settle();
            if (messages_.complete()) {
                if (!told) {
                    Notice last = notices_.own();
                    last.settled = 1;
                    notices_.send(last);
                    told = true;
                }
                if (notices_.complete()) { return true; }
            }
            if (anyone(Leaving::timed_out)) { return false; }
            if (seconds_since(start) > timeout_seconds_) { return false; }
            pause(start);
        }
    }

    [[nodiscard]] bool anyone(Leaving how) const {
        for (int other = 0; other < size(); ++other) {
            if (notices_.of(other) && notices_.of(other)->how == how) { return true; }
        }
        return false;
    }

    void throw_first_error(std::exception_ptr const& own) {
        if (timeout_rank_ >= 0) { fail_by_timeout(); }
        for (int other = 0; other < size(); ++other) { // the same order on all
            auto const& notice = notices_.of(other);
            if (other == rank() && notices_.own().how == Leaving::failed) {
                if (broken_) { MpiEnvironment::get(timeout_seconds_).mark_broken(true); }
                throw_worker_error(rank(), size(), own ? own : error_of(notices_.own()));
            }
            if (notice && notice->how == Leaving::failed) {
                if (broken_) { MpiEnvironment::get(timeout_seconds_).mark_broken(false); }
                throw_worker_error(other, size(), error_of(*notice), false);
            }
        }
        if (!broken_) { return; }
        if (anyone(Leaving::timed_out)) { // and this worker is one of those who did not come
            MpiEnvironment::get(timeout_seconds_).mark_broken(false);
            throw WorkerError(rank(), size(), "came too late: the others have given up", false);
        }
        timeout_rank_ = first_unsettled();
        timeout_text_ =
            concat("did not end within ", timeout_seconds_, " s after rank ", rank(), "; it was last seen in ", seen_.describe());
        fail_by_timeout();
    }

    /// The lowest of those who waited tells the user.
    [[noreturn]] void fail_by_timeout() {
        bool tells = true;
        for (int other = 0; other < rank(); ++other) {
            tells = tells && !(notices_.of(other) && notices_.of(other)->how == Leaving::timed_out);
        }
        MpiEnvironment::get(timeout_seconds_).mark_broken(tells);
        throw_worker_error(timeout_rank_, size(), std::make_exception_ptr(Error(timeout_text_)), tells);
    }

    [[nodiscard]] int first_unsettled() const {
        for (int other = 0; other < size(); ++other) {
            if (other != rank() && !(notices_.of(other) && notices_.of(other)->settled != 0)) { return other; }
        }
        return rank();
    }

    [[nodiscard]] static std::exception_ptr error_of(Notice const& notice) {
        return std::make_exception_ptr(Error(notice.get_text()));
    }

    MpiDuplicate comm_;
    double timeout_seconds_;
    Notices notices_;
    MpiMessages messages_;
    Call call_{};                // that this worker is in
    std::uint64_t meetings_ = 0; // that it has come to
    std::uint64_t finished_ = 0; // of these
    Progress seen_{};            // at the last meeting of all
    bool broken_ = false;
    int timeout_rank_ = -1;
    std::string timeout_text_;
    std::optional<MpiWatchdog> watchdog_;
};

} // namespace lockstep::detail
