// Between the two that do not fit lie layers that take any width: the ones with a width of their own are named.
// expect-first: two neighbouring layers of Sequential do not fit: the first one's output width is not the second one's input
// width expect: neighbouring_layers<4(UL)?, lockstep::Linear<512(UL)?, 128(UL)?>, 128(UL)?, lockstep::Linear<64(UL)?, 10(UL)?>,
// 64(UL)?>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>

using namespace lockstep;

#ifdef LOCKSTEP_CONTROL
using Net = Sequential<Linear<784, 512>, ReLU, Linear<512, 128>, ReLU, Linear<128, 10>>;
#else
using Net = Sequential<Linear<784, 512>, ReLU, Linear<512, 128>, ReLU, Linear<64, 10>>;
#endif

Model<Net> const model{seed(1)};
