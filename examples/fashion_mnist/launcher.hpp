#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// How `fashion_mnist --backend mpi` starts its own workers: the program becomes mpirun, which starts the same program with the
/// same arguments once per worker. Nothing here calls MPI.

/// A host and how many workers it has room for (0: nobody said).
struct Host {
    std::string name;
    int slots = 0;

    friend bool operator==(Host const&, Host const&) = default;
};

/// `address` as the command line has it: "host1,host2:4", or "@file" with lines `host`, `host slots=4`, `host:4`, `# comment`.
/// Throws UsageError, which names the text or the file and line.
[[nodiscard]] std::vector<Host> parse_hosts(std::string const& address);

/// How many workers each host gets, as its `slots`; a host without any is left out. Without `num_workers` all slots, and one
/// worker where nobody said; otherwise they are dealt out evenly, as far as the slots go. Throws UsageError when they do not fit.
[[nodiscard]] std::vector<Host> spread(std::vector<Host> const& hosts, std::optional<int> num_workers);

/// More workers than that only wait for each other, and the host for all of them.
inline constexpr int most_workers_per_core = 16;

/// Throws UsageError, which begins with `flag`, when one host is to have more workers than that.
void check_crowding(std::string const& flag, int workers, int cores);

/// The value of an environment variable, or nullptr; std::getenv outside of tests.
using Environment = std::function<char const*(char const*)>;

/// What a launcher (mpirun, srun) has told the process.
struct Started {
    int rank = 0;
    std::optional<int> size{}; ///< not every launcher tells it
};

/// Nothing when no launcher started the process.
[[nodiscard]] std::optional<Started> started_by_launcher(Environment const& environment);

/// With `backend`, one of a single process, each process of several would train for itself. Throws UsageError when a launcher
/// started several.
void check_alone(std::optional<Started> const& started, char const* backend);

/// Slurm's srun with several tasks but without an MPI plugin starts programs that know nothing of each other: each would start a
/// job of its own. Throws UsageError in such a task.
void check_slurm_step(Environment const& environment);

enum class MpiKind { open_mpi, mpich, other };

/// An MPI and its version: {MpiKind::open_mpi, "4.1.4"}.
struct MpiVersion {
    MpiKind kind = MpiKind::other;
    std::string version{};

    friend bool operator==(MpiVersion const&, MpiVersion const&) = default;
};

/// "Open MPI 4.1.4", for people
[[nodiscard]] std::string to_string(MpiVersion const& mpi);

/// Reads what MPI_Get_library_version or `mpirun --version` says.
[[nodiscard]] MpiVersion parse_mpi_version(std::string const& text);

/// What an executable's `--version` prints, or nothing when there is no such executable; `mpirun_version_text` outside of tests.
using VersionText = std::function<std::optional<std::string>(std::string const& program)>;
[[nodiscard]] std::optional<std::string> mpirun_version_text(std::string const& program);

/// The mpirun that belongs to the MPI in use: what LOCKSTEP_MPIRUN names, or the first of the usual names that is of the same
/// MPI. Throws lockstep::Error, which says what was found instead and which package to install.
[[nodiscard]] std::string find_mpirun(MpiVersion const& mpi, Environment const& environment, VersionText const& version_text);

/// What of the machine and the program decides about mpirun's settings.
struct Surroundings {
    bool is_root = false;
    int cores = 1;           ///< of this host
    bool single_copy = true; ///< processes may read each other's memory (process_vm_readv)
    int threads_per_worker = 1;
};
[[nodiscard]] Surroundings surroundings(int threads_per_worker);

/// A command line, and the variables that are to be set for it where the user has not set them.
struct Command {
    std::vector<std::string> words;
    std::vector<std::pair<std::string, std::string>> settings{};
};

/// The command that starts `num_workers` copies of `program` (program and its arguments), on `hosts` (from `spread`) or, when
/// there are none, on this one.
[[nodiscard]] Command mpirun_command(MpiVersion const& mpi, std::string const& mpirun, int num_workers,
                                     std::vector<Host> const& hosts, Surroundings const& machine,
                                     std::vector<std::string> const& program);

/// The arguments of the workers, from those of the program that starts them: --address is done with.
[[nodiscard]] std::vector<std::string> worker_arguments(std::vector<std::string> const& arguments);

/// The program's own file, for starting it again.
[[nodiscard]] std::string own_program();

/// Replaces the process by `command`, so that signals, output and exit code are the command's. Throws lockstep::Error if it
/// cannot.
[[noreturn]] void become(Command const& command);
