// Steady training speed of the reference job, against the bound of its engine measured in the same run.
#include "common/machine_state.hpp"
#include "common/statistics.hpp"
#include "training/products_bound.hpp"

#include <lockstep/lockstep.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
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

/// Runs work() on every worker until every one has done `steps` steps; the seconds that this took all of them together.
template <class Work>
double timed(Communicator auto& comm, std::size_t steps, Work work) {
    comm.barrier();
    double const start = benchmarks::detail::now();
    for (std::size_t i = 0; i < steps; ++i) { work(); }
    comm.barrier();
    return benchmarks::detail::now() - start;
}

double bound_samples_per_second(int workers, std::size_t batch_size, std::size_t steps) {
    double const seconds = launch<ThreadCommunicator>({.num_workers = workers}, [&](auto& comm) {
        auto const rows =
            worker_part({0, batch_size}, static_cast<std::size_t>(comm.rank()), static_cast<std::size_t>(workers)).size();
        ProductsOnly<Net, float> products{rows};
        for (std::size_t i = 0; i < steps / 10 + 1; ++i) { products.step(); }
        return timed(comm, steps, [&] { products.step(); });
    });
    return static_cast<double>(steps * batch_size) / seconds;
}

double training_samples_per_second(FashionMnist const& data, int workers, std::size_t batch_size, std::size_t steps) {
    double const seconds = launch<ThreadCommunicator>({.num_workers = workers}, [&](auto& comm) {
        // Full batches only, so that the steps are alike.
        DataLoader train{data.train, comm, {.batch_size = batch_size, .drop_last = true, .seed = 1}};
        Trainer trainer{Model<Net>{seed(1)}, CrossEntropyLoss{}, SGD{.lr = 1e-3}, comm};
        auto batch = train.begin();
        auto const step = [&] {
            if (batch == train.end()) { batch = train.begin(); }
            trainer.step(*batch);
            ++batch;
        };
        for (std::size_t i = 0; i < steps / 10 + 1; ++i) { step(); }
        return timed(comm, steps, step);
    });
    return static_cast<double>(steps * batch_size) / seconds;
}

/// One repeat: the machine, the bound, the training, the machine again.
void measure(Case& c, FashionMnist const& data, double seconds) {
    auto const before = measure_machine();
    double const rough = bound_samples_per_second(c.workers, c.batch_size, 50);
    auto const steps = static_cast<std::size_t>(std::max(20.0, seconds * rough / static_cast<double>(c.batch_size)));
    double const bound = bound_samples_per_second(c.workers, c.batch_size, steps);
    double const training = training_samples_per_second(data, c.workers, c.batch_size, steps);
    auto const after = measure_machine();
    double const peak = c.workers == 1 ? std::max(before.peak_one_thread, after.peak_one_thread)
                                       : std::max(before.peak_two_threads, after.peak_two_threads);
    c.bound.add(bound);
    c.samples_per_second.add(training);
    c.share_of_bound.add(training / bound);
    c.share_of_peak.add(training * flops_per_sample / 1e9 / peak);
    c.states.emplace_back(before.state() == after.state() ? name_of(before.state()) : "changed");
    c.ping_pong_ns.push_back(std::max(before.ping_pong_ns, after.ping_pong_ns));
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
    std::printf("bound: the step's products alone, by the same BLAS on the same number of threads; medians of %d repeats\n\n",
                options.repeats);
    std::printf(
        "workers  batch  samples/s   min – max               bound     share of bound            of peak  cores (ping-pong)\n");
    std::vector<Case> cases;
    for (auto const batch_size : options.batch_sizes) {
        for (auto const workers : options.workers) {
            Case c{.workers = workers, .batch_size = batch_size};
            for (int i = 0; i < options.repeats; ++i) { measure(c, data, options.seconds); }
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
