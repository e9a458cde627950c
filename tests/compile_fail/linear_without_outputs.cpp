// expect-first: Linear<In, Out> needs at least one input and one output
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>

using namespace lockstep;

#ifdef LOCKSTEP_CONTROL
using Net = Sequential<Linear<1, 1>, ReLU>;
#else
using Net = Sequential<Linear<1, 0>, ReLU>;
#endif

Model<Net> const model{seed(1)};
