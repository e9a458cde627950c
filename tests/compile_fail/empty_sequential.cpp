// expect-first: a Sequential needs at least one layer
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>

using namespace lockstep;

#ifdef LOCKSTEP_CONTROL
using Net = Sequential<Linear<2, 1>>;
#else
using Net = Sequential<>;
#endif

Model<Net> const model{seed(1)};
