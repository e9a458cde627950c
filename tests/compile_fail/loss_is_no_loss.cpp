// expect-first: this is not a loss: see nn/losses.hpp
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>

#include <vector>

using namespace lockstep;

struct Hinge {};

#ifdef LOCKSTEP_CONTROL
using LossType = CrossEntropyLoss;
#else
using LossType = Hinge;
#endif

double run(Model<Sequential<Linear<4, 2>>>& model, std::vector<int> const& labels) {
    return model.loss(LossType{}, labels, labels.size());
}
