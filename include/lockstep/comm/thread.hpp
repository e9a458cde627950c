#pragma once

#include "lockstep/comm/call.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/comm/launch.hpp"
#include "lockstep/comm/progress.hpp"
#include "lockstep/comm/thread_group.hpp"
#include "lockstep/comm/tree_sum.hpp"
#include "lockstep/core/aligned_buffer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <type_traits>

namespace lockstep {

/// One worker of a group of threads that share memory. Only `launch` makes it; use it on the thread it was given to. Each worker
/// reduces its own slice of the data, reading and writing the others' buffers in place; 64 bytes and less go by value.
class ThreadCommunicator {
public:
    static constexpr char const* name = "threads";

    ThreadCommunicator(ThreadCommunicator const&) = delete;
    ThreadCommunicator& operator=(ThreadCommunicator const&) = delete;

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int size() const noexcept { return group_.size(); }

    /// See `NotesProgress`.
    void note(Progress const& progress) noexcept { group_.place(rank_).set(progress); }
    [[nodiscard]] Progress progress() const noexcept { return group_.place(rank_).get(); }

    /// See `Communicator`. Collective.
    template <Communicable T>
    void all_reduce(std::span<T> values) {
        auto const posts = meet(detail::Operation::all_reduce, values);
        if (detail::by_value(values)) {
            for (std::size_t i = 0; i < values.size(); ++i) {
                values[i] = tree_sum<T>(0, posts.size(), [&](std::size_t rank) { return posted_value<T>(posts[rank], i); });
            }
            return;
        }
        group_.check_apart(rank_, posts, values.size_bytes());
        auto const data = [&](std::size_t rank) { return static_cast<T*>(posts[rank].data); };
        for_each_piece(values, [&](std::size_t first, std::size_t count) {
            if (posts.size() == 2) { return detail::sum_both(data(0) + first, data(1) + first, count); }
            tree_sum_into<T>(index(), posts.size(), first, count, data);
            for (std::size_t other = 0; other < posts.size(); ++other) {
                if (other != index()) { std::copy_n(values.data() + first, count, data(other) + first); }
            }
        });
        group_.part(rank_, posts[index()].call);
    }

    /// See `Communicator`. Collective. Throws ArgumentError when root is no rank.
    template <Communicable T>
    void broadcast(std::span<T> values, int root) {
        detail::check_root(root, size());
        auto const posts = meet(detail::Operation::broadcast, values, root);
        auto const& source = posts[static_cast<std::size_t>(root)];
        if (detail::by_value(values)) {
            if (!values.empty()) { std::memcpy(values.data(), source.value.data(), values.size_bytes()); }
            return;
        }
        if (values.data() != source.data) { std::copy_n(static_cast<T const*>(source.data), values.size(), values.data()); }
        group_.part(rank_, posts[index()].call);
    }

    /// See `Communicator`. Collective.
    void barrier() { meet(detail::Operation::barrier, std::span<float>{}); }

    /// See `SharesMemory`. Collective. Throws ArgumentError when root is no rank.
    template <class P>
    [[nodiscard]] std::shared_ptr<P> share(std::shared_ptr<P> const& pointer, int root) {
        auto address = std::uint64_t{reinterpret_cast<std::uintptr_t>(&pointer)};
        broadcast(std::span{&address, 1}, root);
        auto const shared = *reinterpret_cast<std::shared_ptr<P> const*>(static_cast<std::uintptr_t>(address));
        barrier(); // the root's pointer stays where it is until all have copied it
        return shared;
    }

    /// See `FusesUpdate`. Collective. Throws ArgumentError for spans of different lengths.
    template <Communicable T, class Update>
    double reduce_update(double value, std::span<T> gradients, std::span<T> parameters, Update update) {
        detail::check_same_length(gradients.size(), parameters.size());
        auto const posts = meet(detail::Operation::reduce_update, gradients, 0, parameters.data(), value);
        group_.check_apart(rank_, posts, gradients.size_bytes());
        double const sum = tree_sum<double>(0, posts.size(), [&](std::size_t rank) { return posts[rank].scalar; });
        std::exception_ptr error;
        try {
            if (std::isfinite(sum)) { update_own_slice(posts, gradients, parameters, update); }
        } catch (...) { error = std::current_exception(); } // the others still use this worker's memory
        group_.part(rank_, posts[index()].call);
        if (error) {
            group_.fail(rank_, error);
            std::rethrow_exception(error);
        }
        return sum;
    }

