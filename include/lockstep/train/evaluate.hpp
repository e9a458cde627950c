#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/comm/progress.hpp"
#include "lockstep/core/rows.hpp"
#include "lockstep/data/data_loader.hpp"
#include "lockstep/nn/losses.hpp"
#include "lockstep/nn/model.hpp"
#include "lockstep/train/metrics.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace lockstep {

namespace detail {

/// Laid out for its place in a compiler's message: a dataset and its width, a network and the width that it reads.
template <class Data, std::size_t Features, class Net, std::size_t Inputs>
struct dataset_for_network {
    static_assert(Features == Inputs,
                  "lockstep: this dataset does not fit the network: its features are not the network's inputs. "
                  "See dataset_for_network<dataset, its features, network, its inputs>");
};

template <class Data, std::size_t Classes, class Net, std::size_t Outputs>
struct classes_for_network {
    static_assert(Classes == Outputs,
                  "lockstep: this dataset does not fit the network: its classes are not the network's outputs. "
                  "See classes_for_network<dataset, its classes, network, its outputs>");
};

template <class Data, std::size_t Targets, class Net, std::size_t Outputs>
struct targets_for_network {
    static_assert(Targets == Outputs,
                  "lockstep: this dataset does not fit the network: its target vectors are not as wide as the "
                  "network's outputs. See targets_for_network<dataset, its targets, network, its outputs>");
};

template <class Data, class LossType>
struct loss_for_dataset {
    static constexpr bool labels = requires { Data::classes; };
    static_assert(
        labels || LossType::kind != TargetKind::labels,
        "lockstep: this loss does not fit the dataset: the loss takes class labels, the dataset has target vectors. See "
        "loss_for_dataset<dataset, loss>");
    static_assert(
        !labels || LossType::kind != TargetKind::vectors,
        "lockstep: this loss does not fit the dataset: the loss takes target vectors, the dataset has class labels. See "
        "loss_for_dataset<dataset, loss>");
    static constexpr bool fits = labels == (LossType::kind == TargetKind::labels);
};

/// Refuses, at compile time, a dataset that does not fit the network or the loss.
template <class Data, class Net, class LossType>
constexpr void check_dataset() {
    [[maybe_unused]] dataset_for_network<Data, Data::features, Net, Net::inputs> const features{};
    [[maybe_unused]] loss_for_dataset<Data, LossType> const kinds{};
    if constexpr (loss_for_dataset<Data, LossType>::fits) {
        if constexpr (loss_for_dataset<Data, LossType>::labels) {
            [[maybe_unused]] classes_for_network<Data, Data::classes, Net, Net::outputs> const classes{};
        } else {
            [[maybe_unused]] targets_for_network<Data, Data::targets, Net, Net::outputs> const targets{};
        }
    }
}

/// Refuses a loader that was made for another group of workers: it would leave out samples or count them several times.
template <class Data, class Comm>
void check_workers(char const* what, DataLoader<Data> const& data, Comm const& comm) {
    if (data.rank() != comm.rank() || data.workers() != comm.size()) {
        throw ArgumentError(concat(what, ": expected a DataLoader made with this communicator (rank ", comm.rank(), " of ",
                                   comm.size(), "), got one for rank ", data.rank(), " of ", data.workers()));
    }
}

/// Says that this worker is evaluating, as long as it lives.
template <class Comm>
class EvaluationPhase {
public:
    explicit EvaluationPhase(Comm& comm) : comm_{comm} {
        if constexpr (NotesProgress<Comm>) {
            before_ = comm.progress();
            comm.note({Phase::evaluation, before_.epoch, before_.step});
        }
    }
    EvaluationPhase(EvaluationPhase const&) = delete;
    EvaluationPhase& operator=(EvaluationPhase const&) = delete;
    ~EvaluationPhase() { note_progress(comm_, before_); }

private:
    Comm& comm_;
    Progress before_{};
};

} // namespace detail

/// Mean loss and accuracy over the samples that an epoch of `data` visits, each counted once, in evaluation mode (the model's
/// mode is put back afterwards). Sums over workers are divided once by the number of samples. Collective. Throws ArgumentError
/// when the workers' parts are not those of one set of samples: their datasets or loaders differ.
template <class ModelType, class LossType, class Data, class Comm>
[[nodiscard]] Evaluation evaluate(ModelType& model, LossType const& loss, DataLoader<Data>& data, Comm& comm) {
    detail::check_dataset<Data, typename ModelType::Network, LossType>();
    detail::check_workers("evaluate", data, comm);
    detail::EvaluationMode const mode{model};
    detail::EvaluationPhase const phase{comm};
    auto const next_epoch = data.next_epoch();
    double loss_sum = 0;
    double correct = 0; // whole numbers, exact in double up to 2^53
    double visited = 0;
    for (auto const& batch : data) {
        model.forward(batch);
        auto const outputs = model.outputs();
        loss_sum += loss.value(outputs, batch.targets);
        visited += static_cast<double>(batch.rows());
        if constexpr (LossType::kind == TargetKind::labels) {
            for (std::size_t r = 0; r < outputs.rows(); ++r) {
                correct += std::cmp_equal(argmax(outputs[r]), batch.targets[r]) ? 1 : 0;
            }
        }
    }
    data.start_epoch(next_epoch); // evaluating on a loader that also trains leaves its epochs as they are
    std::array<double, 3> sums{loss_sum, correct, visited};
    comm.all_reduce(std::span<double>{sums});
    auto const samples = static_cast<double>(data.samples());
    if (sums[2] != samples) {
        throw ArgumentError(detail::concat("evaluate: this worker's DataLoader visits ", data.samples(),
                                           " samples over all workers, but together they have visited ",
                                           static_cast<std::uint64_t>(sums[2]), ": the workers' datasets or loaders differ"));
    }
    Evaluation result{.loss = sums[0] / samples, .samples = data.samples()};
    if constexpr (LossType::kind == TargetKind::labels) { result.accuracy = sums[1] / samples; }
    return result;
}

} // namespace lockstep
