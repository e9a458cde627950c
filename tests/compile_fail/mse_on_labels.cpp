// expect-first: this loss does not fit the dataset: the loss takes target vectors, the dataset has class labels
// expect: loss_for_dataset<lockstep::ArrayDataset<4(UL)?, lockstep::ClassLabels<2(UL)?>[^;]*>, lockstep::MSELoss>
#include <lockstep/comm/serial.hpp>
#include <lockstep/data/array_dataset.hpp>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/train/trainer.hpp>

using namespace lockstep;

using Net = Sequential<Linear<4, 2>>;
#ifdef LOCKSTEP_CONTROL
using Data = ArrayDataset<4, TargetVectors<2>>;
using LossType = MSELoss;
#else
using Data = ArrayDataset<4, ClassLabels<2>>;
using LossType = MSELoss;
#endif

Result run(SerialCommunicator& comm, DataLoader<Data>& data) {
    Trainer trainer{Model<Net>{seed(1)}, LossType{}, SGD{}, comm};
    return trainer.fit(data);
}
