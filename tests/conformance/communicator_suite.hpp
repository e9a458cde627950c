#pragma once

#include "communicator_values.hpp"

#include <lockstep/comm/communicator.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <span>
#include <thread>
#include <vector>

/// What every communicator must do. A backend is a type with
///   using Comm = …;                                    // the communicator
///   static std::vector<int> worker_counts();           // the numbers of workers to test
///   static void run(int workers, Body const& body);    // body(Comm&) on so many workers; errors come out as launch throws them
///   static int barrier_rounds(int workers);            // how many barriers in a row are quick enough
///   static constexpr bool shares_memory;               // workers see the same variables
/// and is tested with INSTANTIATE_TYPED_TEST_SUITE_P(Name, CommunicatorSuite, Backend).
namespace conformance {

template <class Backend>
class CommunicatorSuite : public testing::Test {
public:
    /// Runs body(comm) for every number of workers.
    template <class Body>
    static void on_all(Body const& body) {
        for (int const workers : Backend::worker_counts()) { Backend::run(workers, body); }
    }
};

TYPED_TEST_SUITE_P(CommunicatorSuite);

TYPED_TEST_P(CommunicatorSuite, FulfilsTheConcept) { static_assert(lockstep::Communicator<typename TypeParam::Comm>); }

TYPED_TEST_P(CommunicatorSuite, RanksAreNumberedFromZero) {
    for (int const workers : TypeParam::worker_counts()) {
        TypeParam::run(workers, [workers](auto& comm) {
            EXPECT_EQ(comm.size(), workers);
            std::vector<std::int64_t> seen(static_cast<std::size_t>(workers));
            seen.at(static_cast<std::size_t>(comm.rank())) = 1;
            comm.all_reduce(std::span<std::int64_t>{seen});
            EXPECT_EQ(seen, std::vector<std::int64_t>(static_cast<std::size_t>(workers), 1));
        });
    }
}

TYPED_TEST_P(CommunicatorSuite, TheDataShowTheOrderOfAdditions) { // else the next tests would prove little
    int different = 0;
    for (std::size_t i = 0; i < 100; ++i) {
        float in_sequence = 0;
        for (int rank = 0; rank < 4; ++rank) { in_sequence += value<float>(rank, i, 1); }
        different += same_bits(in_sequence, expected_sum<float>(4, i, 1)) ? 0 : 1;
    }
    EXPECT_GT(different, 5);
}

TYPED_TEST_P(CommunicatorSuite, AllReduceIsTheTreeSum) {
    this->on_all([](auto& comm) {
        for_each_scalar([&]<class T>(T) {
            for (std::size_t const count : counts()) {
                auto data = values<T>(comm.rank(), count, count);
                comm.all_reduce(std::span<T>{data});
                expect_bits(
                    data, [&](std::size_t i) { return expected_sum<T>(comm.size(), i, count); }, "all_reduce", comm.rank(),
                    comm.size());
            }
        });
    });
}

TYPED_TEST_P(CommunicatorSuite, AllReduceOfManyElements) {
    this->on_all([](auto& comm) {
        auto data = values<float>(comm.rank(), (std::size_t{1} << 20U) + 7, 3);
        comm.all_reduce(std::span<float>{data});
        expect_bits(
            data, [&](std::size_t i) { return expected_sum<float>(comm.size(), i, 3); }, "all_reduce", comm.rank(), comm.size());
    });
}

TYPED_TEST_P(CommunicatorSuite, AllReduceOfUnalignedSpans) {
    this->on_all([](auto& comm) {
        auto data = values<double>(comm.rank(), 5001, 4);
        auto const shift = static_cast<std::size_t>(comm.rank() % 3) + 1; // another one on each worker
        auto const first = data.front();
        auto const last = data.back();
        std::vector<double> inner = values<double>(comm.rank(), 4990, 5);
        std::copy(inner.begin(), inner.end(), data.begin() + static_cast<std::ptrdiff_t>(shift));
        comm.all_reduce(std::span<double>{data}.subspan(shift, 4990));
        std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(shift), 4990, inner.begin());
        expect_bits(
            inner, [&](std::size_t i) { return expected_sum<double>(comm.size(), i, 5); }, "shifted", comm.rank(), comm.size());
        EXPECT_TRUE(same_bits(data.front(), first) && same_bits(data.back(), last)) << "wrote outside the span";
    });
}

