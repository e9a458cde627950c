// The kernels of SimdEngine on one core, layer by layer, beside the FMA peak and the same products by BLAS.
#include "common/json.hpp"
#include "common/machine_state.hpp"
#include "common/statistics.hpp"
#include "micro/kernel_layers.hpp"

#include <lockstep/lockstep.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include <time.h>

namespace {

using namespace lockstep;
using namespace lockstep::benchmarks;

struct Options {
    std::vector<std::size_t> rows{32, 64, 256};
    int repeats = 31;
    double seconds = 0.002;
    std::string json{};
};

/// What is to be measured: `flops` or, for kernels that only move data, 0.
struct Kernel {
    std::string name;
    std::size_t inputs;
    std::size_t outputs;
    std::size_t rows;
    double flops;
    std::function<void()> simd;
    std::function<void()> blas{}; ///< only for products
};

/// One figure per repeat.
struct Figures {
    Repeats seconds{};
    Repeats share_of_peak{};
    Repeats blas_seconds{};
    Repeats blas_share_of_peak{};
    Repeats peak{};  ///< FLOP/s
    Repeats ratio{}; ///< BLAS's time to the kernel's
};

/// The time that this thread has had a core: other work on the machine takes turns with it.
double own_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_of(std::function<void()> const& call, std::size_t calls) {
    double const start = own_seconds();
    for (std::size_t i = 0; i < calls; ++i) { call(); }
    return (own_seconds() - start) / static_cast<double>(calls);
}

/// FLOP/s, of the time that this thread has a core.
double peak(double seconds) {
    double const start = benchmarks::detail::now();
    double const own_start = own_seconds();
    double const rate = benchmarks::detail::peak_of_this_thread(seconds) * 1e9;
    return rate * (benchmarks::detail::now() - start) / (own_seconds() - own_start);
}

/// How many calls take about `seconds`. The first call brings its memory into the caches, or as much of it as they hold.
std::size_t calls_within(double seconds, std::function<void()> const& call) {
    call();
    double const one = std::min(seconds_of(call, 3), seconds_of(call, 3));
    return static_cast<std::size_t>(std::max(1.0, std::ceil(seconds / one)));
}

/// The peak, the kernel and BLAS take short turns: what else the machine does meets all of them.
Figures measure(Kernel const& kernel, Options const& options) {
    std::size_t const calls = calls_within(options.seconds, kernel.simd);
    std::size_t const blas_calls = kernel.blas ? calls_within(options.seconds, kernel.blas) : 0;
    Figures figures;
    for (int repeat = 0; repeat < options.repeats; ++repeat) {
        double const peak_now = peak(options.seconds);
        figures.peak.add(peak_now);
        double const seconds = seconds_of(kernel.simd, calls);
        figures.seconds.add(seconds);
        figures.share_of_peak.add(kernel.flops / seconds / peak_now);
        if (!kernel.blas) { continue; }
        double const blas_seconds = seconds_of(kernel.blas, blas_calls);
        figures.blas_seconds.add(blas_seconds);
        figures.blas_share_of_peak.add(kernel.flops / blas_seconds / peak_now);
        figures.ratio.add(blas_seconds / seconds);
    }
    return figures;
}

void print(Kernel const& kernel, Figures const& figures) {
    std::printf("%-17s %4zu -> %4zu  %4zu  %9.2f  (%9.2f - %9.2f)", kernel.name.c_str(), kernel.inputs, kernel.outputs,
                kernel.rows, figures.seconds.median() * 1e6, figures.seconds.min() * 1e6, figures.seconds.max() * 1e6);
    if (kernel.flops > 0) {
        std::printf("  %7.1f  %5.3f", kernel.flops / figures.seconds.median() / 1e9, figures.share_of_peak.median());
    }
    if (kernel.blas) {
        std::printf("  %9.2f  %7.1f  %5.3f  %5.2f  (%5.2f - %5.2f)%s", figures.blas_seconds.median() * 1e6,
                    kernel.flops / figures.blas_seconds.median() / 1e9, figures.blas_share_of_peak.median(),
                    figures.ratio.median(), figures.ratio.min(), figures.ratio.max(),
                    figures.ratio.median() < 1 ? "  BLAS is faster" : "");
    }
    std::printf("\n");
    std::fflush(stdout);
}

nlohmann::json to_json(Kernel const& kernel, Figures const& figures) {
    nlohmann::json one{{"kernel", kernel.name},
                       {"inputs", kernel.inputs},
                       {"outputs", kernel.outputs},
                       {"rows", kernel.rows},
                       {"seconds", benchmarks::to_json(figures.seconds)},
                       {"peak_flops", benchmarks::to_json(figures.peak)}};
    if (kernel.flops > 0) {
        one["gflops"] = kernel.flops / figures.seconds.median() / 1e9;
        one["share_of_peak"] = benchmarks::to_json(figures.share_of_peak);
    }
    if (kernel.blas) {
        one["blas_seconds"] = benchmarks::to_json(figures.blas_seconds);
        one["blas_share_of_peak"] = benchmarks::to_json(figures.blas_share_of_peak);
        one["blas_time_over_kernel_time"] = benchmarks::to_json(figures.ratio);
    }
    return one;
}

using Use = std::function<void(Kernel const&)>;

template <std::size_t In, std::size_t Out>
void products_of_layer(std::size_t rows, Use const& use) {
    SimdLayer<In, Out> simd{rows};
    BlasLayer<In, Out> blas{rows};
    double const flops = 2.0 * static_cast<double>(rows * In * Out);
    use({"forward", In, Out, rows, flops, [&] { simd.forward(); }, [&] { blas.forward(); }});
    use({"input gradients", In, Out, rows, flops, [&] { simd.input_gradients(); }, [&] { blas.input_gradients(); }});
    use({"weight gradients", In, Out, rows, flops, [&] { simd.weight_gradients(); }, [&] { blas.weight_gradients(); }});
    use({"to feature panels", In, Out, rows, 0, [&] { simd.to_feature_panels(); }});
}

/// What only the first layer of a network has.
template <std::size_t In, std::size_t Out>
void load_of_layer(std::size_t rows, Use const& use) {
    SimdLayer<In, Out> simd{rows};
    ByteBatches<In> batches;
    use({"gather and load", In, Out, rows, 0, [&] { simd.load(batches.next(rows)); }});
}

/// What only the last layer of a network has: the loss works on rows.
template <std::size_t In, std::size_t Out>
void loss_of_layer(std::size_t rows, Use const& use) {
    SimdLayer<In, Out> simd{rows};
    auto outputs = ordinary_numbers(rows * Out);
    auto gradient = ordinary_numbers(rows * Out);
    std::vector<Label> const labels(rows, 1);
    use({"to row-major", In, Out, rows, 0, [&] { simd.to_row_major(); }});
    use({"from row-major", In, Out, rows, 0, [&] { simd.from_row_major(); }});
    use({"softmax and loss", In, Out, rows, 0, [&] {
             CrossEntropyLoss::value_and_gradient(Rows<float const, Out>{outputs.data(), rows}, labels,
                                                  1 / static_cast<float>(rows), Rows<float, Out>{gradient.data(), rows});
         }});
}

void all_kernels(std::vector<std::size_t> const& row_counts, Use const& use) {
    for (auto const rows : row_counts) {
        load_of_layer<784, 512>(rows, use);
        products_of_layer<784, 512>(rows, use);
        products_of_layer<512, 128>(rows, use);
        products_of_layer<128, 64>(rows, use);
        products_of_layer<64, 10>(rows, use);
        loss_of_layer<64, 10>(rows, use);
    }
    for (auto const rows : row_counts) {
        load_of_layer<2048, 2048>(rows, use);
        products_of_layer<2048, 2048>(rows, use);
    }
}

void run(Options const& options) {
    constexpr double peak_seconds = 0.03;
    CpuEngine::set_num_threads(1);
    double const peak_before = peak(peak_seconds) / 1e9;
    auto const blas = blas::info();
    std::printf(
        "Kernels of SimdEngine (%s, float, shards of %zu rows) on one core, and the same products by %s\n"
        "FMA peak %.0f GFLOP/s\n"
        "Medians (min - max) of %d repeats, in which the peak, the kernel and BLAS take turns of %.0f ms of this\n"
        "thread's own time. Share: of the peak in the same repeat. ratio: BLAS's time to the kernel's in the same\n"
        "repeat. BLAS adds no bias, and sums in one piece. It needs no feature panels: they belong to our weight gradients.\n\n"
        "%-17s %12s  %4s  %9s  (%9s - %9s)  %7s  %5s  %9s  %7s  %5s  %5s  (%5s - %5s)\n",
        SimdEngine::description().c_str(), usual_shard_rows, CpuEngine::description().c_str(), peak_before, options.repeats,
        options.seconds * 1e3, "kernel", "layer", "rows", "us", "min", "max", "GFLOP/s", "share", "BLAS us", "GFLOP/s", "share",
        "ratio", "min", "max");
    auto cases = nlohmann::json::array();
    all_kernels(options.rows, [&](Kernel const& kernel) {
        auto const figures = measure(kernel, options);
        print(kernel, figures);
        cases.push_back(to_json(kernel, figures));
    });
    double const peak_after = peak(peak_seconds) / 1e9;
    std::printf("FMA peak after it %.0f GFLOP/s\n", peak_after);
    write_json(options.json,
               {{"benchmark", "micro/kernels"},
                {"instruction_set", SimdEngine::description()},
                {"blas", {{"name", blas.name}, {"version", blas.version}, {"core", blas.core}, {"threads", blas.threads}}},
                {"peak_gflops", {peak_before, peak_after}},
                {"cases", cases}});
}

} // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app{"SimdEngine's kernels on one core, as a share of the processor's peak, beside the same products by BLAS"};
    app.add_option("--rows", options.rows, "rows of a batch")->delimiter(',')->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--repeats", options.repeats, "repeats of each kernel")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--seconds", options.seconds, "per turn")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--json", options.json, "also write the figures to this file");
    CLI11_PARSE(app, argc, argv);
    try {
        run(options);
        return 0;
    } catch (std::exception const& error) {
        std::cerr << "error: " << error.what() << '\n';
        return 1;
    }
}
