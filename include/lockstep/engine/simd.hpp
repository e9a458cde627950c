#pragma once

#include "lockstep/core/aligned_buffer.hpp"
#include "lockstep/core/lookahead.hpp"
#include "lockstep/core/rows.hpp"
#include "lockstep/core/shard_tree.hpp"
#include "lockstep/core/type_list.hpp"
#include "lockstep/engine/engine.hpp"
#include "lockstep/engine/operations.hpp"
#include "lockstep/engine/simd/kernels.hpp"
#include "lockstep/engine/simd/memory.hpp"
#include "lockstep/engine/simd/passes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <span>
#include <string>

namespace lockstep {

/// Runs networks with kernels that are made from their shapes, on the fastest instruction set that the processor has; nothing but
/// the compiler is needed. Float and double.
///
/// All sums have an order that neither the instruction set nor the number of workers changes: outputs and input gradients are one
/// chain of fused multiply-adds over the features, gradients of parameters are such chains over the rows of one shard of the
/// batch, and the shards are summed by one tree (core/shard_tree.hpp).
struct SimdEngine {
    static constexpr char const* name = "simd";

    /// The instruction set, as `instruction_set_names`.
    [[nodiscard]] static std::string description() { return std::string{name_of(instruction_set())}; }

    /// Which set models that are made from now on run on: the fastest, or what the environment variable LOCKSTEP_SIMD names, or
    /// what was last chosen. `use` throws ArgumentError for one that this processor does not support.
    [[nodiscard]] static InstructionSet instruction_set() { return detail::chosen_instruction_set().load(); }
    static void use(InstructionSet set) {
        detail::chosen_instruction_set() = instruction_set_from(name_of(set), "SimdEngine::use");
    }

    template <class Operations, class T>
    class Workspace;
};

template <class... Operations, class T>
class SimdEngine::Workspace<OperationList<Operations...>, T> {
    using List = OperationList<Operations...>;
    using Memory = detail::simd::Memory<T, Operations...>;

public:
    static constexpr bool sums_in_shards = true;
    static constexpr bool backward_in_parts = true;

private:
    static constexpr auto widths = List::widths;
    static constexpr std::size_t inputs = widths.front();
    static constexpr std::size_t line = detail::simd::line<T>;
    template <std::size_t Index>
    using Operation = detail::type_at<Index, Operations...>;

public:
    /// `partial_sums`: as the DataLoader says (max_partial_sums).
    void reserve(std::size_t rows, std::size_t partial_sums = 1) {
        memory_.reserve(rows);
        std::size_t const blocks = partial_sums * block_size;
        if (blocks_.size() < blocks) { blocks_ = AlignedBuffer<T>(blocks); }
        if (row_.size() == 0) { row_ = AlignedBuffer<T>(inputs); }
        std::size_t const slopes = detail::simd::panels_of<T>(rows) * outputs_at_once * line;
        if (slopes_.size() < slopes) { slopes_ = AlignedBuffer<T>(slopes); }
        // For the parameter gradients of row layers, one shard on each level of the tree.
        std::size_t const levels = std::bit_width(rows);
        if (scratch_.size() < levels * scratch_size) { scratch_ = AlignedBuffer<T>(levels * scratch_size); }
    }

    template <class Source>
    requires RowSource<Source, T>
    void load(Source const& source) {
        static_assert(Source::width == inputs);
        rows_ = source.rows();
        reserve(rows_);
        detail::simd::with_kernels(set_, [&]<class Kernels>(Kernels) { load_with<Kernels>(source); });
    }

