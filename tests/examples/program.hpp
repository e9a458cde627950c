#pragma once

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <sys/wait.h>

/// What a program left behind. A program that was killed has exit code 128 or more.
struct Outcome {
    int exit_code = -1;
    std::string out{};
    std::string err{};
};

using Arguments = std::vector<std::string>;

/// A folder of its own for a test, gone at its end.
class Folder {
public:
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "lockstep-example-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) { throw std::runtime_error("no temporary folder"); }
        path_ = name;
    }
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Folder(Folder const&) = delete;
    Folder& operator=(Folder const&) = delete;

    [[nodiscard]] std::filesystem::path const& path() const { return path_; }
    [[nodiscard]] std::string operator/(std::string const& name) const { return (path_ / name).string(); }

private:
    std::filesystem::path path_;
};

inline std::string read_text(std::string const& path) {
    std::ifstream stream{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{stream}, {}};
}

inline void write_text(std::string const& path, std::string const& text) {
    std::ofstream stream{path, std::ios::binary};
    stream << text;
}

inline std::string quoted(std::string const& word) {
    std::string text = "'";
    for (char const c : word) { text += c == '\'' ? std::string{"'\\''"} : std::string{c}; }
    return text + "'";
}

/// Runs `program` to its end, with neither input nor a terminal. `out`: where its output goes, a file to be read when empty.
inline Outcome run_program(std::string const& program, Arguments const& arguments, std::string const& out = "") {
    Folder const folder;
    std::string const out_file = out.empty() ? folder / "out" : out;
    std::string command = quoted(program);
    for (auto const& argument : arguments) { command.append(" ").append(quoted(argument)); }
    command.append(" </dev/null >").append(quoted(out_file)).append(" 2>").append(quoted(folder / "err"));
    int const status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 256, out.empty() ? read_text(out_file) : "", read_text(folder / "err")};
}

/// A variable of the environment, for one scope.
class Variable {
public:
    Variable(char const* name, std::string const& value) : name_{name} {
        if (char const* const old = std::getenv(name); old != nullptr) { old_ = old, was_set_ = true; }
        ::setenv(name, value.c_str(), 1);
    }
    ~Variable() { was_set_ ? ::setenv(name_, old_.c_str(), 1) : ::unsetenv(name_); }
    Variable(Variable const&) = delete;
    Variable& operator=(Variable const&) = delete;

private:
    char const* name_;
    std::string old_{};
    bool was_set_ = false;
};

/// Writes a small set in Fashion-MNIST's form: each class lights another three columns, so it is learned in a few epochs.
inline void write_images(std::string const& folder, std::size_t train = 600, std::size_t test = 200) {
    auto const word = [](std::size_t value) {
        std::string text;
        for (int shift = 24; shift >= 0; shift -= 8) { text += static_cast<char>(value >> shift & 0xFFU); }
        return text;
    };
    auto const write = [&](std::string const& part, std::size_t count) {
        std::string images = word(0x803) + word(count) + word(28) + word(28);
        std::string labels = word(0x801) + word(count);
        for (std::size_t i = 0; i < count; ++i) {
            std::size_t const label = i % 10;
            labels += static_cast<char>(label);
            for (std::size_t pixel = 0; pixel < 784; ++pixel) {
                bool const lit = pixel % 28 / 3 == label;
                images += static_cast<char>((lit ? 60 : 0) + (pixel * 7 + i * 13) % 30);
            }
        }
        write_text(folder + "/" + part + "-images-idx3-ubyte", images);
        write_text(folder + "/" + part + "-labels-idx1-ubyte", labels);
    };
    write("train", train);
    write("t10k", test);
}
