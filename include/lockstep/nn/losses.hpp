#pragma once

#include "lockstep/core/error.hpp"
#include "lockstep/core/math.hpp"
#include "lockstep/core/rows.hpp"
#include "lockstep/nn/layer.hpp"
#include "lockstep/nn/softmax.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

namespace lockstep {

/// Where the targets of a loss come from.
enum class TargetKind { labels, vectors };

/// A loss compares outputs: (rows, Out), row-major, with the targets of the same rows; `targets[r]` is a class label or a span of
/// Out scalars. `kind` says which targets a loss takes; `check<Net>()`, if there is one, refuses networks that do not fit.
///
/// - `value(outputs, targets)` returns the SUM of the rows' losses, in double.
/// - `value_and_gradient(outputs, targets, scale, gradient)` returns the same and writes scale * d sum / d outputs to all of
/// `gradient`.
///
/// The mean over a batch that is spread over workers is the sum of their sums divided once by the global number of rows, so
/// workers pass scale = 1 / (global rows); this is PyTorch's reduction="mean".
template <class L, class T = float>
concept Loss = std::same_as<std::remove_cv_t<decltype(L::kind)>, TargetKind> &&(
    requires(L const& loss, Rows<T const, 2> outputs, std::span<int const> labels, T scale, Rows<T, 2> gradient) {
        { loss.value(outputs, labels) } -> std::same_as<double>;
        { loss.value_and_gradient(outputs, labels, scale, gradient) } -> std::same_as<double>;
    } ||
    requires(L const& loss, Rows<T const, 2> outputs, std::span<std::span<double const> const> vectors, T scale,
             Rows<T, 2> gradient) {
        { loss.value(outputs, vectors) } -> std::same_as<double>;
        { loss.value_and_gradient(outputs, vectors, scale, gradient) } -> std::same_as<double>;
    });

namespace detail {

/// The last layer that computes something: `Flatten` after it changes nothing.
template <class Net, std::size_t Index = Net::size - 1>
[[nodiscard]] constexpr auto find_last_layer() {
    using L = typename Net::template layer<Index>;
    if constexpr (ViewLayer<L> && Index > 0) {
        return find_last_layer<Net, Index - 1>();
    } else {
        return std::type_identity<L>{};
    }
}
template <class Net>
using last_layer = typename decltype(find_last_layer<Net>())::type;

/// Asks a loss whether it fits a network, if it has an opinion.
template <class LossType, class Net>
constexpr bool check_loss() {
    if constexpr (requires { LossType::template check<Net>(); }) { LossType::template check<Net>(); }
    return true;
}

/// Laid out for its place in a compiler's message: the network and the number of its outputs.
template <class Net, std::size_t Outputs>
struct cross_entropy_loss_on {
    static_assert(Outputs >= 2, "lockstep: CrossEntropyLoss needs a network with at least two outputs, one per class. "
                                "See cross_entropy_loss_on<network, its outputs>");
    static_assert(
        !requires { last_layer<Net>::probabilities; },
        "lockstep: CrossEntropyLoss takes logits or log-probabilities, but this network ends in Softmax: remove it or use "
        "LogSoftmax. See cross_entropy_loss_on<network, its outputs>");
    static constexpr bool fits = true;
};

template <class Net, class LastLayer>
struct nll_loss_on {
    static_assert(
        requires { LastLayer::log_probabilities; },
        "lockstep: NLLLoss takes log-probabilities: end the network with LogSoftmax, or use CrossEntropyLoss on logits. "
        "See nll_loss_on<network, its last layer>");
    static constexpr bool fits = true;
};

/// The targets of rows from `first` on.
template <class Targets>
struct TargetsFrom {
    Targets const& targets;
    std::size_t first;
    [[nodiscard]] decltype(auto) operator[](std::size_t row) const { return targets[first + row]; }
};

/// The label of row `row`. Throws Error for one that is no output.
template <std::size_t Out, class Targets>
[[nodiscard]] std::size_t checked_label(Targets const& targets, std::size_t row) {
    auto const label = targets[row];
    if constexpr (requires { targets.first; }) { row += targets.first; }
    if (label < 0 || static_cast<std::size_t>(label) >= Out) {
        throw Error(concat("row ", row, " of the batch has label ", +label, ", the network has ", Out, " outputs (labels 0 to ",
                           Out - 1, ")"));
    }
    return static_cast<std::size_t>(label);
}

} // namespace detail

/// -log softmax(x)[label] from logits x: (rows, Out), by log-sum-exp from the row's maximum. On log-probabilities (`LogSoftmax`)
/// it has the same value.
struct CrossEntropyLoss {
    static constexpr TargetKind kind = TargetKind::labels;
    template <class Net>
    static constexpr void check() {
        static_assert(detail::cross_entropy_loss_on<Net, Net::outputs>::fits);
    }

