// The big example with --backend mpi, started by itself and by mpirun, on this host. Built with MPI only.
#include "examples/program.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>

namespace {

using Json = nlohmann::ordered_json;

std::ptrdiff_t count(std::string const& text, std::string const& words) {
    std::ptrdiff_t found = 0;
    for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) { ++found; }
    return found;
}

class FashionMnistMpi : public testing::Test {
protected:
    FashionMnistMpi() {
        std::filesystem::create_directory(data_);
        write_images(data_);
    }

    Arguments job(Arguments const& more) {
        Arguments arguments{"--data", data_, "--epochs", "1", "--lr", "0.05"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return arguments;
    }

    Outcome run(Arguments const& more) { return run_program(FASHION_MNIST_PROGRAM, job(more)); }

    /// As `run`, but started by mpirun, in the way that --preflight tells. `others`: see below
    Outcome run_under_mpirun(std::string const& workers, Arguments const& more, Arguments const& others = {}) {
        auto const told = run_program(FASHION_MNIST_PROGRAM, {"--preflight", "-n", "9"}).out;
        std::string const begin = "starting: ";
        std::istringstream words{told.substr(std::min(told.size(), told.find(begin)) + begin.size())};
        Arguments arguments;
        for (std::string word; words >> word && word != "-n";) { arguments.push_back(word); }
        auto const rest = job(more);
        arguments.insert(arguments.end(), {"-n", workers, FASHION_MNIST_PROGRAM});
        arguments.insert(arguments.end(), rest.begin(), rest.end());
        if (!others.empty()) { // one process more, with arguments of its own
            arguments.insert(arguments.end(), {":", "-n", "1", FASHION_MNIST_PROGRAM});
            arguments.insert(arguments.end(), others.begin(), others.end());
        }
        return run_program("env", arguments);
    }

    /// Several processes, one error.
    static void expect_one_error(Outcome const& failed, int exit_code, Arguments const& words) {
        SCOPED_TRACE(failed.err + failed.out);
        EXPECT_EQ(failed.exit_code, exit_code);
        EXPECT_EQ(count(failed.err, "error: "), 1);
        auto const begin = failed.err.find("error: ");
        auto const line = begin == std::string::npos ? "" : failed.err.substr(begin, failed.err.find('\n', begin) - begin);
        for (auto const& word : words) { EXPECT_NE(line.find(word), std::string::npos) << word << " is not in " << line; }
    }

    Folder folder_;
    std::string data_ = folder_ / "data";
    std::string json_ = folder_ / "run.json";
};

void expect_one_report(Outcome const& done, std::string const& workers) {
    SCOPED_TRACE(done.out + done.err);
    EXPECT_EQ(done.exit_code, 0);
    for (auto const& words : {std::string{"Fashion-MNIST from"}, workers + " workers, backend mpi", std::string{"train loss"},
                              std::string{"\naccuracy "}}) {
        EXPECT_EQ(count(done.out, words), 1) << words;
    }
}

TEST_F(FashionMnistMpi, StartsItsOwnWorkersAndTrainsAsThreadsDo) {
    for (std::string const workers : {"2", "3"}) {
        auto const done = run({"--backend", "mpi", "-n", workers, "--json", json_});
        expect_one_report(done, workers);
        auto const with_mpi = Json::parse(read_text(json_));
        EXPECT_EQ(with_mpi["backend"], "mpi");
        EXPECT_EQ(std::to_string(with_mpi["num_workers"].get<int>()), workers);
        EXPECT_EQ(std::to_string(with_mpi["parameter_hashes"].size()), workers);
        EXPECT_EQ(run({"-n", workers, "--json", json_}).exit_code, 0);
        EXPECT_EQ(with_mpi["parameter_hashes"], Json::parse(read_text(json_))["parameter_hashes"]);
    }
}

TEST_F(FashionMnistMpi, SimdGivesTheSameBitsForEveryNumberOfWorkers) {
    auto const hash = [&](Arguments arguments) {
        arguments.insert(arguments.end(), {"--engine", "simd", "--json", json_});
        auto const done = run(arguments);
        EXPECT_EQ(done.exit_code, 0) << done.err;
        return Json::parse(read_text(json_))["parameter_hashes"][0];
    };
    auto const usual = hash({"-n", "1"});
    for (auto const* const workers : {"2", "3", "4"}) { EXPECT_EQ(hash({"--backend", "mpi", "-n", workers}), usual) << workers; }
    EXPECT_EQ(hash({"--backend", "mpi", "-n", "5", "--shard-rows", "4"}), hash({"-n", "1", "--shard-rows", "4"}));
}

TEST_F(FashionMnistMpi, CpuTrainsAsOnThreadsToo) {
    Arguments const flags{"--engine", "cpu", "-n", "3", "--json", json_};
    EXPECT_EQ(run(flags).exit_code, 0);
    auto const expected = Json::parse(read_text(json_))["parameter_hashes"];
    Arguments with_mpi{"--backend", "mpi"};
    with_mpi.insert(with_mpi.end(), flags.begin(), flags.end());
    EXPECT_EQ(run(with_mpi).exit_code, 0);
    EXPECT_EQ(Json::parse(read_text(json_))["parameter_hashes"], expected);
}

TEST_F(FashionMnistMpi, AWrongInstructionSetIsOneError) {
    Variable const wrong{"LOCKSTEP_SIMD", "mmx"};
    expect_one_error(run({"--backend", "mpi", "-n", "3", "--engine", "simd"}), 1, {"LOCKSTEP_SIMD: ", "\"mmx\""});
}

TEST_F(FashionMnistMpi, TwoWorkersUnlessTold) { expect_one_report(run({"--backend", "mpi"}), "2"); }

TEST_F(FashionMnistMpi, AddressNamesTheHosts) {
    expect_one_report(run({"--address", "localhost:3"}), "3");
    expect_one_report(run({"--address", "localhost", "-n", "2"}), "2");
    write_text(folder_ / "hosts", "# one\nlocalhost slots=2\n");
    expect_one_report(run({"--address", "@" + folder_ / "hosts"}), "2");
    expect_one_error(run({"--address", "localhost:2", "-n", "3"}), 2, {"--num-workers is 3", "room for 2"});
}

TEST_F(FashionMnistMpi, AddressMayBeANumber) { expect_one_report(run({"--address", "127.0.0.1:2"}), "2"); }

TEST_F(FashionMnistMpi, HostsThatDoNotAnswerEndTheRun) {
    expect_one_error(run({"--address", "localhost,no-such-host.invalid,b.invalid"}), 1,
                     {"host no-such-host.invalid: ", "; host b.invalid: ", "has no address"});
}

TEST_F(FashionMnistMpi, AddressIsRefusedWhereALauncherHasStartedTheWorkers) {
    expect_one_error(run_under_mpirun("2", {"--address", "a,b"}), 2, {"--address", "already started"});
}

TEST_F(FashionMnistMpi, MoreWorkersThanTheHostCanBearAreRefused) {
    auto const cores = std::max(1U, std::thread::hardware_concurrency());
    auto const too_many = std::to_string(16 * cores + 1);
    for (Arguments const& arguments : {Arguments{"--backend", "mpi", "-n", too_many}, Arguments{"--preflight", "-n", too_many},
                                       Arguments{"--address", "localhost:" + too_many}}) {
        expect_one_error(run(arguments), 2, {too_many + " workers on this host", "16 for each"});
    }
    EXPECT_NE(run({"--help"}).out.find("16 processes for each core"), std::string::npos);
}

TEST_F(FashionMnistMpi, OneWorkerNeedsNoMpirun) {
    Variable const none{"LOCKSTEP_MPIRUN", "/none"};
    auto const done = run({"--backend", "mpi", "-n", "1", "--print-hash"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_NE(done.out.find("1 worker, backend mpi"), std::string::npos) << done.out;
    expect_one_error(run({"--backend", "mpi"}), 1, {"LOCKSTEP_MPIRUN", "/none"});
}

TEST_F(FashionMnistMpi, UnderMpirunTheNumberIsMpiruns) {
    expect_one_report(run_under_mpirun("3", {"--backend", "mpi", "--json", json_}), "3");
    EXPECT_EQ(Json::parse(read_text(json_))["num_workers"], 3);
    expect_one_report(run_under_mpirun("2", {"--backend", "mpi", "-n", "2"}), "2");
    expect_one_error(run_under_mpirun("2", {"--backend", "mpi", "-n", "3"}), 1, {"num_workers is 3", "MPI has 2 processes"});
}

TEST_F(FashionMnistMpi, ProcessesThatWouldEachTrainForThemselvesAreRefused) {
    expect_one_error(run_under_mpirun("2", {}), 2, {"started 2 processes", "--backend threads: add --backend mpi"});
    expect_one_error(run_under_mpirun("2", {"--backend", "serial"}), 2, {"--backend serial: add --backend mpi"});
    auto const alone = run_under_mpirun("1", {});
    EXPECT_EQ(alone.exit_code, 0) << alone.err;
    EXPECT_NE(alone.out.find("2 workers, backend threads"), std::string::npos) << alone.out;
}

TEST_F(FashionMnistMpi, SaysOnceWhatIsWrong) {
    expect_one_error(run_under_mpirun("3", {"--lr", "nan"}), 2, {"--lr"});
    expect_one_error(run({"--backend", "mpi", "-n", "3", "--lr", "1e10"}), 1, {"rank ", " of 3: ", "the loss is"});
    expect_one_error(run({"--backend", "mpi", "-n", "3", "--data", folder_ / "none"}), 1, {"rank ", " of 3: ", "none"});
    expect_one_error(run({"--backend", "mpi", "--json", folder_ / "none/run.json"}), 1, {"none/run.json"});
    EXPECT_EQ(count(run_under_mpirun("3", {"--help"}).out, "--preflight"), 1);
}

TEST_F(FashionMnistMpi, ARankWithACommandLineOfItsOwnSaysWhatIsWrongWithIt) {
    expect_one_error(run_under_mpirun("2", {"--backend", "mpi"}, {"--backend", "mpi", "--bogus"}), 2,
                     {"error: rank 2: unexpected: --bogus"});
}

TEST_F(FashionMnistMpi, PreflightSaysOk) {
    auto const done = run_program(FASHION_MNIST_PROGRAM, {"--preflight", "-n", "3"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_EQ(count(done.out, "starting: "), 1);
    EXPECT_EQ(count(done.out, "OK: 3 workers on 1 host ("), 1) << done.out;
    auto const under = run_under_mpirun("3", {"--preflight"});
    EXPECT_EQ(under.exit_code, 0) << under.err;
    EXPECT_EQ(count(under.out, "OK: 3 workers on 1 host ("), 1) << under.out;
}

TEST_F(FashionMnistMpi, PreflightSaysWhatIsMissing) {
    Variable const none{"LOCKSTEP_MPIRUN", "/none"};
    auto const done = run_program(FASHION_MNIST_PROGRAM, {"--address", "localhost,no-such-host.invalid", "--preflight"});
    EXPECT_EQ(done.exit_code, 1);
    EXPECT_EQ(count(done.out, "\n"), 2) << done.out;
    EXPECT_NE(done.out.find("/none"), std::string::npos) << done.out;
    EXPECT_NE(done.out.find("host no-such-host.invalid: "), std::string::npos) << done.out;
    EXPECT_NE(done.out.find("has no address"), std::string::npos) << done.out;
}

} // namespace
