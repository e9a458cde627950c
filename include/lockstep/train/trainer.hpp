#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/comm/progress.hpp"
#include "lockstep/core/version.hpp"
#include "lockstep/data/data_loader.hpp"
#include "lockstep/nn/losses.hpp"
#include "lockstep/nn/state_dict.hpp"
#include "lockstep/optim/optimizer.hpp"
#include "lockstep/train/agreement.hpp"
#include "lockstep/train/evaluate.hpp"
#include "lockstep/train/metrics.hpp"
#include "lockstep/train/reporter.hpp"
#include "lockstep/train/update.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

/// What to do with a batch whose loss is infinite or not a number.
enum class NonFinite {
    stop, ///< every worker throws NonFiniteLoss at this step, before the parameters are touched
    skip  ///< no update is made for this batch; it counts in Result::skipped_steps
};

struct FitOptions {
    int epochs = 1;
    NonFinite non_finite = NonFinite::stop;
};

/// The ready training loop: one per worker, made in the body of `launch`. It owns the model (move it in), the loss, the optimizer
/// with its state and the reporters, and keeps a reference to the communicator. Every member function that trains is collective.
template <class ModelType, class LossType, class OptimizerType, class Comm, class... Reporters>
class Trainer {
    using T = typename ModelType::value_type;
    using Net = typename ModelType::Network;
    static_assert(Loss<LossType, T>, "lockstep: Trainer's second argument is not a loss: see nn/losses.hpp");
    static_assert(Optimizer<OptimizerType, T>, "lockstep: Trainer's third argument is not an optimizer: see optim/optimizer.hpp");
    static_assert(Communicator<Comm>, "lockstep: Trainer's fourth argument is not a communicator: see comm/communicator.hpp");
    static_assert((Reporter<std::unwrap_reference_t<Reporters>> && ...),
                  "lockstep: Trainer's last arguments are reporters: see train/reporter.hpp");
    static_assert(detail::check_loss<LossType, Net>());

public:
    /// Takes rank 0's initial parameters to all workers. Collective. Throws ArgumentError for an optimizer's impossible settings,
    /// and when the workers' networks, scalars, engines, seeds, losses or optimizers differ.
    Trainer(ModelType model, LossType loss, OptimizerType optimizer, Comm& comm, Reporters... reporters)
        : model_{std::move(model)}, loss_{std::move(loss)}, optimizer_{std::move(optimizer)}, comm_{comm},
          state_{optimizer_.template init<T>(model_.parameters().size())}, reporters_{std::move(reporters)...} {
        require_agreement(comm_, settings());
        synchronize(model_, comm_, optimizer_);
    }

    /// This worker's replica. What is written to it stays on this worker: change it on all alike, or use `load_state_dict` below.
    [[nodiscard]] ModelType& model() noexcept { return model_; }
    [[nodiscard]] ModelType const& model() const noexcept { return model_; }

    /// Gives all replicas rank 0's `state` (the others' are not looked at); the optimizer keeps what it remembers. Collective.
    /// Throws as Model::load_state_dict, on all workers.
    void load_state_dict(StateDict<T> const& state, std::string_view prefix = "") {
        std::string error;
        if (comm_.rank() == 0) {
            try {
                model_.load_state_dict(state, prefix);
            } catch (ArgumentError const& misfit) { error = misfit.what(); }
        }
        fail_together(comm_, error);
        synchronize(model_, comm_, optimizer_);
    }

    /// Trains for some epochs over `train` and evaluates on `test` after each. Throws NonFiniteLoss; ArgumentError for fewer than
    /// 1 epoch, and when the workers' options or loaders differ; Error if the replicas have come to differ.
    template <class TrainData, class TestData>
    Result fit(DataLoader<TrainData>& train, DataLoader<TestData>& test, FitOptions const& options = {}) {
        detail::check_dataset<TestData, Net, LossType>();
        detail::check_workers("fit", test, comm_);
        auto agreed = settings(train, options);
        add_settings(agreed, "test ", test, test.options().shuffle);
        model_.reserve(test.max_rows());
        return fit_epochs(train, options, agreed, [&] { return std::optional{evaluate(model_, loss_, test, comm_)}; });
    }

