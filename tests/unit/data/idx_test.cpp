#include <lockstep/data/idx.hpp>

#include "../io/files.hpp"

#include <lockstep/core/random.hpp>

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

namespace {

using lockstep::DataError;
using lockstep::read_idx;
using lockstep::test::error_text;
using lockstep::test::gzip;
using lockstep::test::TemporaryFolder;

std::string header(std::uint8_t type, std::initializer_list<std::uint32_t> shape) {
    std::string bytes{'\0', '\0', static_cast<char>(type), static_cast<char>(shape.size())};
    for (auto const extent : shape) {
        for (unsigned shift = 32; shift > 0; shift -= 8) { bytes.push_back(static_cast<char>(extent >> (shift - 8) & 0xFFU)); }
    }
    return bytes;
}

std::string counted(std::size_t size) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) { bytes.push_back(static_cast<char>(i * 7 & 0xFFU)); }
    return bytes;
}

/// Both as a raw and as a compressed file, `content` is refused with one line that names the file and contains `expected_text`.
void expect_refused(std::string const& content, std::size_t rank, std::string const& expected_text) {
    TemporaryFolder const folder;
    for (auto const& form : {content, gzip(content)}) {
        auto const path = folder.write("file.gz", form);
        auto const text = error_text<DataError>([&] { (void)read_idx(path, rank); });
        EXPECT_TRUE(text.starts_with(path.string() + ": expected ")) << text;
        EXPECT_NE(text.find(expected_text), std::string::npos) << "expected: " << expected_text << "\nin: " << text;
        EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
}

TEST(Idx, ReadsShapesAndValues) {
    TemporaryFolder const folder;
    for (bool const compressed : {false, true}) {
        auto const write = [&](std::string const& content) { return folder.write("file", compressed ? gzip(content) : content); };
        auto const data = counted(3 * 2 * 4);
        auto const cube = read_idx(write(header(8, {3, 2, 4}) + data), 3);
        EXPECT_EQ(cube.shape, (std::vector<std::size_t>{3, 2, 4}));
        EXPECT_EQ(cube.values, std::vector<std::uint8_t>(data.begin(), data.end()));
        auto const line = read_idx(write(header(8, {300'000}) + counted(300'000)), 1); // grows in several pieces
        EXPECT_EQ(line.values.size(), 300'000U);
        EXPECT_EQ(line.values.back(), static_cast<std::uint8_t>(299'999U * 7U));
        auto const empty = read_idx(write(header(8, {0, 28, 0xFFFFFFFFU})), 3);
        EXPECT_EQ(empty.shape, (std::vector<std::size_t>{0, 28, 0xFFFFFFFFU}));
        EXPECT_TRUE(empty.values.empty());
    }
}

TEST(Idx, RefusesAnotherTypeByItsName) {
    expect_refused(header(0x09, {2}) + "ab", 1, "expected IDX data of unsigned bytes (type 8), found signed bytes (type 9)");
    expect_refused(header(0x0B, {1}) + "ab", 1, "found 16-bit integers (type 11)");
    expect_refused(header(0x0C, {1}) + "abcd", 1, "found 32-bit integers (type 12)");
    expect_refused(header(0x0D, {1}) + "abcd", 1, "found 32-bit floats (type 13)");
    expect_refused(header(0x0E, {1}) + "abcdefgh", 1, "found 64-bit floats (type 14)");
    expect_refused(header(0x42, {2}) + "ab", 1, "found unknown type 66");
}

TEST(Idx, RefusesAnotherRank) {
    expect_refused(header(8, {3}) + counted(3), 3, "expected IDX data with 3 dimensions, found 1 dimensions");
    expect_refused(header(8, {1, 1, 3}) + counted(3), 1, "expected IDX data with 1 dimensions, found 3 dimensions");
    expect_refused(header(8, {}), 1, "found 0 dimensions");
}

TEST(Idx, RefusesMissingAndTrailingBytes) {
    auto const good = header(8, {2, 3, 4}) + counted(24);
    expect_refused(good.substr(0, good.size() - 1), 3, "expected 24 bytes of data (2 x 3 x 4), found 23");
    expect_refused(good.substr(0, 16), 3, "expected 24 bytes of data (2 x 3 x 4), found 0");
    expect_refused(good.substr(0, 15), 3, "found the file's end within dimension 2");
    expect_refused(good.substr(0, 4), 3, "found the file's end within dimension 0");
    expect_refused(good.substr(0, 3), 3, "found 3 bytes");
    expect_refused(good + "x", 3, "expected the end after 24 bytes of data (2 x 3 x 4), found more bytes");
    expect_refused(header(8, {0}) + "x", 1, "expected the end after 0 bytes");
}

TEST(Idx, SaysWhenTheFileIsAnHtmlPage) {
    for (char const* const page :
         {"<!DOCTYPE html><html><body>404</body></html>", "<html>Not found</html>", "\xEF\xBB\xBF \r\n\t<HTML>",
          "\n<?xml version=\"1.0\"?><html/>", "<!-- error --><html>", "<Head>"}) {
        expect_refused(page, 3, "expected an IDX file (first bytes 0 0 8 3), found what looks like an HTML page");
    }
    expect_refused("PK\x03\x04 and more", 1, "expected an IDX file (first bytes 0 0 8 1), found first bytes 80 75 3 4");
    expect_refused(std::string("\0\1\x08\3", 4), 3, "found first bytes 0 1 8 3");
}

TEST(Idx, AHeadersClaimsCostNothing) {
    expect_refused(header(8, {0xFFFFFFFFU, 28, 28}) + "data", 3,
                   "expected 3367254359280 bytes of data (4294967295 x 28 x 28), found 4");
    expect_refused(header(8, {0xFFFFFFFFU, 0xFFFFFFFFU, 0xFFFFFFFFU}) + "data", 3, "expected dimensions that fit into memory");
    // 2^31 x 2^31 x 4 = 2^64 wraps to 0 in 64 bits when multiplied without care.
    expect_refused(header(8, {0x80000000U, 0x80000000U, 4}) + "data", 3, "expected dimensions that fit into memory");
    rusage usage{};
    ASSERT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
    EXPECT_LT(usage.ru_maxrss, 1'000'000) << "kilobytes";
}

TEST(Idx, AnyDamageIsRefusedOrRead) {
    TemporaryFolder const folder;
    auto const good = header(8, {5, 4, 3}) + counted(60);
    auto const compressed = gzip(good, true) + gzip("");
    lockstep::RandomStream const random{2024, lockstep::RandomPurpose::data, 0};
    std::uint64_t next = 0;
    auto const below = [&](std::size_t limit) { return std::size_t{random.word(next++)} % limit; };
    int loaded = 0;
    int refused = 0;
    for (int round = 0; round < 4000; ++round) {
        std::string content = round % 2 == 0 ? good : compressed;
        for (std::size_t change = 0, changes = 1 + below(3); change < changes && !content.empty(); ++change) {
            std::size_t const header_size = std::min(content.size(), std::size_t{16});
            switch (below(6)) {
            case 0:
                content.resize(below(content.size() + 1));
                break;
            case 1:
                content[below(content.size())] ^= static_cast<char>(1U << below(8));
                break;
            case 2:
                content[below(content.size())] = static_cast<char>(below(256));
                break;
            case 3:
                content[below(header_size)] = static_cast<char>(below(256));
                break;
            case 4:
                content.insert(below(content.size()), 1, static_cast<char>(below(256)));
                break;
            default:
                content.append(below(20), static_cast<char>(below(2)));
                break;
            }
        }
        auto const path = folder.write("file", content);
        try {
            auto const array = read_idx(path, 3);
            ASSERT_EQ(array.shape.size(), 3U);
            ASSERT_EQ(array.values.size(), array.shape[0] * array.shape[1] * array.shape[2]);
            ++loaded;
        } catch (DataError const& error) {
            ASSERT_TRUE(std::string{error.what()}.starts_with(path.string() + ": expected ")) << error.what();
            ++refused;
        }
    }
    EXPECT_GT(loaded, 100);
    EXPECT_GT(refused, 2000);
}

TEST(Idx, ASmallFileCannotFillTheMemory) {
    TemporaryFolder const folder;
    // 200 MB of zeros compress to 0.2 MB; a fifth of that is within what any file may hold.
    for (std::uint32_t const images : {51'000U, 255'000U}) {
        auto const path = folder.write("bomb", gzip(header(8, {images, 28, 28}) + std::string(std::size_t{images} * 784, '\0')));
        if (images < 60'000) {
            EXPECT_EQ(read_idx(path, 3).values.size(), std::size_t{images} * 784);
        } else {
            auto const text = error_text<DataError>([&] { (void)read_idx(path, 3); });
            EXPECT_NE(text.find("expected data of at most 100 times the file's size, found more than "), std::string::npos)
                << text;
        }
    }
}

} // namespace
