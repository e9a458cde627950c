#pragma once

#include "lockstep/core/aligned_buffer.hpp"
#include "lockstep/core/array_like.hpp"
#include "lockstep/core/assert.hpp"
#include "lockstep/core/error.hpp"
#include "lockstep/core/rows.hpp"
#include "lockstep/data/dataset.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

/// The kind of target that each sample of a dataset has: one label in [0, Classes).
template <std::size_t Classes>
struct ClassLabels {
    static_assert(Classes > 0, "lockstep: ClassLabels needs at least one class");
    static_assert(Classes <= std::size_t{std::numeric_limits<Label>::max()},
                  "lockstep: ClassLabels has more classes than a Label can name");
    static constexpr std::size_t classes = Classes;
    using target_type = Label;
};

/// The kind of target that each sample of a dataset has: a vector of `Targets` scalars of type `Y`.
template <std::size_t Targets, class Y = float>
struct TargetVectors {
    static_assert(Targets > 0, "lockstep: TargetVectors needs at least one target");
    static_assert(std::is_arithmetic_v<Y>, "lockstep: TargetVectors holds numbers");
    static constexpr std::size_t targets = Targets;
    using target_type = Y;
};

/// `input_scale`: what every stored input is multiplied by when it is loaded. Bytes are taken as pixels and come out in [0, 1].
template <class X>
struct ArrayDatasetOptions {
    double input_scale = std::is_same_v<X, std::uint8_t> ? 1.0 / 255.0 : 1.0;
};

namespace detail {

/// Moves a vector of `Stored` in, copies everything else.
template <class Stored, class A>
[[nodiscard]] std::vector<Stored> own_rows(A&& array, std::size_t width, std::string_view name) {
    using Source = Element<std::remove_cvref_t<A>>;
    static_assert(std::is_same_v<Source, Stored> || std::is_floating_point_v<Stored>,
                  "lockstep: ArrayDataset stores integers only from arrays of that very type; give it the array's element type");
    auto const values = rows_of(array, width, name);
    if constexpr (std::is_same_v<A, std::vector<Stored>>) {
        return std::move(array);
    } else {
        std::vector<Stored> copy;
        copy.reserve(values.size());
        for (auto const value : values) { copy.push_back(static_cast<Stored>(value)); }
        return copy;
    }
}

/// The labels as `Label`s, each checked to lie in [0, classes).
template <class A>
[[nodiscard]] std::vector<Label> checked_labels(A const& array, std::size_t classes, std::string_view name) {
    static_assert(std::is_integral_v<Element<A>>, "lockstep: class labels are integers");
    std::vector<Label> labels;
    auto const values = rows_of(array, 1, name);
    labels.reserve(values.size());
    for (auto const value : values) {
        // A negative label becomes a huge one.
        if (static_cast<std::uint64_t>(value) >= classes) {
            throw DataError(concat(name, ": index ", labels.size(), ", label ", +value, ", classes ", classes));
        }
        labels.push_back(static_cast<Label>(value));
    }
    return labels;
}

} // namespace detail

/// A dataset of arrays in memory: inputs of shape (samples, Features), stored as `X` and scaled while they are loaded, and
/// `Target`: `ClassLabels<C>` or `TargetVectors<K, Y>`. Copies are cheap: they share the data, which never changes.
template <std::size_t Features, class Target, class X = float>
class ArrayDataset : public Target {
    static_assert(Features > 0, "lockstep: ArrayDataset needs at least one feature");
    static_assert(std::is_arithmetic_v<X>, "lockstep: ArrayDataset holds numbers");
    static constexpr bool labelled = requires { Target::classes; };
    using Y = typename Target::target_type;

public:
    using Options = ArrayDatasetOptions<X>;
    static constexpr std::size_t features = Features;

    /// Takes arrays of any rank: the first dimension counts the samples (an array of one dimension is cut into rows). Vectors of
    /// the stored type that are moved in stay where they are, all else is copied. Labels may be of any integral type and are
    /// checked. Throws DataError: another shape, another memory order than row-major, a label out of range, different numbers of
    /// samples.
    template <class Inputs, class Targets>
    ArrayDataset(Inputs&& input_array, Targets&& target_array, Options options = {}) : input_scale_{options.input_scale} {
        if constexpr (check_types<Inputs, Targets>()) {
            auto storage = std::make_shared<Storage>();
            storage->inputs = detail::own_rows<X>(std::forward<Inputs>(input_array), Features, inputs_name);
            storage->targets = own_targets(std::forward<Targets>(target_array));
            inputs_ = storage->inputs;
            targets_ = storage->targets;
            owner_ = std::move(storage);
            check_counts();
        }
    }

    // No move operations: a moved-from dataset would still point to data that it no longer keeps alive.
    ArrayDataset(ArrayDataset const&) = default;
    ArrayDataset& operator=(ArrayDataset const&) = default;
    ~ArrayDataset() = default;

