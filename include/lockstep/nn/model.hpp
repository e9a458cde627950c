#pragma once

#include "lockstep/core/aligned_buffer.hpp"
#include "lockstep/core/array_like.hpp"
#include "lockstep/core/assert.hpp"
#include "lockstep/core/error.hpp"
#include "lockstep/core/hash.hpp"
#include "lockstep/core/random.hpp"
#include "lockstep/core/rows.hpp"
#include "lockstep/core/shard_tree.hpp"
#include "lockstep/engine/engine.hpp"
#include "lockstep/engine/simd.hpp"
#include "lockstep/nn/initialize.hpp"
#include "lockstep/nn/layers.hpp"
#include "lockstep/nn/losses.hpp"
#include "lockstep/nn/plan.hpp"
#include "lockstep/nn/sequential.hpp"
#include "lockstep/nn/state_dict.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

/// What a network says about some rows.
template <class T, std::size_t Out>
struct Prediction {
    std::vector<std::size_t> classes; ///< the index of each row's largest score
    std::vector<T> scores;            ///< the outputs: (rows, Out), row-major
    [[nodiscard]] Rows<T const, Out> rows() const noexcept { return {scores.data(), classes.size()}; }
};

namespace detail {

/// Laid out for its place in a compiler's message: a source of rows and its width, a network and the width that it reads.
template <class Source, std::size_t Width, class Net, std::size_t Inputs>
struct rows_for_network {
    static_assert(Width == Inputs, "lockstep: these rows do not fit the network: their width is not its number of inputs. "
                                   "See rows_for_network<rows, their width, network, its inputs>");
    static constexpr bool fit = Width == Inputs;
};

/// Puts a model into evaluation mode and, whatever happens, back into the mode that it had.
template <class ModelType>
class EvaluationMode {
public:
    explicit EvaluationMode(ModelType& model) noexcept : model_{model}, was_training_{model.training()} { model_.eval(); }
    EvaluationMode(EvaluationMode const&) = delete;
    EvaluationMode& operator=(EvaluationMode const&) = delete;
    ~EvaluationMode() { model_.train(was_training_); }

private:
    ModelType& model_;
    bool was_training_;
};

} // namespace detail

/// The state of one replica of a network: one buffer of parameters and one of gradients, both in PyTorch's layout (layer after
/// layer, weight (out, in) row-major, then bias, every tensor's start aligned to 64 bytes, zeros between), and the engine's
/// activations. `T` is float or double. Move-only: a replica is a lot of memory. Not for use by two threads at once.
template <class Net, class EngineType = SimdEngine, class T = float>
class Model {
    static_assert(Net::valid);
    static_assert(std::same_as<T, float> || std::same_as<T, double>, "lockstep: the third argument of Model is float or double");
    static_assert(Engine<EngineType, detail::plan_of<Net, T>, T>,
                  "lockstep: the second argument of Model is not an engine: see engine/engine.hpp");

public:
    using Network = Net;
    using Engine = EngineType;
    using value_type = T;
    using Workspace = typename EngineType::template Workspace<detail::plan_of<Net, T>, T>;

    /// The engine's backward pass can be had in parts, see `backward_slopes`.
    static constexpr bool backward_in_parts = requires { Workspace::backward_in_parts; };

    /// Starts from PyTorch's default distribution, uniform in ±1/sqrt(in); the same seed gives the same bits on every compiler.
    explicit Model(Seed seed)
        : seed_{static_cast<std::uint64_t>(seed)}, parameters_{std::make_shared<AlignedBuffer<T>>(Net::template buffer_size<T>)},
          gradients_(Net::template buffer_size<T>) {
        initialize<Net>(parameters_->span(), seed);
    }

    /// All parameters, the aligned gaps included: what is averaged, broadcast and updated. Asking for them to write takes a copy
    /// first where they are shared with other replicas (see `share_parameters`): what one worker writes, the others do not see.
    [[nodiscard]] std::span<T> parameters() {
        if (parameters_.use_count() > 1) {
            parameters_ = std::make_shared<AlignedBuffer<T>>(parameters_->clone());
        } else {
            // use_count orders nothing; dropping a reference does, so that others have read what they copied before we write.
            [[maybe_unused]] auto const ordered = parameters_;
        }
        return parameters_->span();
    }
    [[nodiscard]] std::span<T const> parameters() const noexcept { return std::as_const(*parameters_).span(); }
    /// The gradients of the last `backward`, in the parameters' layout: what `all_reduce` takes to make them those of the whole
    /// batch, and after it a range of them. Before it, with several workers, they may be several partial sums.
    [[nodiscard]] PartialSums<T> gradients() noexcept {
        return {gradients_.span().first(sums_ * Net::template buffer_size<T>), Net::template buffer_size<T>, leaves_};
    }
    [[nodiscard]] std::span<T const> gradients() const noexcept { return gradients_.span().first(Net::template buffer_size<T>); }
    /// Tensor number `index` of Net::tensors, flat.
    [[nodiscard]] std::span<T> parameter(std::size_t index) { return tensor_of(parameters(), index); }
    [[nodiscard]] std::span<T> gradient(std::size_t index) { return tensor_of(gradients_.span(), index); }

