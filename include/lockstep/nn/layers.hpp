#pragma once

#include "lockstep/core/math.hpp"
#include "lockstep/core/random.hpp"
#include "lockstep/nn/layer.hpp"
#include "lockstep/nn/softmax.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <ratio>

namespace lockstep {

/// y = x W^T + b. x: (rows, In); weight: (Out, In), bias: (Out), both start uniform in ±1/sqrt(In) as in PyTorch.
template <std::size_t In, std::size_t Out>
struct Linear {
    static_assert(In > 0 && Out > 0, "lockstep: Linear<In, Out> needs at least one input and one output");
    static constexpr bool is_linear = true;
    static constexpr std::size_t in_features = In;
    static constexpr std::size_t out_features = Out;

    template <std::size_t>
    [[nodiscard]] static constexpr std::array<TensorSpec, 2> tensors() {
        return {TensorSpec{"weight", {Out, In}, Initializer::uniform_fan_in(In)},
                TensorSpec{"bias", {Out}, Initializer::uniform_fan_in(In)}};
    }
};

/// y = max(x, 0). NaN stays NaN, and so does not hide behind a zero.
struct ReLU {
    template <class T>
    [[nodiscard]] static constexpr T forward(T x) noexcept {
        return x < T{0} ? T{0} : x;
    }
    template <class T>
    [[nodiscard]] static constexpr T backward(T y, T dy) noexcept {
        return y <= T{0} ? T{0} : dy;
    }
};

/// y = tanh(x).
struct Tanh {
    template <class T>
    [[nodiscard]] static T forward(T x) noexcept {
        return math::tanh(x);
    }
    template <class T>
    [[nodiscard]] static constexpr T backward(T y, T dy) noexcept {
        return math::product(dy, T{1} - math::product(y, y));
    }
};

/// y = 1 / (1 + exp(-x)).
struct Sigmoid {
    template <class T>
    [[nodiscard]] static T forward(T x) noexcept {
        return T{1} / (T{1} + math::exp(-x));
    }
    template <class T>
    [[nodiscard]] static constexpr T backward(T y, T dy) noexcept {
        return math::product(dy * y, T{1} - y);
    }
};

/// Rows of any shape are already flat here, so this changes nothing; it keeps the numbering of PyTorch's networks.
struct Flatten {
    static constexpr bool is_view = true;
};

/// y = x - log(sum(exp(x))) over each row, computed from the row's maximum.
struct LogSoftmax {
    static constexpr bool log_probabilities = true;

    static void forward(auto const& pass) noexcept {
        for (std::size_t r = 0; r < pass.x.rows(); ++r) {
            auto const x = pass.x[r];
            auto const y = pass.y[r];
            auto const [largest, sum] = detail::exponentials(x);
            auto const rest = math::log(sum);
            // Never x - (largest + rest): among large logits the sum would lose the digits of `rest`.
            for (std::size_t i = 0; i < x.size(); ++i) { y[i] = (x[i] - largest) - rest; }
        }
    }
    static void backward(auto const& pass) noexcept {
        for (std::size_t r = 0; r < pass.x.rows(); ++r) {
            auto const y = pass.y[r];
            auto const dy = pass.dy[r];
            auto const dx = pass.dx[r];
            auto const sum = std::accumulate(dy.begin(), dy.end(), dy[0] * 0);
            for (std::size_t i = 0; i < y.size(); ++i) { dx[i] = dy[i] - math::product(math::exp(y[i]), sum); }
        }
    }
};

/// y = exp(x) / sum(exp(x)) over each row. For reading probabilities; train on `LogSoftmax` or on the logits.
struct Softmax {
    static constexpr bool probabilities = true;

    static void forward(auto const& pass) noexcept {
        for (std::size_t r = 0; r < pass.x.rows(); ++r) {
            auto const x = pass.x[r];
            auto const y = pass.y[r];
            auto const row = detail::exponentials(x, [&](std::size_t i, auto exponential) { y[i] = exponential; });
            for (auto& value : y) { value /= row.sum; }
        }
    }
    static void backward(auto const& pass) noexcept {
        for (std::size_t r = 0; r < pass.x.rows(); ++r) {
            auto const y = pass.y[r];
            auto const dy = pass.dy[r];
            auto const dx = pass.dx[r];
            auto dot = dy[0] * 0;
            for (std::size_t i = 0; i < y.size(); ++i) { dot += math::product(y[i], dy[i]); }
            for (std::size_t i = 0; i < y.size(); ++i) { dx[i] = math::product(y[i], dy[i] - dot); }
        }
    }
};

/// In training each scalar is zeroed with probability P (a std::ratio, PyTorch's default 1/2) and the others are divided by 1 -
/// P; in evaluation y = x. Which ones depends on the model's seed, the layer, the step and the row's place in the global batch
/// alone, so not on the number of workers. Source: Srivastava et al., JMLR 15 (2014), in the inverted form.
template <class P = std::ratio<1, 2>>
struct Dropout {
    static_assert(P::num >= 0 && P::num < P::den, "lockstep: Dropout<std::ratio<N, D>> needs a probability in [0, 1)");

    static void forward(auto const& pass) noexcept { apply(pass.x, pass.y, pass.context); }
    static void backward(auto const& pass) noexcept { apply(pass.dy, pass.dx, pass.context); }

private:
    template <class T, std::size_t Width>
    static void apply(Rows<T const, Width> in, Rows<T, Width> out, PassContext const& context) noexcept {
        if (!context.training) {
            std::copy_n(in.data(), in.rows() * Width, out.data());
            return;
        }
        constexpr T scale = static_cast<T>(P::den) / static_cast<T>(P::den - P::num);
        // Zeroed when the word is below P * 2^32: the same choice on every machine.
        constexpr auto threshold = static_cast<std::uint64_t>(0x1p32L * P::num / P::den);
        // A key per step, so that (row, feature) alone address a number within it.
        auto const key = RandomStream{context.seed, RandomPurpose::dropout, context.layer}.block(context.step);
        RandomStream const stream{std::uint64_t{key[0]} << 32U | key[1], RandomPurpose::dropout, context.layer};
        constexpr std::size_t blocks = (Width + 3) / 4;
        for (std::size_t r = 0; r < in.rows(); ++r) {
            for (std::size_t block = 0; block < blocks; ++block) {
                auto const words = stream.block((context.first_row + r) * blocks + block);
                for (std::size_t i = 4 * block; i < std::min(4 * block + 4, Width); ++i) {
                    out[r][i] = words[i % 4] < threshold ? T{0} : math::product(in[r][i], scale);
                }
            }
        }
    }
};

} // namespace lockstep
