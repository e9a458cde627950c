#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/core/error.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Settings that all workers must have in common. A worker that trains with another batch size or seed would not fail, it would
/// only make the result worthless; so it is refused before the first step, on all workers, with both values.
namespace lockstep {

/// Names and values of settings, in a fixed order.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// The root's text, on every worker. Collective.
template <Communicator Comm>
[[nodiscard]] std::string broadcast_text(Comm& comm, std::string text, int root) {
    auto size = std::uint64_t{text.size()};
    comm.broadcast(std::span{&size, 1}, root);
    std::vector<std::uint64_t> words((size + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
    if (comm.rank() == root && size > 0) { std::memcpy(words.data(), text.data(), size); }
    comm.broadcast(std::span{words}, root);
    text.resize(size);
    if (size > 0) { std::memcpy(text.data(), words.data(), size); }
    return text;
}

/// Throws ArgumentError with the first non-empty text among the workers' (by rank), on all of them; does nothing when all are
/// empty. Collective.
template <Communicator Comm>
void fail_together(Comm& comm, std::string const& error) {
    std::vector<std::uint64_t> failed(static_cast<std::size_t>(comm.size()));
    failed[static_cast<std::size_t>(comm.rank())] = error.empty() ? 0 : 1;
    comm.all_reduce(std::span{failed});
    for (std::size_t rank = 0; rank < failed.size(); ++rank) {
        if (failed[rank] != 0) { throw ArgumentError(broadcast_text(comm, error, static_cast<int>(rank))); }
    }
}

/// Compares every worker's settings with rank 0's. Throws ArgumentError, the same on all workers, naming the first setting that
/// differs, the rank and both values. Collective.
template <Communicator Comm>
void require_agreement(Comm& comm, Settings const& settings) {
    std::string error;
    for (auto const& [name, value] : settings) {
        auto const expected = broadcast_text(comm, value, 0);
        if (error.empty() && value != expected) {
            error = detail::concat("the workers disagree: ", name, " is ", value, " on rank ", comm.rank(), ", but ", expected,
                                   " on rank 0");
        }
    }
    fail_together(comm, error);
}

} // namespace lockstep
