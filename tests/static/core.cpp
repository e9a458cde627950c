// What is a source of rows and what is not.
#include <lockstep/core/rows.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace {

using lockstep::Rows;
using lockstep::RowSource;

static_assert(RowSource<Rows<float const, 3>, float> && RowSource<Rows<std::uint8_t, 3>, double>);

struct Generated {
    static constexpr std::size_t width = 2;
    [[nodiscard]] int rows() const;
    void load(std::size_t row, std::span<float, 2> destination) const;
};
static_assert(RowSource<Generated, float> && !RowSource<Generated, double>);

struct WithoutWidth {
    [[nodiscard]] std::size_t rows() const;
    void load(std::size_t row, std::span<float, 2> destination) const;
};
struct WithoutRows {
    static constexpr std::size_t width = 2;
    void load(std::size_t row, std::span<float, 2> destination) const;
};
struct LoadIsNotConst {
    static constexpr std::size_t width = 2;
    [[nodiscard]] std::size_t rows() const;
    void load(std::size_t row, std::span<float, 2> destination);
};
static_assert(!RowSource<WithoutWidth, float> && !RowSource<WithoutRows, float> && !RowSource<LoadIsNotConst, float>);
static_assert(!RowSource<int, float> && !RowSource<std::span<float>, float>);

} // namespace
