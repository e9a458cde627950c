#include "options.hpp"

#include "launcher.hpp"

#include <lockstep/engine/simd/instruction_set.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <functional>
#include <limits>
#include <optional>
#include <sstream>
#include <system_error>

namespace {

struct BackendName {
    char const* name;
    Backend backend;
};
constexpr std::array backends{BackendName{"serial", Backend::serial}, BackendName{"threads", Backend::threads},
                              BackendName{"mpi", Backend::mpi}};

constexpr int most_threads = 256; // of a process or a product; more only slow each other down
constexpr int most_processes = 1'000'000;
constexpr double longest_timeout = 1e6; // 11 days

[[noreturn]] void refuse(std::string const& flag, std::string const& expected, std::string const& got) {
    throw UsageError(flag + " must be " + expected + ", got \"" + got + "\"");
}

/// The one place where numbers are read: the whole text must be a number from `lowest` to `highest`, or nothing is returned.
template <class T>
std::optional<T> read_number(std::string const& text, T lowest, T highest) {
    T value{};
    char const* const end = text.data() + text.size();
    auto const [stop, error] = std::from_chars(text.data(), end, value);
    // Written so that NaN is refused.
    if (error == std::errc{} && stop == end && value >= lowest && value <= highest) { return value; }
    return std::nullopt;
}

template <class T>
T number(std::string const& flag, std::string const& text, T lowest, T highest) {
    if (auto const value = read_number(text, lowest, highest)) { return *value; }
    std::ostringstream expected;
    expected << (std::integral<T> ? "a whole number" : "a finite number") << " from " << lowest << " to " << highest;
    refuse(flag, expected.str(), text);
}

Backend backend(std::string const& flag, std::string const& text) {
    std::string names;
    for (auto const& known : backends) {
        if (text == known.name) { return known.backend; }
        names += (names.empty() ? "" : known.backend == backends.back().backend ? " or " : ", ") + std::string{known.name};
    }
    refuse(flag, names, text);
}

EngineName engine(std::string const& flag, std::string const& text) {
    for (auto const known : {EngineName::simd, EngineName::cpu}) {
        if (text == name_of(known)) { return known; }
    }
    refuse(flag, "simd or cpu", text);
}

/// "portable, avx2, avx512"
std::string instruction_sets() {
    std::string names;
    for (std::size_t i = 0; i < lockstep::instruction_set_names.size(); ++i) {
        if (!lockstep::supports(static_cast<lockstep::InstructionSet>(i))) { continue; }
        names += (names.empty() ? "" : ", ") + std::string{lockstep::instruction_set_names[i]};
    }
    return names;
}

/// Flags without their value ("--json --print-hash") and variables that were never set ("--data ''").
std::filesystem::path path(std::string const& flag, std::string const& text) {
    if (text.empty() || text.starts_with("--")) { refuse(flag, "a path", text); }
    return text;
}

class Parser {
public:
    explicit Parser(Options& options) : options_{options} {
        app_.set_help_flag("-h,--help", "Print this text");
        app_.allow_extras(); // refused below, in the order in which they came
        add("--backend", "NAME",
            "How the workers talk to each other: serial (one worker), threads or mpi (processes, also on several hosts)",
            name_of(options_.backend), [&](auto const& flag, auto const& text) { options_.backend = backend(flag, text); });
        add("--engine", "NAME",
            "Where the mathematics runs: simd (kernels for the processor's best instruction set; the environment variable "
            "LOCKSTEP_SIMD names another one: " +
                instruction_sets() + ") or cpu (a BLAS)",
            name_of(options_.engine), [&](auto const& flag, auto const& text) { options_.engine = engine(flag, text); });
        add("-n,--num-workers", "N",
            "Replicas that share each batch: up to " + std::to_string(most_threads) + " threads, or " +
                std::to_string(most_workers_per_core) + " processes for each core of this host",
            "2", [&](auto const& flag, auto const& text) { options_.num_workers = number(flag, text, 1, most_processes); });
        add("--address", "HOSTS", "Start the workers there, by MPI: host1,host2:4 or @FILE with lines like `host1 slots=4`", "",
            [&](auto const& flag, auto const& text) {
                if (text.empty() || text.starts_with("--")) { refuse(flag, "a list of hosts", text); }
                options_.address = text;
            });
        add("--timeout", "SECONDS", "End the run when workers wait for another one longer than that", "300",
            [&](auto const& flag, auto const& text) {
                auto const seconds = read_number(text, 0.0, longest_timeout);
                if (!seconds || *seconds == 0) { refuse(flag, "a finite number above 0, up to 1e+06", text); }
                options_.timeout_seconds = *seconds;
            });
        app_.add_flag("--preflight", options_.preflight,
                      "Do not train: start the workers by MPI, let them talk to each other, and print OK or what is missing");
        add_number("--epochs", options_.epochs, 1, std::numeric_limits<int>::max(), "Passes over the training images");
        constexpr double largest = std::numeric_limits<float>::max(); // the network's scalar
        add_number("--lr", options_.lr, 0.0, largest, "Learning rate");
        add_number("--momentum", options_.momentum, 0.0, largest, "Momentum of SGD");
        add_number("--batch-size", options_.batch_size, std::size_t{1}, std::numeric_limits<std::size_t>::max(),
                   "Images per step, over all workers");
        add("--shard-rows", "N",
            "Cut each batch into shards of so many images, summed by one fixed tree: with equal shards, simd gives the same "
            "weights for every number of workers. Without this flag, halved as long as workers have none",
            "16", [&](auto const& flag, auto const& text) {
                options_.shard_rows = number(flag, text, std::size_t{1}, std::numeric_limits<std::size_t>::max());
            });
        add_number("--seed", options_.seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(),
                   "Seed of the initial weights and of the shuffling");
        add("--data", "FOLDER", "Folder of the four IDX files; without it the usual places", "",
            [&](auto const& flag, auto const& text) { options_.data = path(flag, text); });
        add_number("--threads-per-worker", options_.threads_per_worker, 1, most_threads,
                   "BLAS threads of each worker, with --engine cpu");
        app_.add_flag("--smoke-test", options_.smoke_test,
                      "A few seconds only: 300 steps per epoch, 1 epoch and learning rate 0.1 unless given");
        app_.add_flag("--print-hash", options_.print_hash, "Print a hash of each worker's parameters at the end");
        add("--json", "FILE", "Write configuration, history, metrics and parameter hashes to this file", "",
            [&](auto const& flag, auto const& text) { options_.json = path(flag, text); });
    }

