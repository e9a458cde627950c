#include "lockstep/train/agreement.hpp"

#include "unit/train/training.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace lockstep;

TEST(BroadcastText, ComesWholeToAllWorkers) {
    launch<ThreadCommunicator>({.num_workers = 3}, [](auto& comm) {
        for (std::size_t const length : {0U, 1U, 7U, 8U, 9U, 100U}) {
            std::string const text(length, static_cast<char>('a' + comm.rank()));
            EXPECT_EQ(broadcast_text(comm, text, 1), std::string(length, 'b'));
            EXPECT_EQ(broadcast_text(comm, comm.rank() == 2 ? text : "other", 2), std::string(length, 'c'));
        }
    });
}

/// What every worker is told when body(comm, different) fails, `different` being true on the last of three workers alone.
template <class Body>
std::vector<std::string> errors_of(Body const& body) {
    std::vector<std::string> errors(3);
    try {
        launch<ThreadCommunicator>({.num_workers = 3}, [&](auto& comm) {
            try {
                body(comm, comm.rank() == 2);
            } catch (ArgumentError const& error) {
                errors[static_cast<std::size_t>(comm.rank())] = error.what();
                throw;
            }
        });
        ADD_FAILURE() << "no error";
    } catch (WorkerError const& error) {
        EXPECT_EQ(error.rank, 0); // all have the same error: the lowest rank speaks
        EXPECT_EQ(error.what(), "rank 0 of 3: " + errors[0]);
    }
    EXPECT_EQ(errors[1], errors[0]);
    EXPECT_EQ(errors[2], errors[0]);
    return errors;
}

template <class Body>
void expect_disagreement(std::string const& text, Body const& body) {
    EXPECT_EQ(errors_of(body)[0], "the workers disagree: " + text);
}

void train(auto& comm, SGD const& sgd, DataLoaderOptions const& options, std::size_t samples, int epochs) {
    DataLoader data{synthetic_classification<12, 5>(samples, seed(3)), comm, options};
    Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, sgd, comm};
    trainer.fit(data, {.epochs = epochs});
}

TEST(Agreement, OfTheTrainersSettings) {
    expect_disagreement("model seed is 2 on rank 2, but 1 on rank 0", [](auto& comm, bool different) {
        Trainer const trainer{Model<training::Net>{seed(different ? 2 : 1)}, CrossEntropyLoss{}, SGD{}, comm};
    });
    expect_disagreement(
        "optimizer is SGD(lr 0.2, momentum 0, dampening 0, weight_decay 0) on rank 2, but SGD(lr 0.1, momentum 0, "
        "dampening 0, weight_decay 0) on rank 0",
        [](auto& comm, bool different) { train(comm, {.lr = different ? 0.2 : 0.1}, {}, 100, 1); });
    expect_disagreement("network is Linear<16, 16> -> Tanh on rank 2, but Linear<16, 16> on rank 0",
                        [](auto& comm, bool different) {
                            if (different) {
                                Trainer const trainer{Model<Sequential<Linear<16, 16>, Tanh>>{seed(1)}, MSELoss{}, SGD{}, comm};
                            } else {
                                Trainer const trainer{Model<Sequential<Linear<16, 16>>>{seed(1)}, MSELoss{}, SGD{}, comm};
                            }
                        });
    expect_disagreement("scalar type is double on rank 2, but float on rank 0", [](auto& comm, bool different) {
        using Net = Sequential<Linear<16, 16>>;
        if (different) {
            Trainer const trainer{Model<Net, CpuEngine, double>{seed(1)}, MSELoss{}, SGD{}, comm};
        } else {
            Trainer const trainer{Model<Net>{seed(1)}, MSELoss{}, SGD{}, comm};
        }
    });
    expect_disagreement("engine is cpu on rank 2, but simd on rank 0", [](auto& comm, bool different) {
        using Net = Sequential<Linear<16, 16>>;
        if (different) {
            Trainer const trainer{Model<Net, CpuEngine>{seed(1)}, MSELoss{}, SGD{}, comm};
        } else {
            Trainer const trainer{Model<Net, SimdEngine>{seed(1)}, MSELoss{}, SGD{}, comm};
        }
    });
    expect_disagreement("loss is NLLLoss on rank 2, but CrossEntropyLoss on rank 0", [](auto& comm, bool different) {
        using Net = Sequential<Linear<4, 3>, LogSoftmax>;
        if (different) {
            Trainer const trainer{Model<Net>{seed(1)}, NLLLoss{}, SGD{}, comm};
        } else {
            Trainer const trainer{Model<Net>{seed(1)}, CrossEntropyLoss{}, SGD{}, comm};
        }
    });
}

