// expect-first: no layer of this Sequential has a width of its own: begin with Linear<In, Out>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>

using namespace lockstep;

#ifdef LOCKSTEP_CONTROL
using Net = Sequential<Flatten, Linear<4, 4>, ReLU>;
#else
using Net = Sequential<Flatten, ReLU>;
#endif

Model<Net> const model{seed(1)};