    void parse(int argc, char const* const* argv) {
        try {
            app_.parse(argc, argv);
        } catch (CLI::CallForHelp const&) {
            options_.help = app_.help();
            return;
        } catch (CLI::ParseError const& error) { throw UsageError(error.what()); }
        std::string unexpected;
        for (auto const& argument : app_.remaining()) { unexpected += (unexpected.empty() ? "" : " ") + argument; }
        if (!app_.remaining().empty()) { throw UsageError("unexpected: " + unexpected); }
        if (options_.smoke_test) {
            if (app_.count("--epochs") == 0) { options_.epochs = 1; }
            if (app_.count("--lr") == 0) { options_.lr = 0.1; } // learns something in a few steps
        }
        if (options_.threads_per_worker > 1 && options_.engine != EngineName::cpu) {
            throw UsageError("--threads-per-worker goes with --engine cpu only, got \"" + std::string{name_of(options_.engine)} +
                             "\": simd has one thread per worker");
        }
        settle_workers();
    }

private:
    void settle_workers() {
        for (auto const* const flag : {"--address", "--preflight"}) {
            if (app_.count(flag) == 0) { continue; }
            if (app_.count("--backend") != 0 && options_.backend != Backend::mpi) {
                throw UsageError(std::string{flag} + " goes with --backend mpi only, got \"" + name_of(options_.backend) + "\"");
            }
            options_.backend = Backend::mpi;
        }
        if (options_.backend == Backend::mpi) { return; } // the hosts and the launcher have a say
        int const most = options_.backend == Backend::serial ? 1 : most_threads;
        if (options_.num_workers.value_or(1) > most) {
            refuse("--num-workers",
                   (most == 1 ? "1" : "a whole number from 1 to " + std::to_string(most)) + " with --backend " +
                       name_of(options_.backend),
                   std::to_string(*options_.num_workers));
        }
        if (!options_.num_workers) { options_.num_workers = std::min(2, most); }
    }

    using Read = std::function<void(std::string const& flag, std::string const& text)>;

    /// `read` is called with the flag's last value.
    void add(std::string const& flags, std::string const& kind, std::string const& help, std::string const& standard,
             Read const& read) {
        std::string const flag = flags.substr(flags.find("--"));
        app_.add_option_function<std::string>(
                flags, [flag, read](std::string const& text) { read(flag, text); }, help)
            ->type_name(kind)
            ->default_str(standard)
            ->take_last();
    }

    template <class T>
    void add_number(std::string const& flags, T& value, T lowest, T highest, std::string const& help) {
        std::ostringstream standard;
        standard << value;
        add(flags, "N", help, standard.str(),
            [&value, lowest, highest](auto const& flag, auto const& text) { value = number(flag, text, lowest, highest); });
    }

    Options& options_;
    CLI::App app_{"Trains a network on Fashion-MNIST, data-parallel: every worker takes its part of each batch, and all hold the "
                  "same weights.",
                  "fashion_mnist"};
};

} // namespace

char const* name_of(Backend backend) {
    for (auto const& known : backends) {
        if (known.backend == backend) { return known.name; }
    }
    return "";
}

char const* name_of(EngineName engine) { return engine == EngineName::simd ? "simd" : "cpu"; }

EngineName best_engine() {
    return lockstep::best_instruction_set() == lockstep::InstructionSet::portable ? EngineName::cpu : EngineName::simd;
}

Options parse_options(int argc, char const* const* argv) {
    Options options;
    Parser{options}.parse(argc, argv);
    return options;
}
