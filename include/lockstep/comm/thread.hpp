#pragma once

#include "lockstep/comm/call.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/comm/launch.hpp"
#include "lockstep/comm/progress.hpp"
#include "lockstep/comm/thread_group.hpp"
#include "lockstep/comm/tree_plan.hpp"
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
#include <utility>

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
        if (!detail::by_value(values)) { return all_reduce(PartialSums<T>{values, values.size()}); }
        auto const posts = meet({detail::Operation::all_reduce, detail::scalar_of<T>, 0, values.size()}, values);
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = tree_sum<T>(0, posts.size(), [&](std::size_t rank) { return posted_value<T>(posts[rank], i); });
        }
    }

    /// See `SumsTrees`. Collective. Throws ArgumentError when the sums are not those that this worker has to bring.
    template <Communicable T>
    void all_reduce(PartialSums<T> sums) {
        plan_.check(sums, rank_);
        auto const posts = meet({detail::Operation::all_reduce, detail::scalar_of<T>, 0, sums.count, sums.leaves}, sums.all);
        group_.check_apart(rank_, posts);
        bool const pair = posts.size() == 2 && plan_.merges().size() == 1;
        for_each_piece<T>(sums.count, [&](std::size_t first, std::size_t count) {
            auto const data = [&](std::size_t rank) { return static_cast<T*>(posts[rank].data) + first; };
            if (pair) { return detail::sum_both(data(0), data(1), count); }
            plan_.sum<T>(count, posted_sums<T>(posts, sums.count, first), data(index()));
            for (std::size_t other = 0; other < posts.size(); ++other) {
                if (other != index()) { std::copy_n(data(index()), count, data(other)); }
            }
        });
        group_.part(rank_, posts[index()].call);
    }

    /// See `Communicator`. Collective. Throws ArgumentError when root is no rank.
    template <Communicable T>
    void broadcast(std::span<T> values, int root) {
        detail::check_root(root, size());
        auto const posts = meet({detail::Operation::broadcast, detail::scalar_of<T>, root, values.size()}, values);
        auto const& source = posts[static_cast<std::size_t>(root)];
        if (detail::by_value(values)) {
            if (!values.empty()) { std::memcpy(values.data(), source.value.data(), values.size_bytes()); }
            return;
        }
        if (values.data() != source.data) { std::copy_n(static_cast<T const*>(source.data), values.size(), values.data()); }
        group_.part(rank_, posts[index()].call);
    }

    /// See `Communicator`. Collective.
    void barrier() { meet({}, std::span<float>{}); }

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
        return reduce_update(PartialSums<double>{{&value, 1}, 1}, PartialSums<T>{gradients, gradients.size()}, parameters,
                             std::move(update));
    }

    /// See `SumsTrees`. Collective. Throws ArgumentError as `reduce_in_place`.
    template <Communicable T, class Update>
    double reduce_update(PartialSums<double> values, PartialSums<T> gradients, std::span<T> parameters, Update update) {
        return reduce_in_place(values, gradients, parameters, [&](auto const& all) {
            alignas(alignment) std::array<T, reduction_piece_bytes / sizeof(T)> scratch;
            for_each_piece<T>(gradients.count, [&](std::size_t first, std::size_t count) {
                T const* const sums = all.total(first, count, scratch.data());
                update(first, parameters.subspan(first, count), std::span<T const>{sums, count});
                all.spread(first, count);
            });
        });
    }

    /// See `ReducesInPlace`. Collective. Throws ArgumentError for spans of different lengths, and when the sums are not those
    /// that this worker has to bring.
    template <Communicable T, class Use>
    double reduce_in_place(PartialSums<double> values, PartialSums<T> gradients, std::span<T> parameters, Use use) {
        detail::check_same_length(gradients.count, parameters.size());
        detail::check_same_tree(values, gradients.leaves);
        plan_.check(values, rank_);
        plan_.check(gradients, rank_);
        auto const posts = meet({detail::Operation::reduce_update, detail::scalar_of<T>, 0, gradients.count, gradients.leaves},
                                gradients.all, parameters, values.data());
        group_.check_apart(rank_, posts);
        double const sum =
            plan_.total([&](detail::TreePlan::Source const& source) { return posts[source.rank].losses[source.number]; });
        std::exception_ptr error;
        try {
            if (std::isfinite(sum)) { use(InPlace<T>{*this, posts, parameters}); }
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

    /// Where the elements of source i are, from element `first` on.
    template <class T>
    [[nodiscard]] auto posted_sums(std::span<detail::Post const> posts, std::size_t size, std::size_t first) const {
        return [sources = plan_.sources(), posts, size, first](std::size_t i) {
            return static_cast<T*>(posts[sources[i].rank].data) + sources[i].number * size + first;
        };
    }

    /// What `reduce_in_place` hands on, see `ReducesInPlace`.
    template <class T>
    class InPlace {
    public:
        InPlace(ThreadCommunicator const& comm, std::span<detail::Post const> posts, std::span<T> parameters)
            : comm_{comm}, posts_{posts}, parameters_{parameters} {}

        template <class... Own>
        [[nodiscard]] T const* total(std::size_t first, std::size_t count, T* scratch, Own const&... own) const {
            auto const posted = comm_.posted_sums<T>(posts_, parameters_.size(), first);
            auto const at = [&](std::size_t i) -> T* {
                if constexpr (sizeof...(Own) == 1) {
                    auto const& source = comm_.plan_.sources()[i];
                    if (source.rank == static_cast<std::uint32_t>(comm_.rank_)) { return (own(source.number), ...); }
                }
                return posted(i);
            };
            return comm_.plan_.sum_somewhere<T>(count, at, scratch);
        }

        [[nodiscard]] std::size_t others(std::size_t first, std::span<T const*> where) const {
            auto const sources = comm_.plan_.sources();
            auto const posted = comm_.posted_sums<T>(posts_, parameters_.size(), first);
            std::size_t count = 0;
            for (std::size_t i = 0; i < sources.size() && count < where.size(); ++i) {
                if (sources[i].rank != static_cast<std::uint32_t>(comm_.rank_)) { where[count++] = posted(i); }
            }
            return count;
        }

        void spread(std::size_t first, std::size_t count) const {
            for (auto const& post : posts_) {
                auto* const destination = static_cast<T*>(post.parameters);
                if (destination != parameters_.data()) { std::copy_n(parameters_.data() + first, count, destination + first); }
            }
        }

    private:
        ThreadCommunicator const& comm_;
        std::span<detail::Post const> posts_;
        std::span<T> parameters_;
    };

    /// Posts this worker's call and data, waits for the others' and returns the posts of all.
    template <Communicable T>
    std::span<detail::Post const> meet(detail::Call const& call, std::span<T> values, std::span<T> parameters = {},
                                       double const* losses = nullptr) {
        group_.check_usable();
        auto const posts = group_.posts(turn_++);
        auto& own = posts[index()];
        own.call = call;
        own.data = values.data();
        own.data_bytes = values.size_bytes();
        own.parameters = parameters.data();
        own.parameter_bytes = parameters.size_bytes();
        own.losses = losses;
        if (detail::by_value(values) && !values.empty()) { std::memcpy(own.value.data(), values.data(), values.size_bytes()); }
        group_.meet(rank_, posts);
        return posts;
    }

    /// Calls visit(first, count) for the pieces of this worker's slice.
    template <class T, class Visit>
    void for_each_piece(std::size_t size_of_all, Visit const& visit) const {
        constexpr std::size_t piece = reduction_piece_bytes / sizeof(T);
        auto const [begin, end] = slice_of<T>(size_of_all, index(), static_cast<std::size_t>(size()));
        for (std::size_t first = begin; first < end; first += piece) { visit(first, std::min(piece, end - first)); }
    }

    detail::ThreadGroup& group_;
    int rank_;
    std::size_t turn_ = 0;
    detail::TreePlan plan_{size()};
};

static_assert(Communicator<ThreadCommunicator> && FusesUpdate<ThreadCommunicator, float> && SharesMemory<ThreadCommunicator>);
static_assert(SumsTrees<ThreadCommunicator, float> && ReducesInPlace<ThreadCommunicator, float>);

} // namespace lockstep
