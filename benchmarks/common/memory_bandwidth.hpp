#pragma once

#include "common/machine_state.hpp"

#include <lockstep/core/aligned_buffer.hpp>

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <thread>
#include <vector>

namespace lockstep::benchmarks {

/// GB/s that `threads` threads read and write together, in a[i] += s * b[i] on arrays of 64 MiB each: two reads and one write per
/// element, and as a is read there is no hidden read of what is written. The best of some passes.
/// Source: J. D. McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance Computers", IEEE TCCA Newsletter,
/// 1995 (STREAM; its triad, in place).
[[nodiscard]] inline double memory_bandwidth(int threads) {
    constexpr std::size_t count = (std::size_t{64} << 20U) / sizeof(float);
    constexpr int passes = 6; // the first one touches the memory
    double best = 0;
    double start = 0;
    int pass = 0;
    auto const end_pass = [&]() noexcept {
        double const end = detail::now();
        if (pass++ > 1) { best = std::max(best, 3.0 * sizeof(float) * count * threads / (end - start) / 1e9); }
        start = detail::now();
    };
    std::barrier all{threads, end_pass};
    std::vector<std::thread> workers;
    for (int i = 0; i < threads; ++i) {
        workers.emplace_back([&] {
            AlignedBuffer<float> a(count);
            AlignedBuffer<float> b(count);
            float* __restrict const into = a.data();
            float const* __restrict const from = b.data();
            for (int p = 0; p <= passes; ++p) {
                all.arrive_and_wait();
                for (std::size_t k = 0; k < count && p < passes; ++k) { into[k] += 0.5F * from[k]; }
            }
        });
    }
    for (auto& worker : workers) { worker.join(); }
    return best;
}

} // namespace lockstep::benchmarks
