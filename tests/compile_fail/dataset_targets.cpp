// expect-first: this dataset does not fit the network: its target vectors are not as wide as the network's outputs
// expect: targets_for_network<lockstep::ArrayDataset<4(UL)?, lockstep::TargetVectors<3(UL)?>[^;]*>, 3(UL)?,
// lockstep::Sequential<lockstep::Linear<4(UL)?, 2(UL)?>[^;]*>, 2(UL)?>
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
using Data = ArrayDataset<4, TargetVectors<3>>;
using LossType = MSELoss;
#endif

Result run(SerialCommunicator& comm, DataLoader<Data>& data) {
    Trainer trainer{Model<Net>{seed(1)}, LossType{}, SGD{}, comm};
    return trainer.fit(data);
}
