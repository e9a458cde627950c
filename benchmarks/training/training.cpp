// Steady training speed of the reference job, as a share of the processor's peak and, for CpuEngine, of what its BLAS can do.
#include "common/json.hpp"
#include "common/machine_state.hpp"
#include "common/statistics.hpp"
#include "training/phases.hpp"
#include "training/products_bound.hpp"
#ifdef BENCHMARKS_WITH_MPI
#include "common/affinity.hpp"
#include "common/mpi_crew.hpp"
#endif

#include <lockstep/lockstep.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using namespace lockstep;
using namespace lockstep::benchmarks;

using Net = Sequential<Linear<784, 512>, ReLU, Linear<512, 128>, ReLU, Linear<128, 64>, ReLU, Linear<64, 10>>;

constexpr double flops_per_sample = Net::forward_flops + Net::backward_flops;

struct Options {
    std::vector<std::string> engines{"simd", "cpu"};
    std::vector<std::string> backends{"threads"};
    std::vector<int> workers{1, 2};
    std::vector<std::size_t> batch_sizes{64, 256};
    int repeats = 5;
    double seconds = 1;
    std::size_t shard_rows = 0; ///< 0: the loader's own choice
    std::string data;
    std::string json;
};

/// What the repeats gave in which the cores were in one state throughout.
struct Figures {
    Repeats samples_per_second{};
    Repeats bound{}; ///< CpuEngine's alone, as the next
    Repeats share_of_bound{};
    Repeats share_of_peak{};
    Repeats peak{}; ///< GFLOP/s of all workers' cores
    Repeats ping_pong_ns{};
    std::array<Repeats, phase_names.size()> phase_microseconds{}; ///< per step, on rank 0; SimdEngine's
};

/// One combination of engine, backend, workers and batch size, by the state of the cores.
struct Case {
    std::string engine;
    std::string backend;
    int workers;
    std::size_t batch_size;
    std::map<std::string, Figures> by_state{};
    int dropped = 0; ///< repeats in which the cores changed their state: they say nothing

    [[nodiscard]] std::size_t most_repeats() const {
        std::size_t most = 0;
        for (auto const& [state, figures] : by_state) { most = std::max(most, figures.share_of_peak.size()); }
        return most;
    }
};

struct Speeds {
    double bound = 0;    ///< samples/s of the products alone, by BLAS
    double training = 0; ///< samples/s of whole steps
    PhaseTimes phases{}; ///< seconds per step
};

/// What is to be measured. Plain data, since it goes to other processes too.
struct TrainingJob {
    bool simd = true;
    int workers = 1;
    std::size_t batch_size = 1;
    std::size_t blocks = 1;
    std::size_t steps = 1;      ///< of each block
    std::size_t shard_rows = 0; ///< 0: the loader's own choice
};

/// How a backend does that, called on rank 0.
using MeasureSpeeds = std::function<Speeds(TrainingJob const&)>;

/// Seconds that `steps` calls take, all workers together.
template <class Step>
double seconds_of(std::size_t steps, auto& comm, Step&& step) {
    for (int i = 0; i < 3; ++i) { step(); } // brings its memory into the caches
    comm.barrier();
    double const start = benchmarks::detail::now();
    for (std::size_t i = 0; i < steps; ++i) { step(); }
    comm.barrier();
    return benchmarks::detail::now() - start;
}

/// Full batches only, so that the steps are alike, one epoch after the other.
template <class EngineType, class LossType>
auto make_step(FashionMnist const& data, TrainingJob const& job, auto& comm, LossType loss) {
    DataLoaderOptions options{.batch_size = job.batch_size, .drop_last = true, .seed = 1};
    if (job.shard_rows != 0) { options.shard_rows = job.shard_rows; }
    auto loader = std::make_shared<DataLoader<FashionMnist::Images>>(data.train, comm, options);
    auto trainer = std::make_shared<Trainer<Model<Net, EngineType>, LossType, SGD, std::remove_reference_t<decltype(comm)>>>(
        Model<Net, EngineType>{seed(1)}, loss, SGD{.lr = 1e-3}, comm);
    trainer->model().reserve(loader->max_rows(), loader->max_partial_sums());
    return [loader, trainer, batch = loader->begin()]() mutable {
        if (batch == loader->end()) { batch = loader->begin(); }
        trainer->step(*batch);
        ++batch;
    };
}

