#include <lockstep/core/aligned_buffer.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

namespace {

using lockstep::aligned_count;
using lockstep::AlignedBuffer;

static_assert(lockstep::alignment == 64);
static_assert(aligned_count<float>(0) == 0 && aligned_count<float>(1) == 16 && aligned_count<float>(16) == 16);
static_assert(aligned_count<float>(17) == 32 && aligned_count<double>(9) == 16 && aligned_count<std::uint8_t>(65) == 128);
static_assert(!std::is_copy_constructible_v<AlignedBuffer<float>> && std::is_nothrow_move_constructible_v<AlignedBuffer<float>>);

template <class T>
void expect_aligned_zeros(std::size_t size) {
    { // so that the memory is likely not zero by chance
        AlignedBuffer<T> dirt(size);
        std::fill_n(dirt.data(), size, T{7});
    }
    AlignedBuffer<T> const buffer(size);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U) << size;
    EXPECT_TRUE(std::all_of(buffer.span().begin(), buffer.span().end(), [](T value) { return value == T{0}; })) << size;
    EXPECT_EQ(buffer.span().size(), size);
}

TEST(AlignedBuffer, HoldsAlignedZeros) {
    for (std::size_t const size : {1U, 2U, 3U, 15U, 16U, 17U, 1000U, 100'003U}) {
        expect_aligned_zeros<float>(size);
        expect_aligned_zeros<double>(size);
        expect_aligned_zeros<std::uint8_t>(size);
    }
}

TEST(AlignedBuffer, OfNoElementsIsEmpty) {
    EXPECT_TRUE(AlignedBuffer<float>{}.span().empty());
    EXPECT_EQ(AlignedBuffer<float>{}.data(), nullptr);
    EXPECT_TRUE(AlignedBuffer<float>(0).span().empty());
    EXPECT_TRUE(AlignedBuffer<float>(0).clone().span().empty());
}

TEST(AlignedBuffer, CloneHasItsOwnMemory) {
    AlignedBuffer<double> original(3);
    original.data()[1] = 5;
    auto copy = original.clone();
    ASSERT_EQ(copy.size(), 3U);
    EXPECT_EQ(copy.data()[1], 5);
    copy.data()[1] = 6;
    EXPECT_EQ(original.data()[1], 5);
}

TEST(AlignedBuffer, MovesItsMemory) {
    AlignedBuffer<double> original(3);
    auto const* const data = original.data();
    AlignedBuffer<double> const moved{std::move(original)};
    EXPECT_EQ(moved.data(), data);
    EXPECT_EQ(moved.size(), 3U);
}

TEST(AlignedBuffer, RefusesSizesBeyondTheAddressSpace) {
    constexpr auto largest = std::numeric_limits<std::size_t>::max();
    std::size_t volatile size = largest / sizeof(double) + 1; // its bytes wrap around to 0
    EXPECT_THROW(AlignedBuffer<double>{size}, std::bad_alloc);
}

} // namespace
