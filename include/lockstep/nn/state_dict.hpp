#pragma once

#include "lockstep/core/error.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

/// One named tensor outside a model: row-major values of the given shape.
template <class T>
struct NamedTensor {
    std::string name;
    std::vector<std::size_t> shape;
    std::vector<T> values;

    friend bool operator==(NamedTensor const&, NamedTensor const&) = default;
};

/// A model's parameters by name, in the network's order: what PyTorch calls a state dict, with PyTorch's names ("0.weight",
/// "0.bias", "2.weight", …: the layer's index, then the tensor's name).
template <class T>
struct StateDict {
    std::vector<NamedTensor<T>> tensors;

    [[nodiscard]] bool contains(std::string_view name) const noexcept { return find(name) != tensors.end(); }

    /// Throws ArgumentError when there is no tensor of that name.
    [[nodiscard]] NamedTensor<T> const& at(std::string_view name) const {
        auto const found = find(name);
        if (found == tensors.end()) { throw ArgumentError(detail::concat("the state dict has no tensor \"", name, "\"")); }
        return *found;
    }
    [[nodiscard]] NamedTensor<T>& at(std::string_view name) { return const_cast<NamedTensor<T>&>(std::as_const(*this).at(name)); }

    friend bool operator==(StateDict const&, StateDict const&) = default;

private:
    [[nodiscard]] auto find(std::string_view name) const noexcept {
        return std::find_if(tensors.begin(), tensors.end(), [&](auto const& tensor) { return tensor.name == name; });
    }
};

} // namespace lockstep
