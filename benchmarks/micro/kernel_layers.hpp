#pragma once

#include <lockstep/core/aligned_buffer.hpp>
#include <lockstep/core/shard_tree.hpp>
#include <lockstep/data/array_dataset.hpp>
#include <lockstep/data/data_loader.hpp>
#include <lockstep/engine/products.hpp>
#include <lockstep/engine/simd.hpp>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/plan.hpp>
#include <lockstep/nn/sequential.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

/// One linear layer of a training step, kernel by kernel: SimdEngine's and those of a BLAS on buffers of the same sizes. All that
/// the benchmark knows of the kernels' arguments is here.
namespace lockstep::benchmarks {

/// Ordinary numbers, neither zeros nor denormals: the speed of kernels may depend on them.
[[nodiscard]] inline AlignedBuffer<float> ordinary_numbers(std::size_t count) {
    AlignedBuffer<float> buffer(count);
    std::uint32_t bits = 1;
    for (auto& value : buffer.span()) {
        bits = bits * 1664525U + 1013904223U;
        value = (static_cast<float>(bits >> 8U) / (1U << 24U) - 0.5F) / 16;
    }
    return buffer;
}

/// Batches of a dataset of bytes that is larger than the caches, in an order that jumps, as a shuffled epoch does.
template <std::size_t Features>
class ByteBatches {
    using Data = ArrayDataset<Features, ClassLabels<10>, std::uint8_t>;

public:
    explicit ByteBatches(std::size_t bytes = std::size_t{48} << 20U) : data_{make(bytes / Features)}, order_(data_.size()) {
        constexpr std::size_t stride = 7919; // a prime
        for (std::size_t i = 0; i < order_.size(); ++i) { order_[i] = static_cast<std::uint32_t>(i * stride % order_.size()); }
    }
    [[nodiscard]] BatchInputs<Data> next(std::size_t rows) {
        if (next_ + rows > order_.size()) { next_ = 0; }
        next_ += rows;
        return {&data_, std::span{order_}.subspan(next_ - rows, rows)};
    }

private:
    static Data make(std::size_t samples) {
        std::vector<std::uint8_t> bytes(samples * Features);
        std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
        return {std::move(bytes), std::vector<std::uint8_t>(samples)};
    }

    Data data_;
    std::vector<std::uint32_t> order_;
    std::size_t next_ = 0;
};

/// x: (rows, In), y: (rows, Out). All shards have the usual size.
template <std::size_t In, std::size_t Out>
class SimdLayer {
    using Net = Sequential<Linear<In, Out>>;
    using Workspace = SimdEngine::Workspace<lockstep::detail::plan_of<Net, float>, float>;

public:
    explicit SimdLayer(std::size_t rows)
        : rows_{rows}, panels_{lockstep::detail::simd::panels_of<float>(rows)}, parameters_{ordinary_numbers(
                                                                                    Net::template buffer_size<float>)},
          gradients_(Net::template buffer_size<float>), x_{ordinary_numbers(padded() * In)}, y_{ordinary_numbers(padded() * Out)},
          x_rows_{ordinary_numbers(rows * In)}, y_rows_{ordinary_numbers(rows * Out)},
          feature_panels_(lockstep::detail::simd::panels_of<float>(In) * lockstep::detail::simd::feature_panel<float>(panels_)) {
        workspace_.load(Rows<float const, In>{x_rows_.data(), rows});
        workspace_.forward(parameters_.data(), context());
        auto const slopes = workspace_.output_gradient();
        std::copy_n(y_rows_.data(), rows * Out, slopes.data());
        workspace_.backward_slopes(parameters_.data(), gradients(), context());
    }

