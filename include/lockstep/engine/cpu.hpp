#pragma once

#include "lockstep/core/aligned_buffer.hpp"
#include "lockstep/core/shard_tree.hpp"
#include "lockstep/core/type_list.hpp"
#include "lockstep/engine/blas.hpp"
#include "lockstep/engine/cpu_kernels.hpp"
#include "lockstep/engine/engine.hpp"
#include "lockstep/engine/self_test.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

namespace lockstep {

/// Runs networks on row-major matrices with the products of any CBLAS, called through xtensor-blas. Float and double.
struct CpuEngine {
    static constexpr char const* name = "cpu";

    /// The BLAS behind it, as `blas::Info::description`.
    [[nodiscard]] static std::string description() { return blas::info().description(); }

    /// Threads per product, for the whole process. The default is 1, whatever the BLAS's own: the workers are the parallelism.
    static void set_num_threads(int threads) {
        use_default_threads();
        blas::set_num_threads(threads);
    }

    template <class Operations, class T>
    class Workspace;

private:
    // Once per process, before the first product: a later call of the user's is not undone by the next model.
    static void use_default_threads() { [[maybe_unused]] static bool const done = (blas::set_num_threads(1), true); }
};

/// Activations of all operations side by side, (rows, width) row-major each, and two buffers through which the gradients of
/// the activations pass. Throws Error when the BLAS computes wrong products (see self_test.hpp).
template <class... Operations, class T>
class CpuEngine::Workspace<OperationList<Operations...>, T> {
    using List = OperationList<Operations...>;
    static constexpr auto widths = List::widths;
    static constexpr std::size_t inputs = widths.front();
    static constexpr std::size_t outputs_width = widths.back();
    static constexpr std::size_t max_width = *std::max_element(widths.begin(), widths.end());
    template <std::size_t Index>
    using Operation = detail::type_at<Index, Operations...>;

public:
    Workspace() {
        use_default_threads();
        self_test_products<List, T>();
    }

    void reserve(std::size_t rows) {
        if (rows <= capacity_) { return; }
        std::array<std::size_t, List::size + 2> starts{};
        for (std::size_t i = 0; i <= List::size; ++i) { starts[i + 1] = starts[i] + aligned_count<T>(rows * widths[i]); }
        activations_ = AlignedBuffer<T>(starts.back());
        for (auto& delta : deltas_) { delta = AlignedBuffer<T>(rows * max_width); }
        std::copy_n(starts.begin(), starts_.size(), starts_.begin());
        capacity_ = rows;
    }

    template <class Source>
    requires RowSource<Source, T>
    void load(Source const& source) {
        static_assert(Source::width == inputs);
        rows_ = source.rows();
        reserve(rows_);
        auto const x = activation<0>();
        for (std::size_t r = 0; r < rows_; ++r) {
            // The rows of a shuffled batch lie anywhere in memory; two ahead hides most of the wait for them.
            if constexpr (requires { source.prefetch(r); }) { source.prefetch(std::min(r + 2, rows_ - 1)); }
            source.load(r, x[r]);
        }
    }

    [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
    [[nodiscard]] Rows<T const, outputs_width> outputs() const noexcept {
        return {activations_.data() + starts_[List::size], rows_};
    }
    [[nodiscard]] Rows<T, outputs_width> output_gradient() noexcept { return {deltas_[0].data(), rows_}; }

    void forward(T const* parameters, PassContext const& context) {
        detail::for_each_index<List::size>([&](auto index) {
            detail::forward<Operation<index()>>(activation<index()>(), activation<index() + 1>(), parameters, context);
        });
    }

    /// All rows are one shard: the BLAS sums them in an order of its own.
    [[nodiscard]] RowShards shards() const noexcept { return {.rows = rows_, .shard_rows = std::max<std::size_t>(rows_, 1)}; }

    void backward(T const* parameters, PartialSums<T> gradients, PassContext const& context) {
        std::size_t current = 0;
        detail::for_each_index<List::size - std::min(List::first_with_parameters, List::size)>([&](auto from_the_end) {
            constexpr std::size_t index = List::size - 1 - from_the_end();
            using Op = Operation<index>;
            Rows<T, Op::outputs> const dy{deltas_[current].data(), rows_};
            Rows<T, Op::inputs> const dx{deltas_[1 - current].data(), rows_};
            detail::backward<Op, (index > List::first_with_parameters)>(activation<index>(), activation<index + 1>(), dy, dx,
                                                                        parameters, gradients.data(), context);
            current = 1 - current;
        });
    }

private:
    template <std::size_t Index>
    [[nodiscard]] Rows<T, widths[Index]> activation() noexcept {
        return {activations_.data() + starts_[Index], rows_};
    }

    std::size_t rows_ = 0;
    std::size_t capacity_ = 0;
    std::array<std::size_t, List::size + 1> starts_{};
    AlignedBuffer<T> activations_;
    std::array<AlignedBuffer<T>, 2> deltas_;
};

} // namespace lockstep
