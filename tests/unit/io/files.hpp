#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

/// What tests that read files share.
namespace lockstep::test {

/// A new empty folder that goes away with everything in it.
class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "lockstep-test-XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr) { throw std::runtime_error("cannot make a temporary folder"); }
        path_ = pattern;
    }
    TemporaryFolder(TemporaryFolder const&) = delete;
    TemporaryFolder& operator=(TemporaryFolder const&) = delete;
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    [[nodiscard]] std::filesystem::path const& path() const { return path_; }

    /// Writes a file of this folder and returns its path.
    std::filesystem::path write(std::string_view name, std::string_view content) const {
        auto path = path_ / name;
        std::ofstream file(path, std::ios::binary | std::ios::trunc);
        file.write(content.data(), static_cast<std::streamsize>(content.size()));
        file.close();
        if (!file) { throw std::runtime_error("cannot write " + path.string()); }
        return path;
    }

private:
    std::filesystem::path path_;
};

/// One gzip member that holds `content`; `header` adds FNAME, FEXTRA and FCOMMENT fields.
inline std::string gzip(std::string_view content, bool header = false) {
    z_stream stream{};
    if (deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
        throw std::runtime_error("deflateInit2");
    }
    std::string name = "a name.html";
    std::string comment = "a comment";
    std::string extra = "extra";
    gz_header fields{};
    if (header) {
        fields.name = reinterpret_cast<Bytef*>(name.data());
        fields.comment = reinterpret_cast<Bytef*>(comment.data());
        fields.extra = reinterpret_cast<Bytef*>(extra.data());
        fields.extra_len = static_cast<uInt>(extra.size());
        fields.hcrc = 1;
        deflateSetHeader(&stream, &fields);
    }
    std::string input{content};
    std::string output(deflateBound(&stream, static_cast<uLong>(input.size())) + 100, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(input.data());
    stream.avail_in = static_cast<uInt>(input.size());
    stream.next_out = reinterpret_cast<Bytef*>(output.data());
    stream.avail_out = static_cast<uInt>(output.size());
    int const status = deflate(&stream, Z_FINISH);
    output.resize(stream.total_out);
    deflateEnd(&stream);
    if (status != Z_STREAM_END) { throw std::runtime_error("deflate"); }
    return output;
}

/// The text of the `Expected` exception that `call` throws, or "" with nothing thrown.
template <class Expected, class Call>
std::string error_text(Call&& call) {
    try {
        std::forward<Call>(call)();
    } catch (Expected const& error) { return error.what(); }
    return "";
}

} // namespace lockstep::test
