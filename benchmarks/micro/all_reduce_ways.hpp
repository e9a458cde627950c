#pragma once

#include "common/affinity.hpp"
#include "common/machine_state.hpp"
#include "common/statistics.hpp"

#include <lockstep/comm/thread.hpp>
#include <lockstep/core/aligned_buffer.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace lockstep::benchmarks {

/// What is to be measured: all-reduces of so many floats. Plain data, since it goes to other processes too.
struct AllReduceJob {
    std::size_t elements = 0;
    int workers = 1;
    int repeats = 1;
    double block_seconds = 0;                   ///< so long each way is measured in each repeat
    std::array<std::size_t, 8> message_bytes{}; ///< MpiOptions::message_bytes to compare; all 0: the default

    [[nodiscard]] std::size_t count_for(double seconds) const {
        return static_cast<std::size_t>(std::clamp(block_seconds / seconds, 1.0, 20000.0));
    }
};

/// One way to all-reduce, measured block by block in turn with the others of its list, so that what the machine does meanwhile
/// meets all of them. The first one of the list is what the others are compared with.
struct AllReduceWay {
    std::string backend;
    std::string name;
    Repeats seconds{}; ///< of one all-reduce
    Repeats ratio{};   ///< to the first way's, in the same repeat
};

namespace detail {

inline void add_repeat(std::vector<AllReduceWay>& ways, std::vector<double> const& seconds) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
        ways[i].seconds.add(seconds[i]);
        ways[i].ratio.add(seconds[i] / seconds[0]);
    }
}

/// Seconds of one all-reduce, among `count` in a row. The numbers are zeros, and stay so.
inline double time_threads(std::vector<AlignedBuffer<float>>& buffers, double timeout_seconds, std::size_t count) {
    Scaling const scaling{.num_workers = static_cast<int>(buffers.size()), .timeout_seconds = timeout_seconds};
    return launch<ThreadCommunicator>(scaling, [&](ThreadCommunicator& comm) {
        auto const data = buffers[static_cast<std::size_t>(comm.rank())].span();
        // On a core each: two that meet on one, and do nothing but wait for each other, stay there for long.
        bool const enough = comm.size() <= static_cast<int>(std::thread::hardware_concurrency());
        OnCores const own{enough ? core(comm.rank()) : all_cores()};
        for (int i = 0; i < 3; ++i) { comm.all_reduce(data); }
        comm.barrier();
        double const start = now();
        for (std::size_t i = 0; i < count; ++i) { comm.all_reduce(data); }
        comm.barrier();
        return (now() - start) / static_cast<double>(count);
    });
}

} // namespace detail

/// Threads, without a timeout and with the one that everybody has.
[[nodiscard]] inline std::vector<AllReduceWay> measure_threads(AllReduceJob const& job) {
    std::array const timeouts{std::numeric_limits<double>::infinity(), Scaling{}.timeout_seconds};
    std::vector<AllReduceWay> ways{{"threads", "without timeout"}, {"threads", "all_reduce"}};
    std::vector<AlignedBuffer<float>> buffers;
    for (int i = 0; i < job.workers; ++i) { buffers.emplace_back(job.elements); }
    std::size_t const count = job.count_for(detail::time_threads(buffers, timeouts[0], 5));
    for (int repeat = 0; repeat <= job.repeats; ++repeat) {
        std::vector<double> seconds;
        for (auto const timeout : timeouts) { seconds.push_back(detail::time_threads(buffers, timeout, count)); }
        if (repeat > 0) { detail::add_repeat(ways, seconds); } // the first one wakes the machine
    }
    return ways;
}

} // namespace lockstep::benchmarks
