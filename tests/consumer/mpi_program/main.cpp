#include <lockstep/comm/mpi.hpp>
#include <lockstep/lockstep.hpp>

#include <cmath>
#include <cstdio>
#include <exception>

double sum_in_the_other_unit(lockstep::MpiCommunicator& comm, double value);

using namespace lockstep;

/// For 2 processes; others are refused, by launch.
int main() {
    static constexpr float inputs[] = {0.0f, 0.1f, 0.2f, 0.3f, 0.4f, 0.5f};
    static constexpr float targets[] = {0.0f, 0.2f, 0.4f, 0.6f, 0.8f, 1.0f};
    ArrayDataset<1, TargetVectors<1>> const data{std::span<float const>{inputs}, std::span<float const>{targets}};
    try {
        bool const good = launch<MpiCommunicator>({.num_workers = 2}, [&](Communicator auto& comm) {
            DataLoader train{data, comm, {.batch_size = 4, .seed = 1}};
            Trainer trainer{Model<Sequential<Linear<1, 3>, Tanh, Linear<3, 1>>>{seed(1)}, MSELoss{}, SGD{.lr = 0.05}, comm};
            double const loss = trainer.fit(train, {.epochs = 2}).history.back().train_loss;
            return std::isfinite(loss) && sum_in_the_other_unit(comm, comm.rank() + 1) == 3;
        });
        return good ? 0 : 1;
    } catch (std::exception const& error) { std::fprintf(stderr, "error: %s\n", error.what()); }
    return 1;
}
