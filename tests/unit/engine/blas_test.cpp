#include <lockstep/engine/blas.hpp>

#include <gtest/gtest.h>

#include <string>

namespace {

namespace blas = lockstep::blas;

TEST(Blas, SaysWhatItIs) {
    auto const info = blas::info();
    EXPECT_FALSE(info.name.empty());
    EXPECT_EQ(info.description().find(info.name), 0U);
    if (info.name == "OpenBLAS") {
        ASSERT_FALSE(info.version.empty());
        EXPECT_EQ(info.version.find_first_not_of("0123456789.dev"), std::string::npos) << info.version;
        EXPECT_NE(info.version.find('.'), std::string::npos) << info.version;
        EXPECT_FALSE(info.core.empty());
        EXPECT_TRUE(info.threading == "sequential" || info.threading == "pthread" || info.threading == "OpenMP");
        EXPECT_EQ(info.warning.empty(), info.threading != "OpenMP");
        EXPECT_GE(info.threads, 1);
    }
}

TEST(Blas, DescribesWhatIsKnown) {
    EXPECT_EQ((blas::Info{.name = "OpenBLAS", .version = "0.3.21", .core = "Haswell", .threading = "pthread", .threads = 1}
                   .description()),
              "OpenBLAS 0.3.21, core Haswell, pthread, 1 thread");
    EXPECT_EQ((blas::Info{.name = "BLIS", .version = "0.9.0", .threads = 2}.description()), "BLIS 0.9.0, 2 threads");
    EXPECT_EQ(blas::Info{}.description(), "CBLAS of unknown make");
}

TEST(Blas, RefusesFewerThanOneThread) {
    for (int const threads : {0, -1}) {
        try {
            blas::set_num_threads(threads);
            FAIL();
        } catch (lockstep::ArgumentError const& error) {
            EXPECT_EQ(std::string{error.what()}, "BLAS threads must be at least 1, got " + std::to_string(threads));
        }
    }
}

TEST(Blas, TakesTheNumberOfThreads) {
    auto const before = blas::info().threads;
    if (before == 0) { GTEST_SKIP() << "this BLAS does not tell its number of threads"; }
    blas::set_num_threads(1);
    EXPECT_EQ(blas::info().threads, 1);
    blas::set_num_threads(2);
    auto const two = blas::info();
    EXPECT_EQ(two.threads, two.threading == "sequential" ? 1 : 2);
    blas::set_num_threads(before);
}

} // namespace
