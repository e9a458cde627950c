#pragma once

#include <lockstep/engine/operations.hpp>

#include <cstddef>
#include <span>
#include <vector>

/// Layers alone, without a network around them.
namespace test {

/// The outputs of a row layer without parameters.
template <class Layer, std::size_t In, std::size_t Out = In, class T>
[[nodiscard]] std::vector<T> forward(std::vector<T> const& x, lockstep::PassContext const& context = {}) {
    std::vector<T> y(x.size() / In * Out, T{-77});
    Layer::forward(lockstep::ForwardPass<T, In, Out>{
        {x.data(), x.size() / In}, {y.data(), x.size() / In}, {nullptr, nullptr, nullptr}, context});
    return y;
}

/// The gradients by its inputs.
template <class Layer, std::size_t In, std::size_t Out = In, class T>
[[nodiscard]] std::vector<T> backward(std::vector<T> const& x, std::vector<T> const& dy,
                                      lockstep::PassContext const& context = {}) {
    auto const y = forward<Layer, In, Out>(x, context);
    std::size_t const rows = x.size() / In;
    std::vector<T> dx(x.size(), T{-77});
    Layer::backward(lockstep::BackwardPass<T, In, Out>{{x.data(), rows},
                                                       {y.data(), rows},
                                                       {dy.data(), rows},
                                                       {dx.data(), rows},
                                                       {nullptr, nullptr, nullptr},
                                                       {nullptr, nullptr, nullptr},
                                                       context});
    return dx;
}

} // namespace test
