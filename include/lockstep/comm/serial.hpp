#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/comm/launch.hpp"
#include "lockstep/core/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <span>
#include <type_traits>

namespace lockstep {

/// The communicator of a single worker: the oracle for all others. Every sum is the value itself.
class SerialCommunicator {
public:
    static constexpr char const* name = "serial";

    [[nodiscard]] int rank() const noexcept { return 0; }
    [[nodiscard]] int size() const noexcept { return 1; }

    template <Communicable T>
    void all_reduce(std::span<T> /*values*/) noexcept {}

    /// Throws ArgumentError for another root than 0.
    template <Communicable T>
    void broadcast(std::span<T> /*values*/, int root) {
        detail::check_root(root, size());
    }

    void barrier() noexcept {}

    /// See `FusesUpdate`. Throws ArgumentError for spans of different lengths.
    template <Communicable T, class Update>
    double reduce_update(double value, std::span<T> gradients, std::span<T> parameters, Update update) {
        detail::check_same_length(gradients.size(), parameters.size());
        if (std::isfinite(value) && !gradients.empty()) { update(std::size_t{0}, parameters, std::span<T const>{gradients}); }
        return value;
    }

    /// See `SumsTrees`. Throws ArgumentError unless there is one sum.
    template <Communicable T>
    void all_reduce(PartialSums<T> sums) {
        check_one(sums);
    }

    /// See `SumsTrees`. Throws ArgumentError as `reduce_in_place`.
    template <Communicable T, class Update>
    double reduce_update(PartialSums<double> values, PartialSums<T> gradients, std::span<T> parameters, Update update) {
        return reduce_in_place(values, gradients, parameters, [&](auto const&) {
            if (gradients.count > 0) { update(std::size_t{0}, parameters, std::span<T const>{gradients}); }
        });
    }

    /// See `ReducesInPlace`. Throws ArgumentError for spans of different lengths, and unless there is one sum.
    template <Communicable T, class Use>
    double reduce_in_place(PartialSums<double> values, PartialSums<T> gradients, std::span<T> parameters, Use use) {
        detail::check_same_length(gradients.count, parameters.size());
        detail::check_same_tree(values, gradients.leaves);
        check_one(values);
        check_one(gradients);
        if (std::isfinite(values[0])) { use(InPlace<T>{gradients.data()}); }
        return values[0];
    }

    /// What `lockstep::launch` calls. Throws ArgumentError unless num_workers is 1.
    template <class Body>
    static auto launch(Scaling const& scaling, Body&& body) {
        detail::check_scaling(scaling);
        if (int const workers = scaling.num_workers.value_or(1); workers != 1) {
            throw ArgumentError(detail::concat("SerialCommunicator has 1 worker, got num_workers ", workers));
        }
        detail::ResultSlot<std::invoke_result_t<Body&, SerialCommunicator&>> result;
        try {
            SerialCommunicator comm;
            detail::WorkerScope const scope{0, 1};
            result.fill([&]() -> decltype(auto) { return body(comm); });
        } catch (...) { detail::throw_worker_error(0, 1, std::current_exception()); }
        return result.take();
    }

private:
    /// What `reduce_in_place` hands on.
    template <class T>
    struct InPlace {
        T const* gradients;
        template <class... Own>
        [[nodiscard]] T const* total(std::size_t first, std::size_t /*count*/, T* /*scratch*/, Own const&... own) const {
            if constexpr (sizeof...(Own) == 1) { return (own(std::size_t{0}), ...); }
            return gradients + first;
        }
        [[nodiscard]] std::size_t others(std::size_t /*first*/, std::span<T const*> /*where*/) const { return 0; }
        void spread(std::size_t /*first*/, std::size_t /*count*/) const {}
    };

    template <class T>
    static void check_one(PartialSums<T> const& sums) {
        if (sums.all.size() != sums.count) {
            throw ArgumentError(detail::concat("partial sums of a single worker: expected one of ", sums.count, " elements, got ",
                                               sums.all.size(), " elements"));
        }
    }
};

static_assert(Communicator<SerialCommunicator> && ReducesInPlace<SerialCommunicator, float>);

} // namespace lockstep
