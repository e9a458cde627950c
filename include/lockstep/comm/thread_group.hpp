#pragma once

#include "lockstep/comm/call.hpp"
#include "lockstep/comm/launch.hpp"
#include "lockstep/comm/progress.hpp"
#include "lockstep/comm/thread_barrier.hpp"
#include "lockstep/core/error.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep::detail {

/// What a worker brings to a collective operation: its call, and its data by address, or by value when they are small.
struct alignas(interference_bytes) Post {
    Call call;
    void* data = nullptr;
    std::size_t data_bytes = 0;
    void* parameters = nullptr;
    std::size_t parameter_bytes = 0;
    double const* losses = nullptr; // that reduce_update sums along
    alignas(8) std::array<std::byte, value_bytes> value{};
};

/// Where a worker is: written by itself, read by the others when they have waited for too long.
struct alignas(interference_bytes) Place {
    std::atomic<std::uint64_t> meetings{0}; ///< that it has come to
    std::atomic<Phase> phase{Phase::setup};
    std::atomic<int> epoch{0};
    std::atomic<std::uint64_t> step{0};

    void set(Progress const& progress) noexcept {
        phase.store(progress.phase, std::memory_order_relaxed);
        epoch.store(progress.epoch, std::memory_order_relaxed);
        step.store(progress.step, std::memory_order_relaxed);
    }
    [[nodiscard]] Progress get() const noexcept {
        return {phase.load(std::memory_order_relaxed), epoch.load(std::memory_order_relaxed),
                step.load(std::memory_order_relaxed)};
    }
};

/// What the workers of one `ThreadCommunicator` launch share.
///
/// A collective operation is: `check_usable`; write your post of this turn; `meet`; use the posts of all; if others used your
/// memory, `part`. Posts have two turns. A worker that overwrites its post of turn k for turn k + 2 has met all in turn k + 1,
/// and they came there only when they were done with the posts of turn k; so nobody is ever more than one turn ahead of a reader.
///
/// Between `meet` and `part` no worker may leave, by exception or otherwise, since others may be using its memory.
class ThreadGroup {
public:
    ThreadGroup(int size, Waiting waiting, double timeout_seconds)
        : posts_(2 * static_cast<std::size_t>(size)),
          places_(static_cast<std::size_t>(size)), barrier_{static_cast<unsigned>(size), waiting, timeout_seconds}, size_{size},
          timeout_seconds_{timeout_seconds} {
        gone_.reserve(static_cast<std::size_t>(size));
    }

    [[nodiscard]] int size() const noexcept { return size_; }

    /// Turn `turn` of the posts, one per rank.
    [[nodiscard]] std::span<Post> posts(std::size_t turn) noexcept {
        auto const size = static_cast<std::size_t>(size_);
        return {posts_.data() + turn % 2 * size, size};
    }

    [[nodiscard]] Place& place(int rank) noexcept { return places_[static_cast<std::size_t>(rank)]; }

    /// Call before writing a post: after a failure workers are no longer in step, and others may still be reading it.
    void check_usable() const {
        if (failed_.load(std::memory_order_acquire)) { throw Released{}; }
    }