    /// With the bias, which costs nothing: the sums begin with it.
    void forward() {
        with([&]<class Kernels>(Kernels) {
            Kernels::template product<Out, In>(weight(), In, std::size_t{1}, lockstep::detail::simd::Start::values, bias(),
                                               constant(x_), y_.data(), panels_);
        });
    }
    void input_gradients() {
        with([&]<class Kernels>(Kernels) {
            Kernels::template product<In, Out>(weight(), std::size_t{1}, In, lockstep::detail::simd::Start::zero,
                                               static_cast<float const*>(nullptr), constant(y_), x_.data(), panels_);
        });
    }
    void weight_gradients() { workspace_.weight_gradients(gradients(), {0, gradients_.size()}); }

    /// Panels of rows to panels of features: what weight gradients need of their inputs.
    void to_feature_panels() {
        with([&]<class Kernels>(Kernels) {
            Kernels::template to_feature_panels<In>(constant(x_), feature_panels_.data(), panels_);
        });
    }
    void to_row_major() {
        with([&]<class Kernels>(Kernels) { Kernels::template to_row_major<Out>(constant(y_), y_rows_.data(), rows_); });
    }
    void from_row_major() {
        with([&]<class Kernels>(Kernels) { Kernels::template from_row_major<Out>(constant(y_rows_), y_.data(), rows_); });
    }
    template <class Source>
    void load(Source const& source) {
        workspace_.load(source);
    }

private:
    [[nodiscard]] std::size_t padded() const { return panels_ * lockstep::detail::simd::line<float>; }
    [[nodiscard]] PassContext context() const { return {.training = true, .global_rows = rows_, .shard_rows = usual_shard_rows}; }
    [[nodiscard]] PartialSums<float> gradients() {
        return {gradients_.span(), gradients_.size(), count_shards(rows_, usual_shard_rows)};
    }
    [[nodiscard]] float const* weight() const { return parameters_.data() + Net::template offsets<float>[0]; }
    [[nodiscard]] float const* bias() const { return parameters_.data() + Net::template offsets<float>[1]; }
    [[nodiscard]] static float const* constant(AlignedBuffer<float> const& buffer) { return buffer.data(); }
    template <class Use>
    static void with(Use const& use) {
        lockstep::detail::simd::with_kernels(SimdEngine::instruction_set(), use);
    }

    std::size_t rows_;
    std::size_t panels_;
    AlignedBuffer<float> parameters_;
    AlignedBuffer<float> gradients_;
    AlignedBuffer<float> x_; ///< panels of rows, as y_
    AlignedBuffer<float> y_;
    AlignedBuffer<float> x_rows_;
    AlignedBuffer<float> y_rows_;
    AlignedBuffer<float> feature_panels_;
    Workspace workspace_;
};

/// CpuEngine's products.
template <std::size_t In, std::size_t Out>
class BlasLayer {
public:
    explicit BlasLayer(std::size_t rows)
        : rows_{rows}, weight_{ordinary_numbers(In * Out)},
          gradient_(In * Out), x_{ordinary_numbers(rows * In)}, y_{ordinary_numbers(rows * Out)} {}

    void forward() { lockstep::detail::multiply_transposed<In, Out>(x<float const>(), constant(weight_), y<float>()); }
    void input_gradients() { lockstep::detail::multiply<In, Out>(y<float const>(), constant(weight_), x<float>()); }
    void weight_gradients() {
        lockstep::detail::transposed_multiply<In, Out>(y<float const>(), x<float const>(), gradient_.data());
    }

private:
    template <class T>
    [[nodiscard]] Rows<T, In> x() {
        return {x_.data(), rows_};
    }
    template <class T>
    [[nodiscard]] Rows<T, Out> y() {
        return {y_.data(), rows_};
    }
    [[nodiscard]] static float const* constant(AlignedBuffer<float> const& buffer) { return buffer.data(); }

    std::size_t rows_;
    AlignedBuffer<float> weight_;
    AlignedBuffer<float> gradient_;
    AlignedBuffer<float> x_;
    AlignedBuffer<float> y_;
};

} // namespace lockstep::benchmarks
