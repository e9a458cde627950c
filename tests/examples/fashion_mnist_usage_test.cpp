// The command line of the big example: every flag, and every way to get one wrong.
#include "examples/program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>

#include <pty.h>
#include <unistd.h>

namespace {

#ifdef FASHION_MNIST_WITH_MPI
constexpr bool with_mpi = true;
#else
constexpr bool with_mpi = false;
#endif

Outcome fashion_mnist(Arguments const& arguments) { return run_program(FASHION_MNIST_PROGRAM, arguments); }

/// Exit code 2, nothing but one line, and in it all of `words`.
void expect_refused(Arguments const& arguments, Arguments const& words) {
    std::string line;
    for (auto const& argument : arguments) { line += "'" + argument + "' "; }
    SCOPED_TRACE(line);
    auto const run = fashion_mnist(arguments);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_TRUE(run.err.starts_with("error: ")) << run.err;
    EXPECT_TRUE(run.err.ends_with("\n")) << run.err;
    for (auto const& word : words) { EXPECT_NE(run.err.find(word), std::string::npos) << word << " is not in " << run.err; }
}

void expect_refused_values(std::string const& flag, Arguments const& values) {
    for (auto const& value : values) { expect_refused({flag, value}, {flag, "got \"" + value + "\""}); }
}

TEST(FashionMnistUsage, HelpListsEveryFlag) {
    for (auto const* const flag : {"--help", "-h"}) {
        auto const run = fashion_mnist({flag});
        EXPECT_EQ(run.exit_code, 0);
        EXPECT_EQ(run.err, "");
        for (auto const* const name :
             {"--backend", "-n,--num-workers", "--epochs", "--lr", "--momentum", "--batch-size", "--seed", "--data",
              "--smoke-test", "--threads-per-worker", "--print-hash", "--json", "--address", "--timeout", "--preflight",
              "--engine", "--shard-rows", "LOCKSTEP_SIMD", "-h,--help"}) {
            EXPECT_NE(run.out.find(name), std::string::npos) << name;
        }
    }
}

TEST(FashionMnistUsage, RefusesCounts) {
    Arguments const no_counts{"0",  "-1", "", "x", "3x", "2.5", "1e3", "0x10", " 3", "+3", "nan", "99999999999999999999",
                              "%%", "{}"};
    for (auto const* const flag : {"--num-workers", "--epochs", "--batch-size", "--shard-rows", "--threads-per-worker"}) {
        expect_refused_values(flag, no_counts);
    }
    expect_refused_values("--num-workers", {"257", "2147483648"}); // of threads
    expect_refused_values("--threads-per-worker", {"257"});
    expect_refused_values("--epochs", {"2147483648"});
    expect_refused_values("--batch-size", {"18446744073709551616"});
    expect_refused({"-n", "0"}, {"--num-workers", "\"0\""});
    expect_refused({"-n0"}, {"--num-workers", "\"0\""});
    expect_refused({"--batch-size=0"}, {"--batch-size", "\"0\""});
}

TEST(FashionMnistUsage, RefusesRates) {
    for (auto const* const flag : {"--lr", "--momentum"}) {
        expect_refused_values(flag, {"nan", "-nan", "inf", "-inf", "infinity", "1e999", "1e39", "abc", "-1", "-0.1", "", "0.1x",
                                     "0,1", "0.1 0.2", "0x1p3", "1e", "."});
    }
}

TEST(FashionMnistUsage, RefusesTimeouts) {
    for (auto const* const value : {"0", "-0.0", "-1", "nan", "inf", "1e9", "", "5s"}) {
        expect_refused({"--timeout", value},
                       {"--timeout must be a finite number above 0, up to 1e+06, got \"" + std::string{value} + "\""});
    }
}

TEST(FashionMnistUsage, RefusesSeeds) { expect_refused_values("--seed", {"-1", "18446744073709551616", "1.5", "x", ""}); }

TEST(FashionMnistUsage, RefusesBackends) {
    expect_refused_values("--backend", {"MPI", "Threads", "", "serial,threads"});
    expect_refused({"--backend", "nccl"}, {"serial, threads or mpi"});
    expect_refused_values("--engine", {"SIMD", "avx2", "", "cpu,simd"});
    expect_refused({"--engine", "blas"}, {"simd or cpu"});
    expect_refused({"--engine", "simd", "--threads-per-worker", "2"}, {"--threads-per-worker", "--engine cpu", "\"simd\""});
    expect_refused({"--backend", "serial", "-n", "2"}, {"--num-workers", "--backend serial", "\"2\""});
    expect_refused({"-n", "3", "--backend", "serial", "--smoke-test"}, {"--num-workers", "--backend serial", "\"3\""});
}

TEST(FashionMnistUsage, AddressAndPreflightAreOfMpi) {
    expect_refused({"--address", "a", "--backend", "threads"}, {"--address", "--backend mpi", "\"threads\""});
    expect_refused({"--preflight", "--backend", "serial"}, {"--preflight", "--backend mpi", "\"serial\""});
    expect_refused_values("--address", {"", "--print-hash"});
    for (Arguments const& arguments :
         {Arguments{"--backend", "mpi"}, Arguments{"--address", "a,b:x"}, Arguments{"--preflight"}}) {
        if (with_mpi && arguments[0] != "--address") { continue; } // they run, see fashion_mnist_mpi_test.cpp
        expect_refused(arguments, {with_mpi ? "\"x\"" : "LOCKSTEP_MPI=ON"});
    }
}

TEST(FashionMnistUsage, RefusesPaths) {
    expect_refused_values("--data", {"", "--print-hash"});
    expect_refused_values("--json", {"", "--print-hash"});
}

TEST(FashionMnistUsage, RefusesWhatIsNoFlag) {
    expect_refused({"--foo", "3"}, {"--foo 3"});
    expect_refused({"--epoch=3"}, {"--epoch=3"});
    expect_refused({"--LR", "1"}, {"--LR 1"});
    expect_refused({"extra"}, {"extra"});
    expect_refused({"-x"}, {"-x"});
    expect_refused({"--", "--lr"}, {"--lr"});
    expect_refused({"--epochs", "3", "4"}, {"unexpected: 4"});
    expect_refused({"--smoke-test=x"}, {"--smoke-test", "x"});
    expect_refused({""}, {"unexpected"});
}

TEST(FashionMnistUsage, RefusesFlagsWithoutTheirValue) {
    for (auto const* const flag :
         {"--backend", "--num-workers", "--epochs", "--lr", "--momentum", "--batch-size", "--seed", "--data",
          "--threads-per-worker", "--json", "--address", "--timeout", "--engine", "--shard-rows"}) {
        expect_refused({flag}, {flag});
    }
}

/// What the program writes to a terminal of so many columns; nothing where there are no terminals.
std::optional<std::string> errors_on_terminal(unsigned short columns) {
    int controller = -1;
    int terminal = -1;
    winsize window{};
    window.ws_col = columns;
    if (::openpty(&controller, &terminal, nullptr, nullptr, &window) != 0) { return std::nullopt; }
    auto const command = quoted(FASHION_MNIST_PROGRAM) + " --lr x </dev/null >/dev/null 2>" + quoted(::ttyname(terminal));
    EXPECT_NE(std::system(command.c_str()), 0);
    std::array<char, 1024> text{};
    auto const count = ::read(controller, text.data(), text.size());
    ::close(terminal);
    ::close(controller);
    return std::string(text.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
}

TEST(FashionMnistUsage, OnATerminalAnErrorTakesThePlaceOfAProgressLine) {
    auto const seen = errors_on_terminal(80);
    if (!seen) { GTEST_SKIP() << "no pseudo-terminal here"; }
    EXPECT_TRUE(seen->starts_with("\r\x1b[Kerror: --lr")) << *seen;
    auto const unseen = errors_on_terminal(0); // as under Open MPI
    EXPECT_TRUE(unseen->starts_with("error: --lr")) << *unseen;
}

TEST(FashionMnistUsage, OneLineEvenForValuesOfSeveral) {
    expect_refused({"--lr", "1\n2"}, {"--lr", "\"1 2\""});
    expect_refused({"--x\ny\r\x1b[2J"}, {"--x y"});
}

TEST(FashionMnistUsage, RefusesBeforeItReadsAnything) {
    expect_refused({"--data", "/nowhere", "--lr", "nan"}, {"--lr", "\"nan\""});
}

} // namespace
