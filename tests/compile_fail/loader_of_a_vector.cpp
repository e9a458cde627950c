// expect-first: this type is not a dataset: it needs features, size\(\), load\(index, row\), target\(index\) and classes or
// targets
#include <lockstep/comm/serial.hpp>
#include <lockstep/data/array_dataset.hpp>
#include <lockstep/data/data_loader.hpp>

#include <vector>

using namespace lockstep;

std::size_t steps(std::vector<float> const& inputs, std::vector<int> const& labels) {
    SerialCommunicator comm;
#ifdef LOCKSTEP_CONTROL
    DataLoader loader{ArrayDataset<4, ClassLabels<2>>{inputs, labels}, comm, {.batch_size = 3}};
#else
    DataLoader loader{inputs, comm, {.batch_size = 3}};
    static_cast<void>(labels);
#endif
    return loader.steps();
}
