#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/core/error.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>

/// What workers ask of each other in a collective operation, and how communicators speak of it.
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
    std::size_t leaves = 0; ///< of the tree that is summed; 0: one per worker

    bool operator==(Call const&) const = default;

    [[nodiscard]] std::string describe() const {
        static constexpr std::array operations{"all_reduce", "broadcast", "barrier", "reduce_update"};
        static constexpr std::array scalars{"float", "double", "int64", "uint64"};
        std::string const name = operations[static_cast<std::size_t>(operation)];
        if (operation == Operation::barrier) { return name; }
        auto const text = concat(name, " of ", count, " ", scalars[static_cast<std::size_t>(scalar)]);
        return leaves == 0 ? text : concat(text, " over ", leaves, leaves == 1 ? " shard" : " shards");
    }
};

/// Data of this many bytes and less travel by value with the call.
inline constexpr std::size_t value_bytes = 64;

template <class T>
[[nodiscard]] constexpr bool by_value(std::span<T> values) noexcept {
    return values.size_bytes() <= value_bytes;
}

/// Two workers that do not ask the same.
[[nodiscard]] inline std::string disagreement(int rank, Call const& call, Call const& call_of_rank_0) {
    bool const roots_differ = call.operation == call_of_rank_0.operation && call.root != call_of_rank_0.root;
    auto const root = [&](Call const& c) { return roots_differ ? concat(" from root ", c.root) : std::string{}; };
    return concat("rank ", rank, " called ", call.describe(), root(call), " while rank 0 called ", call_of_rank_0.describe(),
                  root(call_of_rank_0));
}

[[nodiscard]] inline std::string already_returned(int rank, Call const& call, int who_returned) {
    return concat("rank ", rank, " waits in ", call.describe(), ", but rank ", who_returned, " has already returned");
}

/// Leaves a collective operation of a group in which another worker has failed. It tells nothing new: that worker's error is the
/// one that is reported.
struct Released : std::exception {
    [[nodiscard]] char const* what() const noexcept override { return "released, because another worker failed"; }
};

/// What an exception says.
[[nodiscard]] inline std::string text_of(std::exception_ptr const& error) {
    try {
        std::rethrow_exception(error);
    } catch (std::exception const& known) { return known.what(); } catch (...) {
        return "an exception that is not derived from std::exception";
    }
}

} // namespace lockstep::detail
