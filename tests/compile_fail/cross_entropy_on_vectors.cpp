// expect-first: this loss does not fit the dataset: the loss takes class labels, the dataset has target vectors
// expect: loss_for_dataset<lockstep::ArrayDataset<4(UL)?, lockstep::TargetVectors<2(UL)?>[^;]*>, lockstep::CrossEntropyLoss>
#include <lockstep/comm/serial.hpp>
#include <lockstep/data/array_dataset.hpp>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/train/trainer.hpp>

using namespace lockstep;

using Net = Sequential<Linear<4, 2>>;
#ifdef LOCKSTEP_CONTROL
using Data = ArrayDataset<4, ClassLabels<2>>;
using LossType = CrossEntropyLoss;
#else
using Data = ArrayDataset<4, TargetVectors<2>>;
using LossType = CrossEntropyLoss;
#endif

Result run(SerialCommunicator& comm, DataLoader<Data>& data) {
    Trainer trainer{Model<Net>{seed(1)}, LossType{}, SGD{}, comm};
    return trainer.fit(data);
}
