#include "launcher.hpp"

#include "options.hpp"

#include <lockstep/core/error.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <thread>

#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

using lockstep::detail::concat;

namespace {

std::optional<int> whole_number(std::string const& text) {
    int value = 0;
    char const* const end = text.data() + text.size();
    auto const [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stop != end) { return std::nullopt; }
    return value;
}

/// The number behind the first of `variables` that is set.
std::optional<int> first_number(Environment const& environment, std::initializer_list<char const*> variables) {
    for (auto const* const variable : variables) {
        if (auto const* const text = environment(variable); text != nullptr) { return whole_number(text); }
    }
    return std::nullopt;
}

char const* name_of(MpiKind kind) {
    switch (kind) {
    case MpiKind::open_mpi:
        return "Open MPI";
    case MpiKind::mpich:
        return "MPICH";
    case MpiKind::other:
        break;
    }
    return "another MPI";
}

/// Starting another major version's workers, or another MPI's, ends in workers that do not find each other.
bool fit(MpiVersion const& a, MpiVersion const& b) {
    auto const major = [](std::string const& version) { return version.substr(0, version.find('.')); };
    return a.kind == b.kind && major(a.version) == major(b.version);
}

/// Workers are siblings, and a container may forbid siblings what it allows a parent: so two children try it on each other.
bool siblings_read_memory() {
    static int const value = 42;
    std::array<int, 2> hold{};
    if (::pipe(hold.data()) != 0) { return false; }
    pid_t const read = ::fork();
    if (read == 0) {
        ::close(hold[1]);
        char byte = 0;
        static_cast<void>(::read(hold[0], &byte, 1)); // returns when the parent closes its end
        ::_exit(0);
    }
    pid_t const reads = read < 0 ? -1 : ::fork();
    if (reads == 0) {
        int copy = 0;
        iovec const here{&copy, sizeof copy};
        iovec const there{const_cast<int*>(&value), sizeof value}; // the same address in both
        bool const works = ::process_vm_readv(read, &here, 1, &there, 1, 0) == sizeof copy && copy == value;
        ::_exit(works ? 0 : 1);
    }
    int status = 1;
    if (reads > 0) { ::waitpid(reads, &status, 0); }
    ::close(hold[1]);
    ::close(hold[0]);
    if (read > 0) { ::waitpid(read, nullptr, 0); }
    return status == 0;
}

} // namespace

