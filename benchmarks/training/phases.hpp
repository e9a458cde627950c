#pragma once

#include "common/machine_state.hpp"

#include <lockstep/core/rows.hpp>
#include <lockstep/core/shard_tree.hpp>
#include <lockstep/engine/simd.hpp>
#include <lockstep/nn/losses.hpp>

#include <array>
#include <cstddef>
#include <string>

namespace lockstep::benchmarks {

/// Where the time of a training step goes. `waiting` is what is left of the whole step: mostly for the other workers.
enum class StepPhase { gather, forward, softmax, input_gradients, weight_gradients, reduce_update, waiting };

inline constexpr std::array phase_names{"gather",           "forward",       "softmax", "input gradients",
                                        "weight gradients", "reduce+update", "waiting"};

/// Seconds per phase.
using PhaseTimes = std::array<double, phase_names.size()>;

/// Of the worker on this thread.
[[nodiscard]] inline PhaseTimes& own_phase_times() {
    static thread_local PhaseTimes times{};
    return times;
}

/// Adds the time that it lives to a phase.
class PhaseTimer {
public:
    explicit PhaseTimer(StepPhase phase) : phase_{phase} {}
    PhaseTimer(PhaseTimer const&) = delete;
    PhaseTimer& operator=(PhaseTimer const&) = delete;
    ~PhaseTimer() { own_phase_times()[static_cast<std::size_t>(phase_)] += detail::now() - start_; }

private:
    StepPhase phase_;
    double start_ = detail::now();
};

/// SimdEngine with a watch. Looking at it costs a few per cent of a step, so it is not used where the speed itself is measured.
struct TimedEngine {
    static constexpr char const* name = "timed";
    [[nodiscard]] static std::string description() { return SimdEngine::description(); }

    template <class Operations, class T>
    class Workspace {
    public:
        static constexpr bool sums_in_shards = true;
        static constexpr bool backward_in_parts = true;

        void reserve(std::size_t rows, std::size_t sums = 1) { inner_.reserve(rows, sums); }
        template <class Source>
        void load(Source const& source) {
            PhaseTimer const timer{StepPhase::gather};
            inner_.load(source);
        }
        [[nodiscard]] std::size_t rows() const { return inner_.rows(); }
        [[nodiscard]] auto outputs() const { return inner_.outputs(); }
        [[nodiscard]] auto output_gradient() { return inner_.output_gradient(); }
        [[nodiscard]] RowShards shards() const { return inner_.shards(); }
        void forward(T const* parameters, PassContext const& context) {
            PhaseTimer const timer{StepPhase::forward};
            inner_.forward(parameters, context);
        }
        void backward(T const* parameters, PartialSums<T> gradients, PassContext const& context) {
            backward_slopes(parameters, gradients, context);
            weight_gradients(gradients, {0, gradients.count});
        }
        void backward_slopes(T const* parameters, PartialSums<T> gradients, PassContext const& context) {
            PhaseTimer const timer{StepPhase::input_gradients};
            inner_.backward_slopes(parameters, gradients, context);
        }
        void weight_gradients(PartialSums<T> gradients, Range of) {
            PhaseTimer const timer{StepPhase::weight_gradients};
            inner_.weight_gradients(gradients, of);
        }
        template <class Update, class AheadOf>
        void update_weights(Range own, Update const& update, AheadOf const& ahead_of) {
            auto& times = own_phase_times();
            auto& weights = times[static_cast<std::size_t>(StepPhase::weight_gradients)];
            auto& updates = times[static_cast<std::size_t>(StepPhase::reduce_update)];
            double const before = updates;
            double const start = detail::now();
            inner_.update_weights(
                own,
                [&](auto const&... arguments) {
                    PhaseTimer const timer{StepPhase::reduce_update};
                    update(arguments...);
                },
                ahead_of);
            weights += detail::now() - start - (updates - before);
        }

    private:
        SimdEngine::Workspace<Operations, T> inner_;
    };
};

/// CrossEntropyLoss with a watch.
struct TimedLoss : CrossEntropyLoss {
    template <class T, std::size_t Out>
    static double value_and_gradient(Rows<T const, Out> outputs, auto const& targets, T scale, Rows<T, Out> gradient) {
        PhaseTimer const timer{StepPhase::softmax};
        return CrossEntropyLoss::value_and_gradient(outputs, targets, scale, gradient);
    }
};

} // namespace lockstep::benchmarks
