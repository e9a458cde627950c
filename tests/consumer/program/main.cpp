#include <lockstep/lockstep.hpp>

#include <cmath>

float parameter_of_the_other_unit();
float loss_after_training();

using namespace lockstep;

float loss_after_training() {
    static constexpr float inputs[] = {0.0f, 0.1f, 0.2f, 0.3f, 0.4f, 0.5f};
    static constexpr float targets[] = {0.0f, 0.2f, 0.4f, 0.6f, 0.8f, 1.0f};
    ArrayDataset<1, TargetVectors<1>> const data{std::span<float const>{inputs}, std::span<float const>{targets}};
    return launch<ThreadCommunicator>({.num_workers = 2}, [&](Communicator auto& comm) {
        DataLoader train{data, comm, {.batch_size = 4, .seed = 1}};
        Trainer trainer{Model<Sequential<Linear<1, 3>, Tanh, Linear<3, 1>>>{seed(1)}, MSELoss{}, SGD{.lr = 0.05}, comm};
        return static_cast<float>(trainer.fit(train, {.epochs = 2}).history.back().train_loss);
    });
}

int main() {
    float const loss = loss_after_training();
    return std::isfinite(loss) && std::isfinite(parameter_of_the_other_unit()) ? 0 : 1;
}
