#include <lockstep/comm/communicator.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>

namespace {

/// The least that is a communicator: two imagined workers that always hold the same values.
struct Twins {
    static constexpr char const* name = "twins";
    [[nodiscard]] int rank() const { return 0; }
    [[nodiscard]] int size() const { return 2; }
    template <lockstep::Communicable T>
    void all_reduce(std::span<T> values) {
        for (auto& value : values) { value += value; }
    }
    template <lockstep::Communicable T>
    void broadcast(std::span<T> /*values*/, int /*root*/) {}
    void barrier() {}
};

struct WithoutBarrier : Twins {
    void barrier() = delete;
};

struct WithLongRank : Twins {
    [[nodiscard]] long rank() const { return 0; }
};

struct Fusing : Twins {
    template <lockstep::Communicable T, class Update>
    double reduce_update(double value, std::span<T> gradients, std::span<T> parameters, Update update) {
        all_reduce(gradients);
        update(0, parameters, std::span<T const>{gradients});
        return value;
    }
};

struct Sharing : Twins {
    template <class P>
    [[nodiscard]] std::shared_ptr<P> share(std::shared_ptr<P> const& pointer, int /*root*/) {
        return pointer;
    }
};

struct WithoutName {
    [[nodiscard]] int rank() const { return 0; }
    [[nodiscard]] int size() const { return 1; }
    template <class T>
    void all_reduce(std::span<T> /*values*/) {}
    template <class T>
    void broadcast(std::span<T> /*values*/, int /*root*/) {}
    void barrier() {}
};

static_assert(lockstep::Communicator<Twins>);
static_assert(!lockstep::Communicator<WithoutName>);
static_assert(lockstep::SharesMemory<Sharing> && !lockstep::SharesMemory<Twins>);
static_assert(!lockstep::Communicator<WithoutBarrier>);
static_assert(!lockstep::Communicator<WithLongRank>);
static_assert(!lockstep::Communicator<int>);
static_assert(lockstep::FusesUpdate<Fusing, float> && lockstep::FusesUpdate<Fusing, double>);
static_assert(!lockstep::FusesUpdate<Twins, float>);
static_assert(!lockstep::FusesUpdate<Fusing, int>);
static_assert(lockstep::Communicable<std::int64_t> && !lockstep::Communicable<float const> && !lockstep::Communicable<char>);

TEST(AllReduceSum, IsTheSumOverAllWorkers) {
    Twins comm;
    EXPECT_EQ(lockstep::all_reduce_sum(comm, 1.25), 2.5);
}

} // namespace
