#include <lockstep/core/assert.hpp>

#include <gtest/gtest.h>

#include <string>

namespace {

static_assert(LOCKSTEP_ASSERTION_LEVEL >= 0 && LOCKSTEP_ASSERTION_LEVEL <= 3);

// The level counts where the macro is used.
#undef LOCKSTEP_ASSERTION_LEVEL
#define LOCKSTEP_ASSERTION_LEVEL 0
void with_none(bool condition) { LOCKSTEP_ASSERT(1, condition, "text"); }

#undef LOCKSTEP_ASSERTION_LEVEL
#define LOCKSTEP_ASSERTION_LEVEL 1
void with_fast(bool condition) { LOCKSTEP_ASSERT(1, condition, "one gradient for each parameter"); }
void full_with_fast(int& evaluated) { LOCKSTEP_ASSERT(2, ++evaluated < 0, "text"); }

#undef LOCKSTEP_ASSERTION_LEVEL
#define LOCKSTEP_ASSERTION_LEVEL 3
void collective_with_all(bool condition) { LOCKSTEP_ASSERT(3, condition, "text"); }

TEST(Assert, ThrowsWhatWasBroken) {
    EXPECT_NO_THROW(with_fast(true));
    try {
        with_fast(false);
        FAIL();
    } catch (lockstep::AssertionError const& error) {
        EXPECT_EQ(std::string{error.what()}, "lockstep: broken invariant: one gradient for each parameter (condition)");
    }
}

TEST(Assert, ChecksUpToItsLevel) {
    EXPECT_NO_THROW(with_none(false));
    EXPECT_NO_THROW(collective_with_all(true));
    EXPECT_THROW(collective_with_all(false), lockstep::AssertionError);
}

TEST(Assert, AboveItsLevelEvaluatesNothing) {
    int evaluated = 0;
    EXPECT_NO_THROW(full_with_fast(evaluated));
    EXPECT_EQ(evaluated, 0);
}

} // namespace