    /// What `lockstep::launch` calls: one thread per worker, rank 0 on the calling thread.
    template <class Body>
    static auto launch(Scaling const& scaling, Body&& body, Waiting waiting = Waiting::automatic) {
        detail::check_scaling(scaling);
        detail::ThreadGroup group{scaling.num_workers.value_or(1), waiting, scaling.timeout_seconds};
        detail::ResultSlot<std::invoke_result_t<Body&, ThreadCommunicator&>> result;
        group.run([&](int rank) {
            ThreadCommunicator comm{group, rank};
            if (rank == 0) {
                result.fill([&]() -> decltype(auto) { return body(comm); });
            } else {
                static_cast<void>(body(comm));
            }
        });
        return result.take();
    }

private:
    ThreadCommunicator(detail::ThreadGroup& group, int rank) : group_{group}, rank_{rank} {}

    [[nodiscard]] std::size_t index() const noexcept { return static_cast<std::size_t>(rank_); }

    template <class T>
    [[nodiscard]] static T posted_value(detail::Post const& post, std::size_t element) noexcept {
        T value;
        std::memcpy(&value, post.value.data() + element * sizeof(T), sizeof(T));
        return value;
    }

    template <class T, class Update>
    void update_own_slice(std::span<detail::Post const> posts, std::span<T> gradients, std::span<T> parameters, Update& update) {
        auto const data = [&](std::size_t rank) { return static_cast<T*>(posts[rank].data); };
        alignas(alignment) std::array<T, reduction_piece_bytes / sizeof(T)> sums;
        for_each_piece(gradients, [&](std::size_t first, std::size_t count) {
            auto const piece = parameters.subspan(first, count);
            if (posts.size() == 2) { // not back into the gradients, which would have to leave the cache again
                detail::sum_two(data(0) + first, data(1) + first, sums.data(), count);
                update(first, piece, std::span<T const>{sums.data(), count});
            } else {
                tree_sum_into<T>(index(), posts.size(), first, count, data);
                update(first, piece, std::span<T const>{gradients.subspan(first, count)});
            }
            for (auto const& post : posts) {
                auto* const destination = static_cast<T*>(post.parameters);
                if (destination != parameters.data()) { std::copy_n(piece.data(), count, destination + first); }
            }
        });
    }

    /// Posts this worker's call and data, waits for the others' and returns the posts of all.
    template <Communicable T>
    std::span<detail::Post const> meet(detail::Operation operation, std::span<T> values, int root = 0, void* parameters = nullptr,
                                       double scalar = 0) {
        group_.check_usable();
        auto const posts = group_.posts(turn_++);
        auto& own = posts[index()];
        own.call = {operation, detail::scalar_of<T>, root, values.size()};
        own.data = values.data();
        own.parameters = parameters;
        own.scalar = scalar;
        if (detail::by_value(values) && !values.empty()) { std::memcpy(own.value.data(), values.data(), values.size_bytes()); }
        group_.meet(rank_, posts);
        return posts;
    }

    /// Calls visit(first, count) for the pieces of this worker's slice.
    template <class T, class Visit>
    void for_each_piece(std::span<T> values, Visit const& visit) const {
        constexpr std::size_t piece = reduction_piece_bytes / sizeof(T);
        auto const [begin, end] = slice_of<T>(values.size(), index(), static_cast<std::size_t>(size()));
        for (std::size_t first = begin; first < end; first += piece) { visit(first, std::min(piece, end - first)); }
    }

    detail::ThreadGroup& group_;
    int rank_;
    std::size_t turn_ = 0;
};

static_assert(Communicator<ThreadCommunicator> && FusesUpdate<ThreadCommunicator, float> && SharesMemory<ThreadCommunicator>);

} // namespace lockstep
