#include "lockstep/train/console_reporter.hpp"

#include "unit/train/training.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace {

using namespace lockstep;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// A stream that is no terminal.
class Piped {
public:
    [[nodiscard]] std::FILE* stream() const { return file_.get(); }
    [[nodiscard]] std::string text() const {
        std::fflush(file_.get());
        std::rewind(file_.get());
        std::string all;
        for (int c = std::fgetc(file_.get()); c != EOF; c = std::fgetc(file_.get())) { all.push_back(static_cast<char>(c)); }
        return all;
    }

private:
    File file_{std::tmpfile(), &std::fclose};
};

/// A stream that is one.
class Terminal {
public:
    explicit Terminal(unsigned short columns = 80) {
        int controller = -1;
        int terminal = -1;
        winsize window{};
        window.ws_col = columns;
        if (::openpty(&controller, &terminal, nullptr, nullptr, &window) == 0) {
            termios settings{};
            ::tcgetattr(terminal, &settings);
            ::cfmakeraw(&settings); // no \r before \n
            ::tcsetattr(terminal, TCSANOW, &settings);
            ::fcntl(controller, F_SETFL, O_NONBLOCK);
            controller_.reset(::fdopen(controller, "r"));
            stream_.reset(::fdopen(terminal, "w"));
        }
    }
    [[nodiscard]] bool works() const { return stream_ != nullptr; }
    [[nodiscard]] std::FILE* stream() const { return stream_.get(); }
    /// What has been written since the last call.
    [[nodiscard]] std::string text() const {
        std::fflush(stream_.get());
        std::string all;
        std::array<char, 4096> part{};
        for (ssize_t count = 1; count > 0;) {
            count = ::read(::fileno(controller_.get()), part.data(), part.size());
            if (count > 0) { all.append(part.data(), static_cast<std::size_t>(count)); }
        }
        return all;
    }

private:
    File controller_{nullptr, &std::fclose};
    File stream_{nullptr, &std::fclose};
};

RunInfo run_info() {
    RunInfo run{.network = "Linear<784, 10>"};
    run.parameters = 7850;
    run.scalar = "float";
    run.backend = "threads";
    run.workers = 2;
    run.engine = "cpu";
    run.engine_description = "some BLAS";
    run.epochs = 50;
    run.batch_size = 64;
    run.steps_per_epoch = 938;
    run.samples_per_epoch = 60'000;
    return run;
}

EpochMetrics epoch_metrics(int epoch) {
    return {.epoch = epoch,
            .train_loss = 0.51234,
            .validation_loss = 0.6,
            .accuracy = 0.8125,
            .samples_per_second = 12345.6,
            .seconds = 4.567};
}

std::vector<std::string> lines_of(std::string const& text) {
    std::vector<std::string> lines;
    std::istringstream stream{text};
    for (std::string line; std::getline(stream, line);) { lines.push_back(line); }
    return lines;
}

std::string const head = std::string{"Lockstep "} + version;