TYPED_TEST_P(CommunicatorSuite, AllReduceSumGivesTheSameBitsEverywhere) {
    this->on_all([](auto& comm) {
        double const sum = lockstep::all_reduce_sum(comm, value<double>(comm.rank(), 0, 9));
        EXPECT_TRUE(same_bits(sum, expected_sum<double>(comm.size(), 0, 9)));
    });
}

TYPED_TEST_P(CommunicatorSuite, BroadcastFromEveryRoot) {
    this->on_all([](auto& comm) {
        for_each_scalar([&]<class T>(T) {
            for (std::size_t const count : counts()) {
                for (int root = 0; root < comm.size(); ++root) {
                    auto data = values<T>(comm.rank(), count, count + 1);
                    comm.broadcast(std::span<T>{data}, root);
                    expect_bits(
                        data, [&](std::size_t i) { return value<T>(root, i, count + 1); }, "broadcast", comm.rank(), comm.size());
                }
            }
        });
    });
}

TYPED_TEST_P(CommunicatorSuite, BroadcastRefusesARootThatIsNoRank) {
    this->on_all([](auto& comm) {
        std::vector<float> data(20);
        EXPECT_THROW(comm.broadcast(std::span<float>{data}, -1), lockstep::ArgumentError);
        EXPECT_THROW(comm.broadcast(std::span<float>{data}, comm.size()), lockstep::ArgumentError);
        comm.barrier(); // a refused argument does no harm to the group
    });
}

/// Calls step(round) for so many rounds, or fewer if that takes more than `patience` (a busy machine, a sanitizer): the workers
/// agree on it now and then.
template <class Comm, class Step>
void repeat(Comm& comm, int rounds, Step const& step) {
    using Clock = std::chrono::steady_clock;
    auto const patience = std::chrono::seconds{std::getenv("LOCKSTEP_LONG_TESTS") != nullptr ? 100 : 5};
    auto const start = Clock::now();
    for (int round = 0; round < rounds; ++round) {
        step(round);
        if (round % 500 == 499 && lockstep::all_reduce_sum(comm, Clock::now() - start > patience ? 1 : 0) > 0) { return; }
    }
}

TYPED_TEST_P(CommunicatorSuite, BarriersCanBeReused) {
    for (int const workers : TypeParam::worker_counts()) {
        int const rounds = TypeParam::barrier_rounds(workers);
        TypeParam::run(workers, [rounds](auto& comm) { repeat(comm, rounds, [&](int) { comm.barrier(); }); });
    }
}

TYPED_TEST_P(CommunicatorSuite, SmallAllReducesInARowDoNotMix) {
    for (int const workers : TypeParam::worker_counts()) {
        int const rounds = TypeParam::barrier_rounds(workers) / 10;
        TypeParam::run(workers, [rounds](auto& comm) {
            int wrong = 0;
            auto const size = static_cast<std::int64_t>(comm.size());
            repeat(comm, rounds, [&](std::int64_t round) {
                std::int64_t sum = round * size + comm.rank();
                comm.all_reduce(std::span<std::int64_t>{&sum, 1});
                wrong += sum == round * size * size + size * (size - 1) / 2 ? 0 : 1;
            });
            EXPECT_EQ(wrong, 0);
        });
    }
}

TYPED_TEST_P(CommunicatorSuite, MixedOperationsWithRandomDelays) {
    this->on_all([](auto& comm) {
        for (std::uint64_t round = 0; round < 200; ++round) {
            if (auto const dice = mix(round * 64 + static_cast<std::uint64_t>(comm.rank())); dice % 8 == 0) {
                std::this_thread::sleep_for(std::chrono::microseconds{dice % 300});
            }
            auto const choice = mix(round + 12345); // the same on all workers
            std::size_t const count = choice % 5 == 0 ? choice / 8 % 4000 : choice / 8 % 20;
            int const root = static_cast<int>((choice >> 40U) % static_cast<std::uint64_t>(comm.size()));
            auto data = values<float>(comm.rank(), count, round);
            if (choice % 3 == 0) {
                comm.barrier();
            } else if (choice % 3 == 1) {
                comm.broadcast(std::span<float>{data}, root);
                expect_bits(
                    data, [&](std::size_t i) { return value<float>(root, i, round); }, "broadcast", comm.rank(), comm.size());
            } else {
                comm.all_reduce(std::span<float>{data});
                expect_bits(
                    data, [&](std::size_t i) { return expected_sum<float>(comm.size(), i, round); }, "all_reduce", comm.rank(),
                    comm.size());
            }
        }
    });
}

