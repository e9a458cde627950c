// Two layers and a dataset of your own. The gradients of the layers are checked before they are trusted.
#include <lockstep/lockstep.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>

using namespace lockstep;

namespace {

/// An element-wise layer, y = x / (1 + exp(-x)): two functions on scalars. (If y is enough, leave x out of `backward`.)
/// `math::exp` has the same bits on every machine, unlike `std::exp`.
struct SiLU {
    template <class T>
    static T forward(T x) {
        return x / (T{1} + math::exp(-x));
    }
    template <class T>
    static T backward(T x, T y, T dy) {
        T const sigmoid = T{1} / (T{1} + math::exp(-x));
        return dy * (sigmoid + y * (T{1} - sigmoid));
    }
};

/// A layer on whole rows, with parameters: y[i] = scale[i] * x[i], of any width.
struct Scale {
    template <std::size_t In>
    static constexpr std::array<TensorSpec, 1> tensors() {
        return {TensorSpec{"scale", {In}, Initializer::constant(1)}};
    }
    static void forward(auto const& pass) {
        auto const scale = pass.parameters[0];
        for (std::size_t r = 0; r < pass.x.rows(); ++r) {
            for (std::size_t i = 0; i < scale.size(); ++i) { pass.y[r][i] = scale[i] * pass.x[r][i]; }
        }
    }
    static void backward(auto const& pass) {
        auto const scale = pass.parameters[0];
        auto const scale_gradient = pass.gradients[0];
        std::fill(scale_gradient.begin(), scale_gradient.end(), 0); // gradients are the sums over this batch's rows
        for (std::size_t r = 0; r < pass.x.rows(); ++r) {
            for (std::size_t i = 0; i < scale.size(); ++i) {
                scale_gradient[i] += pass.dy[r][i] * pass.x[r][i];
                pass.dx[r][i] = pass.dy[r][i] * scale[i];
            }
        }
    }
};

/// Points on three arms of a spiral, computed when they are asked for: a dataset need not store anything.
struct Spirals {
    static constexpr std::size_t features = 2;
    static constexpr std::size_t classes = 3;
    std::uint64_t first = 0;

    [[nodiscard]] static std::size_t size() { return 1500; }
    template <class T>
    void load(std::size_t index, std::span<T, features> x) const {
        double const radius = RandomStream{1, RandomPurpose::data, 0}.uniform(first + index);
        double const angle = 4 * radius + 2.0944 * target(index);
        x[0] = static_cast<T>(radius * std::cos(angle));
        x[1] = static_cast<T>(radius * std::sin(angle));
    }
    [[nodiscard]] static Label target(std::size_t index) { return static_cast<Label>(index % classes); }
};

using Net = Sequential<Linear<2, 32>, SiLU, Scale, Linear<32, 32>, SiLU, Linear<32, 3>>;

} // namespace

int main() {
    auto const check = gradient_check<Net, CrossEntropyLoss>();
    std::printf("gradients: %zu checked, largest error %.1e\n", check.checked, check.worst_error);

    auto const result = launch<ThreadCommunicator>({.num_workers = 2}, [](Communicator auto& comm) {
        DataLoader train{Spirals{}, comm, {.batch_size = 50, .seed = 1}};
        DataLoader test{Spirals{.first = Spirals::size()}, comm, {.batch_size = 500, .shuffle = false}};
        Trainer trainer{Model<Net>{seed(1)}, CrossEntropyLoss{}, SGD{.lr = 0.1, .momentum = 0.9}, comm, ConsoleReporter{}};
        return trainer.fit(train, test, {.epochs = 20});
    });
    return check.passed() && result.metrics["accuracy"] > 0.9 ? 0 : 1;
}
