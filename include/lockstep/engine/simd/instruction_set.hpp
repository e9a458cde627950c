#pragma once

#include "lockstep/core/error.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

/// Which kernels a processor can run, and which of them run. Compilers other than g++ and clang get the portable ones alone.
#if (defined(__x86_64__)) && defined(__GNUC__)
#define LOCKSTEP_SIMD_X86 1
#elif defined(__aarch64__) && defined(__GNUC__)
#define LOCKSTEP_SIMD_NEON 1
#endif

namespace lockstep {

/// The kernels of SimdEngine, from the slowest to the fastest. All give the same bits.
enum class InstructionSet {
    portable, ///< std::fma in scalars: any processor, and slow where that is not one instruction
    neon,     ///< AArch64
    avx2,     ///< x86-64 with AVX2 and FMA
    avx512    ///< x86-64 with AVX-512 F, BW, DQ and VL
};

inline constexpr std::array<std::string_view, 4> instruction_set_names = {"portable", "neon", "avx2", "avx512"};

[[nodiscard]] constexpr std::string_view name_of(InstructionSet set) noexcept {
    return instruction_set_names[static_cast<std::size_t>(set)];
}

/// True when this processor, and its operating system, can run the set's kernels.
[[nodiscard]] inline bool supports(InstructionSet set) noexcept {
    switch (set) {
    case InstructionSet::portable:
        return true;
    case InstructionSet::neon:
#ifdef LOCKSTEP_SIMD_NEON
        return true; // part of every AArch64
#else
        return false;
#endif
    case InstructionSet::avx2:
#ifdef LOCKSTEP_SIMD_X86
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
        return false;
#endif
    case InstructionSet::avx512:
#ifdef LOCKSTEP_SIMD_X86
        return supports(InstructionSet::avx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
        return false;
#endif
    }
    return false;
}

/// The fastest set that this processor supports.
[[nodiscard]] inline InstructionSet best_instruction_set() noexcept {
    for (auto const set : {InstructionSet::avx512, InstructionSet::avx2, InstructionSet::neon}) {
        if (supports(set)) { return set; }
    }
    return InstructionSet::portable;
}

/// Throws ArgumentError for a name that is none, or one that this processor does not support.
[[nodiscard]] inline InstructionSet instruction_set_from(std::string_view name, std::string_view source) {
    std::string all;
    for (std::size_t i = 0; i < instruction_set_names.size(); ++i) {
        auto const set = static_cast<InstructionSet>(i);
        if (supports(set)) { all += (all.empty() ? "" : ", ") + std::string{name_of(set)}; }
        if (name != name_of(set)) { continue; }
        if (supports(set)) { return set; }
        throw ArgumentError(detail::concat(source, ": this processor does not support the instruction set ", name));
    }
    throw ArgumentError(detail::concat(source, ": expected one of the instruction sets that this processor supports (", all,
                                       "), got \"", name, "\""));
}

namespace detail {

/// What new models take: the environment variable LOCKSTEP_SIMD, else the fastest. Throws ArgumentError for a variable that names
/// nothing usable.
[[nodiscard]] inline std::atomic<InstructionSet>& chosen_instruction_set() {
    static std::atomic<InstructionSet> chosen{[] {
        char const* const name = std::getenv("LOCKSTEP_SIMD");
        return name == nullptr || *name == '\0' ? best_instruction_set() : instruction_set_from(name, "LOCKSTEP_SIMD");
    }()};
    return chosen;
}

} // namespace detail
} // namespace lockstep
