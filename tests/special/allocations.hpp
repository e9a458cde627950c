#pragma once

namespace lockstep::special {

/// How often memory was asked for so far: every way to malloc is counted (operator new is one), in this program and all libraries
/// that it uses. Link allocations.cpp. glibc only.
[[nodiscard]] long allocations();

/// Asks for memory once and gives it back, in a way that no compiler leaves out: to see that the counter counts.
void allocate_once();

} // namespace lockstep::special
