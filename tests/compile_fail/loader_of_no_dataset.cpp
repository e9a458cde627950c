// expect-first: this type is not a dataset: it needs features, size\(\), load\(index, row\), target\(index\) and classes or
// targets
#include <lockstep/comm/serial.hpp>
#include <lockstep/data/data_loader.hpp>

#include <utility>
#include <vector>

using namespace lockstep;

struct Data {
    static constexpr std::size_t features = 4;
    static constexpr std::size_t size() { return 10; }
    template <class T>
    void load(std::size_t /*index*/, std::span<T, 4> /*row*/) const {}
#ifdef LOCKSTEP_CONTROL
    static constexpr std::size_t classes = 2;
    static Label target(std::size_t /*index*/) { return 0; }
#endif
};

std::size_t steps() {
    SerialCommunicator comm;
    DataLoader loader{Data{}, comm, {.batch_size = 3}};
    return loader.steps();
}