    /// Waits until all have posted; throws the same error on all if they do not agree.
    void meet(int rank, std::span<Post const> posts) {
        Call const& call = posts[static_cast<std::size_t>(rank)].call;
        auto& meetings = place(rank).meetings;
        meetings.store(meetings.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        switch (barrier_.arrive_and_wait()) {
        case Arrival::complete:
            break;
        case Arrival::interrupted:
            give_up(rank, call);
        case Arrival::timed_out:
            time_out(rank, call);
        }
        for (auto const& post : posts) {
            if (post.call != posts[0].call) { disagree(rank, static_cast<std::size_t>(&post - posts.data()), posts); }
        }
    }

    /// Throws the same error on all if a worker's data overlap another buffer. Equal addresses of parameters are one shared
    /// buffer.
    void check_apart(int rank, std::span<Post const> posts) {
        for (std::size_t i = 0; i < posts.size(); ++i) {
            for (std::size_t j = 0; j < posts.size(); ++j) {
                auto const& a = posts[i];
                auto const& b = posts[j];
                if ((i != j && overlap(a.data, a.data_bytes, b.data, b.data_bytes)) ||
                    overlap(a.data, a.data_bytes, b.parameters, b.parameter_bytes) ||
                    (a.parameters != b.parameters && overlap(a.parameters, a.parameter_bytes, b.parameters, b.parameter_bytes))) {
                    fail_with(rank, concat("rank ", i, " and rank ", j, " called ", posts[0].call.describe(),
                                           " on overlapping buffers"));
                }
            }
        }
    }

    /// Waits until nobody uses this worker's memory any more. Never interrupted, since nobody may leave before it; when that
    /// takes longer than the timeout, the program ends.
    void part(int rank, Call const& call) {
        if (barrier_.arrive_and_wait() != Arrival::complete) {
            end_program(WorkerError(
                rank, size_,
                concat("waits for the others in ", call.describe(), " for more than ", timeout_seconds_, " s and cannot leave")));
        }
    }

    /// Keeps the group's first error and releases all who wait; the group is then of no further use.
    void fail(int rank, std::exception_ptr error) {
        {
            std::lock_guard const lock{mutex_};
            if (!error_) {
                error_ = std::move(error);
                error_rank_ = rank;
            } else if (rank < error_rank_ && text_of(error) == text_of(error_)) {
                error_rank_ = rank; // all workers may have the same error; whose came first is chance
            }
        }
        failed_.store(true);
        barrier_.interrupt();
    }

    /// Runs work(rank) for all ranks, rank 0 on the calling thread, and waits for all. Throws the first error as a WorkerError.
    template <class Work>
    void run(Work const& work) {
        std::vector<std::thread> threads;
        threads.reserve(static_cast<std::size_t>(size_) - 1);
        int rank = 1;
        try {
            for (; rank < size_; ++rank) {
                threads.emplace_back([this, rank, &work] { run_worker(rank, work); });
            }
        } catch (std::exception const& error) {
            fail(rank, std::make_exception_ptr(Error(concat("cannot start a thread for this worker: ", error.what()))));
            std::lock_guard const lock{mutex_};
            gone_.push_back(0); // it never ran, nor did these
            for (int never = rank; never < size_; ++never) { gone_.push_back(never); }
            left_.notify_all();
        }
        if (rank == size_) { run_worker(0, work); }
        for (auto& thread : threads) { thread.join(); }
        if (error_) { throw_worker_error(error_rank_, size_, error_); }
    }

private:
    template <class Work>
    void run_worker(int rank, Work const& work) noexcept {
        try {
            WorkerScope const scope{rank, size_};
            work(rank);
            int nobody = -1;
            returned_rank_.compare_exchange_strong(nobody, rank);
            barrier_.interrupt();
        } catch (...) { fail(rank, std::current_exception()); } // Released: there was an error before it, which stays
        leave(rank);
    }

    /// A failed run waits for its workers for a limited time only. Memory of a worker that does not end cannot be taken away, so
    /// then the program ends.
    void leave(int rank) noexcept {
        std::unique_lock lock{mutex_};
        gone_.push_back(rank); // within its capacity
        left_.notify_all();
        if (!failed_.load()) { return; }
        double const patience = timed_out_ ? 2.0 : timeout_seconds_;
        if (left_.wait_until(lock, deadline_after(patience), [&] { return gone_.size() == static_cast<std::size_t>(size_); })) {
            return;
        }
        std::string text = text_of(error_);
        for (int other = 0; other < size_; ++other) {
            if (std::find(gone_.begin(), gone_.end(), other) == gone_.end()) {
                text += concat("; rank ", other, " did not end within ", patience, " s after that");
            }
        }
        end_program(WorkerError(error_rank_, size_, text));
    }

    [[noreturn]] void give_up(int rank, Call const& call) {
        // One who gives up after a timeout breaks the barrier first and says why a moment later.
        while (!failed_.load() && returned_rank_.load() < 0) { std::this_thread::yield(); }
        if (failed_.load()) { throw Released{}; }
        fail_with(rank, already_returned(rank, call, returned_rank_.load()));
    }

    /// The error belongs to the workers that did not come.
    [[noreturn]] void time_out(int rank, Call const& call) {
        std::vector<Missing> missing;
        for (int other = 0; other < size_; ++other) {
            if (place(other).meetings.load(std::memory_order_relaxed) < place(rank).meetings.load(std::memory_order_relaxed)) {
                missing.push_back({other, place(other).get()});
            }
        }
        if (missing.empty()) { missing.push_back({rank, place(rank).get()}); } // the last one came at this very moment
        timed_out_ = true;
        auto const text = timeout_text(missing, call, timeout_seconds_, rank, place(rank).get());
        fail(missing.front().rank, std::make_exception_ptr(Error(text)));
        throw Released{}; // the error is not this worker's
    }

    [[noreturn]] void disagree(int rank, std::size_t other, std::span<Post const> posts) {
        fail_with(rank, disagreement(static_cast<int>(other), posts[other].call, posts[0].call));
    }

    [[noreturn]] void fail_with(int rank, std::string const& text) {
        Error const error{text};
        fail(rank, std::make_exception_ptr(error));
        throw error;
    }

    [[nodiscard]] static bool overlap(void const* a, std::size_t a_bytes, void const* b, std::size_t b_bytes) noexcept {
        if (a == nullptr || b == nullptr) { return false; }
        auto const* const first = static_cast<std::byte const*>(a);
        auto const* const second = static_cast<std::byte const*>(b);
        return std::less<>{}(first, second + b_bytes) && std::less<>{}(second, first + a_bytes);
    }

    std::vector<Post> posts_;
    std::vector<Place> places_;
    ThreadBarrier barrier_;
    int const size_;
    double const timeout_seconds_;
    std::atomic<bool> failed_{false};
    std::atomic<bool> timed_out_{false};
    std::atomic<int> returned_rank_{-1}; // the first to return
    std::mutex mutex_;                   // for all that follows
    std::condition_variable left_;
    std::vector<int> gone_; // workers whose body has ended
    std::exception_ptr error_;
    int error_rank_ = -1;
};

} // namespace lockstep::detail