    [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
    [[nodiscard]] Rows<T const, widths.back()> outputs() const noexcept { return {memory_.row_major(List::size), rows_}; }
    [[nodiscard]] Rows<T, widths.back()> output_gradient() noexcept { return {memory_.slope_rows(List::size), rows_}; }

    /// How the rows of the last forward pass are summed.
    [[nodiscard]] RowShards const& shards() const noexcept { return shards_; }

    void forward(T const* parameters, PassContext const& context) {
        shards_ = shards_of(rows_, context);
        detail::simd::with_kernels(set_, [&]<class Kernels>(Kernels) {
            detail::for_each_index<List::size>([&](auto index) { forward_one<Kernels, index()>(pass(parameters, {}, context)); });
            if constexpr (!detail::simd::is_rows<Operation<List::size - 1>>) {
                Kernels::template to_row_major<widths.back()>(static_cast<T const*>(memory_.row_panels(List::size)),
                                                              memory_.row_major(List::size), rows_);
            }
        });
    }

    void backward(T const* parameters, PartialSums<T> gradients, PassContext const& context) {
        backward_slopes(parameters, gradients, context);
        weight_gradients(gradients, {0, gradients.count});
    }

    /// The first part of `backward`: everything but the weight gradients of linear layers.
    void backward_slopes(T const* parameters, PartialSums<T> gradients, PassContext const& context) {
        if (rows_ == 0) { return clear(gradients); }
        detail::simd::with_kernels(set_, [&]<class Kernels>(Kernels) {
            detail::for_each_index<List::size - std::min(List::first_with_parameters, List::size)>([&](auto from_the_end) {
                backward_one<Kernels, List::size - 1 - from_the_end()>(pass(parameters, gradients, context));
            });
        });
    }

    /// The second part: the weight gradients of linear layers, of those rows of the matrices that begin in elements `of` of the
    /// gradients.
    void weight_gradients(PartialSums<T> gradients, Range of) {
        if (rows_ == 0) { return; }
        detail::simd::with_kernels(set_, [&]<class Kernels>(Kernels) {
            detail::for_each_index<List::size>([&](auto index) {
                using Op = Operation<index()>;
                if constexpr (detail::simd::is_linear<Op>) {
                    for_each_block<Kernels, index()>(of, [&](Range outputs, Range features) {
                        shards_.for_each_sum([&](std::size_t number, Range rows) {
                            T* const to = gradients.sum(number).data() + Op::weight + outputs.first * Op::inputs + features.first;
                            block_gradient<Kernels, index()>(outputs, features, rows, to, Op::inputs);
                        });
                    });
                }
            });
        });
    }

    /// In place of the second part, for those rows of the matrices that begin in `own`: calls update(first, count, own_sum) for
    /// the gradients' elements [first, first + count) when this worker's sum `number` of them is at own_sum(number), where it
    /// stays until the call returns; and update(first, count) for all other elements of `own`, when their sums are in
    /// `gradients`. ahead_of(first) gives the Lookahead of a block whose first element is `first`.
    template <class Update, class AheadOf>
    void update_weights(Range own, Update const& update, AheadOf const& ahead_of) {
        reserve(rows_, shards_.sums());
        std::size_t next = own.first;
        detail::simd::with_kernels(set_, [&]<class Kernels>(Kernels) {
            detail::for_each_index<List::size>([&](auto index) {
                using Op = Operation<index()>;
                if constexpr (detail::simd::is_linear<Op>) {
                    if (next < std::min(Op::weight, own.last)) { update(next, std::min(Op::weight, own.last) - next); }
                    next = std::max(next, Op::weight + Op::inputs * Op::outputs);
                    for_each_block<Kernels, index()>(own, [&](Range outputs, Range features) {
                        update_block<Kernels, index()>(outputs, features, update, ahead_of);
                    });
                }
            });
        });
        if (next < own.last) { update(next, own.last - next); }
    }

private:
    /// Rows that are not whole shards of a known batch are summed by themselves.
    [[nodiscard]] static RowShards shards_of(std::size_t rows, PassContext const& context) {
        auto const first_row = static_cast<std::size_t>(context.first_row);
        if (context.shard_rows == 0 || context.global_rows == 0) { return {rows, usual_shard_rows}; }
        std::size_t const shard_rows = std::min(context.shard_rows, context.global_rows);
        bool const whole = first_row % shard_rows == 0 && (rows % shard_rows == 0 || first_row + rows == context.global_rows);
        if (!whole) { return {rows, shard_rows}; }
        return {rows, shard_rows, first_row / shard_rows, count_shards(context.global_rows, shard_rows)};
    }

    [[nodiscard]] std::size_t panels() const noexcept { return detail::simd::panels_of<T>(rows_); }
    [[nodiscard]] detail::simd::Pass<T> pass(T const* parameters, PartialSums<T> gradients, PassContext const& context) {
        return {panels(), shards_, parameters, gradients, scratch_.data(), scratch_size, context};
    }

    /// Row by row into panels of features, and panel by panel from there into panels of rows.
    template <class Kernels, class Source>
    void load_with(Source const& source) {
        T* const features = memory_.feature_panels(0);
        std::size_t const panel = detail::simd::feature_panel<T>(panels());
        constexpr std::size_t whole = inputs / line * line;
        for (std::size_t r = 0; r < panels() * line; ++r) {
            if (r < rows_) {
                // The rows of a shuffled batch lie anywhere in memory; two ahead hides most of the wait for them.
                if constexpr (requires { source.prefetch(r); }) { source.prefetch(std::min(r + 2, rows_ - 1)); }
                source.load(r, std::span<T, inputs>{row_.data(), inputs});
            } else {
                std::fill_n(row_.data(), inputs, T{0});
            }
            T* const to = features + r * line;
            for (std::size_t f = 0; f < whole; f += line) { std::copy_n(row_.data() + f, line, to + f / line * panel); }
            if constexpr (whole < inputs) { std::copy_n(row_.data() + whole, inputs - whole, to + whole / line * panel); }
            if (r % line == line - 1) {
                Kernels::template to_row_panel<inputs>(static_cast<T const*>(features), memory_.row_panels(0), r / line,
                                                       panels());
            }
        }
    }

    template <class Kernels, std::size_t Index>
    void forward_one(detail::simd::Pass<T> const& pass) {
        using Op = Operation<Index>;
        constexpr bool rows = detail::simd::is_rows<Op>;
        constexpr bool rows_before = Index > 0 && detail::simd::is_rows<Operation<Index == 0 ? 0 : Index - 1>>;
        if constexpr (rows && !rows_before) {
            Kernels::template to_row_major<Op::inputs>(static_cast<T const*>(memory_.row_panels(Index)), memory_.row_major(Index),
                                                       rows_);
        } else if constexpr (!rows && rows_before) {
            Kernels::template from_row_major<Op::inputs>(static_cast<T const*>(memory_.row_major(Index)),
                                                         memory_.row_panels(Index), rows_);
        }
        detail::simd::SimdPass<Op>::template forward<Kernels, Index>(memory_, pass);
    }

    template <class Kernels, std::size_t Index>
    void backward_one(detail::simd::Pass<T> const& pass) {
        using Op = Operation<Index>;
        constexpr bool rows = detail::simd::is_rows<Op>;
        constexpr bool rows_after =
            Index + 1 == List::size || detail::simd::is_rows<Operation<Index + 1 == List::size ? Index : Index + 1>>;
        if constexpr (rows && !rows_after) {
            Kernels::template to_row_major<Op::outputs>(static_cast<T const*>(memory_.slopes(Index + 1)),
                                                        memory_.slope_rows(Index + 1), rows_);
        } else if constexpr (!rows && rows_after && Memory::has_slopes(Index + 1)) {
            Kernels::template from_row_major<Op::outputs>(static_cast<T const*>(memory_.slope_rows(Index + 1)),
                                                          memory_.slopes(Index + 1), rows_);
        }
        detail::simd::SimdPass<Op>::template backward<Kernels, Index>(memory_, pass);
    }

    /// Calls visit(outputs, features) for the blocks of operation `Index`'s weights, of those rows that begin in `of`: so many
    /// features that their inputs stay in the second-level cache while all outputs pass by.
    template <class Kernels, std::size_t Index, class Visit>
    void for_each_block(Range of, Visit const& visit) {
        using Op = Operation<Index>;
        static_assert(outputs_at_once % Kernels::template block_rows<T> == 0);
        auto const first_row_from = [](std::size_t element) {
            return element <= Op::weight ? 0 : std::min(Op::outputs, (element - Op::weight + Op::inputs - 1) / Op::inputs);
        };
        Range const outputs{first_row_from(of.first), first_row_from(of.last)};
        std::size_t const fit = cached_bytes / (std::max<std::size_t>(rows_, 1) * sizeof(T)) / (2 * line) * (2 * line);
        std::size_t const features_at_once = std::clamp<std::size_t>(fit, 4 * line, max_features);
        for (std::size_t feature = 0; feature < Op::inputs; feature += features_at_once) {
            Range const features{feature, std::min(Op::inputs, feature + features_at_once)};
            for (std::size_t output = outputs.first; output < outputs.last; output += outputs_at_once) {
                visit(Range{output, std::min(outputs.last, output + outputs_at_once)}, features);
            }
        }
    }
    static constexpr std::size_t cached_bytes = std::size_t{256} << 10U;
    static constexpr std::size_t max_features = 1024;
    static constexpr std::size_t outputs_at_once = 24; // while they pass by, a panel of features stays in the first-level cache
    /// From one output's gradients to the next in a block: a power of two would put them all into one set of the caches.
    static constexpr std::size_t block_stride = max_features + line;
    static constexpr std::size_t block_size = outputs_at_once * block_stride;

    /// Where this worker's sums of one row of a block are. One type for all operations: what is compiled for it is long.
    struct OwnSum {
        T* first;
        [[nodiscard]] T* operator()(std::size_t number) const noexcept { return first + number * block_size; }
    };

    template <class Kernels, std::size_t Index, class Update, class AheadOf>
    void update_block(Range outputs, Range features, Update const& update, AheadOf const& ahead_of) {
        using Op = Operation<Index>;
        auto ahead = ahead_of(Op::weight + outputs.first * Op::inputs + features.first);
        ahead.stride = Op::inputs;
        if (rows_ != 0) {
            shards_.for_each_sum([&](std::size_t number, Range rows) {
                block_gradient<Kernels, Index>(outputs, features, rows, blocks_.data() + number * block_size, block_stride,
                                               ahead);
                ahead = {}; // once will do
            });
        }
        for (std::size_t output = outputs.first; output < outputs.last; ++output) {
            OwnSum const own_sum{blocks_.data() + (output - outputs.first) * block_stride};
            Kernels::run(update, Op::weight + output * Op::inputs + features.first, features.size(), own_sum);
        }
    }

    /// With a copy of the block's slopes that is in one piece: their lines lie far apart, at distances that caches do not like.
    template <class Kernels, std::size_t Index>
    void block_gradient(Range outputs, Range features, Range rows, T* to, std::size_t stride, Lookahead<T> const& ahead = {}) {
        std::size_t const slope_panel = outputs.size() * line;
        T const* slopes = memory_.slopes(Index + 1) + outputs.first * line;
        for (std::size_t p = rows.first / line; p * line < rows.last; ++p) {
            std::copy_n(slopes + p * Operation<Index>::outputs * line, slope_panel, slopes_.data() + p * slope_panel);
        }
        std::size_t const input_panel = detail::simd::feature_panel<T>(panels());
        Kernels::template weight_gradient<T>(
            outputs.size(), static_cast<T const*>(slopes_.data()), slope_panel,
            static_cast<T const*>(memory_.feature_panels(Index)) + features.first / line * input_panel, input_panel, to, stride,
            features.size(), detail::simd::Shards{rows.first, rows.last, shards_.shard_rows}, ahead);
    }

    /// Up to the end of the last parameter of a row layer.
    static constexpr std::size_t scratch_size = [] {
        std::size_t end = 0;
        detail::for_each_index<List::size>([&](auto index) {
            using Op = Operation<index()>;
            if constexpr (detail::simd::is_rows<Op>) {
                for (std::size_t i = 0; i < Op::Table::count; ++i) {
                    end = std::max(end, aligned_count<T>(Op::Table::offsets[i] + Op::Table::sizes[i]));
                }
            }
        });
        return end;
    }();

    /// Without rows: gradients of zero, gaps left as they are.
    void clear(PartialSums<T> gradients) {
        detail::for_each_index<List::size>([&](auto index) {
            using Op = Operation<index()>;
            if constexpr (detail::simd::is_linear<Op>) {
                std::fill_n(gradients.data() + Op::weight, Op::inputs * Op::outputs, T{0});
                std::fill_n(gradients.data() + Op::bias, Op::outputs, T{0});
            } else if constexpr (Op::has_parameters) {
                for (std::size_t i = 0; i < Op::Table::count; ++i) {
                    std::fill_n(gradients.data() + Op::Table::offsets[i], Op::Table::sizes[i], T{0});
                }
            }
        });
    }

    InstructionSet set_ = instruction_set();
    std::size_t rows_ = 0;
    RowShards shards_{};
    Memory memory_;
    AlignedBuffer<T> row_;
    AlignedBuffer<T> scratch_;
    AlignedBuffer<T> slopes_; ///< of one block
    AlignedBuffer<T> blocks_; ///< gradients of one block, for each partial sum
};

} // namespace lockstep
