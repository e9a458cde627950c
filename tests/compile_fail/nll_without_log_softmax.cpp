// expect-first: NLLLoss takes log-probabilities: end the network with LogSoftmax, or use CrossEntropyLoss on logits
// expect: nll_loss_on<lockstep::Sequential<lockstep::Linear<4(UL)?, 2(UL)?>[^;]*>, lockstep::Linear<4(UL)?, 2(UL)?>[ ]?>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>

#include <vector>

using namespace lockstep;

#ifdef LOCKSTEP_CONTROL
using Net = Sequential<Linear<4, 2>, LogSoftmax>;
#else
using Net = Sequential<Linear<4, 2>>;
#endif

double run(Model<Net>& model, std::vector<int> const& labels) { return model.loss(NLLLoss{}, labels, labels.size()); }