/// The products alone and the training in turn, block by block, by the same workers: what the machine does meanwhile meets both.
Speeds measure_cpu_engine(FashionMnist const& data, TrainingJob const& job, auto& comm) {
    auto training_step = make_step<CpuEngine>(data, job, comm, CrossEntropyLoss{});
    auto const batch =
        worker_part({0, job.batch_size}, static_cast<std::size_t>(comm.rank()), static_cast<std::size_t>(comm.size()),
                    default_shard_rows(job.batch_size, static_cast<std::size_t>(comm.size())));
    ProductsOnly<Net, float> products{batch.size()};
    double bound = 0;
    double training = 0;
    for (std::size_t block = 0; block <= job.blocks; ++block) {
        double const bound_seconds = seconds_of(job.steps, comm, [&] { products.step(); });
        double const training_seconds = seconds_of(job.steps, comm, training_step);
        if (block == 0) { continue; } // memory's first touch, processor's clock
        bound += bound_seconds;
        training += training_seconds;
    }
    auto const samples = static_cast<double>(job.blocks * job.steps * job.batch_size);
    return Speeds{.bound = samples / bound, .training = samples / training};
}

Speeds measure_simd_engine(FashionMnist const& data, TrainingJob const& job, auto& comm) {
    auto training_step = make_step<SimdEngine>(data, job, comm, CrossEntropyLoss{});
    std::size_t const steps = job.blocks * job.steps;
    seconds_of(job.steps, comm, training_step);
    double const training = seconds_of(steps, comm, training_step);
    Speeds speeds{.training = static_cast<double>(steps * job.batch_size) / training};
    auto timed_step = make_step<TimedEngine>(data, job, comm, TimedLoss{});
    seconds_of(job.steps, comm, timed_step);
    auto& times = own_phase_times();
    times = {};
    double const whole = seconds_of(job.steps, comm, timed_step);
    auto const timed_steps = static_cast<double>(job.steps + 3); // with those that seconds_of makes before
    double known = 0;
    for (std::size_t phase = 0; phase < times.size(); ++phase) {
        speeds.phases[phase] = times[phase] / timed_steps;
        known += speeds.phases[phase];
    }
    speeds.phases[static_cast<std::size_t>(StepPhase::waiting)] = whole / static_cast<double>(job.steps) - known;
    return speeds;
}

Speeds measure_speeds(FashionMnist const& data, TrainingJob const& job, auto& comm) {
    return job.simd ? measure_simd_engine(data, job, comm) : measure_cpu_engine(data, job, comm);
}

Speeds measure_on_threads(FashionMnist const& data, TrainingJob const& job) {
    return launch<ThreadCommunicator>({.num_workers = job.workers},
                                      [&](ThreadCommunicator& comm) { return measure_speeds(data, job, comm); });
}

#ifdef BENCHMARKS_WITH_MPI
/// On all processes; the first `workers` of them train.
Speeds measure_on_mpi(FashionMnist const& data, TrainingJob const& job) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm workers = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank < job.workers ? 0 : MPI_UNDEFINED, rank, &workers);
    if (workers == MPI_COMM_NULL) { return {}; }
    auto const speeds = MpiCommunicator::launch({.num_workers = job.workers},
                                                [&](MpiCommunicator& comm) { return measure_speeds(data, job, comm); },
                                                {.communicator = workers});
    MPI_Comm_free(&workers);
    return speeds;
}
#endif

