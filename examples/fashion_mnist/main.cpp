// The reference job: Fashion-MNIST, trained data-parallel. `fashion_mnist --help` lists the flags.
#include "options.hpp"
#include "preflight.hpp"
#include "run_file.hpp"
#include "training.hpp"
#include "workers.hpp"

#include <lockstep/lockstep.hpp>
#ifdef FASHION_MNIST_WITH_MPI
#include <lockstep/comm/mpi_supervisor.hpp>
#endif

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

using namespace lockstep;

namespace {

/// What the training has not yet said.
void summarise(Result const& result, Options const& options) {
    auto const& last = result.history.back();
    std::printf("accuracy %.2f %%  validation loss %.4f  %.0f samples/s\n", 100 * last.accuracy.value(),
                last.validation_loss.value(), last.samples_per_second);
    if (!options.print_hash) { return; }
    for (std::size_t rank = 0; rank < result.parameter_hashes.size(); ++rank) {
        std::printf("rank %zu  0x%016" PRIx64 "\n", rank, result.parameter_hashes[rank]);
    }
}

void run(Options const& options, Process const& process) {
    bool const on_blas = options.engine == EngineName::cpu;
    if (on_blas) {
        CpuEngine::set_num_threads(options.threads_per_worker);
        if (auto const warning = blas::info().warning; process.speaks() && !warning.empty()) {
            std::fprintf(stderr, "warning: %s\n", warning.c_str());
        }
    }
    auto const result = on_blas ? train_on_cpu(options) : train_on_simd(options);
    if (!process.speaks()) { return; }
    summarise(result, options);
    std::fflush(stdout); // the file may be the same terminal or pipe
    if (!options.json.empty()) { write_run(options, on_blas ? "" : SimdEngine::description(), result); }
}

/// One line, whatever bytes the user's own words bring into it.
int fail(std::string text, int exit_code) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ') || c == 0x7F; }, ' ');
    std::fflush(stdout);
    // The worker that drew a progress line may be another one.
    std::fprintf(stderr, "%serror: %s\n", has_window(stderr) ? clear_progress_line : "", text.c_str());
    return exit_code;
}

/// What rank 0 says when all have the same to say.
int fail_once(Process const& process, std::string const& text, int exit_code) {
    return process.speaks() ? fail(text, exit_code) : exit_code;
}

/// MPICH's launcher lets the others go on when a process ends that has not yet initialised MPI; this it understands (PMI 1).
void end_job_of_mpich(int exit_code) {
    char const* const connection = std::getenv("PMI_FD");
    if (connection == nullptr || std::getenv("SLURM_STEP_ID") != nullptr) { return; } // Slurm's speaks PMI 2
    std::this_thread::sleep_for(std::chrono::milliseconds{250}); // it passes on nothing more once the job has been aborted
    std::string const abort = "cmd=abort exitcode=" + std::to_string(exit_code) + '\n';
    if (::write(std::atoi(connection), abort.data(), abort.size()) > 0) { std::this_thread::sleep_for(std::chrono::seconds{1}); }
}

/// A launcher can give each process a command line of its own. Where rank 0's is wrong too, rank 0 says so and ends, and the
/// launcher ends the others before they speak (within two seconds, where measured).
int fail_by_usage(Process const& process, std::string const& text) {
    constexpr int exit_code = 2;
    if (process.speaks()) {
        fail(text, exit_code);
    } else {
        std::this_thread::sleep_for(std::chrono::seconds{4});
        fail("rank " + std::to_string(process.started->rank) + ": " + text, exit_code);
    }
    if (process.started) { end_job_of_mpich(exit_code); }
    return exit_code;
}

} // namespace

int main(int argc, char** argv) {
#ifdef FASHION_MNIST_WITH_MPI
    if (auto const ended = supervise()) { return ended->error.empty() ? ended->exit_code : fail(ended->error, ended->exit_code); }
#endif
    Process const process{started_by_launcher([](char const* name) -> char const* { return std::getenv(name); })};
    try {
        auto const options = parse_options(argc, argv);
        if (!options.help.empty()) {
            if (process.speaks()) { std::fputs(options.help.c_str(), stdout); }
        } else {
            start_workers(options, process, {argv + 1, argv + argc});
            options.preflight ? check_workers(options) : run(options, process);
        }
        if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) { throw Error("cannot write to the standard output"); }
        return 0;
    } catch (UsageError const& error) {
        return fail_by_usage(process, error.what() + std::string{" (--help lists the flags)"});
    } catch (PreflightError const& error) {
        if (process.speaks()) { std::printf("%s\n", error.what()); }
        return 1;
    } catch (WorkerError const& error) {
        return error.to_report ? fail(error.what(), 1) : 1; // it is some worker's error, and not always rank 0's to print
    } catch (std::exception const& error) { return fail_once(process, error.what(), 1); }
}
