// expect-first: CrossEntropyLoss needs a network with at least two outputs, one per class
// expect: cross_entropy_loss_on<lockstep::Sequential<lockstep::Linear<4(UL)?, 1(UL)?>[^;]*>, 1(UL)?>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>

#include <vector>

using namespace lockstep;

#ifdef LOCKSTEP_CONTROL
using Net = Sequential<Linear<4, 2>>;
#else
using Net = Sequential<Linear<4, 1>>;
#endif

double run(Model<Net>& model, std::vector<int> const& labels) { return model.loss(CrossEntropyLoss{}, labels, labels.size()); }
