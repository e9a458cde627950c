#pragma once

#include "lockstep/comm/call.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/comm/launch.hpp"
#include "lockstep/comm/mpi_environment.hpp"
#include "lockstep/comm/mpi_group.hpp"
#include "lockstep/comm/mpi_meeting.hpp"
#include "lockstep/comm/mpi_options.hpp"
#include "lockstep/comm/progress.hpp"
#include "lockstep/comm/tree_plan.hpp"
#include "lockstep/comm/tree_sum.hpp"
#include "lockstep/core/aligned_buffer.hpp"
#include "lockstep/core/hash.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

/// Workers that are MPI processes, on one host or many. Users include this header themselves and link to lockstep::mpi.
namespace lockstep {

/// One worker of a group of MPI processes. Only `launch` makes it; use it on the thread it was given to.
///
/// Every collective operation begins with a meeting (comm/mpi_meeting.hpp), which compares the calls and carries up to 64 bytes.
/// A larger reduction then goes by slices, as with threads: each worker receives its slice from all others, sums it in the tree's
/// order and sends the sum to all. Each worker so sends and receives 2 (size - 1) / size of the data, which is the least possible
/// (P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009).
class MpiCommunicator {
public:
    static constexpr char const* name = "mpi";

    MpiCommunicator(MpiCommunicator const&) = delete;
    MpiCommunicator& operator=(MpiCommunicator const&) = delete;

    [[nodiscard]] int rank() const noexcept { return group_.rank(); }
    [[nodiscard]] int size() const noexcept { return group_.size(); }
    [[nodiscard]] int hosts() const noexcept { return hosts_; } ///< on how many the workers run

    /// See `NotesProgress`.
    void note(Progress const& progress) noexcept { group_.progress = progress; }
    [[nodiscard]] Progress progress() const noexcept { return group_.progress; }

    /// See `Communicator`. Collective.
    template <Communicable T>
    void all_reduce(std::span<T> values) {
        if (!detail::by_value(values)) { return all_reduce(PartialSums<T>{values, values.size()}); }
        collective([&] { meet({detail::Operation::all_reduce, detail::scalar_of<T>, 0, values.size()}, values); });
    }

    /// See `SumsTrees`. Collective. Throws ArgumentError when the sums are not those that this worker has to bring.
    template <Communicable T>
    void all_reduce(PartialSums<T> sums) {
        plan_.check(sums, rank());
        collective([&] {
            meet({detail::Operation::all_reduce, detail::scalar_of<T>, 0, sums.count, sums.leaves}, std::span<T>{});
            if (size() == 1) { return; }
            if (options_.reduction == MpiReduction::native) { return reduce_natively(sums); }
            exchange(sums, std::span<T>{sums}, [](std::size_t, std::size_t) {});
        });
    }

    /// See `Communicator`. Collective. Throws ArgumentError when root is no rank.
    template <Communicable T>
    void broadcast(std::span<T> values, int root) {
        detail::check_root(root, size());
        collective([&] {
            meet({detail::Operation::broadcast, detail::scalar_of<T>, root, values.size()}, values);
            if (!detail::by_value(values) && size() > 1) { send_down(std::as_writable_bytes(values), root); }
        });
    }

    /// See `Communicator`. Collective.
    void barrier() {
        collective([&] { meet({}, std::span<float>{}); });
    }

    /// See `FusesUpdate`. Collective. Throws ArgumentError for spans of different lengths.
    template <Communicable T, class Update>
    double reduce_update(double value, std::span<T> gradients, std::span<T> parameters, Update update) {
        return reduce_update(PartialSums<double>{{&value, 1}, 1}, PartialSums<T>{gradients, gradients.size()}, parameters,
                             std::move(update));
    }

