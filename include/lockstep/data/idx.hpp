#pragma once

#include "lockstep/core/error.hpp"
#include "lockstep/io/gzip.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace lockstep {

/// An array as an IDX file holds it: unsigned bytes, row-major, of any number of dimensions.
struct IdxArray {
    std::vector<std::size_t> shape;
    std::vector<std::uint8_t> values;
};

namespace detail {

/// "3 x 28 x 28", as error texts show a shape.
[[nodiscard]] inline std::string shape_text(std::span<std::size_t const> shape) {
    std::string text;
    for (std::size_t const extent : shape) { text += concat(text.empty() ? "" : " x ", extent); }
    return text.empty() ? "no dimensions" : text;
}

class IdxReader {
public:
    explicit IdxReader(std::filesystem::path const& path) : stream_{path} {
        std::error_code unknown; // the stream has already refused what is no file
        file_size_ = std::filesystem::file_size(path, unknown);
    }

    IdxArray read(std::size_t rank) {
        IdxArray array;
        check_magic(rank);
        array.shape = read_shape(rank);
        read_values(array);
        return array;
    }

private:
    [[noreturn]] void fail(std::string const& expected, std::string const& found) const {
        throw DataError(concat(stream_.path().string(), ": expected ", expected, ", found ", found));
    }

    void check_magic(std::size_t rank) {
        std::array<std::uint8_t, 4> magic{};
        std::size_t const count = stream_.read(std::as_writable_bytes(std::span{magic}));
        if (count < magic.size() || magic[0] != 0 || magic[1] != 0) {
            fail("an IDX file (first bytes 0 0 8 " + concat(rank) + ")", describe(std::span{magic}.first(count)));
        }
        if (magic[2] != 0x08) { fail("IDX data of unsigned bytes (type 8)", type_name(magic[2])); }
        if (magic[3] != rank) { fail(concat("IDX data with ", rank, " dimensions"), concat(int{magic[3]}, " dimensions")); }
    }

    std::vector<std::size_t> read_shape(std::size_t rank) {
        std::vector<std::size_t> shape;
        for (std::size_t dimension = 0; dimension < rank; ++dimension) {
            std::array<std::uint8_t, 4> bytes{};
            if (stream_.read(std::as_writable_bytes(std::span{bytes})) < bytes.size()) {
                fail(concat("an IDX header with ", rank, " dimensions"), concat("the file's end within dimension ", dimension));
            }
            std::size_t extent = 0;
            for (auto const byte : bytes) { extent = extent << 8U | byte; }
            shape.push_back(extent);
        }
        return shape;
    }

    /// The header's word alone takes no memory: the array grows as its bytes arrive.
    void read_values(IdxArray& array) {
        std::size_t const total = element_count(array.shape);
        auto& values = array.values;
        while (values.size() < total) {
            constexpr std::size_t first_piece = std::size_t{1} << 16U;
            std::size_t const begin = values.size();
            std::size_t const end = std::min(total, begin + std::max(begin, first_piece));
            // Compressed images shrink to a half or a third; a small file must not fill the memory.
            if (end > expansion_free && end / expansion_limit > file_size_) {
                fail(concat("data of at most ", expansion_limit, " times the file's size"), concat("more than ", end, " bytes"));
            }
            values.reserve(end);
            values.resize(end);
            std::size_t const count = stream_.read(std::as_writable_bytes(std::span{values}.subspan(begin)));
            if (begin + count < end) {
                fail(concat(total, " bytes of data (", shape_text(array.shape), ")"), concat(begin + count));
            }
        }
        std::array<std::byte, 1> more{};
        if (stream_.read(more) != 0) {
            fail(concat("the end after ", total, " bytes of data (", shape_text(array.shape), ")"), "more bytes");
        }
    }

    std::size_t element_count(std::span<std::size_t const> shape) const {
        if (std::ranges::find(shape, std::size_t{0}) != shape.end()) { return 0; }
        constexpr auto limit = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
        std::size_t count = 1;
        for (std::size_t const extent : shape) {
            if (count > limit / extent) { fail("dimensions that fit into memory", shape_text(shape)); }
            count *= extent;
        }
        return count;
    }

    /// What a file that is no IDX file begins with; the usual surprise is an error page saved under the data's name.
    std::string describe(std::span<std::uint8_t const> begin) {
        std::array<std::uint8_t, 256> more{};
        auto const count = stream_.read(std::as_writable_bytes(std::span{more}));
        std::string text(begin.begin(), begin.end());
        text.append(more.begin(), more.begin() + static_cast<std::ptrdiff_t>(count));
        if (looks_like_html(text)) { return "what looks like an HTML page"; }
        if (begin.size() < 4) { return concat(begin.size(), " bytes"); }
        return concat("first bytes ", int{begin[0]}, " ", int{begin[1]}, " ", int{begin[2]}, " ", int{begin[3]});
    }

    static bool looks_like_html(std::string text) {
        for (char& letter : text) {
            if (letter >= 'A' && letter <= 'Z') { letter = static_cast<char>(letter - 'A' + 'a'); }
        }
        std::string_view view = text;
        if (view.starts_with("\xEF\xBB\xBF")) { view.remove_prefix(3); }
        view.remove_prefix(std::min(view.find_first_not_of(" \t\r\n"), view.size()));
        return view.starts_with("<!doctype") || view.starts_with("<html") || view.starts_with("<head") ||
               view.starts_with("<!--") || view.starts_with("<?xml");
    }

    static std::string type_name(std::uint8_t code) {
        switch (code) {
        case 0x09:
            return "signed bytes (type 9)";
        case 0x0B:
            return "16-bit integers (type 11)";
        case 0x0C:
            return "32-bit integers (type 12)";
        case 0x0D:
            return "32-bit floats (type 13)";
        case 0x0E:
            return "64-bit floats (type 14)";
        default:
            return concat("unknown type ", int{code});
        }
    }

    static constexpr std::size_t expansion_limit = 100;
    static constexpr std::size_t expansion_free = std::size_t{64} << 20U; // bytes that any file may hold

    InputStream stream_;
    std::uintmax_t file_size_ = 0;
};

} // namespace detail

/// Reads a whole IDX file of unsigned bytes, raw or gzip, that has `rank` dimensions. Throws DataError naming the file, what was
/// expected and what was found: another magic, type or rank, missing or trailing bytes, damaged compression, an HTML page, …
/// Source of the format: Y. LeCun, C. Cortes, C. J. C. Burges, "The MNIST database of handwritten digits".
[[nodiscard]] inline IdxArray read_idx(std::filesystem::path const& path, std::size_t rank) {
    return detail::IdxReader(path).read(rank);
}

} // namespace lockstep
