#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/comm/launch.hpp"
#include "lockstep/core/error.hpp"

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
};

static_assert(Communicator<SerialCommunicator> && FusesUpdate<SerialCommunicator, float>);

} // namespace lockstep