    template <class T, std::size_t Out>
    [[nodiscard]] static double value(Rows<T const, Out> outputs, auto const& targets) {
        double total = 0;
        for (std::size_t r = 0; r < outputs.rows(); ++r) {
            auto const x = outputs[r];
            auto const label = detail::checked_label<Out>(targets, r);
            total += of_row(detail::exponentials(x), x[label]);
        }
        return total;
    }

    template <class T, std::size_t Out>
    static double value_and_gradient(Rows<T const, Out> outputs, auto const& targets, T scale, Rows<T, Out> gradient) {
        double total = 0;
        for (std::size_t r = 0; r < outputs.rows(); ++r) {
            auto const x = outputs[r];
            auto const dx = gradient[r];
            auto const label = detail::checked_label<Out>(targets, r);
            auto const row = detail::exponentials(x, [&](std::size_t i, T exponential) { dx[i] = exponential; });
            total += of_row(row, x[label]);
            T const factor = scale / row.sum;
            for (auto& slope : dx) { slope = math::product(slope, factor); }
            dx[label] -= scale;
        }
        return total;
    }

private:
    template <class T>
    [[nodiscard]] static double of_row(detail::RowExponentials<T> const& row, T logit) noexcept {
        return static_cast<double>(math::log(row.sum) - (logit - row.largest));
    }
};

/// -x[label] from log-probabilities x: (rows, Out), the output of `LogSoftmax`.
struct NLLLoss {
    static constexpr TargetKind kind = TargetKind::labels;
    template <class Net>
    static constexpr void check() {
        static_assert(detail::nll_loss_on<Net, detail::last_layer<Net>>::fits);
    }

    template <class T, std::size_t Out>
    [[nodiscard]] static double value(Rows<T const, Out> outputs, auto const& targets) {
        double total = 0;
        for (std::size_t r = 0; r < outputs.rows(); ++r) {
            total -= static_cast<double>(outputs[r][detail::checked_label<Out>(targets, r)]);
        }
        return total;
    }

    template <class T, std::size_t Out>
    static double value_and_gradient(Rows<T const, Out> outputs, auto const& targets, T scale, Rows<T, Out> gradient) {
        double const total = value(outputs, targets);
        std::fill_n(gradient.data(), gradient.rows() * Out, T{0});
        for (std::size_t r = 0; r < outputs.rows(); ++r) { gradient[r][static_cast<std::size_t>(targets[r])] = -scale; }
        return total;
    }
};

/// The mean over the Out outputs of (x - target)^2, for each row.
struct MSELoss {
    static constexpr TargetKind kind = TargetKind::vectors;
    template <class T, std::size_t Out>
    [[nodiscard]] static double value(Rows<T const, Out> outputs, auto const& targets) {
        double total = 0;
        for (std::size_t r = 0; r < outputs.rows(); ++r) {
            auto const target = targets[r];
            for (std::size_t i = 0; i < Out; ++i) {
                double const error = static_cast<double>(outputs[r][i] - static_cast<T>(target[i]));
                total += math::product(error, error);
            }
        }
        return total / static_cast<double>(Out);
    }

    template <class T, std::size_t Out>
    static double value_and_gradient(Rows<T const, Out> outputs, auto const& targets, T scale, Rows<T, Out> gradient) {
        T const factor = 2 * scale / static_cast<T>(Out);
        for (std::size_t r = 0; r < outputs.rows(); ++r) {
            auto const target = targets[r];
            for (std::size_t i = 0; i < Out; ++i) {
                gradient[r][i] = math::product(factor, outputs[r][i] - static_cast<T>(target[i]));
            }
        }
        return value(outputs, targets);
    }
};

} // namespace lockstep
