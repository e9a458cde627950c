#pragma once

#include "options.hpp"

#include <lockstep/train/metrics.hpp>

#include <filesystem>
#include <string>

/// Throws lockstep::Error when `path` cannot be written. An existing file stays as it is.
void check_writable(std::filesystem::path const& path);

/// Writes a run as JSON to `options.json`: its configuration, the history, the last metrics and one parameter hash per worker.
/// `instruction_set`: that of the engine simd.
/// The file is complete or does not change. Throws lockstep::Error.
void write_run(Options const& options, std::string const& instruction_set, lockstep::Result const& result);
