#pragma once

#include "lockstep/comm/mpi_environment.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <vector>

namespace lockstep::detail {

/// Message tags of a group's communicator.
enum Tag : int { tag_post = 1, tag_data = 2, tag_notice = 3 };

/// The messages that a worker has begun to send and to receive. Nothing here waits.
class MpiMessages {
public:
    MpiMessages(MPI_Comm comm, std::size_t expected) : comm_{comm} {
        sends_.reserve(expected);
        receives_.reserve(expected);
    }

    void send(void const* data, std::size_t bytes, int to, Tag tag) {
        auto& request = sends_.emplace_back(MPI_REQUEST_NULL);
        check_mpi(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, comm_, &request), "MPI_Isend");
    }
    void receive(void* data, std::size_t bytes, int from, Tag tag) {
        auto& request = receives_.emplace_back(MPI_REQUEST_NULL);
        check_mpi(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, comm_, &request), "MPI_Irecv");
    }

    /// Nothing has been begun since the last `clear`.
    [[nodiscard]] bool none() const noexcept { return sends_.empty() && receives_.empty(); }
    /// All have arrived. MPI makes progress by being asked.
    [[nodiscard]] bool complete() { return complete(receives_) && complete(sends_); }
    /// Forgets those that are complete.
    void clear() noexcept {
        sends_.clear();
        receives_.clear();
    }

    /// Of those that have not arrived. Afterwards they are complete as others are.
    void cancel_receives() {
        for (auto& request : receives_) {
            if (request != MPI_REQUEST_NULL) { check_mpi(MPI_Cancel(&request), "MPI_Cancel"); }
        }
    }

    /// Takes in what others are sending to nobody, so that they can go on.
    void discard() {
        for (Tag const tag : {tag_post, tag_data}) { discard(tag); }
    }

private:
    [[nodiscard]] static bool complete(std::vector<MPI_Request>& requests) {
        int done = 0;
        check_mpi(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
        return done != 0;
    }

    void discard(Tag tag) {
        for (;;) {
            int found = 0;
            MPI_Message message = MPI_MESSAGE_NULL;
            MPI_Status status;
            check_mpi(MPI_Improbe(MPI_ANY_SOURCE, tag, comm_, &found, &message, &status), "MPI_Improbe");
            if (found == 0) { return; }
            int bytes = 0;
            check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
            scratch_.resize(std::max(scratch_.size(), static_cast<std::size_t>(bytes)));
            check_mpi(MPI_Mrecv(scratch_.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
        }
    }

    MPI_Comm comm_;
    std::vector<MPI_Request> sends_;
    std::vector<MPI_Request> receives_;
    std::vector<std::byte> scratch_;
};

} // namespace lockstep::detail
