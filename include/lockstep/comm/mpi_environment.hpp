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

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

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
    /// Throws Error when MPI has been finalised, and on a thread that may not call it. When MPI_Init, called by the first use,
    /// does not return within the timeout, the program ends.
    static MpiEnvironment& get(double timeout_seconds) {
        static MpiEnvironment environment{timeout_seconds};
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
    explicit MpiEnvironment(double timeout_seconds) {
        if (flag(MPI_Initialized)) { return; }
        {
            MpiCallGuard const guard{MpiCallGuard::At::start, launcher_number("RANK"), std::max(1, launcher_number("SIZE")),
                                     timeout_seconds};
            int provided = 0;
            check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
        }
        owns_ = true;
        check_launcher();
        // Now, while all are here: at the end some may still be in operations on MPI_COMM_WORLD.
        check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &ending_), "MPI_Comm_dup");
    }

    /// What the launcher of Open MPI or MPICH says of this process before MPI does; 0 without one.
    [[nodiscard]] static int launcher_number(std::string const& what) {
        for (auto const* const prefix : {"OMPI_COMM_WORLD_", "PMI_"}) {
            char const* const value = std::getenv((prefix + what).c_str());
            if (value != nullptr) { return std::atoi(value); }
        }
        return 0;
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
        MpiCallGuard const guard{MpiCallGuard::At::end, rank, size, 10};
        MPI_Finalize();
    }

    /// Returns when all processes have come to their end, as MPI_Finalize would.
    void wait_for_all() const {
        MPI_Request request = MPI_REQUEST_NULL;
        int done = MPI_Ibarrier(ending_, &request) == MPI_SUCCESS ? 0 : 1;
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
    MPI_Comm ending_ = MPI_COMM_NULL; // of all processes, for `wait_for_all`
    bool broken_ = false;
    bool tells_the_user_ = false;
};

/// While it lives this thread runs a launch. Throws Error when another thread does and MPI cannot be used by two.
class MpiLaunchScope {
public:
    explicit MpiLaunchScope(MpiEnvironment const&) {
        int provided = 0;
        check_mpi(MPI_Query_thread(&provided), "MPI_Query_thread");
        std::lock_guard const lock{mutex()};
        auto const self = std::this_thread::get_id();
        for (auto const thread : running()) {
            if (thread != self && provided < MPI_THREAD_MULTIPLE) {
                throw Error("another thread of this process is in a launch with MPI, and MPI was not initialised with "
                            "MPI_THREAD_MULTIPLE: launch one after the other");
            }
        }
        running().push_back(self);
    }
    MpiLaunchScope(MpiLaunchScope const&) = delete;
    MpiLaunchScope& operator=(MpiLaunchScope const&) = delete;
    ~MpiLaunchScope() {
        std::lock_guard const lock{mutex()};
        running().erase(std::find(running().begin(), running().end(), std::this_thread::get_id()));
    }

private:
    static std::mutex& mutex() {
        static std::mutex only;
        return only;
    }
    static std::vector<std::thread::id>& running() { // several times the same for nested launches
        static std::vector<std::thread::id> threads;
        return threads;
    }
};

/// This worker's own duplicate of a communicator, collective. Throws WorkerError when the others do not come within the timeout.
class MpiDuplicate {
public:
    MpiDuplicate(MPI_Comm parent, double timeout_seconds) {
        MPI_Request request = MPI_REQUEST_NULL;
        check_mpi(MPI_Comm_idup(parent, &comm_, &request), "MPI_Comm_idup");
        auto const deadline = deadline_after(timeout_seconds);
        for (int done = 0; done == 0; std::this_thread::yield()) {
            check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
            if (done == 0 && SteadyClock::now() > deadline) {
                int rank = 0;
                int size = 1;
                MPI_Comm_rank(parent, &rank);
                MPI_Comm_size(parent, &size);
                std::this_thread::sleep_for(std::chrono::duration<double>{turn_seconds(rank)});
                MpiEnvironment::get(timeout_seconds).mark_broken(true);
                throw WorkerError(rank, size,
                                  concat("waits in launch; not all processes have called it within ", timeout_seconds, " s"));
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
