#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/comm/launch.hpp"
#include "lockstep/comm/mpi_exit.hpp"
#include "lockstep/core/error.hpp"

// The C interface only: the C++ bindings were removed from MPI long ago, and would have to be linked.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>

namespace lockstep::detail {

/// Throws Error with MPI's own text unless `code` is MPI_SUCCESS.
inline void check_mpi(int code, char const* function) {
    if (code == MPI_SUCCESS) { return; }
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw Error(concat(function, " failed: ", std::string(text, static_cast<std::size_t>(length))));
}

template <Communicable T>
[[nodiscard]] MPI_Datatype mpi_type() noexcept {
    if constexpr (std::same_as<T, float>) {
        return MPI_FLOAT;
    } else if constexpr (std::same_as<T, double>) {
        return MPI_DOUBLE;
    } else if constexpr (std::same_as<T, std::int64_t>) {
        return MPI_INT64_T;
    } else {
        return MPI_UINT64_T;
    }
}

/// MPI can be initialised and finalised once in a process. Whoever comes first initialises it, and finalises it at the end: the
/// host program, or the first launch.
class MpiEnvironment {
public:
    /// Throws Error when MPI has been finalised, and on a thread that may not call it.
    static MpiEnvironment& get() {
        static MpiEnvironment environment;
        [[maybe_unused]] static bool const noted = Farewell::note_exit_code(); // later, so that it comes before the destructor
        environment.check_usable();
        return environment;
    }

    /// From now on MPI_Finalize ends the job instead of waiting for workers that will not come. The worker that tells the user
    /// why does so at once, the others leave it the time to do so.
    void mark_broken(bool tells_the_user) noexcept {
        if (broken_) { return; }
        broken_ = true;
        tells_the_user_ = tells_the_user;
        int key = MPI_KEYVAL_INVALID;
        // MPI_Finalize begins with the attributes of MPI_COMM_SELF (MPI 4.0, section 11.2.4).
        if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_job, &key, nullptr) == MPI_SUCCESS) {
            MPI_Comm_set_attr(MPI_COMM_SELF, key, this);
        }
    }

    MpiEnvironment(MpiEnvironment const&) = delete;
    MpiEnvironment& operator=(MpiEnvironment const&) = delete;

private:
    MpiEnvironment() {
        if (flag(MPI_Initialized)) { return; }
        int provided = 0;
        check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
        owns_ = true;
        check_launcher();
    }

    ~MpiEnvironment() {
        WorkerScope::check_exit(); // MPI_Finalize would wait for the others
        if (!owns_ || flag(MPI_Finalized)) { return; }
        if (broken_) {
            MPI_Finalize(); // ends the job
            return;
        }
        // A process may work on alone for long after its last launch: others wait for it here. MPI_Finalize is left with nothing
        // to wait for, and yet MPICH 4.0 sometimes does not return from it on several hosts (pmodels/mpich#6596).
        wait_for_all();
        int rank = 0;
        int size = 1;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        MpiFinalizeGuard const guard{rank, size};
        MPI_Finalize();
    }

    /// Returns when all processes have come to their end, as MPI_Finalize would.
    static void wait_for_all() {
        MPI_Request request = MPI_REQUEST_NULL;
        int done = MPI_Ibarrier(MPI_COMM_WORLD, &request) == MPI_SUCCESS ? 0 : 1;
        auto const spinning = deadline_after(0.1);
        while (done == 0 && MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS) {
            std::this_thread::sleep_for(std::chrono::microseconds{SteadyClock::now() < spinning ? 0 : 1000});
        }
    }

    template <class Query>
    [[nodiscard]] static bool flag(Query query) {
        int value = 0;
        query(&value);
        return value != 0;
    }

    static void check_usable() {
        if (flag(MPI_Finalized)) { throw Error("MPI has already been finalised in this process"); }
        int provided = 0;
        check_mpi(MPI_Query_thread(&provided), "MPI_Query_thread");
        if (provided < MPI_THREAD_SERIALIZED && !flag(MPI_Is_thread_main)) {
            throw Error(concat("MPI was initialised with ",
                               provided == MPI_THREAD_FUNNELED ? "MPI_THREAD_FUNNELED" : "MPI_THREAD_SINGLE",
                               ": it can only be used on the thread that initialised it"));
        }
    }

    /// Started by the mpirun of another MPI, every process would believe itself to be alone.
    static void check_launcher() {
        int size = 0;
        check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
        for (auto const* const variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
            char const* const started = std::getenv(variable);
            if (size == 1 && started != nullptr && std::atoi(started) > 1) {
                char library[MPI_MAX_LIBRARY_VERSION_STRING];
                int length = 0;
                MPI_Get_library_version(library, &length);
                std::string const name(library, static_cast<std::size_t>(length));
                throw Error(concat("mpirun started ", started, " processes (", variable,
                                   "), but MPI knows of 1: it belongs to another MPI than the program's (",
                                   name.substr(0, name.find_first_of(",\n")), ")"));
            }
        }
    }

    static int end_job(MPI_Comm /*self*/, int /*key*/, void* attribute, void* /*unused*/) {
        auto const& environment = *static_cast<MpiEnvironment const*>(attribute);
        // Launchers pass on what a process has written a moment later, and not at all once the job has been aborted.
        std::this_thread::sleep_for(std::chrono::milliseconds{environment.tells_the_user_ ? 250 : 2000});
        return MPI_Abort(MPI_COMM_WORLD, 1);
    }

    bool owns_ = false;
    bool broken_ = false;
    bool tells_the_user_ = false;
};

/// This worker's own duplicate of a communicator, collective. Throws Error when the others do not come within the timeout.
class MpiDuplicate {
public:
    MpiDuplicate(MPI_Comm parent, double timeout_seconds) {
        MPI_Request request = MPI_REQUEST_NULL;
        check_mpi(MPI_Comm_idup(parent, &comm_, &request), "MPI_Comm_idup");
        auto const deadline = deadline_after(timeout_seconds);
        for (int done = 0; done == 0; std::this_thread::yield()) {
            check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
            if (done == 0 && SteadyClock::now() > deadline) {
                MpiEnvironment::get().mark_broken(true);
                throw Error(concat("not all processes called launch within ", timeout_seconds, " s"));
            }
        }
        check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
        check_mpi(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
    }
    MpiDuplicate(MpiDuplicate const&) = delete;
    MpiDuplicate& operator=(MpiDuplicate const&) = delete;

    void free() { MPI_Comm_free(&comm_); }
    [[nodiscard]] MPI_Comm get() const noexcept { return comm_; }
    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int size() const noexcept { return size_; }

private:
    MPI_Comm comm_ = MPI_COMM_NULL;
    int rank_ = 0;
    int size_ = 1;
};

} // namespace lockstep::detail
