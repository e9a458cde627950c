#include <lockstep/lockstep.hpp>

float parameter_of_the_other_unit();

using namespace lockstep;

float parameter_of_the_other_unit() {
    Model<Sequential<Linear<2, 3>, ReLU, Linear<3, 2>>> model{seed(1)};
    return model.parameters()[0];
}
