// All-reduce of floats from 4 B to 64 MiB: Lockstep's communicators, the machine's memory and MPI_Allreduce in one run.
#include "common/json.hpp"
#include "common/machine_state.hpp"
#include "common/memory_bandwidth.hpp"
#include "micro/all_reduce_ways.hpp"
#ifdef BENCHMARKS_WITH_MPI
#include "common/affinity.hpp"
#include "common/mpi_crew.hpp"
#include "micro/all_reduce_mpi.hpp"
#endif

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace lockstep;
using namespace lockstep::benchmarks;

struct Options {
    std::vector<std::string> backends{"threads"};
    int workers = 2;
    std::vector<std::size_t> sizes{};         ///< bytes
    std::vector<std::size_t> message_bytes{}; ///< of MPI
    int repeats = 15;
    double block_seconds = 0.02;
    std::string json{};
};

/// What was measured of one size on one backend.
struct Case {
    std::string cores;
    std::vector<AllReduceWay> ways;
};

using Measure = std::function<std::vector<AllReduceWay>(AllReduceJob const&)>;

constexpr std::size_t reference_bytes = 476'490 * sizeof(float); // the gradients of the reference job

[[nodiscard]] std::vector<std::size_t> default_sizes() {
    std::vector<std::size_t> sizes;
    for (std::size_t bytes = 4; bytes <= std::size_t{64} << 20U; bytes *= 4) { sizes.push_back(bytes); }
    sizes.push_back(reference_bytes);
    std::sort(sizes.begin(), sizes.end());
    return sizes;
}

[[nodiscard]] AllReduceJob job_of(Options const& options, std::size_t bytes) {
    AllReduceJob job{.elements = bytes / sizeof(float),
                     .workers = options.workers,
                     .repeats = options.repeats,
                     .block_seconds = options.block_seconds};
    std::copy(options.message_bytes.begin(), options.message_bytes.end(), job.message_bytes.begin());
    return job;
}

/// Measures again when the cores changed their state meanwhile; when they do so every time, says "changed".
[[nodiscard]] Case measure(AllReduceJob const& job, Measure const& ways_of) {
    Case result;
    for (int tries = 0; tries < 3; ++tries) {
        auto const before = measure_machine();
        result.ways = ways_of(job);
        auto const after = measure_machine();
        bool const same = before.state() == after.state();
        result.cores = same ? name_of(before.state()) : "changed";
        if (same) { break; }
    }
    return result;
}

[[nodiscard]] std::string size_text(std::size_t bytes) {
    char text[32];
    if (bytes < 1024) {
        std::snprintf(text, sizeof text, "%zu B", bytes);
    } else if (bytes % (std::size_t{1} << 20U) == 0) {
        std::snprintf(text, sizeof text, "%zu MiB", bytes >> 20U);
    } else if (bytes % 1024 == 0) {
        std::snprintf(text, sizeof text, "%zu KiB", bytes >> 10U);
    } else {
        std::snprintf(text, sizeof text, "%.3f MB", static_cast<double>(bytes) / 1e6);
    }
    return text;
}

/// All workers' data are read once and written once.
[[nodiscard]] double share_of_memory(AllReduceJob const& job, double seconds, double memory) {
    return 2.0 * job.workers * static_cast<double>(job.elements * sizeof(float)) / seconds / 1e9 / memory;
}

void print(AllReduceJob const& job, Case const& c, double memory) {
    for (auto const& way : c.ways) {
        double const bytes = static_cast<double>(job.elements * sizeof(float));
        std::printf("%-8s  %-16s %9s  %-8s %11.2f  (%9.2f - %9.2f)  %7.2f  %6.3f  %6.3f  (%.3f - %.3f)\n", way.backend.c_str(),
                    way.name.c_str(), size_text(job.elements * sizeof(float)).c_str(), c.cores.c_str(),
                    way.seconds.median() * 1e6, way.seconds.min() * 1e6, way.seconds.max() * 1e6,
                    bytes / way.seconds.median() / 1e9, share_of_memory(job, way.seconds.median(), memory), way.ratio.median(),
                    way.ratio.min(), way.ratio.max());
    }
    std::fflush(stdout);
}

