// expect-first: this type is not a layer: it needs forward and backward as nn/layer.hpp describes them
// expect: layer_in_sequential<Swish, 8(UL)?, 8(UL)?>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>

using namespace lockstep;

struct Swish {
    template <class T>
    static T forward(T x) {
        return x;
    }
#ifdef LOCKSTEP_CONTROL
    template <class T>
    static T backward(T /*x*/, T /*y*/, T dy) {
        return dy;
    }
#endif
};

Model<Sequential<Linear<784, 8>, Swish, Linear<8, 10>>> const model{seed(1)};