/// A plain SGD step, noting which elements this worker was asked to update.
template <class T>
struct NotingUpdate {
    std::vector<int>* calls;

    void operator()(std::size_t offset, std::span<T> parameters, std::span<T const> gradients) const {
        ASSERT_EQ(parameters.size(), gradients.size());
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            parameters[i] -= T(0.125) * gradients[i];
            ++(*calls)[offset + i];
        }
    }
};

TYPED_TEST_P(CommunicatorSuite, ReduceUpdateIsAllReduceAndUpdate) {
    if constexpr (lockstep::FusesUpdate<typename TypeParam::Comm, float>) {
        this->on_all([]<class Comm>(Comm& comm) {
            auto const check = [&]<class T>(T) {
                for (std::size_t const count : counts()) {
                    auto parameters = values<T>(77, count, 1);
                    std::vector<int> calls(count);
                    for (std::uint64_t step = 0; step < 2; ++step) {
                        auto gradients = values<T>(comm.rank(), count, step);
                        comm.reduce_update(0.0, std::span<T>{gradients}, std::span<T>{parameters}, NotingUpdate<T>{&calls});
                    }
                    auto const expected = [&](std::size_t i) {
                        T parameter = value<T>(77, i, 1);
                        for (std::uint64_t step = 0; step < 2; ++step) {
                            parameter -= T(0.125) * expected_sum<T>(comm.size(), i, step);
                        }
                        return parameter;
                    };
                    expect_bits(parameters, expected, "reduce_update", comm.rank(), comm.size());
                    for (int const times : calls) { EXPECT_TRUE(times == 0 || times == 2) << "a slice moved between two steps"; }
                    std::vector<std::int64_t> total(calls.begin(), calls.end());
                    comm.all_reduce(std::span<std::int64_t>{total});
                    EXPECT_EQ(total, std::vector<std::int64_t>(count, 2))
                        << "each element is updated once per step, by one worker";
                }
            };
            check(float{});
            check(double{});
        });
    }
}

TYPED_TEST_P(CommunicatorSuite, ReduceUpdateOfSharedParameters) {
    if constexpr (TypeParam::shares_memory) {
        for (int const workers : TypeParam::worker_counts()) {
            for (std::size_t const count : counts()) {
                auto shared = values<float>(77, count, 2);
                TypeParam::run(workers, [&](auto& comm) {
                    auto gradients = values<float>(comm.rank(), count, 6);
                    std::vector<int> calls(count);
                    comm.reduce_update(0.0, std::span<float>{gradients}, std::span<float>{shared}, NotingUpdate<float>{&calls});
                });
                auto const expected = [&](std::size_t i) {
                    return value<float>(77, i, 2) - 0.125F * expected_sum<float>(workers, i, 6);
                };
                expect_bits(shared, expected, "shared parameters", 0, workers);
            }
        }
    }
}

TYPED_TEST_P(CommunicatorSuite, ReduceUpdateSumsAValueAlongAndUpdatesNothingWhenItIsNotFinite) {
    if constexpr (lockstep::FusesUpdate<typename TypeParam::Comm, float>) {
        this->on_all([](auto& comm) {
            constexpr std::size_t count = 1000;
            auto gradients = values<float>(comm.rank(), count, 3);
            auto parameters = values<float>(77, count, 3);
            auto const before = parameters;
            std::vector<int> calls(count);
            auto const step = [&](double value) {
                return comm.reduce_update(value, std::span<float>{gradients}, std::span<float>{parameters},
                                          NotingUpdate<float>{&calls});
            };
            bool const last = comm.rank() == comm.size() - 1;
            for (double const bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
                EXPECT_FALSE(std::isfinite(step(last ? bad : 1.0)));
                EXPECT_EQ(parameters, before);
                EXPECT_EQ(calls, std::vector<int>(count));
            }
            EXPECT_EQ(step(value<double>(comm.rank(), 0, 4)), expected_sum<double>(comm.size(), 0, 4));
            EXPECT_NE(parameters, before);
        });
    }
}