TEST(ConsoleReporter, PipedItPrintsPlainLines) {
    Piped const out;
    ConsoleReporter reporter{{.stream = out.stream()}};
    reporter.on_start(run_info());
    reporter.on_step({.epoch = 1, .step = 1, .samples = 64, .loss = 2.3, .running_loss = 2.3});
    reporter.on_step({.epoch = 1, .step = 938, .samples = 60'000, .loss = 0.5, .running_loss = 0.6});
    reporter.on_epoch(epoch_metrics(1));
    reporter.on_epoch(epoch_metrics(50));
    EXPECT_EQ(out.text(),
              head + ": 7850 parameters (float), 2 workers, backend threads, engine cpu: some BLAS\n"
                     "epoch  1/50  train loss 0.5123  validation loss 0.6000  accuracy 81.25 %  12346 samples/s  4.57 s\n"
                     "epoch 50/50  train loss 0.5123  validation loss 0.6000  accuracy 81.25 %  12346 samples/s  4.57 s\n");
}

TEST(ConsoleReporter, SaysWhatBecameOfTheShardsWhereTheyWereTooFew) {
    auto const second_line = [](RunInfo const& run) {
        Piped const out;
        ConsoleReporter{{.stream = out.stream()}}.on_start(run);
        auto const lines = lines_of(out.text());
        return lines.size() == 2 ? lines[1] : "";
    };
    auto run = run_info();
    run.shard_rows = 16;
    EXPECT_EQ(second_line(run), "");
    run.workers = 5;
    run.shard_rows = 8;
    EXPECT_EQ(second_line(run), "") << "a choice of the user's that leaves nobody idle";
    run.shard_rows_halved = true;
    EXPECT_EQ(second_line(run), "shards of 8 rows, so that all 5 workers have work");
    run.shard_rows = 1;
    EXPECT_EQ(second_line(run), "shards of 1 row, so that all 5 workers have work");
    run.batch_size = 3;
    run.idle_workers = {0, 2};
    EXPECT_EQ(second_line(run), "workers 0, 2 have no rows in a batch of 3 with shards of 1 row");
    run.batch_size = 64;
    run.shard_rows = 32;
    run.shard_rows_halved = false;
    run.idle_workers = {1};
    EXPECT_EQ(second_line(run), "worker 1 has no rows in a batch of 64 with shards of 32 rows");
    run.idle_workers.clear();
    for (int rank = 0; rank < 100; ++rank) { run.idle_workers.push_back(rank); }
    EXPECT_EQ(second_line(run),
              "workers 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and 84 more have no rows in a batch of "
              "64 with shards of 32 rows");
}

TEST(ConsoleReporter, LeavesOutWhatThereIsNot) {
    Piped const out;
    ConsoleReporter reporter{{.stream = out.stream()}};
    auto run = run_info();
    run.workers = 1;
    run.backend = "";
    run.epochs = 3;
    reporter.on_start(run);
    auto metrics = epoch_metrics(2);
    metrics.accuracy.reset();
    reporter.on_epoch(metrics);
    metrics.validation_loss.reset();
    metrics.train_loss = NAN;
    reporter.on_epoch(metrics);
    EXPECT_EQ(out.text(), head + ": 7850 parameters (float), 1 worker, engine cpu: some BLAS\n"
                                 "epoch 2/3  train loss 0.5123  validation loss 0.6000  12346 samples/s  4.57 s\n"
                                 "epoch 2/3  train loss nan  12346 samples/s  4.57 s\n");
}

// The lines of the PyTorch tutorial's loop: batch 0, 100, 200, …
TEST(ConsoleReporter, LogsEverySoManyBatches) {
    Piped const out;
    ConsoleReporter reporter{{.stream = out.stream(), .log_every = 100}};
    reporter.on_start(run_info());
    for (std::size_t step = 1; step <= 250; ++step) {
        reporter.on_step(
            {.epoch = 1, .step = step, .samples = 64 * step, .loss = 2.5 / static_cast<double>(step), .running_loss = 1});
    }
    auto const lines = lines_of(out.text());
    ASSERT_EQ(lines.size(), 4U);
    EXPECT_EQ(lines[1], "loss: 2.500000  [    0/60000]");
    EXPECT_EQ(lines[2], "loss: 0.024752  [ 6400/60000]");
    EXPECT_EQ(lines[3], "loss: 0.012438  [12800/60000]");
}

/// What a terminal shows: each piece between clear-line sequences.
std::vector<std::string> drawings(std::string const& text) {
    std::string const clear = "\r\x1b[K";
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at != std::string::npos;) {
        auto const next = text.find(clear, at);
        pieces.push_back(text.substr(at, next == std::string::npos ? next : next - at));
        at = next == std::string::npos ? next : next + clear.size();
    }
    return pieces;
}

TEST(ConsoleReporter, OnATerminalALineMoves) {
    Terminal const out;
    if (!out.works()) { GTEST_SKIP() << "no pseudo-terminal here"; }
    ConsoleReporter reporter{{.stream = out.stream()}};
    reporter.on_start(run_info());
    EXPECT_EQ(lines_of(out.text()).size(), 1U);
    reporter.on_step({.epoch = 3, .step = 469, .samples = 30'000, .loss = 0.7, .running_loss = 0.625});
    reporter.on_step({.epoch = 3, .step = 470, .samples = 30'080, .loss = 0.7, .running_loss = 0.625}); // too soon to draw
    auto const drawn = drawings(out.text());
    ASSERT_EQ(drawn.size(), 2U);
    EXPECT_EQ(drawn[0], "");
    EXPECT_EQ(drawn[1].substr(0, 11), "epoch 3/50 ");
    EXPECT_NE(drawn[1].find("[=====     ]  50 %  "), std::string::npos) << drawn[1];
    EXPECT_NE(drawn[1].find(" samples/s  0:00 left  loss 0.6250"), std::string::npos) << drawn[1];
    EXPECT_EQ(drawn[1].find('\n'), std::string::npos);

    // The last step is always drawn; the summary takes the line's place.
    reporter.on_step({.epoch = 3, .step = 938, .samples = 60'000, .loss = 0.7, .running_loss = 0.5});
    reporter.on_epoch(epoch_metrics(3));
    auto const last = drawings(out.text());
    ASSERT_EQ(last.size(), 3U);
    EXPECT_NE(last[1].find("[==========] 100 %"), std::string::npos) << last[1];
    EXPECT_EQ(last[2], "epoch  3/50  train loss 0.5123  validation loss 0.6000  accuracy 81.25 %  12346 samples/s  4.57 s\n");
}

// As the processes of an MPI job have it, whose output may go to a file.
TEST(ConsoleReporter, OnATerminalWithoutColumnsNothingMoves) {
    Terminal const out{0};
    if (!out.works()) { GTEST_SKIP() << "no pseudo-terminal here"; }
    ASSERT_EQ(::isatty(::fileno(out.stream())), 1);
    ConsoleReporter reporter{{.stream = out.stream(), .log_every = 100}};
    reporter.on_start(run_info());
    static_cast<void>(out.text());
    reporter.on_step({.epoch = 3, .step = 1, .samples = 64, .loss = 2.5, .running_loss = 2.5});
    reporter.on_step({.epoch = 3, .step = 938, .samples = 60'000, .loss = 0.7, .running_loss = 0.5});
    reporter.on_epoch(epoch_metrics(3));
    EXPECT_EQ(out.text(), "loss: 2.500000  [    0/60000]\n"
                          "epoch  3/50  train loss 0.5123  validation loss 0.6000  accuracy 81.25 %  12346 samples/s  4.57 s\n");
}

TEST(ConsoleReporter, OnATerminalLoggedLinesReplaceTheMovingOne) {
    Terminal const out;
    if (!out.works()) { GTEST_SKIP() << "no pseudo-terminal here"; }
    ConsoleReporter reporter{{.stream = out.stream(), .log_every = 100}};
    reporter.on_start(run_info());
    static_cast<void>(out.text());
    reporter.on_step({.epoch = 1, .step = 1, .samples = 64, .loss = 2.5, .running_loss = 2.5});
    auto const drawn = drawings(out.text());
    ASSERT_EQ(drawn.size(), 3U);
    EXPECT_EQ(drawn[1], "loss: 2.500000  [    0/60000]\n");
    EXPECT_EQ(drawn[2].substr(0, 6), "epoch ");
}

TEST(ConsoleReporter, TheMovingLineStaysBelow80Columns) {
    Terminal const out;
    if (!out.works()) { GTEST_SKIP() << "no pseudo-terminal here"; }
    for (double const loss : {0.5, 1e30, -1e300, static_cast<double>(NAN)}) {
        for (std::size_t const size : {std::size_t{1}, std::size_t{60'000}, std::size_t{1} << 60U}) {
            for (int const epochs : {1, 50, 2'000'000'000}) {
                ConsoleReporter reporter{{.stream = out.stream()}};
                auto run = run_info();
                run.epochs = epochs;
                run.samples_per_epoch = size;
                reporter.on_start(run);
                static_cast<void>(out.text());
                reporter.on_step({.epoch = epochs, .step = 1, .samples = 1 + size / 3, .loss = loss, .running_loss = loss});
                for (auto const& drawn : drawings(out.text())) { EXPECT_LT(drawn.size(), 80U) << drawn; }
            }
        }
    }
}

TEST(ConsoleReporter, OnlyRankZeroPrints) {
    Piped const out;
    launch<ThreadCommunicator>({.num_workers = 3}, [&](auto& comm) {
        DataLoader train{training::train_data(), comm, {.batch_size = 17}};
        DataLoader test{training::test_data(), comm};
        Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, SGD{}, comm,
                        ConsoleReporter{{.stream = out.stream(), .log_every = 10}}};
        trainer.fit(train, test, {.epochs = 2});
    });
    auto const lines = lines_of(out.text());
    ASSERT_EQ(lines.size(), 8U); // the head, the shards, and for each epoch 2 logged losses and a summary
    EXPECT_EQ(lines[0].substr(0, head.size()), head);
    EXPECT_EQ(lines[1], "shards of 8 rows, so that all 3 workers have work");
    EXPECT_EQ(lines[2].substr(0, 6), "loss: ");
    EXPECT_NE(lines[3].find("[  170/  203]"), std::string::npos) << lines[3];
    EXPECT_EQ(lines[4].substr(0, 10), "epoch 1/2 ");
    EXPECT_EQ(lines[7].substr(0, 10), "epoch 2/2 ");
}

} // namespace
