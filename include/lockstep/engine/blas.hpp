#pragma once

#include "lockstep/core/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>

// Declared here and not through <cblas.h>, which cannot share a translation unit with xtensor-blas. Weak: only the library that
// is linked defines its own, the others' addresses are null.
extern "C" {
[[gnu::weak]] char* openblas_get_config();
[[gnu::weak]] char* openblas_get_corename();
[[gnu::weak]] int openblas_get_parallel();
[[gnu::weak]] int openblas_get_num_threads();
[[gnu::weak]] void openblas_set_num_threads(int);
[[gnu::weak]] char const* bli_info_get_version_str();
[[gnu::weak]] long bli_thread_get_num_threads();
[[gnu::weak]] void bli_thread_set_num_threads(long);
[[gnu::weak]] void mkl_get_version_string(char*, int);
[[gnu::weak]] int MKL_Get_Max_Threads();
[[gnu::weak]] void MKL_Set_Num_Threads(int);
}

/// What BLAS this program runs on. Which one that is, and with which kernels, decides the speed and has been seen to decide
/// whether the results are right, so it is printed with every run.
namespace lockstep::blas {

struct Info {
    std::string name = "CBLAS of unknown make";
    std::string version{};   ///< empty where the library does not tell
    std::string core{};      ///< the kernels chosen for this processor, e.g. "Haswell"; empty where the library does not tell
    std::string threading{}; ///< "sequential", "pthread", "OpenMP"; empty where the library does not tell
    int threads = 0;         ///< threads per call; 0 where the library does not tell
    std::string warning{};   ///< one sentence for the user when this library is known to serve badly; otherwise empty

    /// "OpenBLAS 0.3.21, core Haswell, pthread, 1 thread"
    [[nodiscard]] std::string description() const {
        std::string text = name;
        if (!version.empty()) { text += " " + version; }
        if (!core.empty()) { text += ", core " + core; }
        if (!threading.empty()) { text += ", " + threading; }
        if (threads > 0) { text += lockstep::detail::concat(", ", threads, threads == 1 ? " thread" : " threads"); }
        return text;
    }
};

namespace detail {

[[nodiscard]] inline Info openblas_info() {
    Info info{.name = "OpenBLAS"};
    std::string_view const config = openblas_get_config(); // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH … Haswell MAX_THREADS=64"
    auto const begin = config.find(' ');
    if (begin != std::string_view::npos) {
        info.version = std::string{config.substr(begin + 1, config.find(' ', begin + 1) - begin - 1)};
    }
    if (openblas_get_corename != nullptr) { info.core = openblas_get_corename(); }
    if (openblas_get_num_threads != nullptr) { info.threads = openblas_get_num_threads(); }
    if (openblas_get_parallel != nullptr) {
        int const kind = openblas_get_parallel();
        info.threading = kind == 0 ? "sequential" : kind == 1 ? "pthread" : "OpenMP";
        if (kind == 2) {
            info.warning = "this OpenBLAS is built with OpenMP, which makes products called from several threads up to 100 times "
                           "slower: use its pthread flavour (Debian: libopenblas0-pthread)";
        }
    }
    return info;
}

[[nodiscard]] inline Info mkl_info() {
    char version[200] = {};
    mkl_get_version_string(version, sizeof version - 1);
    Info info{.name = "Intel MKL", .version = version};
    if (MKL_Get_Max_Threads != nullptr) { info.threads = MKL_Get_Max_Threads(); }
    return info;
}

} // namespace detail

[[nodiscard]] inline Info info() {
    if (openblas_get_config != nullptr) { return detail::openblas_info(); }
    if (mkl_get_version_string != nullptr) { return detail::mkl_info(); }
    if (bli_info_get_version_str != nullptr) {
        Info info{.name = "BLIS", .version = bli_info_get_version_str()};
        if (bli_thread_get_num_threads != nullptr) { info.threads = static_cast<int>(bli_thread_get_num_threads()); }
        return info;
    }
    return {};
}

/// Threads that one BLAS call uses, for the whole process. Libraries that offer no such call are left as they are.
/// Throws ArgumentError for fewer than 1.
inline void set_num_threads(int threads) {
    if (threads < 1) { throw ArgumentError(lockstep::detail::concat("BLAS threads must be at least 1, got ", threads)); }
    if (openblas_set_num_threads != nullptr) { openblas_set_num_threads(threads); }
    if (MKL_Set_Num_Threads != nullptr) { MKL_Set_Num_Threads(threads); }
    if (bli_thread_set_num_threads != nullptr) { bli_thread_set_num_threads(threads); }
}

} // namespace lockstep::blas
