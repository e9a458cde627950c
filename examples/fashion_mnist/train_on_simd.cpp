#include "train_on.hpp"
#include "training.hpp"

lockstep::Result train_on_simd(Options const& options) { return fashion_mnist_example::train_on<lockstep::SimdEngine>(options); }
