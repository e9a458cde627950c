// Probability 1 would divide by 0.
// expect-first: Dropout<std::ratio<N, D>> needs a probability in \[0, 1\)
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>

#include <ratio>

using namespace lockstep;

#ifdef LOCKSTEP_CONTROL
using P = std::ratio<0>;
#else
using P = std::ratio<1>;
#endif

Model<Sequential<Linear<4, 4>, Dropout<P>>> const model{seed(1)};
