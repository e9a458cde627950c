// Trains with lockstep::core alone: SimdEngine, without BLAS and xtensor.
#include <lockstep/core.hpp>

#include <cstdint>
#include <span>

using namespace lockstep;

namespace {

struct Trained {
    double first_loss = 0;
    double last_loss = 0;
    std::uint64_t hash = 0;
};

Trained train(int workers) {
    static constexpr float inputs[] = {0.0f, 0.1f, 0.2f, 0.3f, 0.4f, 0.5f};
    static constexpr float targets[] = {0.0f, 0.2f, 0.4f, 0.6f, 0.8f, 1.0f};
    ArrayDataset<1, TargetVectors<1>> const data{std::span<float const>{inputs}, std::span<float const>{targets}};
    return launch<ThreadCommunicator>({.num_workers = workers}, [&](Communicator auto& comm) {
        DataLoader train{data, comm, {.batch_size = 6, .seed = 1, .shard_rows = 2}};
        Trainer trainer{Model<Sequential<Linear<1, 3>, Tanh, Linear<3, 1>>>{seed(1)}, MSELoss{}, SGD{.lr = 0.05}, comm};
        auto const result = trainer.fit(train, {.epochs = 20});
        return Trained{result.history.front().train_loss, result.history.back().train_loss, result.parameter_hashes.front()};
    });
}

} // namespace

int main() {
    Trained const alone = train(1);
    return alone.last_loss < alone.first_loss && alone.hash == train(3).hash ? 0 : 1;
}
