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
    constexpr std::size_t word = sizeof(std::uint64_t);
    std::vector<std::uint64_t> words(size / word + (size % word != 0 ? 1 : 0));
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

namespace detail {

/// One text of all settings and back. Names and values may contain anything but the two separators.
inline constexpr char end_of_name = '\x1f';
inline constexpr char end_of_value = '\x1e';

[[nodiscard]] inline std::string join(Settings const& settings) {
    std::string text;
    for (auto const& [name, value] : settings) { text += name + end_of_name + value + end_of_value; }
    return text;
}

[[nodiscard]] inline Settings split(std::string const& text) {
    Settings settings;
    for (std::size_t begin = 0; begin < text.size();) {
        auto const middle = text.find(end_of_name, begin);
        auto const end = text.find(end_of_value, middle);
        settings.emplace_back(text.substr(begin, middle - begin), text.substr(middle + 1, end - middle - 1));
        begin = end + 1;
    }
    return settings;
}

[[nodiscard]] inline std::string const* value_of(Settings const& settings, std::string const& name) {
    for (auto const& setting : settings) {
        if (setting.first == name) { return &setting.second; }
    }
    return nullptr;
}

/// The first setting of rank 0 that this worker does not share, or has no name for; empty when there is none.
[[nodiscard]] inline std::string difference(Settings const& own, Settings const& of_rank_0, int rank) {
    for (auto const& [name, expected] : of_rank_0) {
        auto const* const value = value_of(own, name);
        if (value == nullptr || *value != expected) {
            return concat("the workers disagree: ", name, " is ", value == nullptr ? "not set" : *value, " on rank ", rank,
                          ", but ", expected, " on rank 0");
        }
    }
    for (auto const& [name, value] : own) {
        if (value_of(of_rank_0, name) == nullptr) {
            return concat("the workers disagree: ", name, " is ", value, " on rank ", rank, ", but not set on rank 0");
        }
    }
    return {};
}

} // namespace detail

/// Compares every worker's settings with rank 0's. Throws ArgumentError, the same on all workers, naming the first setting that
/// differs, the rank and both values. Also programs of different versions, with other settings, understand each other.
/// Collective.
template <Communicator Comm>
void require_agreement(Comm& comm, Settings const& settings) {
    auto const of_rank_0 = detail::split(broadcast_text(comm, detail::join(settings), 0));
    fail_together(comm, detail::difference(settings, of_rank_0, comm.rank()));
}

} // namespace lockstep
