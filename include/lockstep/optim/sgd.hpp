#pragma once

#include "lockstep/core/aligned_buffer.hpp"
#include "lockstep/core/assert.hpp"
#include "lockstep/core/error.hpp"
#include "lockstep/core/math.hpp"
#include "lockstep/optim/optimizer.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace lockstep {

/// Stochastic gradient descent with PyTorch's definitions (torch.optim.SGD; the momentum follows Sutskever et al., ICML 2013):
///
///     g = gradient + weight_decay * p
///     v = g in the first step, momentum * v + (1 - dampening) * g later      (only with momentum)
///     p = p - lr * (nesterov ? g + momentum * v : v)                          (without momentum: p - lr * g)
struct SGD {
    double lr = 1e-3;
    double momentum = 0;
    double dampening = 0;
    double weight_decay = 0;
    bool nesterov = false;

    [[nodiscard]] std::string description() const {
        return detail::concat("SGD(lr ", lr, ", momentum ", momentum, ", dampening ", dampening, ", weight_decay ", weight_decay,
                              nesterov ? ", nesterov)" : ")");
    }

    template <class T>
    struct State {
        AlignedBuffer<T> velocity; ///< empty without momentum
        std::uint64_t steps = 0;   ///< made
    };

    /// Throws ArgumentError for hyperparameters that PyTorch refuses, or that are not finite.
    template <class T>
    [[nodiscard]] State<T> init(std::size_t size) const {
        check("lr", lr);
        check("momentum", momentum);
        check("weight_decay", weight_decay);
        if (!std::isfinite(dampening)) { throw ArgumentError(detail::concat("SGD: dampening must be finite, got ", dampening)); }
        if (nesterov && (momentum <= 0 || dampening != 0)) {
            throw ArgumentError(detail::concat("SGD: nesterov needs a momentum above 0 and a dampening of 0, got momentum ",
                                               momentum, " and dampening ", dampening));
        }
        return {AlignedBuffer<T>(momentum != 0 ? size : 0), 0};
    }

    template <class T>
    void step(std::span<T> parameters, std::span<std::type_identity_t<T> const> gradients, State<T>& state) const {
        update(0, parameters, gradients, state);
        end_step(state);
    }

    template <class T>
    void update(std::size_t offset, std::span<T> parameters, std::span<std::type_identity_t<T> const> gradients,
                State<T>& state) const {
        LOCKSTEP_ASSERT(1, parameters.size() == gradients.size(), "one gradient for each parameter");
        LOCKSTEP_ASSERT(1, momentum == 0 || offset + parameters.size() <= state.velocity.size(),
                        "the optimizer's state was made for these parameters");
        T* const velocity = momentum == 0 ? nullptr : state.velocity.data() + offset;
        bool const first = state.steps == 0;
        if (weight_decay == 0) {
            update(parameters, gradients.data(), velocity, first, [](T gradient, T) { return gradient; });
        } else {
            update(parameters, gradients.data(), velocity, first,
                   [decay = static_cast<T>(weight_decay)](T gradient, T parameter) {
                       return gradient + math::product(decay, parameter);
                   });
        }
    }

    template <class T>
    void end_step(State<T>& state) const noexcept {
        ++state.steps;
    }

private:
    // Never inlined, as the loops of comm/tree_sum.hpp.
    template <class T, class Decayed>
    void update(std::span<T> parameters, T const* g, T* v, bool first, Decayed const& decayed) const {
        using math::product;
        auto const rate = static_cast<T>(lr);
        std::size_t const size = parameters.size();
        T* const p = parameters.data();
        if (momentum == 0) {
            for (std::size_t i = 0; i < size; ++i) { p[i] -= product(rate, decayed(g[i], p[i])); }
            return;
        }
        // The first step takes the gradient itself: as if the old velocity were 0 and there were no dampening.
        T const keep = first ? T{0} : static_cast<T>(momentum);
        T const take = first ? T{1} : static_cast<T>(1 - dampening);
        if (nesterov) {
            auto const ahead = static_cast<T>(momentum);
            for (std::size_t i = 0; i < size; ++i) {
                T const gradient = decayed(g[i], p[i]);
                v[i] = product(keep, v[i]) + product(take, gradient);
                p[i] -= product(rate, gradient + product(ahead, v[i]));
            }
        } else {
            for (std::size_t i = 0; i < size; ++i) {
                v[i] = product(keep, v[i]) + product(take, decayed(g[i], p[i]));
                p[i] -= product(rate, v[i]);
            }
        }
    }

    static void check(char const* name, double value) {
        if (!std::isfinite(value) || value < 0) {
            throw ArgumentError(detail::concat("SGD: ", name, " must be a finite number of at least 0, got ", value));
        }
    }
};

static_assert(ElementwiseOptimizer<SGD, float> && ElementwiseOptimizer<SGD, double>);

} // namespace lockstep
