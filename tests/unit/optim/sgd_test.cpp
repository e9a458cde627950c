#include <lockstep/optim/sgd.hpp>

#include "unit/bits.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace {

using lockstep::ArgumentError;
using lockstep::SGD;

double gradient_at(int step) { return std::sin(step + 1.0); }

/// PyTorch's algorithm for one parameter, written down a second time.
std::vector<double> by_hand(SGD const& sgd, double p, int steps) {
    std::vector<double> values;
    double buffer = 0;
    for (int step = 0; step < steps; ++step) {
        double g = gradient_at(step);
        if (sgd.weight_decay != 0) { g = g + sgd.weight_decay * p; }
        if (sgd.momentum != 0) {
            buffer = step == 0 ? g : sgd.momentum * buffer + (1 - sgd.dampening) * g;
            g = sgd.nesterov ? g + sgd.momentum * buffer : buffer;
        }
        p = p - sgd.lr * g;
        values.push_back(p);
    }
    return values;
}

TEST(SGD, FollowsPyTorchsDefinitions) {
    for (SGD const& sgd : {
             SGD{.lr = 0.1},
             SGD{.lr = 0.1, .weight_decay = 0.3},
             SGD{.lr = 0.1, .momentum = 0.9},
             SGD{.lr = 0.1, .momentum = 0.9, .dampening = 0.4},
             SGD{.lr = 0.1, .momentum = 0.9, .dampening = 0.4, .weight_decay = 0.3},
             SGD{.lr = 0.1, .momentum = 0.9, .nesterov = true},
             SGD{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.3, .nesterov = true},
             SGD{.lr = 0.1, .dampening = 0.4},
             SGD{.lr = 0, .momentum = 0.9},
         }) {
        auto const expected = by_hand(sgd, 0.7, 6);
        auto state = sgd.init<double>(1);
        std::array<double, 1> p{0.7};
        for (int step = 0; step < 6; ++step) {
            std::array<double, 1> const g{gradient_at(step)};
            sgd.step(std::span<double>{p}, std::span<double const>{g}, state);
            EXPECT_NEAR(p[0], expected[static_cast<std::size_t>(step)], 1e-14)
                << "momentum " << sgd.momentum << ", dampening " << sgd.dampening << ", weight_decay " << sgd.weight_decay
                << ", nesterov " << sgd.nesterov << ", step " << step;
        }
    }
}

TEST(SGD, FirstStepTakesTheGradientWithoutDampening) {
    SGD const sgd{.lr = 1, .momentum = 0.5, .dampening = 0.75};
    auto state = sgd.init<double>(1);
    std::array<double, 1> p{10};
    std::array<double, 1> const g{2};
    sgd.step(std::span<double>{p}, std::span<double const>{g}, state);
    EXPECT_EQ(p[0], 8);
    sgd.step(std::span<double>{p}, std::span<double const>{g}, state);
    EXPECT_EQ(p[0], 8 - (0.5 * 2 + 0.25 * 2));
}

TEST(SGD, RemembersNothingWithoutMomentum) {
    EXPECT_EQ(SGD{}.init<float>(1000).velocity.size(), 0U);
    EXPECT_EQ((SGD{.momentum = 0.9}.init<float>(1000).velocity.size()), 1000U);
}

template <class T>
void expect_pieces_equal_one_step(SGD const& sgd) {
    constexpr std::size_t size = 1003;
    std::vector<T> whole(size);
    std::vector<T> gradients(size);
    for (std::size_t i = 0; i < size; ++i) { whole[i] = static_cast<T>(std::sin(static_cast<double>(i))); }
    auto pieces = whole;
    auto state = sgd.init<T>(size);
    auto pieces_state = sgd.init<T>(size);
    for (int step = 0; step < 4; ++step) {
        for (std::size_t i = 0; i < size; ++i) { gradients[i] = static_cast<T>(std::cos(static_cast<double>(i) * (step + 1))); }
        sgd.step(std::span<T>{whole}, std::span<T const>{gradients}, state);
        constexpr std::array<std::size_t, 7> ends{0, 0, 1, 17, 500, 502, size};
        for (std::size_t i = ends.size() - 1; i > 0; --i) { // in any order
            std::size_t const first = ends[i - 1];
            std::size_t const count = ends[i] - first;
            sgd.update(first, std::span<T>{pieces}.subspan(first, count), std::span<T const>{gradients}.subspan(first, count),
                       pieces_state);
        }
        sgd.end_step(pieces_state);
        ASSERT_EQ(pieces, whole) << "step " << step; // bit for bit, there is no NaN
    }
}