/// One repeat: the machine, the bound and the training in turn, the machine again.
void measure(Case& c, Options const& options, MeasureSpeeds const& speeds_of) {
    constexpr double block_seconds = 0.05;
    auto const before = measure_machine();
    TrainingJob job{.simd = c.engine == SimdEngine::name,
                    .workers = c.workers,
                    .batch_size = c.batch_size,
                    .blocks = 1,
                    .steps = 20,
                    .shard_rows = options.shard_rows};
    double const step_seconds = static_cast<double>(c.batch_size) / speeds_of(job).training;
    job.steps = static_cast<std::size_t>(std::ceil(block_seconds / step_seconds));
    job.blocks = static_cast<std::size_t>(std::ceil(options.seconds / block_seconds));
    auto const speeds = speeds_of(job);
    auto const after = measure_machine();
    if (before.state() != after.state()) {
        ++c.dropped;
        return;
    }
    double const peak = c.workers == 1 ? std::max(before.peak_one_thread, after.peak_one_thread)
                                       : std::max(before.peak_two_threads, after.peak_two_threads);
    auto& figures = c.by_state[name_of(before.state())];
    figures.samples_per_second.add(speeds.training);
    figures.peak.add(peak);
    if (job.simd) {
        for (std::size_t i = 0; i < speeds.phases.size(); ++i) { figures.phase_microseconds[i].add(speeds.phases[i] * 1e6); }
    } else {
        figures.bound.add(speeds.bound);
        figures.share_of_bound.add(speeds.training / speeds.bound);
    }
    figures.share_of_peak.add(speeds.training * flops_per_sample / 1e9 / peak);
    figures.ping_pong_ns.add(std::max(before.ping_pong_ns, after.ping_pong_ns));
}

nlohmann::json to_json(Case const& c, std::string const& state, Figures const& figures) {
    nlohmann::json one{{"engine", c.engine},
                       {"backend", c.backend},
                       {"workers", c.workers},
                       {"batch_size", c.batch_size},
                       {"cores", state},
                       {"samples_per_second", to_json(figures.samples_per_second)},
                       {"share_of_peak", to_json(figures.share_of_peak)},
                       {"peak_gflops", to_json(figures.peak)},
                       {"ping_pong_ns", to_json(figures.ping_pong_ns)},
                       {"dropped_repeats", c.dropped}};
    if (c.engine == CpuEngine::name) {
        one["bound_samples_per_second"] = to_json(figures.bound);
        one["share_of_bound"] = to_json(figures.share_of_bound);
    } else {
        for (std::size_t i = 0; i < phase_names.size(); ++i) {
            one["phase_microseconds"][phase_names[i]] = to_json(figures.phase_microseconds[i]);
        }
    }
    return one;
}

nlohmann::json to_json(std::vector<Case> const& cases) {
    auto const blas = blas::info();
    nlohmann::json all{{"benchmark", "training"},
                       {"instruction_set", SimdEngine::description()},
                       {"blas", {{"name", blas.name}, {"version", blas.version}, {"core", blas.core}, {"threads", blas.threads}}},
                       {"network", Net::description()},
                       {"cases", nlohmann::json::array()}};
    for (auto const& c : cases) {
        for (auto const& [state, figures] : c.by_state) { all["cases"].push_back(to_json(c, state, figures)); }
    }
    return all;
}

void print(Case const& c) {
    for (auto const& [state, figures] : c.by_state) {
        std::printf("%-6s  %-7s  %7d  %5zu  %-8s %2zu  %9.0f  (%6.0f - %6.0f)   %5.3f  (%.3f - %.3f)", c.engine.c_str(),
                    c.backend.c_str(), c.workers, c.batch_size, state.c_str(), figures.share_of_peak.size(),
                    figures.samples_per_second.median(), figures.samples_per_second.min(), figures.samples_per_second.max(),
                    figures.share_of_peak.median(), figures.share_of_peak.min(), figures.share_of_peak.max());
        if (c.engine == CpuEngine::name) {
            std::printf("  %14.3f", figures.share_of_bound.median());
        } else {
            std::printf("  %14s", "");
        }
        std::printf("  %6.0f\n", figures.ping_pong_ns.median());
    }
}

void print_phases(std::vector<Case> const& cases) {
    std::printf("\nMicroseconds per step on rank 0, from steps with a watch (a few per cent slower), in the same repeats:\n"
                "backend  workers  batch  cores   ");
    for (auto const* const name : phase_names) { std::printf("  %16s", name); }
    std::printf("\n");
    for (auto const& c : cases) {
        if (c.engine == CpuEngine::name) { continue; }
        for (auto const& [state, figures] : c.by_state) {
            std::printf("%-7s  %7d  %5zu  %-8s", c.backend.c_str(), c.workers, c.batch_size, state.c_str());
            for (auto const& phase : figures.phase_microseconds) { std::printf("  %16.1f", phase.median()); }
            std::printf("\n");
        }
    }
}

