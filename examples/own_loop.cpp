// A training loop of your own, without Trainer: here with gradients clipped to a largest norm.
#include <lockstep/lockstep.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <span>

using namespace lockstep;

namespace {

using Net = Sequential<Linear<16, 32>, Tanh, Linear<32, 4>>;

void clip(std::span<float> gradients, float largest) {
    float const norm = std::sqrt(std::inner_product(gradients.begin(), gradients.end(), gradients.begin(), 0.0f));
    if (norm <= largest) { return; }
    for (auto& gradient : gradients) { gradient *= largest / norm; }
}

/// What every worker runs; returns the accuracy on the test data.
double train(Communicator auto& comm) {
    DataLoader train{synthetic_classification<16, 4>(2000, seed(1)), comm, {.batch_size = 50, .seed = 1}};
    DataLoader test{synthetic_classification<16, 4>(500, seed(1), {.split = 1}), comm, {.batch_size = 500, .shuffle = false}};

    Model<Net> model{seed(1)};
    model.reserve(std::max(train.max_rows(), test.max_rows())); // no step allocates
    comm.broadcast(model.parameters(), 0);                      // all start from the same weights

    CrossEntropyLoss const loss;
    SGD const sgd{.lr = 0.1, .momentum = 0.9};
    auto state = sgd.init<float>(model.parameters().size());

    double accuracy = 0;
    for (int epoch = 1; epoch <= 5; ++epoch) {
        double loss_sum = 0;
        for (auto const& batch : train) { // this worker's part of the global batch
            model.forward(batch);
            loss_sum += model.loss(loss, batch);
            model.backward();
            comm.all_reduce(model.gradients()); // from here on every worker has the whole batch's gradients
            clip(model.gradients(), 1.0f);
            sgd.step(model.parameters(), model.gradients(), state);
        }
        double const train_loss = all_reduce_sum(comm, loss_sum) / static_cast<double>(train.samples());
        accuracy = evaluate(model, loss, test, comm).accuracy.value();
        if (comm.rank() == 0) { std::printf("epoch %d  train loss %.4f  accuracy %.2f %%\n", epoch, train_loss, 100 * accuracy); }
    }
    return accuracy;
}

} // namespace

int main() {
    double const accuracy = launch<ThreadCommunicator>({.num_workers = 2}, [](Communicator auto& comm) { return train(comm); });
    return accuracy > 0.95 ? 0 : 1;
}
