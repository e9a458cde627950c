#pragma once

#define LOCKSTEP_VERSION_MAJOR 0
#define LOCKSTEP_VERSION_MINOR 1
#define LOCKSTEP_VERSION_PATCH 0

namespace lockstep {

/// The library's version as "major.minor.patch".
inline constexpr char const* version = "0.1.0";

} // namespace lockstep
