#include "run_file.hpp"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <system_error>

#include <unistd.h>

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void fail(fs::path const& path, std::error_code const& why) {
    throw lockstep::Error("cannot write " + path.string() + ": " + why.message());
}

[[noreturn]] void fail_with_errno(fs::path const& path) { fail(path, {errno, std::generic_category()}); }

/// Devices and pipes are written to, not replaced.
bool is_special(fs::path const& path) {
    auto const status = fs::status(path);
    return fs::exists(status) && !fs::is_regular_file(status);
}

/// Beside the file itself, wherever a link to it may lie: a rename works within one file system.
struct Places {
    fs::path target;
    fs::path temporary;
};
Places places_for(fs::path const& path) {
    auto target = fs::exists(path) ? fs::canonical(path) : path;
    auto temporary = target;
    temporary += ".tmp" + std::to_string(::getpid());
    return {target, temporary};
}

void write_text(fs::path const& file, fs::path const& named, std::string const& text) {
    errno = 0;
    std::ofstream stream{file, std::ios::binary};
    stream << text;
    stream.close();
    if (!stream) { fail_with_errno(named); }
}

Json json_of(lockstep::EpochMetrics const& metrics) {
    return {{"epoch", metrics.epoch},
            {"train_loss", metrics.train_loss},
            {"validation_loss", metrics.validation_loss.value()},
            {"accuracy", metrics.accuracy.value()},
            {"samples_per_second", metrics.samples_per_second},
            {"seconds", metrics.seconds}};
}

/// As text, because JSON's readers keep 53 bits of a number.
std::string hexadecimal(std::uint64_t hash) {
    char text[2 + 16 + 1];
    std::snprintf(text, sizeof text, "0x%016" PRIx64, hash);
    return text;
}

} // namespace

void check_writable(fs::path const& path) {
    if (fs::is_directory(path)) { fail(path, std::make_error_code(std::errc::is_a_directory)); }
    if (fs::exists(path) && ::access(path.c_str(), W_OK) != 0) { fail_with_errno(path); }
    if (is_special(path)) { return; }
    auto const temporary = places_for(path).temporary;
    write_text(temporary, path, "");
    fs::remove(temporary);
}

void write_run(Options const& options, std::string const& instruction_set, lockstep::Result const& result) {
    Json run{{"backend", name_of(options.backend)},
             {"engine", name_of(options.engine)},
             {"num_workers", result.parameter_hashes.size()},
             {"threads_per_worker", options.threads_per_worker},
             {"batch_size", options.batch_size},
             {"shard_rows", result.shard_rows},
             {"epochs", options.epochs},
             {"lr", options.lr},
             {"momentum", options.momentum},
             {"seed", options.seed},
             {"history", Json::array()},
             {"metrics", json_of(result.history.back())},
             {"parameter_hashes", Json::array()}};
    if (options.engine == EngineName::simd) { run["instruction_set"] = instruction_set; }
    for (auto const& metrics : result.history) { run["history"].push_back(json_of(metrics)); }
    for (auto const hash : result.parameter_hashes) { run["parameter_hashes"].push_back(hexadecimal(hash)); }
    std::string const text = run.dump(2) + '\n';

    if (is_special(options.json)) { return write_text(options.json, options.json, text); }
    auto const [target, temporary] = places_for(options.json);
    try {
        write_text(temporary, options.json, text);
        fs::rename(temporary, target);
    } catch (...) {
        std::error_code ignored;
        fs::remove(temporary, ignored);
        throw;
    }
}
