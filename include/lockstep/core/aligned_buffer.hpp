#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace lockstep {

/// Every tensor starts on a multiple of this many bytes: one cache line, one AVX-512 register. Fixed, so that layouts do not
/// depend on compiler flags.
inline constexpr std::size_t alignment = 64;

/// The number of elements of `T` that `count` elements take when the next tensor shall start aligned.
template <class T>
[[nodiscard]] constexpr std::size_t aligned_count(std::size_t count) noexcept {
    constexpr std::size_t per_line = alignment / sizeof(T);
    return (count + per_line - 1) / per_line * per_line;
}

/// A fixed number of zero-initialised scalars whose first lies on a multiple of `alignment` bytes. Move-only; `clone` copies.
template <class T>
class AlignedBuffer {
    static_assert(std::is_trivially_copyable_v<T>, "AlignedBuffer holds plain scalars");
    struct Free {
        void operator()(T* data) const noexcept { ::operator delete (data, std::align_val_t{alignment}); }
    };

public:
    AlignedBuffer() = default;

    /// Throws std::bad_alloc.
    explicit AlignedBuffer(std::size_t size) : size_{size} {
        if (size == 0) { return; }
        if (size > static_cast<std::size_t>(-1) / sizeof(T)) { throw std::bad_array_new_length(); }
        data_.reset(static_cast<T*>(::operator new (size * sizeof(T), std::align_val_t{alignment})));
        std::uninitialized_value_construct_n(data_.get(), size);
    }

    [[nodiscard]] AlignedBuffer clone() const {
        AlignedBuffer copy(size_);
        std::copy_n(data(), size_, copy.data());
        return copy;
    }

    [[nodiscard]] T* data() noexcept { return data_.get(); }
    [[nodiscard]] T const* data() const noexcept { return data_.get(); }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::span<T> span() noexcept { return {data(), size_}; }
    [[nodiscard]] std::span<T const> span() const noexcept { return {data(), size_}; }

private:
    std::unique_ptr<T[], Free> data_;
    std::size_t size_ = 0;
};

} // namespace lockstep
