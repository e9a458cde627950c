#pragma once

#include "micro/all_reduce_ways.hpp"

#include <lockstep/comm/mpi.hpp>

#include <functional>
#include <string>
#include <vector>

namespace lockstep::benchmarks {
namespace detail {

/// Runs body(communicators), with one of each kind, all of the same processes.
inline void with_communicators(std::vector<MpiOptions> const& kinds, std::vector<MpiCommunicator*>& comms,
                               std::function<void()> const& body) {
    if (comms.size() == kinds.size()) { return body(); }
    MpiCommunicator::launch(
        {},
        [&](MpiCommunicator& comm) {
            comms.push_back(&comm);
            with_communicators(kinds, comms, body);
            comms.pop_back();
        },
        kinds[comms.size()]);
}

/// Seconds of one call among `count` in a row, as this process sees them; the other ones leave at the same time.
template <class Run>
double time_mpi(std::size_t count, Run const& run) {
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 2; ++i) { run(); }
    MPI_Barrier(MPI_COMM_WORLD);
    double const start = now();
    for (std::size_t i = 0; i < count; ++i) { run(); }
    MPI_Barrier(MPI_COMM_WORLD);
    return (now() - start) / static_cast<double>(count);
}

} // namespace detail

/// MPI_Allreduce by itself, and Lockstep's all_reduce. On all processes.
[[nodiscard]] inline std::vector<AllReduceWay> measure_mpi(AllReduceJob const& job) {
    std::vector<AllReduceWay> ways{{"mpi", "MPI_Allreduce"}};
    std::vector<MpiOptions> kinds;
    for (auto const bytes : job.message_bytes) {
        if (bytes == 0) { continue; }
        kinds.push_back({.message_bytes = bytes});
        ways.push_back({"mpi", "fixed, " + std::to_string(bytes >> 10U) + " KiB"});
    }
    if (kinds.empty()) {
        kinds.emplace_back();
        ways.push_back({"mpi", "fixed order"});
    }
    kinds.push_back({.reduction = MpiReduction::native});
    ways.push_back({"mpi", "native"});
    AlignedBuffer<float> buffer(job.elements);
    auto const plain = [&] {
        MPI_Allreduce(MPI_IN_PLACE, buffer.data(), static_cast<int>(buffer.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    };
    std::vector<MpiCommunicator*> comms;
    detail::with_communicators(kinds, comms, [&] {
        auto count = static_cast<std::uint64_t>(job.count_for(detail::time_mpi(5, plain)));
        MPI_Bcast(&count, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
        for (int repeat = 0; repeat <= job.repeats; ++repeat) {
            std::vector<double> seconds{detail::time_mpi(count, plain)};
            for (auto* const comm : comms) {
                seconds.push_back(detail::time_mpi(count, [&] { comm->all_reduce(buffer.span()); }));
            }
            if (repeat > 0) { detail::add_repeat(ways, seconds); }
        }
    });
    return ways;
}

} // namespace lockstep::benchmarks
