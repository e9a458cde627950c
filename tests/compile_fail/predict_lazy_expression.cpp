// expect-first: predict takes arrays of numbers with data\(\) and size\(\) or shape\(\); evaluate a lazy expression first, e.g.
// with xt::eval
#include <lockstep/engine/xtensor.hpp>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>

using namespace lockstep;

std::size_t classes(Model<Sequential<Linear<4, 2>>>& model, xt::xtensor<float, 2> const& x) {
#ifdef LOCKSTEP_CONTROL
    return model.predict(xt::eval(x * 2.0F)).classes.size();
#else
    return model.predict(x * 2.0F).classes.size();
#endif
}