    /// See `SumsTrees`. Collective. Throws ArgumentError for spans of different lengths, and when the sums are not those that
    /// this worker has to bring.
    template <Communicable T, class Update>
    double reduce_update(PartialSums<double> values, PartialSums<T> gradients, std::span<T> parameters, Update update) {
        detail::check_same_length(gradients.count, parameters.size());
        detail::check_same_tree(values, gradients.leaves);
        plan_.check(values, rank());
        plan_.check(gradients, rank());
        return collective([&] {
            auto const own = values.all.first(plan_.sums_of(static_cast<std::size_t>(rank())));
            auto const post = meet({detail::Operation::reduce_update, detail::scalar_of<T>, 0, gradients.count, gradients.leaves},
                                   std::span<T>{}, own);
            double const sum = post.losses[0];
            if (std::isfinite(sum)) {
                exchange(gradients, parameters, [&](std::size_t first, std::size_t count) {
                    update(first, parameters.subspan(first, count), std::span<T const>{gradients}.subspan(first, count));
                });
            }
            return sum;
        });
    }

    /// What `lockstep::launch` calls, on all processes of the communicator. Impossible settings, a num_workers that is not the
    /// number of processes, and settings that differ between processes end the launch on all of them, by a WorkerError. Throws
    /// ArgumentError for a communicator that is none or joins two groups, and Error while another thread of this process runs a
    /// launch, unless MPI was initialised with MPI_THREAD_MULTIPLE.
    template <class Body>
    static auto launch(Scaling const& scaling, Body&& body, MpiOptions const& options = {}) {
        Scaling usable = scaling; // by a group in which this worker tells the others what is wrong with its settings
        std::exception_ptr error;
        try {
            detail::check_scaling(scaling);
        } catch (ArgumentError const&) {
            error = std::current_exception();
            usable = {};
        }
        detail::MpiLaunchScope const alone{detail::MpiEnvironment::get(usable.timeout_seconds)};
        detail::check_communicator(options.communicator);
        detail::MpiGroup group{options.communicator, usable.timeout_seconds};
        detail::ResultSlot<std::invoke_result_t<Body&, MpiCommunicator&>> result;
        try {
            if (error) { std::rethrow_exception(error); }
            detail::check_options(scaling, options, group.size());
            detail::WorkerScope const scope{group.rank(), group.size()};
            MpiCommunicator comm{group, options};
            result.fill([&]() -> decltype(auto) { return body(comm); });
        } catch (detail::Released const&) { // tells nothing new
        } catch (...) { error = std::current_exception(); }
        group.close(error);
        return result.take();
    }

private:
    MpiCommunicator(detail::MpiGroup& group, MpiOptions const& options) : group_{group}, options_{options} {
        require_same_options();
        auto const workers = static_cast<std::size_t>(size());
        constexpr std::size_t all_messages = std::size_t{8} << 20U; // their number grows with the workers, their memory shall not
        std::size_t const each = std::max(all_messages / workers, std::size_t{4096});
        message_bytes_ = std::min(each, options.message_bytes) / alignment * alignment;
        received_ = AlignedBuffer<double>(size() == 1 ? 0 : workers * message_bytes_ / sizeof(double));
        look_for_neighbours();
    }

    /// Throws Error on the workers whose settings are not rank 0's: messages of different lengths would not find together.
    void require_same_options() {
        std::array<double, 4> const own{static_cast<double>(options_.message_bytes), static_cast<double>(options_.reduction),
                                        static_cast<double>(options_.native_elements), group_.timeout_seconds()};
        constexpr std::array names{"message_bytes", "reduction", "native_elements", "timeout_seconds"};
        auto expected = own;
        broadcast(std::span<double>{expected}, 0);
        for (std::size_t i = 0; i < own.size(); ++i) {
            if (own[i] == expected[i]) { continue; }
            auto const text = [i](double value) {
                if (i != 1) { return detail::concat(value); }
                return std::string{value == static_cast<double>(MpiReduction::native) ? "native" : "fixed_order"};
            };
            throw Error(detail::concat("the workers do not agree on ", names[i], ": this one has ", text(own[i]), ", rank 0 has ",
                                       text(expected[i])));
        }
    }

