#pragma once

#include <lockstep/comm/mpi.hpp>

#include <gtest/gtest.h>

#include <memory>

/// GoogleTest in MPI processes: all run the same tests, rank 0 tells of them; the others speak up only when something fails.
namespace conformance {

inline int processes() {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

class OnlyFailures : public testing::EmptyTestEventListener {
public:
    explicit OnlyFailures(int rank) : rank_{rank} {}

    void OnTestPartResult(testing::TestPartResult const& result) override {
        if (!result.failed()) { return; }
        std::fprintf(stderr, "process %d: %s:%d: %s\n", rank_, result.file_name() == nullptr ? "" : result.file_name(),
                     result.line_number(), result.message());
    }

private:
    int rank_;
};

/// MPI is the test program's here: Lockstep is a guest in it. One process that fails makes all fail.
inline int mpi_main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    testing::InitGoogleTest(&argc, argv);
    if (rank != 0) {
        auto& listeners = testing::UnitTest::GetInstance()->listeners();
        delete listeners.Release(listeners.default_result_printer());
        listeners.Append(std::make_unique<OnlyFailures>(rank).release());
    }
    int failed = RUN_ALL_TESTS();
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return failed;
}

} // namespace conformance