TEST(SGD, PiecesGiveTheBitsOfOneStep) {
    for (SGD const& sgd : {
             SGD{.lr = 0.1},
             SGD{.lr = 0.1, .weight_decay = 0.3},
             SGD{.lr = 0.1, .momentum = 0.9, .dampening = 0.4, .weight_decay = 0.3},
             SGD{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.3, .nesterov = true},
         }) {
        expect_pieces_equal_one_step<float>(sgd);
        expect_pieces_equal_one_step<double>(sgd);
    }
}

std::string refusal(SGD const& sgd) {
    try {
        static_cast<void>(sgd.init<float>(1));
    } catch (ArgumentError const& error) { return error.what(); }
    return "accepted";
}

TEST(SGD, RefusesWhatIsNoHyperparameter) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr double inf = std::numeric_limits<double>::infinity();
    EXPECT_EQ(refusal({.lr = -0.5}), "SGD: lr must be a finite number of at least 0, got -0.5");
    EXPECT_EQ(refusal({.lr = nan}), "SGD: lr must be a finite number of at least 0, got nan");
    EXPECT_EQ(refusal({.lr = inf}), "SGD: lr must be a finite number of at least 0, got inf");
    for (double const value : {-1.0, nan, inf, -inf}) {
        EXPECT_EQ(refusal({.momentum = value}).find("SGD: momentum must be"), 0U) << value;
        EXPECT_EQ(refusal({.weight_decay = value}).find("SGD: weight_decay must be"), 0U) << value;
    }
    for (double const value : {nan, inf, -inf}) {
        EXPECT_EQ(refusal({.momentum = 0.9, .dampening = value}).find("SGD: dampening must be finite, got"), 0U) << value;
    }
    EXPECT_EQ(refusal({.nesterov = true}),
              "SGD: nesterov needs a momentum above 0 and a dampening of 0, got momentum 0 and dampening 0");
    EXPECT_NE(refusal({.momentum = 0.9, .dampening = 0.5, .nesterov = true}).find("dampening 0.5"), std::string::npos);
}

TEST(SGD, AcceptsWhatPyTorchAccepts) {
    EXPECT_EQ(refusal({}), "accepted");
    EXPECT_EQ(refusal({.lr = 0}), "accepted");
    EXPECT_EQ(refusal({.lr = 100, .momentum = 1.5, .dampening = -0.5, .weight_decay = 2}), "accepted");
    EXPECT_EQ(refusal({.momentum = 0.9, .nesterov = true}), "accepted");
}

TEST(SGD, NoticesGradientsOfAnotherSize) {
    SGD const sgd{.momentum = 0.9};
    auto state = sgd.init<float>(2);
    std::vector<float> p(3);
    std::vector<float> const g(3);
    EXPECT_THROW(sgd.step(std::span<float>{p}, std::span<float const>{g}.first(2), state), lockstep::AssertionError);
    EXPECT_THROW(sgd.step(std::span<float>{p}, std::span<float const>{g}, state), lockstep::AssertionError);
}

TEST(SGD, OfNoParametersDoesNothing) {
    SGD const sgd{.momentum = 0.9};
    auto state = sgd.init<float>(0);
    EXPECT_NO_THROW(sgd.step(std::span<float>{}, std::span<float const>{}, state));
}

template <class T>
std::uint64_t hash_of_updates() {
    lockstep::Fnv1a hash;
    for (SGD const& sgd : {
             SGD{.lr = 0.1},
             SGD{.lr = 0.1, .weight_decay = 0.3},
             SGD{.lr = 0.1, .momentum = 0.9},
             SGD{.lr = 0.1, .momentum = 0.9, .dampening = 0.4, .weight_decay = 0.3},
             SGD{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.3, .nesterov = true},
         }) {
        auto p = test::sample<T>(1001, 0);
        auto state = sgd.init<T>(p.size());
        for (std::uint32_t step = 1; step < 4; ++step) {
            auto const g = test::sample<T>(p.size(), step);
            sgd.step(std::span<T>{p}, std::span<T const>{g}, state);
        }
        test::add(hash, p);
    }
    return hash.value();
}

TEST(SGD, GivesTheStoredBits) {
    EXPECT_EQ(hash_of_updates<float>(), 7863446491376289785U);
    EXPECT_EQ(hash_of_updates<double>(), 3336954600690412262U);
}

} // namespace