    /// The same without test data: no validation loss, no accuracy.
    template <class TrainData>
    Result fit(DataLoader<TrainData>& train, FitOptions const& options = {}) {
        return fit_epochs(train, options, settings(train, options), [] { return std::optional<Evaluation>{}; });
    }

    /// One training step on a batch; returns its loss, the mean over the global batch. Throws NonFiniteLoss, or with
    /// NonFinite::skip returns the loss without an update.
    template <class Data>
    double step(Batch<Data> const& batch, int epoch = 1, NonFinite non_finite = NonFinite::stop) {
        note_progress(comm_, {Phase::training, epoch, batch.step_in_epoch + 1});
        model_.forward(batch);
        model_.loss(loss_, batch);
        double const sum = backward_average_update(model_, comm_, optimizer_, state_);
        double const loss = sum / static_cast<double>(batch.global_rows);
        if (!std::isfinite(loss) && non_finite == NonFinite::stop) { throw NonFiniteLoss(epoch, batch.step_in_epoch + 1, loss); }
        return loss;
    }

private:
    using Clock = std::chrono::steady_clock;
    [[nodiscard]] static double seconds_since(Clock::time_point start) {
        return std::chrono::duration<double>(Clock::now() - start).count();
    }

    template <class Data, class Validate>
    Result fit_epochs(DataLoader<Data>& train, FitOptions const& options, Settings const& agreed, Validate validate) {
        detail::check_dataset<Data, Net, LossType>();
        detail::check_workers("fit", train, comm_);
        require_agreement(comm_, agreed);
        if (options.epochs < 1) { throw ArgumentError(detail::concat("fit: epochs must be at least 1, got ", options.epochs)); }
        model_.reserve(train.max_rows(), train.max_partial_sums());
        report([&](auto& reporter) { reporter.on_start(run_info(train, options)); });
        Result result;
        result.shard_rows = train.shard_rows();
        result.history.reserve(static_cast<std::size_t>(std::min(options.epochs, 10'000)));
        for (int epoch = 1; epoch <= options.epochs; ++epoch) {
            auto const start = Clock::now();
            EpochMetrics metrics{.epoch = epoch};
            metrics.train_loss = train_epoch(train, epoch, options, result);
            metrics.samples_per_second = static_cast<double>(train.samples()) / seconds_since(start);
            if (auto const validation = validate()) {
                metrics.validation_loss = validation->loss;
                metrics.accuracy = validation->accuracy;
            }
            note_progress(comm_, {Phase::epoch_end, epoch, train.steps()});
            metrics.seconds = seconds_since(start);
            result.history.push_back(metrics);
            report([&](auto& reporter) { reporter.on_epoch(metrics); });
            if (double const loss = metrics.validation_loss.value_or(0);
                !std::isfinite(loss) && options.non_finite == NonFinite::stop) {
                throw NonFiniteLoss(epoch, train.steps(), loss, "validation loss");
            }
        }
        result.metrics = detail::named(result.history.back());
        result.parameter_hashes = parameter_hashes();
        report([&](auto& reporter) { reporter.on_end(result); });
        return result;
    }

    /// Returns the mean loss over the samples of one epoch.
    template <class Data>
    double train_epoch(DataLoader<Data>& train, int epoch, FitOptions const& options, Result& result) {
        model_.train();
        double loss_sum = 0;
        std::size_t counted = 0;
        StepInfo info{.epoch = epoch};
        for (auto const& batch : train) {
            info.loss = step(batch, epoch, options.non_finite);
            info.step = batch.step_in_epoch + 1;
            info.samples += batch.global_rows;
            if (std::isfinite(info.loss)) {
                loss_sum += info.loss * static_cast<double>(batch.global_rows);
                counted += batch.global_rows;
            } else {
                ++result.skipped_steps;
            }
            info.running_loss = loss_sum / static_cast<double>(counted);
            report([&](auto& reporter) { reporter.on_step(info); });
        }
        return loss_sum / static_cast<double>(counted);
    }

    /// What all workers must have in common from the start.
    [[nodiscard]] Settings settings() const {
        Settings all{{"library version", version},
                     {"network", Net::description()},
                     {"parameter count", detail::concat(Net::parameter_count)},
                     {"scalar type", detail::type_name<T>()},
                     {"engine", ModelType::Engine::name},
                     {"model seed", detail::concat(static_cast<std::uint64_t>(model_.seed()))},
                     {"loss", detail::type_name<LossType>()},
                     {"optimizer", detail::type_name<OptimizerType>()}};
        if constexpr (requires { optimizer_.description(); }) { all.back().second = optimizer_.description(); }
        return all;
    }

    template <class Data>
    [[nodiscard]] static Settings settings(DataLoader<Data> const& train, FitOptions const& options) {
        Settings all{{"epochs", detail::concat(options.epochs)}};
        add_settings(all, "", train, true);
        all.emplace_back("non_finite", options.non_finite == NonFinite::stop ? "stop" : "skip");
        return all;
    }

    /// `ordered`: the order of the samples, or the count of steps, matters.
    template <class Data>
    static void add_settings(Settings& all, std::string const& prefix, DataLoader<Data> const& data, bool ordered) {
        auto const& loader = data.options();
        auto const add = [&](char const* name, std::string const& value) { all.emplace_back(prefix + name, value); };
        add("samples", detail::concat(data.dataset().size()));
        add("batch_size", detail::concat(loader.batch_size));
        add("drop_last", loader.drop_last ? "true" : "false");
        add("shuffle", loader.shuffle ? "true" : "false");
        add("shard_rows", detail::concat(data.shard_rows()));
        if (!ordered) { return; }
        add("loader seed", detail::concat(loader.seed));
        add("next epoch", detail::concat(data.next_epoch()));
    }

    /// Every worker's hash on every worker. Throws Error when two differ: replicas that have come apart make every result
    /// worthless.
    [[nodiscard]] std::vector<std::uint64_t> parameter_hashes() {
        std::vector<std::uint64_t> hashes(static_cast<std::size_t>(comm_.size()));
        hashes[static_cast<std::size_t>(comm_.rank())] = model_.parameter_hash();
        comm_.all_reduce(std::span{hashes});
        for (std::size_t rank = 1; rank < hashes.size(); ++rank) {
            if (hashes[rank] != hashes[0]) {
                throw Error(detail::concat("the replicas differ: rank ", rank, " has parameter hash ", hashes[rank],
                                           ", rank 0 has ", hashes[0]));
            }
        }
        return hashes;
    }

    template <class Data>
    [[nodiscard]] RunInfo run_info(DataLoader<Data> const& train, FitOptions const& options) const {
        RunInfo info{
            .network = Net::description(), .parameters = Net::parameter_count, .scalar = sizeof(T) == 4 ? "float" : "double"};
        info.backend = Comm::name;
        info.workers = comm_.size();
        info.engine = ModelType::Engine::name;
        info.engine_description = ModelType::Engine::description();
        info.epochs = options.epochs;
        info.batch_size = train.options().batch_size;
        info.steps_per_epoch = train.steps();
        info.samples_per_epoch = train.samples();
        info.shard_rows = train.shard_rows();
        info.shard_rows_halved = !train.options().shard_rows && info.shard_rows < default_shard_rows(train.full_batch(), 1);
        info.idle_workers = train.idle_workers();
        return info;
    }

    template <class Hook>
    void report(Hook const& hook) {
        if (comm_.rank() != 0) { return; }
        std::apply(
            [&](auto&... reporter) {
                (hook(static_cast<std::unwrap_reference_t<std::remove_reference_t<decltype(reporter)>>&>(reporter)), ...);
            },
            reporters_);
    }

    ModelType model_;
    LossType loss_;
    OptimizerType optimizer_;
    Comm& comm_;
    decltype(std::declval<OptimizerType const&>().template init<T>(0)) state_;
    std::tuple<Reporters...> reporters_;
};

} // namespace lockstep