    /// Runs one collective operation. Where an exception ends it, nothing refers to the caller's memory afterwards.
    template <class Run>
    std::invoke_result_t<Run const&> collective(Run const& run) {
        try {
            if constexpr (std::is_void_v<std::invoke_result_t<Run const&>>) {
                run();
                group_.end();
            } else {
                auto const result = run();
                group_.end();
                return result;
            }
        } catch (detail::Released const&) { throw; } catch (...) {
            group_.abandon(detail::Leaving::failed, detail::text_of(std::current_exception()));
            throw;
        }
    }

    /// Waits for all; `values` of up to 64 bytes are summed, or are the root's, when it returns.
    template <Communicable T>
    detail::MpiPost meet(detail::Call const& call, std::span<T> values, std::span<double const> losses = {}) {
        bool const carried = detail::by_value(values) && !values.empty();
        detail::MpiPost post{.call = call, .losses_size = losses.size()};
        std::copy(losses.begin(), losses.end(), post.losses.begin());
        if (carried) { std::memcpy(post.value.data(), values.data(), values.size_bytes()); }
        detail::meet(group_, post, [&](detail::MpiPost& left, detail::MpiPost const& right, int middle) {
            if (!carried) { return; }
            if (call.operation == detail::Operation::all_reduce) {
                std::array<T, detail::value_bytes / sizeof(T)> sum;
                std::array<T, detail::value_bytes / sizeof(T)> addend;
                std::memcpy(sum.data(), left.value.data(), detail::value_bytes);
                std::memcpy(addend.data(), right.value.data(), detail::value_bytes);
                detail::accumulate(sum.data(), addend.data(), values.size());
                std::memcpy(left.value.data(), sum.data(), detail::value_bytes);
            } else if (call.root >= middle) {
                left.value = right.value;
            }
        });
        if (carried) { std::memcpy(values.data(), post.value.data(), values.size_bytes()); }
        return post;
    }

    /// Totals of `sums` over all workers, slice by slice, in place of the first; calls finish(first, count) when elements of this
    /// worker's slice are summed, and then gives these elements of `result` to all. In rounds: while the totals of one message
    /// travel, the next addends do.
    template <Communicable T, class Finish>
    void exchange(PartialSums<T> sums, std::span<T> result, Finish const& finish) {
        auto const workers = static_cast<std::size_t>(size());
        auto const self = static_cast<std::size_t>(rank());
        auto const sources = plan_.sources();
        // As long as messages are with one sum per worker; with more of them, what arrives at once is no more.
        std::size_t const most_bytes =
            std::min(message_bytes_, workers * message_bytes_ / sources.size() / alignment * alignment);
        std::size_t const most = std::max(most_bytes, alignment) / sizeof(T);
        auto const received = [&](std::size_t source) { return reinterpret_cast<T*>(received_.data()) + source * most; };
        auto const piece = [&](std::size_t owner, std::size_t round) {
            auto const [begin, end] = slice_of<T>(sums.count, owner, workers);
            std::size_t const first = std::min(begin + round * most, end);
            return Slice{first, std::min(first + most, end)};
        };
        std::size_t const own_sums = plan_.sums_of(self);
        std::size_t const own_source = plan_.first_source(self);
        auto const [longest_begin, longest_end] = slice_of<T>(sums.count, 0, workers);
        std::size_t const rounds = (longest_end - longest_begin + most - 1) / most;
        for (std::size_t round = 0; round <= rounds; ++round) {
            for (std::size_t step = 1; step < workers; ++step) { // each worker begins with another one
                std::size_t const to = (self + step) % workers;
                std::size_t const from = (self + workers - step) % workers;
                if (round < rounds) {
                    auto const [first, last] = piece(self, round);
                    std::size_t const source = plan_.first_source(from);
                    for (std::size_t i = 0; i < plan_.sums_of(from); ++i) { receive(received(source + i), last - first, from); }
                    for (std::size_t i = 0; i < own_sums; ++i) { send(sums.sum(i), piece(to, round), to); }
                }
                if (round > 0) {
                    auto const [first, last] = piece(from, round - 1);
                    receive(result.data() + first, last - first, from);
                    send(result, piece(self, round - 1), to);
                }
            }
            group_.wait();
            if (auto const [first, last] = piece(self, round); first < last) {
                constexpr std::size_t part = reduction_piece_bytes / sizeof(T); // summed and finished while it is in the cache
                for (std::size_t begin = 0; begin < last - first; begin += part) {
                    std::size_t const count = std::min(part, last - first - begin);
                    auto const at = [&](std::size_t i) {
                        return sources[i].rank == self ? sums.sum(i - own_source).data() + first + begin : received(i) + begin;
                    };
                    plan_.sum<T>(count, at, sums.data() + first + begin);
                    finish(first + begin, count);
                }
            }
        }
    }

