#pragma once

#include "launcher.hpp"
#include "options.hpp"

#include <optional>
#include <string>
#include <vector>

/// The workers of --backend mpi: who starts them.

/// What this process is. All but one of the processes that a launcher started keep quiet: what they would say, rank 0 says. What
/// may be wrong with one of them alone, that one says.
struct Process {
    std::optional<Started> started{}; ///< by a launcher

    [[nodiscard]] bool speaks() const { return !started || started->rank == 0; }
};

/// "Open MPI v4.1.4, …" as MPI_Get_library_version has it; empty in a program that was built without MPI.
[[nodiscard]] std::string mpi_library_version();

/// The command that starts the workers that `options` asks for; nothing when this process is the only one.
/// Throws UsageError for workers and hosts that do not fit, lockstep::Error without a fitting mpirun.
[[nodiscard]] std::optional<Command> workers_command(Options const& options, std::vector<std::string> const& arguments);

/// With --backend mpi, becomes mpirun where a process that nobody launched needs it; returns in a worker. With --preflight,
/// checks first what can be checked beforehand, and prints what is missing. Throws UsageError: a program without MPI, several
/// processes of a launcher that another backend would leave alone, and as `workers_command`.
void start_workers(Options const& options, Process const& process, std::vector<std::string> const& arguments);
