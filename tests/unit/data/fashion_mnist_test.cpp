#include <lockstep/data/fashion_mnist.hpp>

#include "../io/files.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace lockstep;
using test::error_text;
using test::gzip;
using test::TemporaryFolder;

static_assert(ClassificationDataset<FashionMnist::Images> && FashionMnist::Images::features == 784);

std::string idx(std::initializer_list<unsigned> shape, std::size_t size, unsigned modulus) {
    std::string bytes{'\0', '\0', '\x08', static_cast<char>(shape.size())};
    for (unsigned const extent : shape) {
        for (unsigned shift = 32; shift > 0; shift -= 8) { bytes.push_back(static_cast<char>(extent >> (shift - 8) & 0xFFU)); }
    }
    for (std::size_t i = 0; i < size; ++i) { bytes.push_back(static_cast<char>(i % modulus)); }
    return bytes;
}
std::string images(unsigned count) { return idx({count, 28, 28}, std::size_t{count} * 784, 251); }
std::string labels(unsigned count) { return idx({count}, count, 10); }

/// `train` training images and 3 test images, in the spelling asked for.
void write_set(TemporaryFolder const& folder, unsigned train, char separator = '-', bool compressed = false) {
    auto const write = [&](std::string name, char const* kind, std::string const& content) {
        name += separator;
        name += kind;
        folder.write(compressed ? name + ".gz" : name, compressed ? gzip(content) : content);
    };
    write("train-images", "idx3-ubyte", images(train));
    write("train-labels", "idx1-ubyte", labels(train));
    write("t10k-images", "idx3-ubyte", images(3));
    write("t10k-labels", "idx1-ubyte", labels(3));
}

/// Sets an environment variable (or removes it) and puts it back.
class Environment {
public:
    Environment(char const* name, std::optional<std::string> const& value) : name_{name} {
        if (char const* const old = std::getenv(name)) { old_ = old; }
        set(value);
    }
    Environment(Environment const&) = delete;
    Environment& operator=(Environment const&) = delete;
    ~Environment() { set(old_); }

private:
    void set(std::optional<std::string> const& value) {
        if (value) {
            setenv(name_, value->c_str(), 1);
        } else {
            unsetenv(name_);
        }
    }
    char const* name_;
    std::optional<std::string> old_;
};

void expect_contains(std::string const& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << "expected: " << part << "\nin: " << text;
}

std::string refusal(TemporaryFolder const& folder) {
    return error_text<DataError>([&] { (void)fashion_mnist(folder.path()); });
}

TEST(FashionMnist, ReadsEverySpelling) {
    for (char const separator : {'-', '.'}) {
        for (bool const compressed : {false, true}) {
            TemporaryFolder const folder;
            write_set(folder, 12, separator, compressed);
            auto const data = fashion_mnist(folder.path());
            EXPECT_EQ(data.source, folder.path());
            ASSERT_EQ(data.train.size(), 12U);
            ASSERT_EQ(data.test.size(), 3U);
            EXPECT_EQ(data.train.target(11), 1);
            std::array<float, 784> row{};
            data.train.load(1, std::span{row});
            EXPECT_EQ(row[0], static_cast<float>(784 % 251) * (1.0F / 255.0F));
        }
    }
}

TEST(FashionMnist, FoldersOfTheFilesNamesArePassedOver) {
    TemporaryFolder const folder;
    write_set(folder, 2, '.');
    std::filesystem::create_directory(folder.path() / "train-images-idx3-ubyte");
    EXPECT_EQ(fashion_mnist(folder.path()).train.size(), 2U);
}

TEST(FashionMnist, NamesWhatIsMissing) {
    TemporaryFolder const folder;
    write_set(folder, 2);
    std::filesystem::remove(folder.path() / "t10k-labels-idx1-ubyte");
    std::filesystem::remove(folder.path() / "train-images-idx3-ubyte");
    EXPECT_EQ(refusal(folder), folder.path().string() +
                                   ": expected the four files of Fashion-MNIST, raw or .gz, found 2; missing: "
                                   "train-images-idx3-ubyte, t10k-labels-idx1-ubyte");
}

