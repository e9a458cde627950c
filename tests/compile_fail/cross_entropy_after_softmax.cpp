// expect-first: CrossEntropyLoss takes logits or log-probabilities, but this network ends in Softmax: remove it or use LogSoftmax
// expect: cross_entropy_loss_on<lockstep::Sequential<lockstep::Linear<4(UL)?, 2(UL)?>, lockstep::Softmax, lockstep::Flatten>, 2(UL)?>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>

#include <vector>

using namespace lockstep;

#ifdef LOCKSTEP_CONTROL
using Net = Sequential<Linear<4, 2>, LogSoftmax, Flatten>;
#else
using Net = Sequential<Linear<4, 2>, Softmax, Flatten>;
#endif

double run(Model<Net>& model, std::vector<int> const& labels) { return model.loss(CrossEntropyLoss{}, labels, labels.size()); }
