#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace lockstep {

/// FNV-1a, 64 bits, over the object representation of scalars, least significant byte first on every machine. It tells whether
/// two parameter sets are the same bits; it is no protection against an adversary. Source: G. Fowler, L. C. Noll, K.-P. Vo, D.
/// Eastlake, "The FNV Non-Cryptographic Hash Algorithm".
class Fnv1a {
public:
    template <class T, std::size_t Extent>
    constexpr Fnv1a& add(std::span<T, Extent> values) noexcept {
        using Bits =
            std::conditional_t<sizeof(T) == 8, std::uint64_t, std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint8_t>>;
        static_assert(sizeof(Bits) == sizeof(T), "Fnv1a hashes scalars of 1, 4 or 8 bytes");
        for (auto const value : values) {
            auto bits = std::uint64_t{std::bit_cast<Bits>(value)};
            for (std::size_t byte = 0; byte < sizeof(T); ++byte, bits >>= 8U) {
                hash_ = (hash_ ^ (bits & 0xFFU)) * 0x100000001B3U;
            }
        }
        return *this;
    }

    [[nodiscard]] constexpr std::uint64_t value() const noexcept { return hash_; }

private:
    std::uint64_t hash_ = 0xCBF29CE484222325U;
};

} // namespace lockstep
