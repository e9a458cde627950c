#pragma once

#include "lockstep/comm/call.hpp"
#include "lockstep/core/error.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// What a worker is doing, so that others can say where one was lost.
enum class Phase : std::uint32_t { setup, training, evaluation, epoch_end };

/// Where a worker is in its work.
struct Progress {
    Phase phase = Phase::setup;
    int epoch = 0;          ///< counted from 1; 0 before the first
    std::uint64_t step = 0; ///< within the epoch, counted from 1

    /// "setup", "epoch 2, step 38", "evaluation after epoch 2" or "end of epoch 2"
    [[nodiscard]] std::string describe() const {
        if (phase == Phase::setup) { return "setup"; }
        if (phase == Phase::training) { return detail::concat("epoch ", epoch, ", step ", step); }
        if (phase == Phase::epoch_end) { return detail::concat("end of epoch ", epoch); }
        return epoch == 0 ? "evaluation" : detail::concat("evaluation after epoch ", epoch);
    }
};

/// A communicator that keeps its worker's progress and names it when workers wait for each other in vain also offers
/// `note(progress)`. It costs no more than storing the numbers.
template <class C>
concept NotesProgress = requires(C& comm, Progress const& progress) {
    comm.note(progress);
    { comm.progress() } -> std::same_as<Progress>;
};

/// Tells the communicator where this worker is, if it wants to know. Not collective.
template <class C>
void note_progress(C& comm, Progress const& progress) {
    if constexpr (NotesProgress<C>) { comm.note(progress); }
}

namespace detail {

/// A worker that others wait for, and where it was seen last.
struct Missing {
    int rank = 0;
    Progress last{};
};

/// The sentence after "rank 1 of 4: " (the first of `missing`) when the others have waited too long.
[[nodiscard]] inline std::string timeout_text(std::vector<Missing> const& missing, Call const& call, double seconds, int waiting,
                                              Progress const& waiting_in) {
    std::string text = concat("did not come to ", call.describe(), " within ", seconds, " s; it was last seen in ",
                              missing.front().last.describe(), ", while rank ", waiting, " waits in ", waiting_in.describe());
    for (std::size_t i = 1; i < missing.size(); ++i) {
        text += concat("; rank ", missing[i].rank, " is missing too, last seen in ", missing[i].last.describe());
    }
    return text;
}

} // namespace detail
} // namespace lockstep
