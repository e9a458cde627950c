#pragma once

#include "lockstep/comm/launch.hpp"
#include "lockstep/comm/mpi_environment.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <string>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace lockstep {

/// How a supervised program has ended: what its supervisor should tell the user, and return from main.
struct Ended {
    std::string error; ///< "rank 1 of 4: killed by signal 9 (Killed)"; empty where the program has had its own say
    int exit_code = 0;
};

namespace detail {

/// What the program tells its supervisor, in memory that both see: it has left main, or called std::exit, and owes MPI nothing.
class Farewell {
public:
    /// Makes the calling process the one that says it. The supervisor, a copy of it, only looks.
    static void say_at_exit(std::atomic<bool>& said) {
        place() = &said;
        std::atexit(say); // first in main: so it comes last, when MPI has been finalised
    }

private:
    static std::atomic<bool>*& place() noexcept {
        static std::atomic<bool>* said = nullptr;
        return said;
    }
    static void say() noexcept {
        int initialized = 0;
        int finalized = 0;
        MPI_Initialized(&initialized);
        MPI_Finalized(&finalized);
        if (initialized == 0 || finalized != 0) { place()->store(true); }
    }
};

/// In the supervisor: passes signals on until the program has ended, and returns its status and the signals.
struct Watch {
    int status = 0;
    sigset_t passed_on{};

    Watch(pid_t program, sigset_t const& signals) {
        sigemptyset(&passed_on);
        for (;;) {
            int signal = 0;
            if (sigwait(&signals, &signal) != 0) { continue; }
            if (signal != SIGCHLD) {
                sigaddset(&passed_on, signal);
                ::kill(program, signal);
            } else if (::waitpid(program, &status, WNOHANG) == program) { // and not only stopped
                return;
            }
        }
    }

    [[nodiscard]] Ended describe(int rank, int size, bool farewell) const {
        auto const error = [&](std::string const& text) { return std::string{WorkerError(rank, size, text).what()}; };
        if (WIFSIGNALED(status)) {
            int const signal = WTERMSIG(status);
            bool const wanted = sigismember(&passed_on, signal) == 1;
            return {wanted ? "" : error(concat("killed by signal ", signal, " (", strsignal(signal), ")")), 128 + signal};
        }
        int const code = WEXITSTATUS(status);
        if (code == 0 && !farewell) { return {error("ended without finalising MPI"), 1}; }
        return {"", code};
    }
};

} // namespace detail

/// Call it first in main, before anything else has a thread or writes. Nothing tells the user which rank of a job was killed when
/// MPICH's mpiexec started it, and a rank that just ends lets the job end with exit code 0. There, the program goes on in a child
/// process, and its parent sees how it ends:
///
///     if (auto const ended = supervise()) {
///         if (!ended->error.empty()) { std::fprintf(stderr, "error: %s\n", ended->error.c_str()); }
///         return ended->exit_code;
///     }
///
/// Returns nothing in the program, and everything else goes on as without it: standard streams, signals, and that nothing is left
/// when the launcher is killed. Does nothing where another launcher has started it (Open MPI's names the rank itself), or none,
/// or where there can be no further process.
[[nodiscard]] inline std::optional<Ended> supervise() {
    char const* const rank = std::getenv("PMI_RANK");
    char const* const size = std::getenv("PMI_SIZE");
    bool const mpich = rank != nullptr && size != nullptr && std::getenv("PMI_FD") != nullptr;
    if (!mpich || std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) { return std::nullopt; }
    using Flag = std::atomic<bool>;
    void* const shared = ::mmap(nullptr, sizeof(Flag), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) { return std::nullopt; }
    auto& farewell = *new (shared) Flag{false};

    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before); // none is lost from here to sigwait
    std::signal(SIGCHLD, SIG_DFL);           // ignored, it would take the status with it
    pid_t const supervisor = ::getpid();
    pid_t const program = ::fork();
    if (program > 0) { return detail::Watch{program, all}.describe(std::atoi(rank), std::atoi(size), farewell.load()); }
    if (program == 0) {
#ifdef __linux__
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
        if (::getppid() != supervisor) { std::raise(SIGKILL); } // it was gone before
        detail::Farewell::say_at_exit(farewell);
    }
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return std::nullopt;
}

} // namespace lockstep
