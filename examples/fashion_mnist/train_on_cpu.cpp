#include "train_on.hpp"
#include "training.hpp"

#include <lockstep/engine/cpu.hpp>

lockstep::Result train_on_cpu(Options const& options) { return fashion_mnist_example::train_on<lockstep::CpuEngine>(options); }
