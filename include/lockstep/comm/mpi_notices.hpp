#pragma once

#include "lockstep/comm/call.hpp"
#include "lockstep/comm/mpi_environment.hpp"
#include "lockstep/comm/mpi_messages.hpp"
#include "lockstep/comm/progress.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::detail {

/// How a worker leaves its group.
enum class Leaving : std::uint32_t {
    returned,  ///< its body has returned
    failed,    ///< with an error of its own
    released,  ///< because another one has failed
    timed_out, ///< it has waited for too long
};

/// What a worker tells all others when it leaves.
struct Notice {
    Leaving how = Leaving::returned;
    std::uint32_t settled = 0;  ///< nothing that it sent is under way any more; otherwise a second notice will say so
    std::uint64_t finished = 0; ///< collective operations that it has gone through with
    Progress progress{};
    std::uint64_t length = 0;
    std::array<char, 2000> text{}; ///< the error; its first `length` bytes

    void set_text(std::string const& error) {
        length = std::min(error.size(), text.size());
        std::copy_n(error.begin(), length, text.begin());
    }
    [[nodiscard]] std::string get_text() const { return {text.data(), static_cast<std::size_t>(length)}; }
};

/// The notices of a group: at most two of each worker to each other one.
class Notices {
public:
    Notices(MPI_Comm comm, int rank, int size) : comm_{comm}, rank_{rank}, latest_(static_cast<std::size_t>(size)) {
        sends_.reserve(2 * latest_.size());
        receive_next();
    }

    /// Tells all others. The second time it says that this worker has settled; what else it says is known by then.
    void send(Notice const& notice) {
        auto& buffer = own_[sent_++];
        buffer = notice;
        for (int other = 0; other < static_cast<int>(latest_.size()); ++other) {
            if (other == rank_) { continue; }
            auto& request = sends_.emplace_back(MPI_REQUEST_NULL);
            check_mpi(MPI_Isend(&buffer, sizeof buffer, MPI_BYTE, other, tag_notice, comm_, &request), "MPI_Isend");
        }
    }
    [[nodiscard]] bool sent() const noexcept { return sent_ > 0; }
    [[nodiscard]] Notice const& own() const noexcept { return own_[0]; }

    /// Takes in what has arrived.
    void poll() {
        int arrived = 1;
        while (next_ != MPI_REQUEST_NULL) {
            MPI_Status status;
            check_mpi(MPI_Test(&next_, &arrived, &status), "MPI_Test");
            if (arrived == 0) { return; }
            latest_[static_cast<std::size_t>(status.MPI_SOURCE)] = incoming_;
            receive_next();
        }
    }

    /// The last that a worker has said, if it has said anything. Another rank than this worker's.
    [[nodiscard]] std::optional<Notice> const& of(int rank) const { return latest_[static_cast<std::size_t>(rank)]; }

    /// All others have settled, and all that this worker had to tell is on its way.
    [[nodiscard]] bool complete() {
        int sent = 0;
        check_mpi(MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &sent, MPI_STATUSES_IGNORE), "MPI_Testall");
        if (sent == 0) { return false; }
        for (int other = 0; other < static_cast<int>(latest_.size()); ++other) {
            if (other != rank_ && !(of(other) && of(other)->settled != 0)) { return false; }
        }
        return true;
    }

    /// Receives no more.
    void close() {
        MPI_Cancel(&next_);
        MPI_Wait(&next_, MPI_STATUS_IGNORE);
    }

private:
    void receive_next() {
        check_mpi(MPI_Irecv(&incoming_, sizeof incoming_, MPI_BYTE, MPI_ANY_SOURCE, tag_notice, comm_, &next_), "MPI_Irecv");
    }

    MPI_Comm comm_;
    int rank_;
    std::vector<std::optional<Notice>> latest_; // by rank
    Notice incoming_;
    MPI_Request next_ = MPI_REQUEST_NULL;
    std::array<Notice, 2> own_;
    std::size_t sent_ = 0;
    std::vector<MPI_Request> sends_;
};

} // namespace lockstep::detail