    template <class T>
    void send(std::span<T> data, Slice slice, std::size_t to) {
        if (slice.begin == slice.end) { return; }
        group_.send(data.data() + slice.begin, (slice.end - slice.begin) * sizeof(T), static_cast<int>(to), detail::tag_data);
    }
    template <class T>
    void receive(T* data, std::size_t count, std::size_t from) {
        if (count > 0) { group_.receive(data, count * sizeof(T), static_cast<int>(from), detail::tag_data); }
    }

    template <Communicable T>
    void reduce_natively(PartialSums<T> sums) {
        if (plan_.sums_of(static_cast<std::size_t>(rank())) == 0) { std::fill(sums.begin(), sums.end(), T{}); }
        for (std::size_t i = 1; i < sums.sums(); ++i) { detail::accumulate<T>(sums.data(), sums.sum(i).data(), sums.count); }
        for (std::size_t first = 0; first < sums.count; first += options_.native_elements) {
            std::size_t const count = std::min(options_.native_elements, sums.count - first);
            group_.reduce_natively(sums.data() + first, count, detail::mpi_type<T>());
        }
    }

    /// The root's bytes to all, along a binomial tree, message by message.
    void send_down(std::span<std::byte> data, int root) {
        int const place = (rank() - root + size()) % size(); // counted from the root
        auto const rank_of = [&](int other) { return (other + root) % size(); };
        int const lowest_bit = place == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(size()))) : place & -place;
        for (std::size_t first = 0; first < data.size(); first += options_.message_bytes) {
            auto const message = data.subspan(first, std::min(options_.message_bytes, data.size() - first));
            if (place != 0) {
                group_.receive(message.data(), message.size(), rank_of(place - lowest_bit), detail::tag_data);
                group_.wait();
            }
            for (int bit = lowest_bit / 2; bit > 0; bit /= 2) {
                if (place + bit < size()) { group_.send(message.data(), message.size(), rank_of(place + bit), detail::tag_data); }
            }
            group_.wait();
        }
    }

    /// Finds out how many hosts there are, and whether the workers of this one have a processor each.
    void look_for_neighbours() {
        if (size() == 1) { return; }
        char host[MPI_MAX_PROCESSOR_NAME];
        int length = 0;
        detail::check_mpi(MPI_Get_processor_name(host, &length), "MPI_Get_processor_name");
        Fnv1a hash;
        hash.add(std::span{host, static_cast<std::size_t>(length)});
        std::vector<std::uint64_t> all(static_cast<std::size_t>(size()));
        all[static_cast<std::size_t>(rank())] = hash.value();
        all_reduce(std::span{all});
        auto const neighbours = std::count(all.begin(), all.end(), hash.value());
        group_.yields = neighbours > static_cast<std::ptrdiff_t>(std::thread::hardware_concurrency());
        std::sort(all.begin(), all.end());
        hosts_ = static_cast<int>(std::unique(all.begin(), all.end()) - all.begin());
    }

    detail::MpiGroup& group_;
    MpiOptions options_;
    std::size_t message_bytes_ = alignment;
    AlignedBuffer<double> received_{0};
    int hosts_ = 1;
    detail::TreePlan plan_{size()};
};

static_assert(Communicator<MpiCommunicator> && SumsTrees<MpiCommunicator, float> && NotesProgress<MpiCommunicator>);

} // namespace lockstep
