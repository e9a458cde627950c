#pragma once

#include "lockstep/core/aligned_buffer.hpp"
#include "lockstep/core/type_list.hpp"
#include "lockstep/engine/products.hpp"
#include "lockstep/nn/plan.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep::benchmarks {

/// The bound of CpuEngine: one worker's products of a training step and nothing else, by the same BLAS, in the step's order and
/// on buffers that are laid out like the step's. No gather, bias, activation, loss, reduction, update or waiting.
template <class Net, class T, class List = lockstep::detail::plan_of<Net, T>>
class ProductsOnly;

template <class Net, class T, class... Operations>
class ProductsOnly<Net, T, OperationList<Operations...>> {
    using List = OperationList<Operations...>;
    static constexpr auto widths = List::widths;
    static constexpr std::size_t max_width = *std::max_element(widths.begin(), widths.end());
    template <std::size_t Index>
    using Operation = lockstep::detail::type_at<Index, Operations...>;

public:
    explicit ProductsOnly(std::size_t rows)
        : rows_{rows}, parameters_(Net::template buffer_size<T>), gradients_(Net::template buffer_size<T>) {
        std::size_t total = 0;
        for (std::size_t i = 0; i <= List::size; ++i) {
            starts_[i] = total;
            total += aligned_count<T>(rows * widths[i]);
        }
        activations_ = AlignedBuffer<T>(total);
        for (auto& delta : deltas_) { delta = AlignedBuffer<T>(rows * max_width); }
        // Ordinary numbers, neither zeros nor denormals: the speed of products may depend on them.
        fill(activations_);
        fill(parameters_);
        for (auto& delta : deltas_) { fill(delta); }
    }

    void step() {
        lockstep::detail::for_each_index<List::size>([&](auto index) {
            using Op = Operation<index()>;
            lockstep::detail::multiply_transposed<Op::inputs, Op::outputs>(
                activation<index(), T const>(), parameters_.data() + Op::weight, activation<index() + 1, T>());
        });
        std::size_t current = 0;
        lockstep::detail::for_each_index<List::size>([&](auto from_the_end) {
            constexpr std::size_t index = List::size - 1 - from_the_end();
            using Op = Operation<index>;
            Rows<T const, Op::outputs> const dy{deltas_[current].data(), rows_};
            lockstep::detail::transposed_multiply<Op::inputs, Op::outputs>(dy, activation<index, T const>(),
                                                                           gradients_.data() + Op::weight);
            if constexpr (index > 0) {
                lockstep::detail::multiply<Op::inputs, Op::outputs>(dy, parameters_.data() + Op::weight,
                                                                    Rows<T, Op::inputs>{deltas_[1 - current].data(), rows_});
            }
            current = 1 - current;
        });
    }

private:
    static void fill(AlignedBuffer<T>& buffer) {
        std::uint32_t bits = 1;
        for (auto& value : buffer.span()) {
            bits = bits * 1664525U + 1013904223U;
            value = (static_cast<T>(bits >> 8U) / T{1U << 24U} - T{0.5}) / 16;
        }
    }
    template <std::size_t Index, class U>
    [[nodiscard]] Rows<U, widths[Index]> activation() {
        return {activations_.data() + starts_[Index], rows_};
    }

    std::size_t rows_;
    std::array<std::size_t, List::size + 1> starts_{};
    AlignedBuffer<T> parameters_;
    AlignedBuffer<T> gradients_;
    AlignedBuffer<T> activations_;
    std::array<AlignedBuffer<T>, 2> deltas_;
};

} // namespace lockstep::benchmarks
