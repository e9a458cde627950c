#include <lockstep/nn/state_dict.hpp>

#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace state_dict_test {

using lockstep::ArgumentError;
using lockstep::Linear;
using Net = lockstep::Sequential<Linear<3, 5>, lockstep::ReLU, Linear<5, 2>>;
using Model = lockstep::Model<Net>;
using State = lockstep::StateDict<float>;

TEST(StateDict, HasPyTorchsNamesAndShapes) {
    Model model{lockstep::seed(1)};
    auto const state = model.state_dict();
    std::vector<std::string> names;
    for (auto const& tensor : state.tensors) { names.push_back(tensor.name); }
    EXPECT_EQ(names, (std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias"}));
    EXPECT_EQ(state.at("0.weight").shape, (std::vector<std::size_t>{5, 3}));
    EXPECT_EQ(state.at("0.bias").shape, (std::vector<std::size_t>{5}));
    EXPECT_EQ(state.at("2.weight").shape, (std::vector<std::size_t>{2, 5}));
    auto const weight = model.parameter(2);
    EXPECT_EQ(state.at("2.weight").values, (std::vector<float>(weight.begin(), weight.end())));
}

TEST(StateDict, TakesAPrefix) {
    Model const model{lockstep::seed(1)};
    auto const state = model.state_dict("encoder.");
    EXPECT_TRUE(state.contains("encoder.0.weight"));
    EXPECT_FALSE(state.contains("0.weight"));
    Model other{lockstep::seed(2)};
    other.load_state_dict(state, "encoder.");
    EXPECT_EQ(other.parameter_hash(), model.parameter_hash());
    EXPECT_THROW(other.load_state_dict(state), ArgumentError);
    EXPECT_THROW(other.load_state_dict(state, "decoder."), ArgumentError);
}

TEST(StateDict, ComesBackInAnyOrder) {
    Model const model{lockstep::seed(1)};
    auto state = model.state_dict();
    std::swap(state.tensors.front(), state.tensors.back());
    Model other{lockstep::seed(2)};
    ASSERT_NE(other.parameter_hash(), model.parameter_hash());
    other.load_state_dict(state);
    EXPECT_EQ(other.parameter_hash(), model.parameter_hash());
    EXPECT_EQ(other.state_dict(), model.state_dict());
}

TEST(StateDict, NamesATensorThatItDoesNotHave) {
    State state{{{"a", {1}, {1}}}};
    EXPECT_EQ(state.at("a").values[0], 1);
    try {
        static_cast<void>(state.at("b"));
        FAIL();
    } catch (ArgumentError const& error) { EXPECT_STREQ(error.what(), "the state dict has no tensor \"b\""); }
}

/// What load_state_dict says about a state that was changed, with the model untouched.
std::string refusal(std::function<void(State&)> const& change) {
    auto state = Model{lockstep::seed(2)}.state_dict();
    change(state);
    Model model{lockstep::seed(1)};
    auto const before = model.parameter_hash();
    std::string text = "accepted";
    try {
        model.load_state_dict(state);
    } catch (ArgumentError const& error) {
        text = error.what();
        EXPECT_EQ(model.parameter_hash(), before);
    }
    std::string const network = "this state dict does not fit Linear<3, 5> -> ReLU -> Linear<5, 2>: ";
    return text.substr(0, network.size()) == network ? text.substr(network.size()) : text;
}

TEST(StateDict, IsRefusedWhenItDoesNotFit) {
    EXPECT_EQ(refusal([](State&) {}), "accepted");
    EXPECT_EQ(refusal([](State& state) { state.tensors.pop_back(); }), "missing \"2.bias\"");
    EXPECT_EQ(refusal([](State& state) { state.tensors.push_back({"4.bias", {1}, {1}}); }), "unexpected \"4.bias\"");
    EXPECT_EQ(refusal([](State& state) { state.at("0.bias").name = "0.bais"; }), "missing \"0.bias\"; unexpected \"0.bais\"");
    EXPECT_EQ(refusal([](State& state) {
                  state.at("2.weight").shape = {5, 2};
              }),
              "\"2.weight\" has shape (5, 2) with 10 values, expected (2, 5)");
    EXPECT_EQ(refusal([](State& state) { state.at("2.weight").shape = {10}; }),
              "\"2.weight\" has shape (10) with 10 values, expected (2, 5)");
    EXPECT_EQ(refusal([](State& state) { state.at("2.bias").values.push_back(0); }),
              "\"2.bias\" has shape (2) with 3 values, expected (2)");
    EXPECT_EQ(refusal([](State& state) { state.at("2.bias").values.clear(); }),
              "\"2.bias\" has shape (2) with 0 values, expected (2)");
    EXPECT_EQ(refusal([](State& state) { state.tensors.clear(); }),
              "missing \"0.weight\"; missing \"0.bias\"; missing \"2.weight\"; missing \"2.bias\"");
}

TEST(StateDict, IsRefusedWhenItNamesATensorTwice) {
    EXPECT_EQ(refusal([](State& state) { state.tensors.push_back(state.tensors.front()); }), "repeated \"0.weight\"");
}

} // namespace state_dict_test
