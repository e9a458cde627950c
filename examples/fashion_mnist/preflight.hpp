#pragma once

#include "options.hpp"

#include <stdexcept>
#include <string>
#include <vector>

/// A run of --preflight has found something missing; the text has one line for each.
struct PreflightError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Whether the hosts of --address answer and have the program: under some launchers, workers on a host that does not are waited
/// for without end. Throws lockstep::Error, and UsageError when this host would get too many workers.
void check_hosts(Options const& options);

/// What can be known before there are workers: a fitting mpirun, hosts that answer, room in /dev/shm. Prints the command that
/// starts the workers. Throws PreflightError, UsageError.
void check_before_start(Options const& options, std::vector<std::string> const& arguments);

/// The workers' part: all of them take part in a sum, and rank 0 prints how many there are on which hosts. Throws PreflightError
/// on every worker, and as `launch`.
void check_workers(Options const& options);

/// Room that the workers of one host take in /dev/shm, in bytes.
inline constexpr unsigned long long shared_memory_per_worker = 8ULL << 20U;