TEST(FashionMnist, RefusesWhatDoesNotFit) {
    TemporaryFolder const folder;
    auto const refuses = [&](std::string_view name, std::string const& content, std::string const& expected) {
        write_set(folder, 10);
        auto const path = folder.write(name, content);
        expect_contains(refusal(folder), path.string() + expected);
    };
    refuses("train-images-idx3-ubyte", idx({10, 28, 27}, 7560, 251), ": expected images of 28 x 28 pixels, found 28 x 27");
    refuses("train-images-idx3-ubyte", images(0), ": expected at least one image, found 0");
    refuses("train-labels-idx1-ubyte", labels(9), ": expected 10 labels, one per image of ");
    refuses("t10k-labels-idx1-ubyte", idx({3}, 2, 10) + "\x0A", ": index 2, label 10, classes 10");
    refuses("train-images-idx3-ubyte", labels(10), ": expected IDX data with 3 dimensions, found 1 dimensions");
    refuses("t10k-images-idx3-ubyte", "<!DOCTYPE html>",
            ": expected an IDX file (first bytes 0 0 8 3), found what looks like an HTML page");
    refuses("t10k-labels-idx1-ubyte", gzip(labels(3)).substr(0, 20), ": expected a complete gzip file");
    refuses("t10k-labels-idx1-ubyte", "", ": expected data, found an empty file");
}

TEST(FashionMnist, LooksInTheEnvironmentsFolderAndOnlyThere) {
    TemporaryFolder const folder;
    write_set(folder, 4);
    TemporaryFolder const empty;
    {
        Environment const chosen{"FASHION_MNIST_DIR", folder.path().string()};
        EXPECT_EQ(fashion_mnist().train.size(), 4U);
        auto const text = refusal(empty);
        expect_contains(text, empty.path().string() + " (none of its files)");
        EXPECT_EQ(text.find(folder.path().string()), std::string::npos) << text;
    }
    Environment const chosen{"FASHION_MNIST_DIR", (empty.path() / "absent").string()};
    auto const text = error_text<DataError>([] { (void)fashion_mnist(); });
    expect_contains(text, "Fashion-MNIST not found; looked in " + (empty.path() / "absent").string() + " (no such folder);");
    EXPECT_EQ(text.find("/usr/share"), std::string::npos) << text;
    expect_contains(text, "dataset-fashion-mnist");
    expect_contains(text, "cmake/fetch-fashion-mnist.sh");
    expect_contains(text, "FASHION_MNIST_DIR");
}

TEST(FashionMnist, LooksInTheUsualPlacesInOrder) {
    TemporaryFolder const home;
    Environment const none{"FASHION_MNIST_DIR", std::nullopt};
    Environment const at_home{"HOME", home.path().string()};
    auto const raw = home.path() / "data/FashionMNIST/raw";
    EXPECT_EQ(detail::fashion_mnist_places(""), (std::vector<std::filesystem::path>{raw, "/usr/share/datasets/fashion-mnist",
                                                                                    "./data", "./data/FashionMNIST/raw"}));
    TemporaryFolder const set;
    write_set(set, 5);
    std::filesystem::create_directories(raw.parent_path());
    std::filesystem::rename(set.path(), raw);
    EXPECT_EQ(fashion_mnist().source, raw);
    EXPECT_EQ(fashion_mnist().train.size(), 5U);
    Environment const homeless{"HOME", std::nullopt};
    EXPECT_EQ(detail::fashion_mnist_places("").front(), "/usr/share/datasets/fashion-mnist");
}

/// The published data itself, where Debian's package has put it. The sums are Python's.
TEST(FashionMnist, ReadsThePublishedData) {
    std::filesystem::path const folder = "/usr/share/datasets/fashion-mnist";
    if (!std::filesystem::exists(folder)) { GTEST_SKIP() << folder << " is not there (Debian package dataset-fashion-mnist)"; }
    auto const data = fashion_mnist(folder);
    ASSERT_EQ(data.train.size(), 60000U);
    ASSERT_EQ(data.test.size(), 10000U);
    auto const pixel_sum = [](auto const& images) {
        auto const pixels = images.stored_inputs().flat();
        return std::accumulate(pixels.begin(), pixels.end(), std::uint64_t{0});
    };
    EXPECT_EQ(pixel_sum(data.train), 3431114169U);
    EXPECT_EQ(pixel_sum(data.test), 573469082U);
    std::array<Label, 5> const first = {9, 0, 0, 3, 0};
    for (std::size_t i = 0; i < first.size(); ++i) { EXPECT_EQ(data.train.target(i), first[i]); }
    std::array<std::size_t, 10> counts{};
    for (std::size_t i = 0; i < data.test.size(); ++i) { ++counts[static_cast<std::size_t>(data.test.target(i))]; }
    for (auto const count : counts) { EXPECT_EQ(count, 1000U); }
}

} // namespace