constexpr std::size_t leaf_counts[] = {1, 2, 3, 4, 5, 7, 8, 16, 33};

TYPED_TEST_P(CommunicatorSuite, SumsOverShardsDoNotDependOnTheNumberOfWorkers) {
    this->on_all([]<class Comm>(Comm& comm) {
        if constexpr (lockstep::SumsTrees<Comm, float>) {
            auto const check = [&]<class T>(T) {
                for (std::size_t const leaves : leaf_counts) {
                    for (std::size_t const count : {std::size_t{1}, std::size_t{16}, std::size_t{1000}, std::size_t{4099}}) {
                        auto sums = partial_sums<T>(leaves, comm.rank(), comm.size(), count, leaves);
                        comm.all_reduce(lockstep::PartialSums<T>{sums, count, leaves});
                        sums.resize(count);
                        expect_bits(
                            sums, [&](std::size_t i) { return expected_sum<T>(static_cast<int>(leaves), i, leaves); },
                            "all_reduce over shards", comm.rank(), comm.size());
                    }
                }
            };
            check(float{});
            check(double{});
        }
    });
}

TYPED_TEST_P(CommunicatorSuite, UpdatesFromSumsOverShardsDoNotDependOnTheNumberOfWorkers) {
    this->on_all([]<class Comm>(Comm& comm) {
        if constexpr (lockstep::SumsTrees<Comm, float>) {
            constexpr std::size_t count = 3001;
            for (std::size_t const leaves : leaf_counts) {
                auto parameters = values<float>(77, count, 1);
                auto gradients = partial_sums<float>(leaves, comm.rank(), comm.size(), count, 5);
                auto losses = partial_sums<double>(leaves, comm.rank(), comm.size(), 1, 6);
                std::vector<int> calls(count);
                double const loss = comm.reduce_update(lockstep::PartialSums<double>{losses, 1, leaves},
                                                       lockstep::PartialSums<float>{gradients, count, leaves},
                                                       std::span<float>{parameters}, NotingUpdate<float>{&calls});
                auto const workers = static_cast<int>(leaves);
                EXPECT_EQ(loss, expected_sum<double>(workers, 0, 6)) << leaves << " leaves, " << comm.size() << " workers";
                expect_bits(
                    parameters,
                    [&](std::size_t i) { return value<float>(77, i, 1) - 0.125F * expected_sum<float>(workers, i, 5); },
                    "reduce_update over shards", comm.rank(), comm.size());
            }
        }
    });
}

TYPED_TEST_P(CommunicatorSuite, ShareGivesAllTheRootsPointer) {
    if constexpr (lockstep::SharesMemory<typename TypeParam::Comm>) {
        this->on_all([](auto& comm) {
            for (int root = 0; root < comm.size(); ++root) {
                auto const own = std::make_shared<int>(comm.rank());
                auto const shared = comm.share(own, root);
                EXPECT_EQ(*shared, root);
                EXPECT_EQ(shared == own, comm.rank() == root);
                comm.barrier();
                EXPECT_EQ(shared.use_count(), comm.size() + 1);
                comm.barrier();
            }
        });
    }
}

REGISTER_TYPED_TEST_SUITE_P(CommunicatorSuite, SumsOverShardsDoNotDependOnTheNumberOfWorkers,
                            UpdatesFromSumsOverShardsDoNotDependOnTheNumberOfWorkers,
                            ReduceUpdateSumsAValueAlongAndUpdatesNothingWhenItIsNotFinite, ShareGivesAllTheRootsPointer,
                            FulfilsTheConcept, RanksAreNumberedFromZero, TheDataShowTheOrderOfAdditions, AllReduceIsTheTreeSum,
                            AllReduceOfManyElements, AllReduceOfUnalignedSpans, AllReduceSumGivesTheSameBitsEverywhere,
                            BroadcastFromEveryRoot, BroadcastRefusesARootThatIsNoRank, BarriersCanBeReused,
                            SmallAllReducesInARowDoNotMix, MixedOperationsWithRandomDelays, ReduceUpdateIsAllReduceAndUpdate,
                            ReduceUpdateOfSharedParameters);

} // namespace conformance
