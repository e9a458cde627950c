// expect-first: Linear<In, Out> needs at least one input and one output
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>

using namespace lockstep;

#ifdef LOCKSTEP_CONTROL
using Net = Sequential<Linear<1, 1>>;
#else
using Net = Sequential<Linear<0, 1>>;
#endif

Model<Net> const model{seed(1)};
