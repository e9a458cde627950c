// What a run of the big example prints, writes and returns; on a small set of images, but for the smoke test.
#include "examples/program.hpp"

#include <lockstep/engine/simd/instruction_set.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

class FashionMnistRun : public testing::Test {
protected:
    FashionMnistRun() {
        fs::create_directory(data_);
        write_images(data_);
    }

    /// 2 epochs over the small set; later flags win.
    Outcome run(Arguments const& more, std::string const& out = "") {
        Arguments arguments{"--data", data_, "--epochs", "2", "--lr", "0.05", "--momentum", "0.9"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run_program(FASHION_MNIST_PROGRAM, arguments, out);
    }

    Json run_to_json(Arguments more) {
        more.insert(more.end(), {"--json", json_});
        auto const done = run(more);
        EXPECT_EQ(done.exit_code, 0) << done.err;
        return Json::parse(read_text(json_));
    }

    void expect_failure(Arguments const& arguments, std::string const& words, std::string const& out = "") {
        auto const failed = run(arguments, out);
        SCOPED_TRACE(failed.err);
        EXPECT_EQ(failed.exit_code, 1);
        EXPECT_EQ(std::count(failed.err.begin(), failed.err.end(), '\n'), 1);
        EXPECT_TRUE(failed.err.starts_with("error: "));
        EXPECT_NE(failed.err.find(words), std::string::npos) << words;
    }

    [[nodiscard]] std::ptrdiff_t files() const {
        return std::distance(fs::directory_iterator{folder_.path()}, fs::directory_iterator{});
    }

    Folder folder_;
    std::string data_ = folder_ / "data";
    std::string json_ = folder_ / "run.json";
};

bool has_control_characters(std::string const& text) {
    return std::any_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ' && c != '\n') || c == 0x7F; });
}

TEST_F(FashionMnistRun, SaysWhatItRunsOnAndWhatCameOut) {
    auto const done = run({"--print-hash", "--engine", "cpu", "--threads-per-worker", "2"});
    EXPECT_EQ(done.exit_code, 0);
    EXPECT_EQ(done.err, "");
    for (auto const& words : Arguments{data_ + ": 600 training and 200 test images", "2 workers", "backend threads",
                                       "476490 parameters", "engine cpu", "2 threads", "epoch 1/2", "epoch 2/2", "\naccuracy ",
                                       " samples/s\n", "\nrank 0  0x", "\nrank 1  0x"}) {
        EXPECT_NE(done.out.find(words), std::string::npos) << words << " is not in\n" << done.out;
    }
    EXPECT_FALSE(has_control_characters(done.out)) << done.out;
}

TEST_F(FashionMnistRun, SerialHasOneWorker) {
    auto const done = run({"--backend", "serial"});
    EXPECT_EQ(done.exit_code, 0);
    EXPECT_NE(done.out.find("1 worker,"), std::string::npos) << done.out;
    EXPECT_NE(done.out.find("backend serial"), std::string::npos) << done.out;
    EXPECT_EQ(done.out.find("rank 0"), std::string::npos) << "hashes only when asked for";
}

TEST_F(FashionMnistRun, JsonHoldsTheRun) {
    auto const json =
        run_to_json({"--engine", "simd", "-n", "3", "--batch-size", "48", "--epochs", "3", "--seed", "18446744073709551615"});
    std::vector<std::string> keys;
    for (auto const& [key, value] : json.items()) { keys.push_back(key); }
    EXPECT_EQ(keys, (std::vector<std::string>{"backend", "engine", "num_workers", "threads_per_worker", "batch_size",
                                              "shard_rows", "epochs", "lr", "momentum", "seed", "history", "metrics",
                                              "parameter_hashes", "instruction_set"}));
    EXPECT_EQ(json["backend"], "threads");
    EXPECT_EQ(json["engine"], "simd");
    EXPECT_EQ(json["instruction_set"], std::string{lockstep::name_of(lockstep::best_instruction_set())});
    EXPECT_EQ(json["shard_rows"], 16);
    EXPECT_EQ(json["num_workers"], 3);
    EXPECT_EQ(json["threads_per_worker"], 1);
    EXPECT_EQ(json["batch_size"], 48);
    EXPECT_EQ(json["epochs"], 3);
    EXPECT_EQ(json["lr"], 0.05);
    EXPECT_EQ(json["momentum"], 0.9);
    EXPECT_EQ(json["seed"], 18446744073709551615U);

    ASSERT_EQ(json["history"].size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
        auto const& epoch = json["history"][i];
        keys.clear();
        for (auto const& [key, value] : epoch.items()) { keys.push_back(key); }
        EXPECT_EQ(keys, (std::vector<std::string>{"epoch", "train_loss", "validation_loss", "accuracy", "samples_per_second",
                                                  "seconds"}));
        EXPECT_EQ(epoch["epoch"], i + 1);
        EXPECT_GT(epoch["samples_per_second"], 0);
        EXPECT_GT(epoch["seconds"], 0);
        EXPECT_GE(epoch["accuracy"], 0);
        EXPECT_LE(epoch["accuracy"], 1);
    }
    EXPECT_LT(json["history"][2]["train_loss"], json["history"][0]["train_loss"]);
    EXPECT_EQ(json["metrics"], json["history"][2]);

    ASSERT_EQ(json["parameter_hashes"].size(), 3U);
    for (auto const& hash : json["parameter_hashes"]) {
        auto const text = hash.get<std::string>();
        EXPECT_EQ(text, json["parameter_hashes"][0]);
        EXPECT_TRUE(text.size() == 18 && text.starts_with("0x")) << text;
    }
}

TEST_F(FashionMnistRun, TheEngineIsTheFastestUnlessTold) {
    Variable const unset{"LOCKSTEP_SIMD", ""};
    auto const best = lockstep::best_instruction_set();
    std::string const simd = "engine simd: " + std::string{lockstep::name_of(best)} + "\n";
    EXPECT_NE(run({"--epochs", "1"}).out.find(best == lockstep::InstructionSet::portable ? "engine cpu: " : simd),
              std::string::npos);
    EXPECT_NE(run({"--epochs", "1", "--engine", "simd"}).out.find(simd), std::string::npos);
    auto const json = run_to_json({"--epochs", "1", "--engine", "cpu"});
    EXPECT_EQ(json["engine"], "cpu");
    EXPECT_FALSE(json.contains("instruction_set"));
}

TEST_F(FashionMnistRun, LockstepSimdNamesTheInstructionSet) {
    Json expected;
    for (auto const set : {lockstep::InstructionSet::portable, lockstep::best_instruction_set()}) {
        std::string const name{lockstep::name_of(set)};
        Variable const chosen{"LOCKSTEP_SIMD", name};
        auto const json = run_to_json({"--epochs", "1", "--engine", "simd"});
        EXPECT_EQ(json["instruction_set"], name);
        if (expected.is_null()) { expected = json["parameter_hashes"]; }
        EXPECT_EQ(json["parameter_hashes"], expected) << name;
    }
    Variable const wrong{"LOCKSTEP_SIMD", "mmx"};
    expect_failure({"--engine", "simd"},
                   "LOCKSTEP_SIMD: expected one of the instruction sets that this processor supports (portable");
    EXPECT_EQ(run({"--engine", "cpu", "--epochs", "1"}).exit_code, 0);
}

TEST_F(FashionMnistRun, SimdGivesTheSameBitsForEveryNumberOfWorkers) {
    auto const hash = [&](Arguments arguments) {
        arguments.insert(arguments.end(), {"--engine", "simd"});
        return run_to_json(arguments)["parameter_hashes"][0];
    };
    auto const usual = hash({"-n", "1"});
    for (auto const* const workers : {"2", "3", "4"}) { EXPECT_EQ(hash({"-n", workers}), usual) << workers; }
    auto const smaller = hash({"-n", "1", "--shard-rows", "4"});
    EXPECT_NE(smaller, usual);
    for (auto const* const workers : {"5", "7"}) { EXPECT_EQ(hash({"-n", workers, "--shard-rows", "4"}), smaller) << workers; }
    EXPECT_EQ(hash({"-n", "5"}), hash({"-n", "1", "--shard-rows", "8"})) << "5 workers have shards of 8 rows";
}

TEST_F(FashionMnistRun, SaysWhereTheShardsAreTooFew) {
    auto const run_and_expect = [&](Arguments const& arguments, std::string const& line) {
        auto const out = run(arguments).out;
        EXPECT_NE(out.find("\n" + line + "\nepoch 1/"), std::string::npos) << line << " is not in\n" << out;
    };
    run_and_expect({"-n", "5", "--epochs", "1"}, "shards of 8 rows, so that all 5 workers have work");
    run_and_expect({"-n", "4", "--epochs", "1", "--shard-rows", "32"},
                   "workers 0, 2 have no rows in a batch of 64 with shards of 32 rows");
    EXPECT_EQ(run({"-n", "4", "--epochs", "1"}).out.find("shards"), std::string::npos);
    EXPECT_EQ(run_to_json({"-n", "5", "--epochs", "1"})["shard_rows"], 8);
    EXPECT_EQ(run_to_json({"-n", "4", "--epochs", "1", "--shard-rows", "32"})["shard_rows"], 32);
}

TEST_F(FashionMnistRun, LearnsTheSmallSet) {
    for (auto const* const engine : {"simd", "cpu"}) {
        EXPECT_GT(run_to_json({"--epochs", "8", "--engine", engine})["metrics"]["accuracy"].get<double>(), 0.9) << engine;
    }
}

TEST_F(FashionMnistRun, TheSameFlagsGiveTheSameBits) {
    auto const hashes = [&](Arguments const& arguments) { return run_to_json(arguments)["parameter_hashes"][0]; };
    auto const first = hashes({});
    EXPECT_EQ(first, hashes({}));
    EXPECT_NE(first, hashes({"--seed", "2"}));
    EXPECT_EQ(hashes({"--backend", "serial"}), hashes({"-n", "1"}));
    EXPECT_EQ(hashes({"--backend", "serial", "-n", "1"}), hashes({"--backend", "threads", "-n", "1"}));
    EXPECT_NE(first, hashes({"--batch-size", "50"}));
    EXPECT_NE(first, hashes({"--momentum", "0"}));
    EXPECT_NE(first, hashes({"--lr", "0.04"}));
    EXPECT_NE(first, hashes({"--epochs", "1"}));
}

TEST_F(FashionMnistRun, AnyBatchAndAnyNumberOfWorkers) {
    for (auto const& [batch, workers] : {std::pair{"1", "2"}, std::pair{"7", "3"}, std::pair{"18446744073709551615", "9"}}) {
        auto const json = run_to_json({"--epochs", "1", "--batch-size", batch, "-n", workers, "--lr", "0.001"});
        EXPECT_EQ(std::to_string(json["parameter_hashes"].size()), workers);
    }
}

TEST_F(FashionMnistRun, SmokeTestTrainsOnPart) {
    auto const done = run_program(FASHION_MNIST_PROGRAM, {"--data", data_, "--smoke-test", "--batch-size", "1"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_NE(done.out.find("300 training and 200 test images"), std::string::npos) << done.out;
    EXPECT_NE(done.out.find("epoch 1/1"), std::string::npos) << done.out;
    EXPECT_NE(done.out.find("2 workers"), std::string::npos) << done.out;
}

TEST_F(FashionMnistRun, FailsClearly) {
    expect_failure({"--data", folder_ / "none"}, "none");
    expect_failure({"--lr", "1e10"}, "the loss is");
    expect_failure({"--json", folder_ / "none/run.json"}, "none/run.json: No such file or directory");
    expect_failure({"--json", data_}, "Is a directory");
    expect_failure({"--json", "/dev/full"}, "/dev/full: No space left on device");
    expect_failure({}, "standard output", "/dev/full");
    auto const images = data_ + "/train-images-idx3-ubyte";
    fs::resize_file(images, fs::file_size(images) - 1);
    expect_failure({}, images);
}

TEST_F(FashionMnistRun, JsonCanGoToAPipe) {
    EXPECT_EQ(run({"--json", "/dev/null"}).exit_code, 0);
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(FashionMnistRun, AFailedRunLeavesTheOldJson) {
    write_text(json_, "old");
    expect_failure({"--lr", "1e10", "--json", json_}, "the loss is");
    EXPECT_EQ(read_text(json_), "old");
    EXPECT_EQ(files(), 2) << "the data and run.json";
}

TEST_F(FashionMnistRun, JsonReplacesTheOldOneThroughLinks) {
    write_text(json_, "old");
    auto const link = folder_ / "link.json";
    fs::create_symlink("run.json", link);
    EXPECT_EQ(run({"--json", link}).exit_code, 0);
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_EQ(Json::parse(read_text(json_))["epochs"], 2);
    EXPECT_EQ(files(), 3) << "the data, run.json and link.json";
}

TEST(FashionMnist, SmokeTestOnTheRealImages) {
    auto const start = std::chrono::steady_clock::now();
    auto const done = run_program(FASHION_MNIST_PROGRAM, {"--smoke-test"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_NE(done.out.find("19200 training and 10000 test images"), std::string::npos) << done.out;
    // Less than 5 seconds where nothing else runs.
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds{60});
}

} // namespace
