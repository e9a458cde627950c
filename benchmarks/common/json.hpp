#pragma once

#include "common/machine_state.hpp"
#include "common/statistics.hpp"

#include <lockstep/core/error.hpp>

#include <nlohmann/json.hpp>

#include <fstream>
#include <string>

namespace lockstep::benchmarks {

[[nodiscard]] inline nlohmann::json to_json(Repeats const& repeats) {
    return {{"median", repeats.median()}, {"min", repeats.min()}, {"max", repeats.max()}, {"repeats", repeats.values}};
}

[[nodiscard]] inline nlohmann::json to_json(MachineState const& machine) {
    return {{"cores", name_of(machine.state())},
            {"ping_pong_ns", machine.ping_pong_ns},
            {"peak_one_thread_gflops", machine.peak_one_thread},
            {"peak_two_threads_gflops", machine.peak_two_threads}};
}

/// Throws Error when the file cannot be written. Nothing happens without a name.
inline void write_json(std::string const& name, nlohmann::json const& all) {
    if (name.empty()) { return; }
    std::ofstream file{name};
    file << all.dump(2) << '\n';
    if (!file.flush()) { throw Error("cannot write " + name); }
}

} // namespace lockstep::benchmarks