std::optional<Started> started_by_launcher(Environment const& environment) {
    // Slurm's srun sets PMI_* or PMIX_*, whichever its --mpi is; PMIx leaves the size to Slurm's own variables.
    auto const rank = first_number(environment, {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"});
    auto const size = first_number(environment, {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"});
    if (!rank && !size) { return std::nullopt; }
    return Started{rank.value_or(0), size ? size : first_number(environment, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"})};
}

void check_alone(std::optional<Started> const& started, char const* backend) {
    // Where nobody told the size, a rank tells that there are others below it.
    int const processes = started ? started->size.value_or(started->rank + 1) : 1;
    if (processes < 2) { return; }
    throw UsageError(concat("a launcher started ", processes, " processes, and each would train for itself with --backend ",
                            backend, ": add --backend mpi"));
}

void check_slurm_step(Environment const& environment) {
    auto const tasks = first_number(environment, {"SLURM_STEP_NUM_TASKS"});
    if (environment("SLURM_STEP_ID") == nullptr || tasks.value_or(1) < 2 || started_by_launcher(environment)) { return; }
    throw UsageError("srun started " + std::to_string(*tasks) +
                     " tasks without an MPI plugin: use srun --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH), or mpirun");
}

std::string to_string(MpiVersion const& mpi) { return name_of(mpi.kind) + (mpi.version.empty() ? "" : " " + mpi.version); }

MpiVersion parse_mpi_version(std::string const& text) {
    auto const has = [&](char const* words) { return text.find(words) != std::string::npos; };
    // Intel's MPI and MVAPICH descend from MPICH and say so, but start with what they bring themselves.
    bool const relative = has("Intel") || has("MVAPICH");
    auto const kind = has("Open MPI") || has("OpenRTE") || has("open-mpi") ? MpiKind::open_mpi
                      : !relative && (has("MPICH") || has("HYDRA"))        ? MpiKind::mpich
                                                                           : MpiKind::other;
    // The first thing that looks like a version: 4.1.4, v4.1.4, 4.0.2
    auto const is_digit = [](char c) { return c >= '0' && c <= '9'; };
    for (std::size_t begin = 0; begin < text.size(); ++begin) {
        if (!is_digit(text[begin])) { continue; }
        std::size_t end = begin;
        while (end < text.size() && (is_digit(text[end]) || text[end] == '.')) { ++end; }
        if (auto version = text.substr(begin, end - begin); version.find('.') != std::string::npos) {
            return {kind, std::move(version)};
        }
        begin = end;
    }
    return {kind, ""};
}

std::optional<std::string> mpirun_version_text(std::string const& program) {
    // The shell quotes nothing else: the names are ours, or the user's own LOCKSTEP_MPIRUN.
    if (program.find('\'') != std::string::npos) { return std::nullopt; }
    auto const command = "command -v '" + program + "' >/dev/null 2>&1 && exec '" + program + "' --version 2>&1 </dev/null";
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    if (pipe == nullptr) { return std::nullopt; }
    std::string text;
    std::array<char, 4096> piece{};
    for (std::size_t count = 0; (count = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;) {
        text.append(piece.data(), count);
    }
    return ::pclose(pipe) == 0 ? std::optional{text} : std::nullopt;
}

std::string find_mpirun(MpiVersion const& mpi, Environment const& environment, VersionText const& version_text) {
    if (auto const* const named = environment("LOCKSTEP_MPIRUN"); named != nullptr && *named != '\0') {
        auto const text = version_text(named);
        if (!text) { throw lockstep::Error(concat("LOCKSTEP_MPIRUN is \"", named, "\", which cannot be run")); }
        if (auto const found = parse_mpi_version(*text); mpi.kind != MpiKind::other && !fit(mpi, found)) {
            throw lockstep::Error(concat("this program uses ", to_string(mpi), ", but LOCKSTEP_MPIRUN (", named, ") is ",
                                         found.kind == MpiKind::other ? "of another MPI" : to_string(found)));
        }
        return named;
    }
    std::vector<std::string> names{"mpirun", "mpiexec"};
    if (mpi.kind == MpiKind::open_mpi) { names = {"mpirun.openmpi", "mpirun", "mpiexec", "orterun"}; }
    if (mpi.kind == MpiKind::mpich) { names = {"mpiexec.mpich", "mpirun.mpich", "mpiexec.hydra", "mpirun", "mpiexec"}; }
    std::string others;
    for (auto const& name : names) {
        auto const text = version_text(name);
        if (!text) { continue; }
        auto const found = parse_mpi_version(*text);
        if (mpi.kind != MpiKind::other && fit(mpi, found)) { return name; }
        others += concat(others.empty() ? "" : ", ", name, " is of ", to_string(found));
    }
    auto const* const package = mpi.kind == MpiKind::open_mpi ? " (Debian: openmpi-bin)"
                                : mpi.kind == MpiKind::mpich  ? " (Debian: mpich)"
                                                              : "";
    throw lockstep::Error(concat("this program uses ", to_string(mpi), ", and there is no mpirun of it", package,
                                 others.empty() ? "" : "; ", others, "; LOCKSTEP_MPIRUN can name one"));
}

Surroundings surroundings(int threads_per_worker) {
    return {.is_root = ::geteuid() == 0,
            .cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency())),
            .single_copy = siblings_read_memory(),
            .threads_per_worker = threads_per_worker};
}

Command mpirun_command(MpiVersion const& mpi, std::string const& mpirun, int num_workers, std::vector<Host> const& hosts,
                       Surroundings const& machine, std::vector<std::string> const& program) {
    Command command{{mpirun}, {}};
    auto& words = command.words;
    bool const open_mpi = mpi.kind == MpiKind::open_mpi;
    if (open_mpi) {
        if (machine.is_root) {
            command.settings.insert(command.settings.end(),
                                    {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}});
        }
        if (!machine.single_copy) { command.settings.emplace_back("OMPI_MCA_btl_vader_single_copy_mechanism", "none"); }
        bool const crowded = hosts.empty() && num_workers > machine.cores;
        if (crowded) { command.settings.emplace_back("OMPI_MCA_rmaps_base_oversubscribe", "1"); }
        // Bound to a core each, the threads of a worker would share it; unbound, crowded workers share all cores.
        if (crowded || machine.threads_per_worker > 1) { words.insert(words.end(), {"--bind-to", "none"}); }
    }
    words.insert(words.end(), {"-n", std::to_string(num_workers)});
    if (!hosts.empty()) {
        std::string list;
        for (auto const& host : hosts) { list += concat(list.empty() ? "" : ",", host.name, ":", host.slots); }
        words.insert(words.end(), {mpi.kind == MpiKind::mpich ? "-hosts" : "--host", list});
    }
    words.insert(words.end(), program.begin(), program.end());
    return command;
}

std::vector<std::string> worker_arguments(std::vector<std::string> const& arguments) {
    std::vector<std::string> kept;
    bool has_address = false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        bool const alone = arguments[i] == "--address"; // its value comes next
        if (alone || arguments[i].starts_with("--address=")) {
            has_address = true;
            i += alone ? 1 : 0;
        } else {
            kept.push_back(arguments[i]);
        }
    }
    if (has_address) { kept.insert(kept.end(), {"--backend", "mpi"}); } // which --address implies
    return kept;
}

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

void become(Command const& command) {
    for (auto const& [name, value] : command.settings) { ::setenv(name.c_str(), value.c_str(), 0); }
    std::vector<char*> words;
    for (auto const& word : command.words) { words.push_back(const_cast<char*>(word.c_str())); }
    words.push_back(nullptr);
    ::execvp(words[0], words.data());
    throw lockstep::Error(concat("cannot start ", command.words[0], ": ", std::generic_category().message(errno)));
}
