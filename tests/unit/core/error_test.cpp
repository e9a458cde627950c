#include <lockstep/core/error.hpp>

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

namespace {

static_assert(std::is_base_of_v<std::runtime_error, lockstep::Error>);
static_assert(std::is_base_of_v<lockstep::Error, lockstep::DataError>);
static_assert(std::is_base_of_v<lockstep::Error, lockstep::ArgumentError>);

TEST(Concat, JoinsWhatItIsGiven) {
    EXPECT_EQ(lockstep::detail::concat("expected ", 3, " rows, got ", 2.5, ' ', std::string{"x"}), "expected 3 rows, got 2.5 x");
}

TEST(Error, CarriesItsText) { EXPECT_STREQ(lockstep::DataError{"file x"}.what(), "file x"); }

} // namespace
