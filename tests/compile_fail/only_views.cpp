// A network that computes nothing.
// expect-first: no layer of this Sequential has a width of its own
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>

using namespace lockstep;

#ifdef LOCKSTEP_CONTROL
using Net = Sequential<Flatten, Linear<4, 4>>;
#else
using Net = Sequential<Flatten, Flatten>;
#endif

Model<Net> const model{seed(1)};
