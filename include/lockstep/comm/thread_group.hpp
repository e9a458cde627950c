#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/comm/launch.hpp"
#include "lockstep/comm/thread_barrier.hpp"
#include "lockstep/core/error.hpp"

#include <array>
#include <atomic>
#include <concepts>
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

enum class Operation : std::uint32_t { all_reduce, broadcast, barrier, reduce_update };
enum class Scalar : std::uint32_t { float32, float64, int64, uint64 };

template <Communicable T>
inline constexpr Scalar scalar_of = std::same_as<T, float>          ? Scalar::float32
                                    : std::same_as<T, double>       ? Scalar::float64
                                    : std::same_as<T, std::int64_t> ? Scalar::int64
                                                                    : Scalar::uint64;

/// What a worker asks of the others; all must ask the same.
struct Call {
    Operation operation = Operation::barrier;
    Scalar scalar = Scalar::float32;
    int root = 0;
    std::size_t count = 0;

    bool operator==(Call const&) const = default;

    [[nodiscard]] std::string describe() const {
        static constexpr std::array operations{"all_reduce", "broadcast", "barrier", "reduce_update"};
        static constexpr std::array scalars{"float", "double", "int64", "uint64"};
        std::string const name = operations[static_cast<std::size_t>(operation)];
        if (operation == Operation::barrier) { return name; }
        return concat(name, " of ", count, " ", scalars[static_cast<std::size_t>(scalar)]);
    }
};

/// What a worker brings to a collective operation: its call, and its data by address, or by value when they are small.
struct alignas(interference_bytes) Post {
    static constexpr std::size_t value_bytes = 64;

    Call call;
    void* data = nullptr;
    void* parameters = nullptr;
    double scalar = 0; // that reduce_update sums along
    alignas(8) std::array<std::byte, value_bytes> value{};
};

/// Leaves a collective operation of a group in which another worker has failed. It tells nothing new: that worker's error is the
/// one that is reported.
struct Released : std::exception {
    [[nodiscard]] char const* what() const noexcept override { return "released, because another worker failed"; }
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
    ThreadGroup(int size, Waiting waiting)
        : posts_(2 * static_cast<std::size_t>(size)), barrier_{static_cast<unsigned>(size), waiting}, size_{size} {}

    [[nodiscard]] int size() const noexcept { return size_; }

    /// Turn `turn` of the posts, one per rank.
    [[nodiscard]] std::span<Post> posts(std::size_t turn) noexcept {
        auto const size = static_cast<std::size_t>(size_);
        return {posts_.data() + turn % 2 * size, size};
    }

    /// Call before writing a post: after a failure workers are no longer in step, and others may still be reading it.
    void check_usable() const {
        if (failed_.load(std::memory_order_acquire)) { throw Released{}; }
    }

    /// Waits until all have posted; throws the same error on all if they do not agree.
    void meet(int rank, std::span<Post const> posts) {
        if (!barrier_.arrive_and_wait()) { give_up(rank, posts[static_cast<std::size_t>(rank)].call); }
        for (auto const& post : posts) {
            if (post.call != posts[0].call) { disagree(rank, static_cast<std::size_t>(&post - posts.data()), posts); }
        }
    }

    /// Throws the same error on all if a worker's data overlap another buffer. Equal addresses of parameters are one shared
    /// buffer.
    void check_apart(int rank, std::span<Post const> posts, std::size_t bytes) {
        for (std::size_t i = 0; i < posts.size(); ++i) {
            for (std::size_t j = 0; j < posts.size(); ++j) {
                if ((i != j && overlap(posts[i].data, posts[j].data, bytes)) ||
                    overlap(posts[i].data, posts[j].parameters, bytes) ||
                    (posts[i].parameters != posts[j].parameters && overlap(posts[i].parameters, posts[j].parameters, bytes))) {
                    fail_with(rank, concat("rank ", i, " and rank ", j, " called ", posts[0].call.describe(),
                                           " on overlapping buffers"));
                }
            }
        }
    }

    /// Waits until nobody uses this worker's memory any more. Never interrupted, since nobody may leave before it.
    void part() {
        if (!barrier_.arrive_and_wait()) { throw Released{}; }
    }

    /// Keeps the group's first error and releases all who wait; the group is then of no further use.
    void fail(int rank, std::exception_ptr error) {
        {
            std::lock_guard const lock{error_mutex_};
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
        }
        if (rank == size_) { run_worker(0, work); }
        for (auto& thread : threads) { thread.join(); }
        if (error_) { throw_worker_error(error_rank_, size_, error_); }
    }

private:
    template <class Work>
    void run_worker(int rank, Work const& work) noexcept {
        try {
            work(rank);
            int nobody = -1;
            returned_rank_.compare_exchange_strong(nobody, rank);
            barrier_.interrupt();
        } catch (...) { fail(rank, std::current_exception()); } // Released: there was an error before it, which stays
    }

    [[noreturn]] void give_up(int rank, Call const& call) {
        if (failed_.load()) { throw Released{}; }
        fail_with(rank, concat("rank ", rank, " waits in ", call.describe(), ", but rank ", returned_rank_.load(),
                               " has already returned"));
    }

    [[noreturn]] void disagree(int rank, std::size_t other, std::span<Post const> posts) {
        Call const& a = posts[other].call;
        Call const& b = posts[0].call;
        bool const roots_differ = a.operation == b.operation && a.root != b.root;
        auto const root = [&](Call const& call) { return roots_differ ? concat(" from root ", call.root) : std::string{}; };
        fail_with(rank,
                  concat("rank ", other, " called ", a.describe(), root(a), " while rank 0 called ", b.describe(), root(b)));
    }

    [[noreturn]] void fail_with(int rank, std::string const& text) {
        Error const error{text};
        fail(rank, std::make_exception_ptr(error));
        throw error;
    }

    [[nodiscard]] static std::string text_of(std::exception_ptr const& error) {
        try {
            std::rethrow_exception(error);
        } catch (std::exception const& known) { return known.what(); } catch (...) {
            return {};
        }
    }

    [[nodiscard]] static bool overlap(void const* a, void const* b, std::size_t bytes) noexcept {
        if (a == nullptr || b == nullptr) { return false; }
        auto const* const first = static_cast<std::byte const*>(a);
        auto const* const second = static_cast<std::byte const*>(b);
        return std::less<>{}(first, second + bytes) && std::less<>{}(second, first + bytes);
    }

    std::vector<Post> posts_;
    ThreadBarrier barrier_;
    int const size_;
    std::atomic<bool> failed_{false};
    std::atomic<int> returned_rank_{-1}; // the first to return
    std::mutex error_mutex_;
    std::exception_ptr error_;
    int error_rank_ = -1;
};

} // namespace lockstep::detail
