#pragma once

#include "lockstep/core/version.hpp"
#include "lockstep/train/reporter.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>

#include <sys/ioctl.h>

namespace lockstep {

/// Whether `stream` is a terminal that somebody looks at. One of no columns is nobody's: Open MPI's launcher gives its processes
/// such ones, and what they write may go to a file.
[[nodiscard]] inline bool has_window(std::FILE* stream) {
    winsize window{};
    return ::ioctl(::fileno(stream), TIOCGWINSZ, &window) == 0 && window.ws_col > 0; // fails on what is no terminal
}

/// What a terminal needs so that the next line takes the place of a progress line, whoever drew it.
inline constexpr char const* clear_progress_line = "\r\x1b[K";

struct ConsoleReporterOptions {
    std::FILE* stream = stdout;
    std::size_t log_every = 0; ///< also print "loss: … [current/size]" every so many batches, beginning with the first; 0: never
};

/// Prints a training. On a terminal with a window: one line that moves while an epoch runs (bar, samples/s, time left in the
/// epoch, running loss), then its summary line. Elsewhere: the summary lines alone.
class ConsoleReporter : public ReporterBase {
public:
    ConsoleReporter() : ConsoleReporter(ConsoleReporterOptions{}) {}
    explicit ConsoleReporter(ConsoleReporterOptions options) : options_{options}, terminal_{has_window(options.stream)} {}

    ConsoleReporter(ConsoleReporter const&) = default;
    ConsoleReporter& operator=(ConsoleReporter const&) = default;
    /// A training that fails within an epoch leaves its progress line: what is printed next begins on a new one.
    ~ConsoleReporter() {
        if (line_is_open_) {
            std::fputc('\n', options_.stream);
            std::fflush(options_.stream);
        }
    }

    void on_start(RunInfo const& run) {
        run_ = run;
        std::fprintf(options_.stream, "Lockstep %s: %zu parameters (%s), %d %s%s%s, engine %s: %s\n", version, run.parameters,
                     run.scalar.c_str(), run.workers, run.workers == 1 ? "worker" : "workers",
                     run.backend.empty() ? "" : ", backend ", run.backend.c_str(), run.engine.c_str(),
                     run.engine_description.c_str());
        print_shards();
        std::fflush(options_.stream);
        begin_epoch();
    }

    void on_step(StepInfo const& step) {
        if (options_.log_every != 0 && (step.step - 1) % options_.log_every == 0) {
            clear_line();
            std::fprintf(options_.stream, "loss: %7f  [%5zu/%5zu]\n", step.loss, (step.step - 1) * run_.batch_size,
                         run_.samples_per_epoch);
        }
        if (!terminal_) { return; }
        auto const now = Clock::now();
        if (now - drawn_ < std::chrono::milliseconds{100} && step.step != run_.steps_per_epoch) { return; }
        drawn_ = now;
        draw(step, std::chrono::duration<double>(now - epoch_start_).count());
    }

    void on_epoch(EpochMetrics const& epoch) {
        clear_line();
        auto const width = static_cast<int>(std::to_string(run_.epochs).size());
        std::fprintf(options_.stream, "epoch %*d/%d  train loss %.4f", width, epoch.epoch, run_.epochs, epoch.train_loss);
        if (epoch.validation_loss) { std::fprintf(options_.stream, "  validation loss %.4f", *epoch.validation_loss); }
        if (epoch.accuracy) { std::fprintf(options_.stream, "  accuracy %.2f %%", 100 * *epoch.accuracy); }
        std::fprintf(options_.stream, "  %.0f samples/s  %.2f s\n", epoch.samples_per_second, epoch.seconds);
        std::fflush(options_.stream);
        begin_epoch();
    }

private:
    using Clock = std::chrono::steady_clock;

    /// Where the usual shards are too few for all workers: what has become of them.
    void print_shards() const {
        if (!run_.idle_workers.empty()) {
            constexpr std::size_t most = 16;
            std::size_t const idle = run_.idle_workers.size();
            std::string ranks;
            for (std::size_t i = 0; i < std::min(most, idle); ++i) {
                ranks += (i == 0 ? "" : ", ") + std::to_string(run_.idle_workers[i]);
            }
            if (idle > most) { ranks += " and " + std::to_string(idle - most) + " more"; }
            std::fprintf(options_.stream, "%s %s no rows in a batch of %zu with shards of %zu %s\n",
                         idle == 1 ? "worker" : "workers", (ranks + (idle == 1 ? " has" : " have")).c_str(),
                         std::min(run_.batch_size, run_.samples_per_epoch), run_.shard_rows,
                         run_.shard_rows == 1 ? "row" : "rows");
        } else if (run_.shard_rows_halved) {
            std::fprintf(options_.stream, "shards of %zu %s, so that all %d workers have work\n", run_.shard_rows,
                         run_.shard_rows == 1 ? "row" : "rows", run_.workers);
        }
    }

    void begin_epoch() { epoch_start_ = Clock::now(); }

    void clear_line() {
        if (terminal_) { std::fputs(clear_progress_line, options_.stream); }
        line_is_open_ = false;
    }

    /// Cut below 80 columns, so that the carriage return finds the line's beginning.
    void draw(StepInfo const& step, double seconds) {
        constexpr std::size_t bar_width = 10;
        double const done =
            static_cast<double>(step.samples) / static_cast<double>(std::max<std::size_t>(run_.samples_per_epoch, 1));
        auto const filled = std::min(bar_width, static_cast<std::size_t>(done * bar_width));
        std::string const bar = std::string(filled, '=') + std::string(bar_width - filled, ' ');
        auto const left = static_cast<long>(done > 0 ? seconds * (1 - done) / done + 0.5 : 0);
        double const rate = seconds > 0 ? static_cast<double>(step.samples) / seconds : 0;
        std::array<char, 80> line{};
        auto const length =
            std::snprintf(line.data(), line.size(), "epoch %d/%d [%s] %3.0f %%  %.0f samples/s  %ld:%02ld left  loss %.4f",
                          step.epoch, run_.epochs, bar.c_str(), 100 * done, rate, left / 60, left % 60, step.running_loss);
        if (length < 0) { return; }
        clear_line();
        std::fputs(line.data(), options_.stream);
        std::fflush(options_.stream);
        line_is_open_ = true;
    }

    ConsoleReporterOptions options_;
    bool terminal_;
    bool line_is_open_ = false;
    RunInfo run_{};
    Clock::time_point epoch_start_{};
    Clock::time_point drawn_{};
};

static_assert(Reporter<ConsoleReporter>);

} // namespace lockstep
