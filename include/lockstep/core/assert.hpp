#pragma once

#include <stdexcept>

/// Which assertions are compiled in: 0 none, 1 those that cost nothing measurable (the default), 2 also those that walk over
/// data, 3 also those that need a collective operation. Use the same level in every translation unit of a program.
#ifndef LOCKSTEP_ASSERTION_LEVEL
#define LOCKSTEP_ASSERTION_LEVEL 1
#endif

/// Throws `AssertionError` when `condition` is false and the level is compiled in. For broken invariants of the library and its
/// callers' code, never for bad input: that is an `Error`.
#define LOCKSTEP_ASSERT(level, condition, text)                                                                                  \
    do {                                                                                                                         \
        if constexpr ((level) <= LOCKSTEP_ASSERTION_LEVEL) {                                                                     \
            if (!(condition)) { throw ::lockstep::AssertionError("lockstep: broken invariant: " text " (" #condition ")"); }     \
        }                                                                                                                        \
    } while (false)

namespace lockstep {

/// A programming error inside the library or in code that extends it.
struct AssertionError : std::logic_error {
    using std::logic_error::logic_error;
};

} // namespace lockstep