    /// The memory behind `parameters()`, and a way to use another model's instead of the own: replicas in one address space hold
    /// the same bits, so they can hold them once. `shared_parameters()` gives write access without taking a copy, for those who
    /// keep the replicas equal, as `reduce_update` does. `share_parameters` throws ArgumentError for a buffer of another size.
    [[nodiscard]] std::shared_ptr<AlignedBuffer<T>> parameter_buffer() const noexcept { return parameters_; }
    void share_parameters(std::shared_ptr<AlignedBuffer<T>> buffer) {
        if (!buffer || buffer->size() != Net::template buffer_size<T>) {
            throw ArgumentError(detail::concat("share_parameters: expected a buffer of ", Net::template buffer_size<T>,
                                               " scalars, got ", buffer ? buffer->size() : 0));
        }
        parameters_ = std::move(buffer);
    }
    [[nodiscard]] std::span<T> shared_parameters() noexcept { return parameters_->span(); }

    /// Takes all memory for batches of up to `rows` rows now, so that no later step allocates; `partial_sums` as the DataLoader
    /// says (max_partial_sums).
    void reserve(std::size_t rows, std::size_t partial_sums = 1) {
        if constexpr (requires { Workspace::sums_in_shards; }) {
            workspace_.reserve(rows, partial_sums);
            reserve_sums(partial_sums);
        } else {
            workspace_.reserve(rows);
        }
    }

    /// Switches Dropout and the like on (`train`, the state of a new model) or off (`eval`).
    void train(bool training = true) noexcept { training_ = training; }
    void eval() noexcept { training_ = false; }
    [[nodiscard]] bool training() const noexcept { return training_; }
    [[nodiscard]] Seed seed() const noexcept { return Seed{seed_}; }

    /// Runs the network on a batch of a DataLoader: anything with `inputs` (a RowSource), `step` and `first_row`.
    template <class Batch>
    requires requires(Batch const& batch) {
        batch.inputs;
        batch.step;
        batch.first_row;
    }
    void forward(Batch const& batch) {
        context_ = {.step = batch.step, .first_row = batch.first_row};
        if constexpr (requires { batch.shard_rows; }) {
            context_.global_rows = batch.global_rows;
            context_.shard_rows = batch.shard_rows;
        }
        run(batch.inputs);
    }

    /// Runs the network on rows: (n, inputs). `step` and `first_row` (its place in the global batch) only serve layers with
    /// randomness.
    template <class Source>
    requires RowSource<Source, T>
    void forward(Source const& rows, std::uint64_t step = 0, std::uint64_t first_row = 0) {
        context_ = {.step = step, .first_row = first_row};
        run(rows);
    }

    /// The last forward pass's outputs: (rows, outputs), row-major; valid until the next.
    [[nodiscard]] Rows<T const, Net::outputs> outputs() const noexcept { return workspace_.outputs(); }

    /// The sum of the losses of the last forward pass's rows; prepares `backward`. `global_rows` is the number of rows in the
    /// whole batch over all workers: gradients are sums over rows divided once by it. Throws Error for a label that is no output.
    template <class LossType, class Targets>
    double loss(LossType const& criterion, Targets const& targets, std::size_t global_rows) {
        static_assert(Loss<LossType, T>, "lockstep: this is not a loss: see nn/losses.hpp");
        detail::check_loss<LossType, Net>();
        if constexpr (requires { targets.size(); }) {
            if (targets.size() != workspace_.rows()) {
                throw ArgumentError(detail::concat("loss: expected ", workspace_.rows(),
                                                   " targets, one per row of the last forward pass, "
                                                   "got ",
                                                   targets.size()));
            }
        }
        LOCKSTEP_ASSERT(1, global_rows > 0 || workspace_.rows() == 0, "the global batch is not smaller than this worker's part");
        T const scale = T{1} / static_cast<T>(std::max<std::size_t>(global_rows, 1));
        RowShards const shards = workspace_.shards();
        sums_ = shards.sums();
        leaves_ = shards.leaves;
        reserve_sums(sums_);
        losses_.fill(0);
        shards.for_each_sum([&](std::size_t number, Range node) {
            losses_[number] = shards.sum_of(node, [&](Range rows) { return loss_of(criterion, targets, rows, scale); });
        });
        return std::accumulate(losses_.begin(), losses_.begin() + static_cast<std::ptrdiff_t>(sums_), 0.0);
    }
    template <class LossType, class Batch>
    requires requires(Batch const& batch) {
        batch.targets;
        batch.global_rows;
    }
    double loss(LossType const& criterion, Batch const& batch) { return loss(criterion, batch.targets, batch.global_rows); }

