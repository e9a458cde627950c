#pragma once

#include "options.hpp"

#include <lockstep/train/metrics.hpp>

/// Loads the data, trains and prints it, all workers of this process; throws as `launch`. One function for each engine, in a file
/// of its own: each compiles all kernels of the network.
[[nodiscard]] lockstep::Result train_on_simd(Options const& options);
[[nodiscard]] lockstep::Result train_on_cpu(Options const& options);
