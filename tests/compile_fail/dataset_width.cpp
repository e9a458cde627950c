// expect-first: this dataset does not fit the network: its features are not the network's inputs
// expect: dataset_for_network<lockstep::ArrayDataset<28(UL)?, lockstep::ClassLabels<10(UL)?>[^;]*>, 28(UL)?,
// lockstep::Sequential<lockstep::Linear<784(UL)?, 10(UL)?>[^;]*>, 784(UL)?>
#include <lockstep/comm/serial.hpp>
#include <lockstep/data/array_dataset.hpp>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/train/trainer.hpp>

using namespace lockstep;

using Net = Sequential<Linear<784, 10>>;
#ifdef LOCKSTEP_CONTROL
using Data = ArrayDataset<784, ClassLabels<10>>;
using LossType = CrossEntropyLoss;
#else
using Data = ArrayDataset<28, ClassLabels<10>>;
using LossType = CrossEntropyLoss;
#endif

Result run(SerialCommunicator& comm, DataLoader<Data>& data) {
    Trainer trainer{Model<Net>{seed(1)}, LossType{}, SGD{}, comm};
    return trainer.fit(data);
}