    /// The partial sums of the last `loss`: summed over all workers they give the same bits for any number of them, where the
    /// engine can.
    [[nodiscard]] PartialSums<double> losses() noexcept { return {std::span{losses_}.first(sums_), 1, leaves_}; }

    /// Writes this worker's part of the gradients; summed over the workers they are those of the batch's mean loss.
    void backward() { workspace_.backward(parameters_->data(), gradients(), context_); }

    /// `backward` in parts, where the engine has them, for those who sum and update themselves (train/fused_step.hpp): the first
    /// part gives all gradients but the weights' of linear layers; the second these, but only of those rows of the matrices that
    /// begin in elements `of` of the buffer; and in place of the second, for rows that begin in `own`, `update_weights` calls
    /// update(first, count, own_sum) for each piece when this worker's sum `number` of it is at own_sum(number), and
    /// update(first, count) for the elements of `own` that the first part gives; ahead_of(first) says what it will want from
    /// there on.
    void backward_slopes() requires(backward_in_parts) { workspace_.backward_slopes(parameters_->data(), gradients(), context_); }
    void weight_gradients(Range of) requires(backward_in_parts) { workspace_.weight_gradients(gradients(), of); }
    template <class Update, class AheadOf>
    requires(backward_in_parts) void update_weights(Range own, Update const& update, AheadOf const& ahead_of) {
        workspace_.update_weights(own, update, ahead_of);
    }

    /// Classes and scores of any number of rows, in evaluation mode: `x` is anything contiguous and row-major with n x inputs
    /// scalars (xtensor containers and adaptors, spans, vectors). It is a forward pass: no `backward` of an earlier
    /// one after it. Throws DataError when the shape does not fit.
    template <class Array>
    [[nodiscard]] Prediction<T, Net::outputs> predict(Array const& x);

    /// The parameters by PyTorch's names, each with `prefix` before it.
    [[nodiscard]] StateDict<T> state_dict(std::string_view prefix = "") const;

    /// Takes all parameters from `state`, by name, each with `prefix` before it. Throws ArgumentError naming what is missing,
    /// unexpected, repeated or of another shape; the model is then unchanged.
    void load_state_dict(StateDict<T> const& state, std::string_view prefix = "");

    /// A hash of the parameters' bits, without the gaps: equal hashes mean equal replicas.
    [[nodiscard]] std::uint64_t parameter_hash() const noexcept {
        Fnv1a hash;
        for (std::size_t i = 0; i < Net::tensor_count; ++i) { hash.add(tensor_of(parameters(), i)); }
        return hash.value();
    }

private:
    template <class Source>
    void run(Source const& rows) {
        static_assert(detail::rows_for_network<Source, Source::width, Net, Net::inputs>::fit);
        context_.training = training_;
        context_.seed = seed_;
        workspace_.load(rows);
        workspace_.forward(parameters_->data(), context_);
    }

    void reserve_sums(std::size_t sums) {
        if (std::size_t const size = sums * Net::template buffer_size<T>; gradients_.size() < size) {
            gradients_ = AlignedBuffer<T>(size);
        }
    }

    /// The sum of the losses of some rows, and their gradients.
    template <class LossType, class Targets>
    double loss_of(LossType const& criterion, Targets const& targets, Range rows, T scale) {
        auto const outputs = workspace_.outputs().part(rows.first, rows.size());
        auto const gradient = workspace_.output_gradient().part(rows.first, rows.size());
        if (rows.first == 0) { return criterion.value_and_gradient(outputs, targets, scale, gradient); }
        return criterion.value_and_gradient(outputs, detail::TargetsFrom<Targets>{targets, rows.first}, scale, gradient);
    }

