// Steady training speed of the reference job, against the bound of its engine measured in the same run.
#include "common/machine_state.hpp"
#include "common/statistics.hpp"
#include "training/products_bound.hpp"

#include <lockstep/lockstep.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace lockstep;
using namespace lockstep::benchmarks;

using Net = Sequential<Linear<784, 512>, ReLU, Linear<512, 128>, ReLU, Linear<128, 64>, ReLU, Linear<64, 10>>;

constexpr double flops_per_sample = Net::forward_flops + Net::backward_flops;

struct Options {
    std::vector<int> workers{1, 2};
    std::vector<std::size_t> batch_sizes{64, 256};
    int repeats = 5;
    double seconds = 1;
    std::string data;
    std::string json;
};

/// One combination of workers and batch size.
struct Case {
    int workers;
    std::size_t batch_size;
    Repeats samples_per_second{};
    Repeats bound{};
    Repeats share_of_bound{};
    Repeats share_of_peak{};
    std::vector<std::string> states{};
    std::vector<double> ping_pong_ns{};
};

struct Speeds {
    double bound;    ///< samples/s of the products alone
    double training; ///< samples/s of whole steps
};

/// The bound and the training in turn, block by block, on the same threads: what the machine does meanwhile meets both.
Speeds measure_speeds(FashionMnist const& data, int workers, std::size_t batch_size, std::size_t blocks, std::size_t steps) {
    return launch<ThreadCommunicator>({.num_workers = workers}, [&](auto& comm) {
        // Full batches only, so that the steps are alike.
        DataLoader train{data.train, comm, {.batch_size = batch_size, .drop_last = true, .seed = 1}};
        Trainer trainer{Model<Net>{seed(1)}, CrossEntropyLoss{}, SGD{.lr = 1e-3}, comm};
        auto batch = train.begin();
        ProductsOnly<Net, float> products{(*batch).rows()};
        auto const training_step = [&] {
            if (batch == train.end()) { batch = train.begin(); }
            trainer.step(*batch);
            ++batch;
        };
        auto const seconds_of = [&](auto const& step) {
            for (int i = 0; i < 3; ++i) { step(); } // brings its memory into the caches
            comm.barrier();
            double const start = benchmarks::detail::now();
            for (std::size_t i = 0; i < steps; ++i) { step(); }
            comm.barrier();
            return benchmarks::detail::now() - start;
        };
        double bound = 0;
        double training = 0;
        for (std::size_t block = 0; block <= blocks; ++block) {
            double const bound_seconds = seconds_of([&] { products.step(); });
            double const training_seconds = seconds_of(training_step);
            if (block == 0) { continue; } // memory's first touch, processor's clock
            bound += bound_seconds;
            training += training_seconds;
        }
        auto const samples = static_cast<double>(blocks * steps * batch_size);
        return Speeds{samples / bound, samples / training};
    });
}

/// One repeat: the machine, the bound and the training in turn, the machine again.
void measure(Case& c, FashionMnist const& data, double seconds) {
    constexpr double block_seconds = 0.05;
    auto const before = measure_machine();
    double const step_seconds = static_cast<double>(c.batch_size) / measure_speeds(data, c.workers, c.batch_size, 1, 20).training;
    auto const steps = static_cast<std::size_t>(std::ceil(block_seconds / step_seconds));
    auto const blocks = static_cast<std::size_t>(std::ceil(seconds / block_seconds));
    auto const speeds = measure_speeds(data, c.workers, c.batch_size, blocks, steps);
    auto const after = measure_machine();
    bool const steady = before.state() == after.state();
    c.states.emplace_back(steady ? name_of(before.state()) : "changed");
    c.ping_pong_ns.push_back(std::max(before.ping_pong_ns, after.ping_pong_ns));
    if (!steady) { return; }
    double const peak = c.workers == 1 ? std::max(before.peak_one_thread, after.peak_one_thread)
                                       : std::max(before.peak_two_threads, after.peak_two_threads);
    c.bound.add(speeds.bound);
    c.samples_per_second.add(speeds.training);
    c.share_of_bound.add(speeds.training / speeds.bound);
    c.share_of_peak.add(speeds.training * flops_per_sample / 1e9 / peak);
}

nlohmann::json to_json(Repeats const& repeats) {
    return {{"median", repeats.median()}, {"min", repeats.min()}, {"max", repeats.max()}, {"repeats", repeats.values}};
}

