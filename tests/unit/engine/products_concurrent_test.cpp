#include <lockstep/engine/products.hpp>

#include <lockstep/engine/cpu.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <thread>
#include <vector>

namespace products_concurrent_test {

using lockstep::Rows;

constexpr std::size_t in = 301;
constexpr std::size_t out = 130;
constexpr std::size_t rows = 67;

template <class T>
struct Job {
    std::vector<T> x = std::vector<T>(rows * in), w = std::vector<T>(out * in), dy = std::vector<T>(rows * out);
    std::vector<T> y = std::vector<T>(rows * out), dx = std::vector<T>(rows * in), dw = std::vector<T>(out * in);

    explicit Job(std::size_t salt) {
        for (auto* const values : {&x, &w, &dy}) {
            for (std::size_t i = 0; i < values->size(); ++i) {
                (*values)[i] = static_cast<T>(std::sin(static_cast<double>(i * ++salt % 10'007)));
            }
        }
    }
    void run() {
        Rows<T const, in> const x_rows{x.data(), rows};
        Rows<T const, out> const dy_rows{dy.data(), rows};
        lockstep::detail::multiply_transposed<in, out>(x_rows, w.data(), Rows<T, out>{y.data(), rows});
        lockstep::detail::multiply<in, out>(dy_rows, w.data(), Rows<T, in>{dx.data(), rows});
        lockstep::detail::transposed_multiply<in, out>(dy_rows, x_rows, dw.data());
    }
    friend bool operator==(Job const&, Job const&) = default;
};

template <class T>
void expect_same_bits_as_alone() {
    lockstep::CpuEngine::set_num_threads(1);
    std::vector<Job<T>> alone;
    for (std::size_t i = 0; i < 4; ++i) {
        alone.emplace_back(i);
        alone.back().run();
    }
    for (int round = 0; round < 10; ++round) {
        std::vector<Job<T>> together;
        for (std::size_t i = 0; i < 4; ++i) { together.emplace_back(i); }
        std::vector<std::thread> threads;
        for (auto& job : together) {
            threads.emplace_back([&job] { job.run(); });
        }
        for (auto& thread : threads) { thread.join(); }
        ASSERT_TRUE(together == alone) << "round " << round;
    }
}

TEST(Products, OfFourThreadsHaveTheBitsOfOne) {
    expect_same_bits_as_alone<float>();
    expect_same_bits_as_alone<double>();
}

} // namespace products_concurrent_test
