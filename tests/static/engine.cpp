// What is an engine and what is not.
#include <lockstep/engine/cpu.hpp>
#include <lockstep/engine/engine.hpp>
#include <lockstep/engine/simd.hpp>

#include <cstddef>
#include <string>

namespace {

using lockstep::Engine;
using lockstep::Identity;
using lockstep::LinearOperation;
using lockstep::OperationList;
using lockstep::PartialSums;
using lockstep::PassContext;
using lockstep::Rows;
using lockstep::RowShards;

using Operations = OperationList<LinearOperation<3, 5, Identity, 0, 16>>;
static_assert(Engine<lockstep::CpuEngine> && Engine<lockstep::CpuEngine, Operations, double>);
static_assert(Engine<lockstep::SimdEngine> && Engine<lockstep::SimdEngine, Operations, double>);

/// All that an engine must have; the second argument takes one thing away.
enum class Missing { nothing, name, load, shards, backward, rows };
template <Missing What>
struct Sketch {
    static std::string description();
    template <class List, class T>
    struct Workspace {
        static constexpr std::size_t inputs = List::widths[0], outputs_width = List::widths[List::size];
        void reserve(std::size_t rows);
        void load(Rows<T const, inputs> source) requires(What != Missing::load);
        [[nodiscard]] int rows() const requires(What == Missing::rows);
        [[nodiscard]] std::size_t rows() const requires(What != Missing::rows);
        void forward(T const* parameters, PassContext const& context);
        [[nodiscard]] Rows<T const, outputs_width> outputs() const;
        [[nodiscard]] Rows<T, outputs_width> output_gradient();
        [[nodiscard]] RowShards shards() const requires(What != Missing::shards);
        void backward(T const* parameters, PartialSums<T> gradients,
                      PassContext const& context) requires(What != Missing::backward);
    };
    static constexpr auto name = [] {
        if constexpr (What == Missing::name) {
            return 5;
        } else {
            return "sketch";
        }
    }();
};
static_assert(Engine<Sketch<Missing::nothing>> && Engine<Sketch<Missing::nothing>, Operations, double>);
static_assert(!Engine<Sketch<Missing::name>> && !Engine<Sketch<Missing::load>> && !Engine<Sketch<Missing::backward>>);
static_assert(!Engine<Sketch<Missing::shards>>);
static_assert(!Engine<Sketch<Missing::rows>> && !Engine<int>);

} // namespace
