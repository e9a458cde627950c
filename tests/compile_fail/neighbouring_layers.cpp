// expect-first: two neighbouring layers of Sequential do not fit: the first one's output width is not the second one's input
// width expect: neighbouring_layers<1(UL)?, lockstep::Linear<784(UL)?, 512(UL)?>, 512(UL)?, lockstep::Linear<128(UL)?, 10(UL)?>,
// 128(UL)?>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>

using namespace lockstep;

#ifdef LOCKSTEP_CONTROL
using Net = Sequential<Linear<784, 512>, Linear<512, 10>>;
#else
using Net = Sequential<Linear<784, 512>, Linear<128, 10>>;
#endif

Model<Net> const model{seed(1)};