TEST(Agreement, OfTheLoadersSettings) {
    expect_disagreement("batch_size is 51 on rank 2, but 50 on rank 0",
                        [](auto& comm, bool different) { train(comm, {}, {.batch_size = different ? 51U : 50U}, 100, 1); });
    expect_disagreement("loader seed is 8 on rank 2, but 7 on rank 0",
                        [](auto& comm, bool different) { train(comm, {}, {.seed = different ? 8U : 7U}, 100, 1); });
    expect_disagreement("samples is 99 on rank 2, but 100 on rank 0",
                        [](auto& comm, bool different) { train(comm, {}, {}, different ? 99 : 100, 1); });
    expect_disagreement("shuffle is false on rank 2, but true on rank 0",
                        [](auto& comm, bool different) { train(comm, {}, {.shuffle = !different}, 100, 1); });
    expect_disagreement("drop_last is true on rank 2, but false on rank 0",
                        [](auto& comm, bool different) { train(comm, {}, {.drop_last = different}, 100, 1); });
    expect_disagreement("shard_rows is 4 on rank 2, but 16 on rank 0", [](auto& comm, bool different) {
        train(comm, {}, {.shard_rows = different ? std::optional<std::size_t>{4} : std::nullopt}, 100, 1);
    });
    expect_disagreement("epochs is 2 on rank 2, but 1 on rank 0",
                        [](auto& comm, bool different) { train(comm, {}, {}, 100, different ? 2 : 1); });
}

/// A training whose test loader has `options` on all workers but the last, which has `last` and another number of samples.
void expect_test_disagreement(std::string const& text, std::size_t samples_of_last, DataLoaderOptions const& options,
                              DataLoaderOptions const& last) {
    expect_disagreement(text, [&](auto& comm, bool different) {
        DataLoader train{training::train_data(), comm, {}};
        DataLoader test{synthetic_classification<12, 5>(different ? samples_of_last : 57, seed(3)), comm,
                        different ? last : options};
        Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, SGD{}, comm};
        trainer.fit(train, test);
    });
}

TEST(Agreement, OfTheTestLoadersSettings) {
    DataLoaderOptions const plain{.batch_size = 10, .shuffle = false};
    DataLoaderOptions const shuffled{.batch_size = 10, .seed = 7};
    expect_test_disagreement("test samples is 100 on rank 2, but 57 on rank 0", 100, plain, plain);
    expect_test_disagreement("test batch_size is 11 on rank 2, but 10 on rank 0", 57, plain,
                             {.batch_size = 11, .shuffle = false});
    expect_test_disagreement("test drop_last is true on rank 2, but false on rank 0", 57, plain,
                             {.batch_size = 10, .shuffle = false, .drop_last = true});
    expect_test_disagreement("test shard_rows is 2 on rank 2, but 4 on rank 0", 57,
                             {.batch_size = 10, .shuffle = false, .shard_rows = 4},
                             {.batch_size = 10, .shuffle = false, .shard_rows = 2});
    expect_test_disagreement("test shuffle is true on rank 2, but false on rank 0", 57, plain, shuffled);
    expect_test_disagreement("test loader seed is 8 on rank 2, but 7 on rank 0", 57, shuffled, {.batch_size = 10, .seed = 8});
}

TEST(Agreement, EitherAllWorkersTestOrNone) {
    expect_disagreement("test samples is not set on rank 2, but 57 on rank 0", [](auto& comm, bool different) {
        DataLoader train{training::train_data(), comm, {}};
        DataLoader test{training::test_data(), comm, {}};
        Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, SGD{}, comm};
        different ? trainer.fit(train) : trainer.fit(train, test);
    });
}

TEST(Agreement, TheOrderOfATestSetThatIsNotShuffledIsFree) {
    launch<ThreadCommunicator>({.num_workers = 2}, [](auto& comm) {
        DataLoader train{training::train_data(), comm, {}};
        DataLoader test{training::test_data(), comm, {.shuffle = false, .seed = static_cast<std::uint64_t>(comm.rank())}};
        if (comm.rank() == 1) { static_cast<void>(test.begin()); } // has looked at its samples
        Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, SGD{}, comm};
        EXPECT_NO_THROW(trainer.fit(train, test));
    });
}

TEST(Agreement, ALoaderOfAnotherGroupIsRefused) {
    SerialCommunicator alone;
    launch<ThreadCommunicator>({.num_workers = 2}, [&](auto& comm) {
        DataLoader foreign{training::test_data(), alone, {}};
        Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, SGD{}, comm};
        std::string const part = detail::concat("expected a DataLoader made with this communicator (rank ", comm.rank(),
                                                " of 2), got one for rank 0 of 1");
        try {
            trainer.fit(foreign);
            ADD_FAILURE() << "no error";
        } catch (ArgumentError const& error) { EXPECT_EQ(error.what(), "fit: " + part); }
        DataLoader own{training::test_data(), comm, {}};
        try {
            trainer.fit(own, foreign);
            ADD_FAILURE() << "no error";
        } catch (ArgumentError const& error) { EXPECT_EQ(error.what(), "fit: " + part); }
        try {
            static_cast<void>(evaluate(trainer.model(), CrossEntropyLoss{}, foreign, comm));
            ADD_FAILURE() << "no error";
        } catch (ArgumentError const& error) { EXPECT_EQ(error.what(), "evaluate: " + part); }
    });
}

TEST(Agreement, ABadStateDictIsTheSameErrorOnAllWorkers) {
    auto const errors = errors_of([](auto& comm, bool /*different*/) {
        Trainer trainer{Model<training::Net>{seed(1)}, CrossEntropyLoss{}, SGD{}, comm};
        trainer.load_state_dict(StateDict<float>{});
    });
    EXPECT_NE(errors[0].find("missing \"0.weight\""), std::string::npos) << errors[0];
}

} // namespace
