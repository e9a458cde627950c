#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

/// How the workers talk to each other.
enum class Backend { serial, threads, mpi };

/// "serial", "threads", "mpi"
[[nodiscard]] char const* name_of(Backend backend);

/// Where the mathematics runs.
enum class EngineName { simd, cpu };

/// "simd", "cpu"
[[nodiscard]] char const* name_of(EngineName engine);

/// The fastest that there is: simd where the processor has vectors with fused multiply-add.
[[nodiscard]] EngineName best_engine();

/// The command line, checked. The defaults are the reference job.
struct Options {
    Backend backend = Backend::threads;
    EngineName engine = best_engine();
    std::optional<int> num_workers{}; ///< always there with serial and threads; with MPI, the launcher decides without it
    std::string address{};            ///< the hosts, see launcher.hpp; empty: this one
    double timeout_seconds = 300;
    bool preflight = false;
    int epochs = 50;
    double lr = 1e-3;
    double momentum = 0;
    std::size_t batch_size = 64;
    std::optional<std::size_t> shard_rows{}; ///< without: the loader's own
    std::uint64_t seed = 1;
    std::filesystem::path data{}; ///< empty: the usual places
    bool smoke_test = false;
    int threads_per_worker = 1;
    bool print_hash = false;
    std::filesystem::path json{}; ///< empty: none
    std::string help{};           ///< when not empty, the user asked for this text and not for a run
};

/// A command line that cannot be followed; the text names the flag and its value.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Throws UsageError.
[[nodiscard]] Options parse_options(int argc, char const* const* argv);
