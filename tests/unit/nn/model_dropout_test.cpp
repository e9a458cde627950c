#include <lockstep/nn/model.hpp>

#include <lockstep/nn/layers.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace model_dropout_test {

using lockstep::Dropout;
using lockstep::Linear;
using lockstep::Rows;
// Two of them with the same width: their masks must differ all the same.
using Net = lockstep::Sequential<Dropout<>, Linear<6, 6>, lockstep::Tanh, Dropout<>>;

constexpr std::size_t rows = 20;

lockstep::Model<Net> identity_model(std::uint64_t seed = 1) {
    lockstep::Model<Net> model{lockstep::seed(seed)};
    for (float& value : model.parameters()) { value = 0; }
    for (std::size_t i = 0; i < 6; ++i) { model.parameter(1)[i] = 1; } // outputs tanh(1), but where they are dropped
    return model;
}

std::vector<float> outputs_of(lockstep::Model<Net>& model, std::uint64_t step = 0, std::size_t first = 0,
                              std::size_t count = rows) {
    std::vector<float> const x(6 * count, 1);
    model.forward(Rows<float const, 6>{x.data(), count}, step, first);
    auto const y = model.outputs().flat();
    return {y.begin(), y.end()};
}

TEST(ModelDropout, DiffersByStepAndSeedAndNotByRepetition) {
    auto model = identity_model();
    auto const mask = outputs_of(model);
    EXPECT_EQ(outputs_of(model), mask);
    EXPECT_NE(outputs_of(model, 1), mask);
    auto other = identity_model(2);
    EXPECT_NE(outputs_of(other), mask);
}

TEST(ModelDropout, ModelsOfOneSeedShareTheMask) {
    auto model = identity_model();
    auto other = identity_model();
    EXPECT_EQ(outputs_of(other, 7), outputs_of(model, 7));
}

TEST(ModelDropout, TheSplitIntoWorkersDoesNotMatter) {
    auto model = identity_model();
    auto const whole = outputs_of(model);
    std::vector<float> joined;
    for (std::size_t const first : {0U, 7U, 14U}) {
        auto const part = outputs_of(model, 0, first, first == 14 ? 6 : 7);
        joined.insert(joined.end(), part.begin(), part.end());
    }
    EXPECT_EQ(joined, whole);
}

TEST(ModelDropout, IsOffInEvaluation) {
    auto model = identity_model();
    model.eval();
    for (float const y : outputs_of(model)) { EXPECT_NEAR(y, 0.7615942F, 1e-6F); }
}

TEST(ModelDropout, FirstAndLastLayerHaveTheirOwnMasks) {
    auto model = identity_model();
    auto const last = outputs_of(model);
    for (std::size_t i = 0; i < 6; ++i) { // now outputs tanh(x), through both masks
        model.parameter(1)[i] = 0;
        model.parameter(0)[7 * i] = 1;
    }
    auto const both = outputs_of(model);
    std::size_t dropped_by_first_alone = 0;
    for (std::size_t i = 0; i < both.size(); ++i) {
        if (last[i] == 0) { EXPECT_EQ(both[i], 0); }
        dropped_by_first_alone += last[i] != 0 && both[i] == 0 ? 1U : 0U;
    }
    EXPECT_GT(dropped_by_first_alone, 15U); // about 30 of 120
}

} // namespace model_dropout_test
