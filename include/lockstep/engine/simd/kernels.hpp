#pragma once

#include "lockstep/core/lookahead.hpp"
#include "lockstep/engine/simd/instruction_set.hpp"
#include "lockstep/engine/simd/panels.hpp"

#include <bit>
#include <cmath>
#include <cstddef>

#if defined(LOCKSTEP_SIMD_X86)
#include <immintrin.h>
#elif defined(LOCKSTEP_SIMD_NEON)
#include <arm_neon.h>
#endif

/// kernels.inc, once for each instruction set that the compiler can make code for. A target's code stands under target options of
/// its own, so no flag is asked of the user, and what is not a kernel keeps the user's (the way of Google's Highway). Everything
/// in between has internal names and is reached through `with_kernels` alone. Nothing is contracted to a fused multiply-add that
/// is not written as one, or the sets would differ; clang decides that where a function is written, so there the element-wise
/// functions must see to it.
#if defined(__clang__)
#define LOCKSTEP_SIMD_UNROLL _Pragma("clang loop unroll(full)")
#define LOCKSTEP_SIMD_UNROLL_BY_4 _Pragma("clang loop unroll_count(4)")
#else
#define LOCKSTEP_SIMD_UNROLL _Pragma("GCC unroll 32")
#define LOCKSTEP_SIMD_UNROLL_BY_4 _Pragma("GCC unroll 4")
#endif
#define LOCKSTEP_SIMD_INLINE [[gnu::always_inline]] inline
#define LOCKSTEP_SIMD_NOINLINE [[gnu::noinline]] inline

#if !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif
namespace lockstep::detail::simd::portable {
#define LOCKSTEP_SIMD_NAMESPACE simd::portable
// Each scalar is a register: small blocks, and little code.
#define LOCKSTEP_SIMD_BLOCK_ROWS 1
#define LOCKSTEP_SIMD_BLOCK_PANELS 1
#include "lockstep/engine/simd/vector_portable.inc"
//
#include "lockstep/engine/simd/kernels.inc"
#undef LOCKSTEP_SIMD_NAMESPACE
#undef LOCKSTEP_SIMD_BLOCK_ROWS
#undef LOCKSTEP_SIMD_BLOCK_PANELS
} // namespace lockstep::detail::simd::portable
#if !defined(__clang__)
#pragma GCC pop_options
#endif

#if defined(LOCKSTEP_SIMD_X86)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,prfchw"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,prfchw")
#pragma GCC optimize("fp-contract=off")
#endif
namespace lockstep::detail::simd::avx2 {
#define LOCKSTEP_SIMD_NAMESPACE simd::avx2
// 16 registers: 12 sums, 2 factors, 1 scalar.
#define LOCKSTEP_SIMD_BLOCK_ROWS 6
#define LOCKSTEP_SIMD_BLOCK_PANELS 1
#include "lockstep/engine/simd/vector_avx2.inc"
//
#include "lockstep/engine/simd/kernels.inc"
#undef LOCKSTEP_SIMD_NAMESPACE
#undef LOCKSTEP_SIMD_BLOCK_ROWS
#undef LOCKSTEP_SIMD_BLOCK_PANELS
} // namespace lockstep::detail::simd::avx2
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prfchw"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prfchw")
#pragma GCC optimize("fp-contract=off")
#endif
namespace lockstep::detail::simd::avx512 {
#define LOCKSTEP_SIMD_NAMESPACE simd::avx512
// 32 registers: 24 sums, 2 factors, 1 scalar.
#define LOCKSTEP_SIMD_BLOCK_ROWS 12
#define LOCKSTEP_SIMD_BLOCK_PANELS 2
#include "lockstep/engine/simd/vector_avx512.inc"
//
#include "lockstep/engine/simd/kernels.inc"
#undef LOCKSTEP_SIMD_NAMESPACE
#undef LOCKSTEP_SIMD_BLOCK_ROWS
#undef LOCKSTEP_SIMD_BLOCK_PANELS
} // namespace lockstep::detail::simd::avx512
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#elif defined(LOCKSTEP_SIMD_NEON)

#if !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif
namespace lockstep::detail::simd::neon {
#define LOCKSTEP_SIMD_NAMESPACE simd::neon
// 32 registers: 24 sums, 4 factors, 1 scalar.
#define LOCKSTEP_SIMD_BLOCK_ROWS 6
#define LOCKSTEP_SIMD_BLOCK_PANELS 1
#include "lockstep/engine/simd/vector_neon.inc"
//
#include "lockstep/engine/simd/kernels.inc"
#undef LOCKSTEP_SIMD_NAMESPACE
#undef LOCKSTEP_SIMD_BLOCK_ROWS
#undef LOCKSTEP_SIMD_BLOCK_PANELS
} // namespace lockstep::detail::simd::neon
#if !defined(__clang__)
#pragma GCC pop_options
#endif

#endif

#undef LOCKSTEP_SIMD_UNROLL
#undef LOCKSTEP_SIMD_UNROLL_BY_4
#undef LOCKSTEP_SIMD_INLINE
#undef LOCKSTEP_SIMD_NOINLINE

namespace lockstep::detail::simd {

/// Returns use(Kernels{}) with the kernels of `set`, which this processor supports.
template <class Use>
decltype(auto) with_kernels(InstructionSet set, Use const& use) {
    switch (set) {
#if defined(LOCKSTEP_SIMD_X86)
    case InstructionSet::avx512:
        return use(avx512::Kernels{});
    case InstructionSet::avx2:
        return use(avx2::Kernels{});
#elif defined(LOCKSTEP_SIMD_NEON)
    case InstructionSet::neon:
        return use(neon::Kernels{});
#endif
    default:
        return use(portable::Kernels{});
    }
}

} // namespace lockstep::detail::simd