    template <class U>
    [[nodiscard]] static std::span<U> tensor_of(std::span<U> buffer, std::size_t index) {
        return buffer.subspan(Net::template offsets<T>[index], Net::tensors[index].spec.size());
    }
    [[nodiscard]] static std::string tensor_name(std::string_view prefix, std::size_t index) {
        return detail::concat(prefix, Net::tensors[index].layer, ".", Net::tensors[index].spec.name);
    }
    [[nodiscard]] static std::vector<std::size_t> tensor_shape(std::size_t index) {
        auto const& spec = Net::tensors[index].spec;
        return {spec.shape.begin(), spec.shape.begin() + static_cast<std::ptrdiff_t>(spec.rank)};
    }

    std::uint64_t seed_;
    bool training_ = true;
    PassContext context_{};
    std::shared_ptr<AlignedBuffer<T>> parameters_; // shared by the workers of one process, see share_parameters
    AlignedBuffer<T> gradients_;
    std::array<double, max_nodes> losses_{};
    std::size_t sums_ = 1;
    std::size_t leaves_ = 0;
    Workspace workspace_;
};

template <class Net, class EngineType, class T>
template <class Array>
Prediction<T, Net::outputs> Model<Net, EngineType, T>::predict(Array const& x) {
    constexpr std::size_t rows_at_once = 256; // bounds the activations' memory
    static_assert(detail::ArrayLike<Array>,
                  "lockstep: predict takes arrays of numbers with data() and size() or shape(); evaluate a lazy "
                  "expression first, e.g. with xt::eval");
    auto const flat = detail::rows_of(x, Net::inputs, "predict");
    Rows<detail::Element<Array> const, Net::inputs> const values{flat.data(), flat.size() / Net::inputs};
    Prediction<T, Net::outputs> result;
    result.classes.reserve(values.rows());
    result.scores.reserve(values.rows() * Net::outputs);
    detail::EvaluationMode const mode{*this};
    for (std::size_t first = 0; first < values.rows(); first += rows_at_once) {
        std::size_t const count = std::min(rows_at_once, values.rows() - first);
        forward(Rows<detail::Element<Array> const, Net::inputs>{values.data() + first * Net::inputs, count});
        auto const scores = outputs();
        result.scores.insert(result.scores.end(), scores.data(), scores.data() + count * Net::outputs);
        for (std::size_t r = 0; r < count; ++r) { result.classes.push_back(argmax(scores[r])); }
    }
    return result;
}

template <class Net, class EngineType, class T>
StateDict<T> Model<Net, EngineType, T>::state_dict(std::string_view prefix) const {
    StateDict<T> state;
    for (std::size_t i = 0; i < Net::tensor_count; ++i) {
        auto const values = tensor_of(parameters(), i);
        state.tensors.push_back({tensor_name(prefix, i), tensor_shape(i), {values.begin(), values.end()}});
    }
    return state;
}

template <class Net, class EngineType, class T>
void Model<Net, EngineType, T>::load_state_dict(StateDict<T> const& state, std::string_view prefix) {
    std::string problems;
    for (std::size_t i = 0; i < Net::tensor_count; ++i) {
        auto const name = tensor_name(prefix, i);
        if (!state.contains(name)) {
            problems += "; missing \"" + name + "\"";
        } else if (auto const& tensor = state.at(name);
                   tensor.shape != tensor_shape(i) || tensor.values.size() != Net::tensors[i].spec.size()) {
            problems += "; \"" + name + "\" has shape " + detail::tuple_text(tensor.shape) + " with " +
                        std::to_string(tensor.values.size()) + " values, expected " + detail::tuple_text(tensor_shape(i));
        }
    }
    for (auto const& tensor : state.tensors) {
        bool known = false;
        for (std::size_t i = 0; i < Net::tensor_count && !known; ++i) { known = tensor.name == tensor_name(prefix, i); }
        if (!known) { problems += "; unexpected \"" + tensor.name + "\""; }
        if (&state.at(tensor.name) != &tensor) { problems += "; repeated \"" + tensor.name + "\""; }
    }
    if (!problems.empty()) {
        throw ArgumentError("this state dict does not fit " + Net::description() + ": " + problems.substr(2));
    }
    for (std::size_t i = 0; i < Net::tensor_count; ++i) {
        auto const& values = state.at(tensor_name(prefix, i)).values;
        std::copy(values.begin(), values.end(), parameter(i).begin());
    }
}

} // namespace lockstep