nlohmann::json to_json(std::vector<Case> const& cases) {
    auto const blas = blas::info();
    nlohmann::json all{{"benchmark", "training"},
                       {"engine", CpuEngine::name},
                       {"blas", {{"name", blas.name}, {"version", blas.version}, {"core", blas.core}, {"threads", blas.threads}}},
                       {"network", Net::description()},
                       {"cases", nlohmann::json::array()}};
    for (auto const& c : cases) {
        all["cases"].push_back({{"backend", "threads"},
                                {"workers", c.workers},
                                {"batch_size", c.batch_size},
                                {"samples_per_second", to_json(c.samples_per_second)},
                                {"bound_samples_per_second", to_json(c.bound)},
                                {"share_of_bound", to_json(c.share_of_bound)},
                                {"share_of_peak", to_json(c.share_of_peak)},
                                {"core_states", c.states},
                                {"ping_pong_ns", c.ping_pong_ns}});
    }
    return all;
}

void print(Case const& c) {
    std::string states;
    for (auto const& state : c.states) {
        if (states.find(state) == std::string::npos) { states += (states.empty() ? "" : ", ") + state; }
    }
    std::printf("%7d  %5zu  %9.0f  %9.0f – %-9.0f  %9.0f  %6.3f  (%.3f – %.3f)  %6.3f  %s (%.0f – %.0f ns)\n", c.workers,
                c.batch_size, c.samples_per_second.median(), c.samples_per_second.min(), c.samples_per_second.max(),
                c.bound.median(), c.share_of_bound.median(), c.share_of_bound.min(), c.share_of_bound.max(),
                c.share_of_peak.median(), states.c_str(), *std::min_element(c.ping_pong_ns.begin(), c.ping_pong_ns.end()),
                *std::max_element(c.ping_pong_ns.begin(), c.ping_pong_ns.end()));
}

int run(Options const& options) {
    auto const data = fashion_mnist(options.data);
    CpuEngine::set_num_threads(1);
    auto const machine = measure_machine();
    std::printf("Training the reference job (%zu parameters, float) on threads, engine cpu: %s\n", Net::parameter_count,
                CpuEngine::description().c_str());
    std::printf("FMA peak %.0f GFLOP/s on one core, %.0f on two; ping-pong %.0f ns: cores %s\n", machine.peak_one_thread,
                machine.peak_two_threads, machine.ping_pong_ns, name_of(machine.state()));
    std::printf("bound: the step's products alone, by the same BLAS on the same number of threads; medians of %d repeats\n"
                "in which the cores kept their state; both in turn every 50 ms\n\n",
                options.repeats);
    std::printf(
        "workers  batch  samples/s   min – max               bound     share of bound            of peak  cores (ping-pong)\n");
    std::vector<Case> cases;
    for (auto const batch_size : options.batch_sizes) {
        for (auto const workers : options.workers) {
            Case c{.workers = workers, .batch_size = batch_size};
            // A repeat in which the cores changed their state says nothing; so many tries, so that a restless machine ends too.
            for (int tries = 0;
                 tries < 4 * options.repeats && c.share_of_bound.size() < static_cast<std::size_t>(options.repeats); ++tries) {
                measure(c, data, options.seconds);
            }
            if (c.share_of_bound.size() == 0) { throw Error("the cores changed their state in every repeat: try again later"); }
            print(c);
            std::fflush(stdout);
            cases.push_back(std::move(c));
        }
    }
    if (!options.json.empty()) {
        std::ofstream file{options.json};
        file << to_json(cases).dump(2) << '\n';
        if (!file.flush()) { throw Error("cannot write " + options.json); }
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app{"Steady training speed of the reference job, against the bound of its engine"};
    app.add_option("--workers", options.workers, "numbers of workers")
        ->delimiter(',')
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--batch-sizes", options.batch_sizes, "global batch sizes")
        ->delimiter(',')
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--repeats", options.repeats, "repeats of each case")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--seconds", options.seconds, "about so long per measurement")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--data", options.data, "folder with Fashion-MNIST");
    app.add_option("--json", options.json, "also write the figures to this file");
    CLI11_PARSE(app, argc, argv);
    try {
        return run(options);
    } catch (std::exception const& error) {
        std::cerr << "error: " << error.what() << '\n';
        return 1;
    }
}
