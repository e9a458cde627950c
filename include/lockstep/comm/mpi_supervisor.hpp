#pragma once

#include "lockstep/comm/launch.hpp"
#include "lockstep/comm/mpi_environment.hpp"
#include "lockstep/comm/mpi_exit.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <poll.h>
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

/// In the program: from now on it tells its supervisor how it ends.
inline void say_farewell(Farewell& farewell) {
    Farewell::own() = &farewell;
    std::atexit([] { // first in main: so it comes last, when MPI has been finalised
        int initialized = 0;
        int finalized = 0;
        MPI_Initialized(&initialized);
        MPI_Finalized(&finalized);
        Farewell::own()->exits = true;
        Farewell::own()->owes_nothing = initialized == 0 || finalized != 0;
    });
    static std::terminate_handler const next = std::get_terminate();
    std::set_terminate([] {
        try {
            if (auto const error = std::current_exception()) { std::rethrow_exception(error); }
        } catch (WorkerError const&) { Farewell::own()->told = true; } catch (...) {
        }
        next();
    });
}

/// In the supervisor of a program that could not finalise MPI: tells MPICH's launcher in its place, by the protocol of PMI 1. It
/// would kill the others, which are in the same plight and have exit codes of their own.
inline void leave_launcher() {
    char const* const variable = std::getenv("PMI_FD");
    if (variable == nullptr) { return; }
    int const connection = std::atoi(variable);
    // A launcher that answers somebody who has left ends the job: first all programs end, which by now have all seen their limit.
    std::this_thread::sleep_for(std::chrono::seconds{2});
    constexpr std::string_view finalize = "cmd=finalize\n";
    if (::write(connection, finalize.data(), finalize.size()) < 0) { return; }
    auto const deadline = deadline_after(1);
    std::array<char, 256> part{};
    std::string answers; // to what the program has asked before, too
    pollfd arrived{connection, POLLIN, 0};
    while (answers.find("finalize_ack") == std::string::npos && SteadyClock::now() < deadline) {
        if (::poll(&arrived, 1, 100) <= 0) { continue; }
        auto const length = ::read(connection, part.data(), part.size());
        if (length <= 0) { return; }
        answers.append(part.data(), static_cast<std::size_t>(length));
    }
}

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

    [[nodiscard]] Ended describe(int rank, int size, Farewell const& farewell) const {
        auto const error = [&](std::string const& text) { return std::string{WorkerError(rank, size, text).what()}; };
        if (WIFSIGNALED(status)) {
            if (farewell.stuck) {
                leave_launcher();
                return {error(farewell.stuck_text.data()), farewell.exit_code};
            }
            int const signal = WTERMSIG(status);
            bool const known = sigismember(&passed_on, signal) == 1 || (signal == SIGABRT && farewell.told);
            return {known ? "" : error(concat("killed by signal ", signal, " (", strsignal(signal), ")")), 128 + signal};
        }
        int const code = WEXITSTATUS(status);
        if (code == 0 && !farewell.owes_nothing) { return {error("ended without finalising MPI"), 1}; }
        if (code != 0 && !farewell.exits) {
            return {error(concat("ended with exit code ", code, ", by _Exit or the like")), code};
        }
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
    void* const shared = ::mmap(nullptr, sizeof(detail::Farewell), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) { return std::nullopt; }
    auto& farewell = *new (shared) detail::Farewell;

    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before); // none is lost from here to sigwait
    std::signal(SIGCHLD, SIG_DFL);           // ignored, it would take the status with it
    pid_t const supervisor = ::getpid();
    pid_t const program = ::fork();
    if (program > 0) { return detail::Watch{program, all}.describe(std::atoi(rank), std::atoi(size), farewell); }
    if (program == 0) {
#ifdef __linux__
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
        if (::getppid() != supervisor) { std::raise(SIGKILL); } // it was gone before
        detail::say_farewell(farewell);
    }
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return std::nullopt;
}

} // namespace lockstep