    /// Like the constructor, but keeps a view of the arrays without copying: they must outlive the dataset and all its copies,
    /// and must not change meanwhile. Labels are copied all the same. Element types must be the stored ones.
    template <class Inputs, class Targets>
    [[nodiscard]] static ArrayDataset borrow(Inputs&& input_array, Targets&& target_array, Options options = {}) {
        ArrayDataset dataset(options);
        if constexpr (check_types<Inputs, Targets>() && check_borrowable<X, Inputs>()) {
            dataset.inputs_ = detail::rows_of(input_array, Features, inputs_name);
            if constexpr (labelled) {
                auto storage = std::make_shared<Storage>();
                storage->targets = own_targets(target_array);
                dataset.targets_ = storage->targets;
                dataset.owner_ = std::move(storage);
            } else if constexpr (check_borrowable<Y, Targets>()) {
                dataset.targets_ = detail::rows_of(target_array, target_width(), targets_name);
            }
            dataset.check_counts();
        }
        return dataset;
    }

    [[nodiscard]] std::size_t size() const noexcept { return inputs_.size() / Features; }

    /// Writes the inputs of sample `index`, converted to `T` and scaled.
    template <std::floating_point T>
    void load(std::size_t index, std::span<T, Features> destination) const {
        LOCKSTEP_ASSERT(1, index < size(), "a dataset has no sample with this index");
        X const* const source = inputs_.data() + index * Features;
        T* const scaled = destination.data();
        auto const scale = static_cast<T>(input_scale_);
        for (std::size_t feature = 0; feature < Features; ++feature) {
            scaled[feature] = static_cast<T>(source[feature]) * scale;
        }
    }

    /// Begins to bring the inputs of sample `index` into the cache.
    void prefetch(std::size_t index) const noexcept {
        auto const* const row = reinterpret_cast<std::byte const*>(inputs_.data() + index * Features);
        for (std::size_t byte = 0; byte < Features * sizeof(X); byte += alignment) { __builtin_prefetch(row + byte); }
    }

    /// The label of sample `index`, or its target vector: a span of `targets` scalars.
    [[nodiscard]] auto target(std::size_t index) const {
        LOCKSTEP_ASSERT(1, index < size(), "a dataset has no sample with this index");
        if constexpr (labelled) {
            return targets_[index];
        } else {
            return targets_.subspan(index * target_width()).template first<target_width()>();
        }
    }

    /// The inputs as they are stored, not scaled: shape (size(), Features).
    [[nodiscard]] Rows<X const, Features> stored_inputs() const noexcept { return {inputs_.data(), size()}; }
    [[nodiscard]] double input_scale() const noexcept { return input_scale_; }

private:
    static constexpr std::string_view inputs_name = "ArrayDataset inputs";
    static constexpr std::string_view targets_name = "ArrayDataset targets";

    struct Storage {
        std::vector<X> inputs;
        std::vector<Y> targets;
    };

    explicit ArrayDataset(Options options) : input_scale_{options.input_scale} {}

    static constexpr std::size_t target_width() {
        if constexpr (labelled) {
            return 1;
        } else {
            return Target::targets;
        }
    }

    // What these refuse is not instantiated any further, so that their sentence is the compiler's only error.
    template <class Inputs, class Targets>
    static constexpr bool check_types() {
        constexpr bool arrays = detail::ArrayLike<std::remove_cvref_t<Inputs>> && detail::ArrayLike<std::remove_cvref_t<Targets>>;
        static_assert(arrays, "lockstep: ArrayDataset takes arrays of numbers with data() and size() or shape(); evaluate a lazy "
                              "expression first, e.g. with xt::eval");
        return arrays;
    }

    template <class Stored, class A>
    static constexpr bool check_borrowable() {
        if constexpr (detail::ArrayLike<std::remove_cvref_t<A>>) {
            constexpr bool lives = std::is_lvalue_reference_v<A> || std::ranges::borrowed_range<A>;
            constexpr bool same = std::is_same_v<detail::Element<std::remove_cvref_t<A>>, Stored>;
            static_assert(
                lives, "lockstep: ArrayDataset::borrow keeps a view: pass an array that outlives the dataset, not a temporary");
            static_assert(same,
                          "lockstep: ArrayDataset::borrow cannot convert: the array's elements must have the dataset's type");
            return lives && same;
        }
        return false;
    }

    template <class Targets>
    static std::vector<Y> own_targets(Targets&& target_array) {
        if constexpr (labelled) {
            return detail::checked_labels(target_array, Target::classes, targets_name);
        } else {
            return detail::own_rows<Y>(std::forward<Targets>(target_array), target_width(), targets_name);
        }
    }

    void check_counts() const {
        std::size_t const count = targets_.size() / target_width();
        if (size() != count) { throw DataError(detail::concat("ArrayDataset: ", size(), " inputs, but ", count, " targets")); }
    }

    std::shared_ptr<void const> owner_;
    std::span<X const> inputs_;
    std::span<Y const> targets_;
    double input_scale_;
};

} // namespace lockstep
