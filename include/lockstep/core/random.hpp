#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

/// What a stream of random numbers is for: streams with different purposes never share a number.
enum class RandomPurpose : std::uint32_t { initialisation = 1, shuffle = 2, dropout = 3, data = 4 };

/// Philox4x32-10: four 32-bit words from a 64-bit key and a 128-bit counter. No state; the same on every compiler and machine.
/// Source: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC '11.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox(std::uint64_t key, std::array<std::uint32_t, 4> counter) noexcept {
    auto key0 = static_cast<std::uint32_t>(key);
    auto key1 = static_cast<std::uint32_t>(key >> 32U);
    for (int round = 0; round < 10; ++round) {
        std::uint64_t const product0 = std::uint64_t{0xD2511F53U} * counter[0];
        std::uint64_t const product1 = std::uint64_t{0xCD9E8D57U} * counter[2];
        counter = {static_cast<std::uint32_t>(product1 >> 32U) ^ counter[1] ^ key0, static_cast<std::uint32_t>(product1),
                   static_cast<std::uint32_t>(product0 >> 32U) ^ counter[3] ^ key1, static_cast<std::uint32_t>(product0)};
        key0 += 0x9E3779B9U;
        key1 += 0xBB67AE85U;
    }
    return counter;
}

/// Independent random numbers for each (seed, purpose, id), addressed by index: any number can be had at any time in any order,
/// by any worker. 2^64 blocks of four words per stream.
class RandomStream {
public:
    constexpr RandomStream(std::uint64_t seed, RandomPurpose purpose, std::uint32_t id) noexcept
        : seed_{seed}, purpose_{static_cast<std::uint32_t>(purpose)}, id_{id} {}

    /// Block `index` of four words.
    [[nodiscard]] constexpr std::array<std::uint32_t, 4> block(std::uint64_t index) const noexcept {
        return philox(seed_, {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32U), id_, purpose_});
    }

    /// Word `index`: 32 random bits.
    [[nodiscard]] constexpr std::uint32_t word(std::uint64_t index) const noexcept { return block(index / 4)[index % 4]; }

    /// Number `index`, uniform in [0, 1), a multiple of 2^-53.
    [[nodiscard]] constexpr double uniform(std::uint64_t index) const noexcept {
        auto const words = block(index / 2);
        std::uint64_t const high = words[index % 2 * 2];
        std::uint64_t const low = words[index % 2 * 2 + 1];
        return static_cast<double>((high << 21U) ^ (low >> 11U)) * 0x1p-53;
    }

private:
    std::uint64_t seed_;
    std::uint32_t purpose_;
    std::uint32_t id_;
};

/// A seed with a name, so that `Model<Net>{seed(1)}` reads as what it is.
enum class Seed : std::uint64_t {};
[[nodiscard]] constexpr Seed seed(std::uint64_t value) noexcept { return Seed{value}; }

} // namespace lockstep
