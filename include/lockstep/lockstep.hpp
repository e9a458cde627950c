#pragma once

/// All of Lockstep that needs neither MPI nor a device: what the CMake target lockstep::lockstep has.
#include "lockstep/core.hpp"
#include "lockstep/engine/cpu.hpp"