/// Until one state of the cores has its repeats; so many tries, so that a restless machine ends too.
Case measure_case(Options const& options, Case c, MeasureSpeeds const& speeds_of) {
    for (int tries = 0; tries < 4 * options.repeats && c.most_repeats() < static_cast<std::size_t>(options.repeats); ++tries) {
        measure(c, options, speeds_of);
    }
    if (c.by_state.empty()) { throw Error("the cores changed their state in every repeat: try again later"); }
    return c;
}

/// `backends`: how to measure on each of them, called on rank 0.
void run(Options const& options, std::map<std::string, MeasureSpeeds> const& backends) {
    auto const machine = measure_machine();
    std::printf("Training the reference job (%zu parameters, float). Engine simd: %s; engine cpu: %s\n", Net::parameter_count,
                SimdEngine::description().c_str(), CpuEngine::description().c_str());
    std::printf("FMA peak %.0f GFLOP/s on one core, %.0f on two; ping-pong %.0f ns: cores %s\n", machine.peak_one_thread,
                machine.peak_two_threads, machine.ping_pong_ns, name_of(machine.state()));
    std::printf(
        "Medians (min - max) of n repeats in which the cores kept one state. Share of peak: of the FMA peak of the workers'\n"
        "cores in the same repeat. Share of BLAS: of the step's products alone, by the same BLAS, in turn every 50 ms.\n\n");
    std::printf(
        "engine  backend  workers  batch  cores     n  samples/s  (   min -    max)   share of peak         share of BLAS  "
        "ping-pong ns\n");
    std::vector<Case> cases;
    for (auto const batch_size : options.batch_sizes) {
        for (auto const workers : options.workers) {
            for (auto const& engine : options.engines) {
                for (auto const& [backend, speeds_of] : backends) {
                    cases.push_back(measure_case(
                        options, {.engine = engine, .backend = backend, .workers = workers, .batch_size = batch_size},
                        speeds_of));
                    print(cases.back());
                    std::fflush(stdout);
                }
            }
        }
    }
    print_phases(cases);
    write_json(options.json, to_json(cases));
}

[[nodiscard]] bool has(Options const& options, char const* backend) {
    return std::find(options.backends.begin(), options.backends.end(), backend) != options.backends.end();
}

void run_backends(Options const& options) {
    auto const data = fashion_mnist(options.data);
    CpuEngine::set_num_threads(1);
    std::map<std::string, MeasureSpeeds> backends;
    if (has(options, "threads")) {
        backends["threads"] = [&](TrainingJob const& job) { return measure_on_threads(data, job); };
    }
    if (!has(options, "mpi")) { return run(options, backends); }
#ifdef BENCHMARKS_WITH_MPI
    MpiCrew<TrainingJob>::run([&](auto& crew) {
        int const most = *std::max_element(options.workers.begin(), options.workers.end());
        check_processes(most, crew.size());
        auto const work = [&](TrainingJob const& job) { return measure_on_mpi(data, job); };
        if (crew.rank() != 0) { return crew.serve(work); }
        OnCores const all{all_cores()}; // mpirun has bound it to one
        backends["mpi"] = [&](TrainingJob const& job) {
            OnCores const bound{all.before()};
            return crew.all(job, work);
        };
        run(options, backends);
        crew.dismiss();
    });
#else
    throw Error("built without MPI: configure with -DLOCKSTEP_MPI=ON");
#endif
}

} // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app{"Steady training speed of the reference job, as a share of the processor's peak"};
    app.add_option("--engine", options.engines, "simd, cpu or both")
        ->delimiter(',')
        ->check(CLI::IsMember{std::vector<std::string>{"simd", "cpu"}})
        ->capture_default_str();
    app.add_option("--shard-rows", options.shard_rows, "rows of a shard; 0: the loader's own choice")->capture_default_str();
    app.add_option("--backend", options.backends, "threads, mpi or both")
        ->delimiter(',')
        ->check(CLI::IsMember{std::vector<std::string>{"threads", "mpi"}})
        ->capture_default_str();
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
        run_backends(options);
        return 0;
    } catch (std::exception const& error) {
        std::cerr << "error: " << error.what() << '\n';
        return 1;
    }
}
