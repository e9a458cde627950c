// Regression on xtensor arrays: a small network learns a curve, data-parallel, and then predicts points that it has not seen.
#include <lockstep/lockstep.hpp>

// xtensor 0.26 and later: <xtensor/containers/xtensor.hpp>, <xtensor/generators/xbuilder.hpp>, <xtensor/core/xmath.hpp>
#include <xtensor/xbuilder.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xtensor.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>

using namespace lockstep;

namespace {

using Net = Sequential<Linear<1, 32>, Tanh, Linear<32, 32>, Tanh, Linear<32, 1>>;

using Points = xt::xtensor<float, 1>;

Points curve(Points const& x) { return xt::sin(3.0f * x) + 0.5f * x; }

} // namespace

int main() {
    Points const x = xt::linspace(-1.0f, 1.0f, 1000);
    ArrayDataset<1, TargetVectors<1>> const data{x, curve(x)}; // copies the arrays

    StateDict<float> const learned = launch<ThreadCommunicator>({.num_workers = 2}, [&](Communicator auto& comm) {
        DataLoader train{data, comm, {.batch_size = 50, .seed = 1}};
        Trainer trainer{Model<Net>{seed(1)}, MSELoss{}, SGD{.lr = 0.05, .momentum = 0.9}, comm};
        trainer.fit(train, {.epochs = 60});
        return trainer.model().state_dict();
    });

    Model<Net> model{seed(2)};
    model.load_state_dict(learned);
    Points const unseen = xt::linspace(-0.9f, 0.8f, 7);
    Points const expected = curve(unseen);
    auto const prediction = model.predict(unseen);

    float worst = 0;
    std::printf("     x   expected   predicted\n");
    for (std::size_t i = 0; i < unseen.size(); ++i) {
        float const predicted = prediction.rows()[i][0];
        worst = std::max(worst, std::abs(predicted - expected[i]));
        std::printf("%6.3f %10.4f %11.4f\n", static_cast<double>(unseen[i]), static_cast<double>(expected[i]),
                    static_cast<double>(predicted));
    }
    return worst < 0.1f ? 0 : 1;
}