void add(nlohmann::json& cases, AllReduceJob const& job, Case const& c, double memory) {
    for (auto const& way : c.ways) {
        cases.push_back({{"backend", way.backend},
                         {"way", way.name},
                         {"beside", c.ways.front().name},
                         {"workers", job.workers},
                         {"bytes", job.elements * sizeof(float)},
                         {"cores", c.cores},
                         {"seconds", to_json(way.seconds)},
                         {"ratio", to_json(way.ratio)},
                         {"share_of_memory_bandwidth", share_of_memory(job, way.seconds.median(), memory)}});
    }
}

void print_machine(char const* when, MachineState const& machine, double memory) {
    std::printf("%s: memory %.1f GB/s; FMA peak %.0f GFLOP/s on one core, %.0f on two; ping-pong %.0f ns: cores %s\n", when,
                memory, machine.peak_one_thread, machine.peak_two_threads, machine.ping_pong_ns, name_of(machine.state()));
}

/// `measures`: how to measure a size on each of the backends, on rank 0.
void run(Options const& options, std::vector<Measure> const& measures) {
    auto const before = measure_machine();
    double const memory = memory_bandwidth(options.workers);
    std::printf("All-reduce of floats, %d workers\n", options.workers);
    print_machine("before", before, memory);
    std::printf(
        "Medians (min - max) of %d repeats; in each, the ways to do it take turns, %.0f ms each.\n"
        "GB/s: bytes of one worker per second. memory: share of the bandwidth above if every worker's data were read once and\n"
        "written once; more than 1 where they stay in caches. ratio: to the first way's time in the same repeat.\n\n",
        options.repeats, options.block_seconds * 1e3);
    std::printf("%-8s  %-16s %9s  %-8s %11s  (%9s - %9s)  %7s  %6s  %6s  (%5s - %5s)\n", "backend", "way", "size", "cores", "us",
                "min", "max", "GB/s", "memory", "ratio", "min", "max");
    auto cases = nlohmann::json::array();
    for (auto const& ways_of : measures) {
        for (auto const bytes : options.sizes) {
            auto const job = job_of(options, bytes);
            auto const c = measure(job, ways_of);
            print(job, c, memory);
            add(cases, job, c, memory);
        }
    }
    auto const after = measure_machine();
    double const memory_after = memory_bandwidth(options.workers);
    print_machine("after", after, memory_after);
    write_json(options.json, {{"benchmark", "micro/all_reduce"},
                              {"memory_bandwidth_gb_per_s", {memory, memory_after}},
                              {"before", to_json(before)},
                              {"after", to_json(after)},
                              {"cases", cases}});
}

[[nodiscard]] bool has(Options const& options, char const* backend) {
    return std::find(options.backends.begin(), options.backends.end(), backend) != options.backends.end();
}

void run_backends(Options const& options) {
    std::vector<Measure> measures;
    if (has(options, "threads")) { measures.emplace_back(measure_threads); }
    if (!has(options, "mpi")) { return run(options, measures); }
#ifdef BENCHMARKS_WITH_MPI
    MpiCrew<AllReduceJob>::run([&](auto& crew) {
        check_processes(options.workers, crew.size());
        if (crew.rank() != 0) { return crew.serve(measure_mpi); }
        OnCores const all{all_cores()}; // mpirun has bound it to one
        measures.emplace_back([&](AllReduceJob const& job) {
            OnCores const bound{all.before()};
            return crew.all(job, measure_mpi);
        });
        run(options, measures);
        crew.dismiss();
    });
#else
    throw Error("built without MPI: configure with -DLOCKSTEP_MPI=ON");
#endif
}

} // namespace

int main(int argc, char** argv) {
    Options options;
    options.sizes = default_sizes();
    CLI::App app{"All-reduce of floats, against the bandwidth of the memory and MPI_Allreduce in the same run"};
    CLI::IsMember known{std::vector<std::string>{"threads", "mpi"}};
    app.add_option("--backend", options.backends, "threads, mpi or both")->delimiter(',')->check(known)->capture_default_str();
    app.add_option("-n,--num-workers", options.workers, "workers; with MPI the number of processes")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    app.add_option("--sizes", options.sizes, "bytes; default 4 B to 64 MiB")->delimiter(',')->check(CLI::Range(4, 1 << 30));
    app.add_option("--message-bytes", options.message_bytes, "MpiOptions::message_bytes, up to 8 of them, to compare")
        ->delimiter(',')
        ->check(CLI::PositiveNumber)
        ->expected(1, 8);
    app.add_option("--repeats", options.repeats, "repeats of each size")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--seconds", options.block_seconds, "per way and repeat")->check(CLI::PositiveNumber)->capture_default_str();
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
