#pragma once

#include "lockstep/core/error.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace lockstep {

/// Reads a file from its start to its end, raw or gzip: its first two bytes decide, never its name. It holds one small buffer,
/// whatever the file's size. Damaged or truncated gzip data, trailing garbage, an empty file and anything but a regular file are
/// a `DataError`. Source of the format: RFC 1952, with zero padding after the last member as gzip(1) accepts it.
class InputStream {
public:
    /// Opens `path`. Throws DataError.
    explicit InputStream(std::filesystem::path path) : path_{std::move(path)} {
        std::error_code error;
        auto const status = std::filesystem::status(path_, error);
        if (!std::filesystem::exists(status)) { fail("a readable file", error ? error.message() : "no such file"); }
        if (std::filesystem::is_directory(status)) { fail("a file", "a directory"); }
        // A pipe or a device could block for ever or never end.
        if (!std::filesystem::is_regular_file(status)) { fail("a regular file", "a pipe, socket or device"); }
        file_.reset(std::fopen(path_.c_str(), "rb"));
        if (!file_) { fail("a readable file", std::generic_category().message(errno)); }
        if (!refill()) { fail("data", "an empty file"); }
        if (input_.size() >= 2 && input_[0] == 0x1F && input_[1] == 0x8B) { start_inflating(); }
    }

    /// Fills `destination` with the next bytes and returns how many came: fewer than asked for only at the end of the data, whose
    /// checksums have then been verified. Throws DataError.
    std::size_t read(std::span<std::byte> destination) {
        std::size_t done = 0;
        while (done < destination.size()) {
            auto const rest = destination.subspan(done);
            std::size_t const count = inflater_ ? inflate_some(rest) : copy_some(rest);
            if (count == 0) { break; }
            done += count;
        }
        return done;
    }

    [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }
    [[nodiscard]] bool is_gzip() const noexcept { return inflater_ != nullptr; }

private:
    struct Close {
        void operator()(std::FILE* file) const noexcept { std::fclose(file); }
    };
    struct EndInflating {
        void operator()(z_stream* inflater) const noexcept {
            inflateEnd(inflater);
            delete inflater;
        }
    };

    [[noreturn]] void fail(std::string const& expected, std::string const& found) const {
        throw DataError(detail::concat(path_.string(), ": expected ", expected, ", found ", found));
    }

    void start_inflating() {
        auto inflater = std::make_unique<z_stream>();
        constexpr int gzip_only = 16;
        if (inflateInit2(inflater.get(), MAX_WBITS + gzip_only) != Z_OK) { throw std::bad_alloc(); }
        inflater_.reset(inflater.release());
    }

    /// Reads the next piece of the file once the last one is used up; false at the end of the file.
    bool refill() {
        if (!input_.empty()) { return true; }
        std::size_t const count = std::fread(buffer_.data(), 1, buffer_.size(), file_.get());
        if (std::ferror(file_.get()) != 0) { fail("a readable file", std::generic_category().message(errno)); }
        input_ = std::span{buffer_.data(), count};
        return count > 0;
    }

    std::size_t copy_some(std::span<std::byte> destination) {
        if (!refill()) { return 0; }
        std::size_t const count = std::min(destination.size(), input_.size());
        std::ranges::copy(std::as_bytes(input_.first(count)), destination.begin());
        input_ = input_.subspan(count);
        return count;
    }

    /// At least one byte, or 0 at the end of the last member.
    std::size_t inflate_some(std::span<std::byte> destination) {
        auto const room = static_cast<uInt>(std::min(destination.size(), std::size_t{1} << 30U));
        inflater_->next_out = reinterpret_cast<Bytef*>(destination.data());
        inflater_->avail_out = room;
        while (inflater_->avail_out == room && !ended_) {
            if (!refill()) { fail("a complete gzip file", "its end within compressed data (truncated)"); }
            inflater_->next_in = input_.data();
            inflater_->avail_in = static_cast<uInt>(input_.size());
            int const status = inflate(inflater_.get(), Z_NO_FLUSH);
            input_ = input_.last(inflater_->avail_in);
            if (status == Z_MEM_ERROR) { throw std::bad_alloc(); }
            if (status == Z_STREAM_END) {
                ended_ = !next_member();
            } else if (status != Z_OK) {
                fail("valid gzip data", detail::concat("damage: ", inflater_->msg != nullptr ? inflater_->msg : "no progress"));
            }
        }
        return room - inflater_->avail_out;
    }

    /// Called after a member's end: true when another one follows, false at the end of the file.
    bool next_member() {
        if (!refill()) { return false; }
        if (input_.front() == 0x1F) {
            inflateReset(inflater_.get());
            return true;
        }
        for (; refill(); input_ = {}) {
            auto const garbage = std::ranges::find_if(input_, [](unsigned char byte) { return byte != 0; });
            if (garbage != input_.end()) {
                fail("the end of the gzip file", detail::concat("trailing garbage (byte value ", int{*garbage}, ")"));
            }
        }
        return false;
    }

    std::filesystem::path path_;
    std::unique_ptr<std::FILE, Close> file_;
    std::unique_ptr<z_stream, EndInflating> inflater_;
    std::vector<unsigned char> buffer_ = std::vector<unsigned char>(std::size_t{1} << 16U);
    std::span<unsigned char> input_; // what is left of the last piece read
    bool ended_ = false;
};

} // namespace lockstep
