#include <lockstep/io/gzip.hpp>

#include "files.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

namespace {

using lockstep::DataError;
using lockstep::InputStream;
using lockstep::test::error_text;
using lockstep::test::gzip;
using lockstep::test::TemporaryFolder;

/// All of `path`, asked for in pieces of `piece` bytes.
std::string read_all(std::filesystem::path const& path, std::size_t piece = 1000) {
    InputStream stream{path};
    std::string content;
    std::string part(piece, '\0');
    while (std::size_t const count = stream.read(std::as_writable_bytes(std::span{part}))) {
        content.append(part, 0, count);
        if (count < piece) { break; }
    }
    EXPECT_EQ(stream.read(std::as_writable_bytes(std::span{part})), 0U) << "the end stays the end";
    return content;
}

std::string sample_text(std::size_t size) {
    std::string text;
    unsigned value = 1;
    while (text.size() < size) {
        value = value * 1103515245U + 12345U;
        text.push_back(static_cast<char>(value >> 28U));
    }
    return text;
}

void expect_refused(std::string const& content, std::string const& expected_text) {
    TemporaryFolder const folder;
    auto const path = folder.write("file", content);
    auto const text = error_text<DataError>([&] { read_all(path); });
    EXPECT_TRUE(text.starts_with(path.string() + ": expected ")) << text;
    EXPECT_NE(text.find(expected_text), std::string::npos) << text;
}

TEST(Gzip, ReadsRawAndCompressedWhateverTheNameSays) {
    TemporaryFolder const folder;
    auto const text = sample_text(300'000); // more than four of the reader's pieces
    for (std::size_t const piece : {1000U, 65536U, 400'000U}) {
        EXPECT_EQ(read_all(folder.write("raw.gz", text), piece), text);
        EXPECT_EQ(read_all(folder.write("compressed", gzip(text)), piece), text);
    }
    EXPECT_EQ(read_all(folder.write("short", gzip("abc")), 1), "abc");
    EXPECT_FALSE(InputStream{folder.path() / "raw.gz"}.is_gzip());
    EXPECT_TRUE(InputStream{folder.path() / "compressed"}.is_gzip());
}

TEST(Gzip, ReadsTinyRawFiles) {
    TemporaryFolder const folder;
    EXPECT_EQ(read_all(folder.write("one", "x")), "x");
    EXPECT_EQ(read_all(folder.write("first magic byte only", "\x1F")), "\x1F");
    EXPECT_EQ(read_all(folder.write("two", "\x1F\x8A")), "\x1F\x8A");
}

TEST(Gzip, ReadsEveryValidForm) {
    TemporaryFolder const folder;
    auto const text = sample_text(100'000);
    EXPECT_EQ(read_all(folder.write("fields", gzip(text, true))), text);
    EXPECT_EQ(read_all(folder.write("empty", gzip(""))), "");
    EXPECT_EQ(read_all(folder.write("members", gzip("one ") + gzip("") + gzip(text, true) + gzip("") + gzip(" two"))),
              "one " + text + " two");
    EXPECT_EQ(read_all(folder.write("padded", gzip("one ") + gzip("two") + std::string(200'000, '\0'))), "one two");
    EXPECT_EQ(read_all(folder.write("padded by one", gzip("one") + std::string(1, '\0'))), "one");
    std::string many;
    for (int i = 0; i < 20'000; ++i) { many += gzip(""); }
    EXPECT_EQ(read_all(folder.write("many empty", many + gzip("end"))), "end");
}

TEST(Gzip, MembersMayEndAnywhereInTheReadersPieces) {
    TemporaryFolder const folder;
    for (std::size_t size = 65'400; size < 65'560; ++size) {
        std::string text;
        auto const first = gzip(text);
        while (text.size() + first.size() + 5 < size) { text.push_back('x'); }
        // A stored block: its compressed size is its size and a constant.
        std::string stored = first.substr(0, 10);
        auto const length = static_cast<unsigned>(text.size());
        stored += {'\1', static_cast<char>(length & 0xFFU), static_cast<char>(length >> 8U), static_cast<char>(~length & 0xFFU),
                   static_cast<char>((~length >> 8U) & 0xFFU)};
        stored += text;
        auto const crc = crc32(0, reinterpret_cast<Bytef const*>(text.data()), length);
        for (unsigned const word : {static_cast<unsigned>(crc), length}) {
            for (unsigned shift = 0; shift < 32; shift += 8) { stored.push_back(static_cast<char>(word >> shift & 0xFFU)); }
        }
        ASSERT_EQ(read_all(folder.write("file", stored + gzip("next"))), text + "next") << stored.size();
        ASSERT_EQ(read_all(folder.write("file", stored)), text) << stored.size();
    }
}

TEST(Gzip, RefusesDamage) {
    auto const good = gzip(sample_text(5000));
    for (std::size_t size = 2; size < good.size(); size += size < 20 ? 1 : 97) {
        expect_refused(good.substr(0, size), "truncated");
    }
    expect_refused(good.substr(0, good.size() - 1), "truncated");
    auto flipped = [&](std::size_t index) {
        auto copy = good;
        copy[index] = static_cast<char>(copy[index] ^ 0x10);
        return copy;
    };
    expect_refused(flipped(good.size() / 2), "damage");
    expect_refused(flipped(good.size() - 6), "damage: incorrect data check");
    expect_refused(flipped(good.size() - 1), "damage: incorrect length check");
    expect_refused(flipped(2), "damage: unknown compression method");
    expect_refused(good + flipped(2), "damage");
    expect_refused(good + good.substr(0, 1), "truncated");
}

TEST(Gzip, RefusesTrailingGarbage) {
    auto const good = gzip("content");
    expect_refused(good + "A", "trailing garbage (byte value 65)");
    expect_refused(good + std::string(70'000, '\0') + "A", "trailing garbage (byte value 65)");
    expect_refused(good + std::string(1, '\0') + good, "trailing garbage (byte value 31)");
}

TEST(Gzip, TheEndIsSeenOnlyAfterTheChecksum) {
    TemporaryFolder const folder;
    auto content = gzip("0123456789");
    content[content.size() - 6] = static_cast<char>(content[content.size() - 6] ^ 1);
    InputStream stream{folder.write("file", content)};
    std::array<std::byte, 5> half{};
    EXPECT_EQ(stream.read(half), 5U);
    EXPECT_EQ(stream.read(std::span<std::byte>{}), 0U);
    EXPECT_THROW(
        {
            stream.read(half);
            stream.read(half);
        },
        DataError);
}

TEST(Gzip, AMovedStreamReadsOn) {
    TemporaryFolder const folder;
    auto const text = sample_text(10'000);
    InputStream first{folder.write("file", gzip(text))};
    std::string part(4000, '\0');
    ASSERT_EQ(first.read(std::as_writable_bytes(std::span{part})), 4000U);
    InputStream second = std::move(first);
    std::string rest(7000, '\0');
    ASSERT_EQ(second.read(std::as_writable_bytes(std::span{rest})), 6000U);
    EXPECT_EQ(part + rest.substr(0, 6000), text);
}

TEST(Gzip, RefusesWhatIsNoFile) {
    TemporaryFolder const folder;
    auto const text_for = [](std::filesystem::path const& path) { return error_text<DataError>([&] { read_all(path); }); };
    EXPECT_EQ(text_for(folder.path()), folder.path().string() + ": expected a file, found a directory");
    EXPECT_NE(text_for(folder.path() / "missing").find("No such file"), std::string::npos) << text_for(folder.path() / "missing");
    EXPECT_NE(text_for(folder.write("empty", "")).find("found an empty file"), std::string::npos);
    EXPECT_NE(text_for("").find("expected a readable file"), std::string::npos);
    EXPECT_NE(text_for("/dev/zero").find("device"), std::string::npos);
    auto const pipe = folder.path() / "pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_NE(text_for(pipe).find("pipe"), std::string::npos);
    auto const loop = folder.path() / "loop";
    std::filesystem::create_symlink(loop, loop);
    EXPECT_NE(text_for(loop).find("expected a readable file"), std::string::npos);
#ifdef __linux__
    // A regular file whose reading fails.
    EXPECT_NE(text_for("/proc/self/mem").find("expected a readable file"), std::string::npos) << text_for("/proc/self/mem");
#endif
    if (geteuid() != 0) {
        auto const locked = folder.write("locked", "x");
        std::filesystem::permissions(locked, std::filesystem::perms::none);
        EXPECT_NE(text_for(locked).find("Permission denied"), std::string::npos);
    }
}

} // namespace
