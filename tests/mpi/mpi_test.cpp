#include "conformance/communicator_values.hpp"
#include "mpi/mpi_main.hpp"
#include "unit/train/training.hpp"

#include <lockstep/comm/mpi.hpp>
#include <lockstep/comm/thread.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace lockstep;
using conformance::processes;

int world_rank() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

template <class ErrorType, class Call>
std::string error_of(Call const& call) {
    try {
        call();
    } catch (ErrorType const& error) { return error.what(); }
    return "no error";
}

TEST(Mpi, TrainsToTheSameBitsAsThreads) {
    for (std::size_t const batch_size : {17U, 64U}) {
        auto const options = training::Options{.workers = processes(), .batch_size = batch_size};
        auto const mpi = training::train<MpiCommunicator, float>(options);
        auto const threads = training::train<ThreadCommunicator, float>(options);
        auto const rank = static_cast<std::size_t>(world_rank()); // after each epoch
        EXPECT_EQ(mpi.hashes[rank], threads.hashes[rank]);
        auto const exact = training::train<MpiCommunicator, double>(options);
        EXPECT_EQ(exact.hashes[rank], (training::train<ThreadCommunicator, double>(options).hashes[rank]));
        if (rank == 0) {
            EXPECT_EQ(mpi.result.history.back().train_loss, threads.result.history.back().train_loss);
            EXPECT_EQ(mpi.result.history.back().accuracy, threads.result.history.back().accuracy);
        }
    }
}

TEST(Mpi, WithoutANumberAllProcessesAreWorkers) {
    EXPECT_EQ(launch<MpiCommunicator>({}, [](auto& comm) { return comm.size(); }), processes());
    EXPECT_EQ(launch<MpiCommunicator>({}, [](auto& comm) { return comm.rank(); }), world_rank());
    EXPECT_EQ(launch<MpiCommunicator>({}, [](auto& comm) { return comm.hosts(); }), 1);
}

/// The error that a launch with these settings on all processes throws there.
std::string error_of_launch(Scaling const& scaling, MpiOptions const& options = {}) {
    return error_of<WorkerError>([&] {
        MpiCommunicator::launch(
            scaling, [](auto&) {}, options);
    });
}

void expect_contains(std::string const& text, std::string const& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nexpected: " << part;
}

TEST(Mpi, RefusesAnotherNumberOfWorkersThanThereAreProcesses) {
    auto const wanted = processes() + 1;
    expect_contains(error_of_launch({.num_workers = wanted}), "num_workers is " + std::to_string(wanted) + ", but MPI has " +
                                                                  std::to_string(processes()) +
                                                                  (processes() == 1 ? " process" : " processes") +
                                                                  ": start the program with mpirun -n " + std::to_string(wanted));
    expect_contains(error_of_launch({.num_workers = 0}), "num_workers must be at least 1, got 0");
}

TEST(Mpi, RefusesImpossibleOptions) { expect_contains(error_of_launch({}, {.message_bytes = 1}), "message_bytes from 64"); }

/// The others neither wait for the timeout nor guess: all are told, at once, what is wrong with the last worker's settings.
TEST(Mpi, WhatIsWrongOnOneWorkerAllAreTold) {
    if (processes() == 1) { GTEST_SKIP() << "needs two processes"; }
    bool const last = world_rank() == processes() - 1;
    auto const name = "rank " + std::to_string(processes() - 1) + " of " + std::to_string(processes()) + ": ";
    expect_contains(error_of_launch({.num_workers = last ? 77 : processes()}), name + "num_workers is 77");
    expect_contains(error_of_launch({.num_workers = last ? 0 : processes()}), name + "num_workers must be at least 1, got 0");
    expect_contains(error_of_launch({}, {.message_bytes = last ? std::size_t{1} : std::size_t{4096}}),
                    name + "MpiOptions: expected message_bytes");
    expect_contains(error_of_launch({}, {.message_bytes = last ? std::size_t{4096} : std::size_t{8192}}),
                    name + "the workers do not agree on message_bytes: this one has 4096, rank 0 has 8192");
    expect_contains(error_of_launch({}, {.reduction = last ? MpiReduction::native : MpiReduction::fixed_order}),
                    name + "the workers do not agree on reduction: this one has native, rank 0 has fixed_order");
    expect_contains(error_of_launch({.timeout_seconds = last ? 50.0 : 60.0}),
                    name + "the workers do not agree on timeout_seconds: this one has 50, rank 0 has 60");
    EXPECT_EQ(launch<MpiCommunicator>({}, [](auto& comm) { return comm.size(); }), processes()); // and MPI is usable
}

TEST(Mpi, RefusesCommunicatorsThatAreNoGroup) {
    auto const error = [](MPI_Comm communicator) {
        return error_of<ArgumentError>([&] { MpiCommunicator::launch({}, [](auto&) {}, {.communicator = communicator}); });
    };
    EXPECT_EQ(error(MPI_COMM_NULL), "MpiOptions: expected a communicator, got MPI_COMM_NULL");
    if (processes() == 1) { return; }
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm between = MPI_COMM_NULL;
    int const side = world_rank() == 0 ? 0 : 1;
    MPI_Comm_split(MPI_COMM_WORLD, side, world_rank(), &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side == 0 ? 1 : 0, 5, &between);
    EXPECT_EQ(error(between), "MpiOptions: expected a communicator of one group of processes, got an intercommunicator");
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

TEST(Mpi, AThreadThatLaunchesWhileAnotherOneDoesIsRefused) {
    int provided = 0;
    MPI_Query_thread(&provided);
    if (provided != MPI_THREAD_SERIALIZED) { GTEST_SKIP() << "MPI lets several threads in, or only one"; }
    launch<MpiCommunicator>({}, [&](auto& comm) {
        std::string error;
        std::thread{[&] { error = error_of<Error>([] { launch<MpiCommunicator>({}, [](auto&) {}); }); }}.join();
        expect_contains(error, "another thread of this process is in a launch with MPI");
        comm.barrier();
        EXPECT_EQ(launch<MpiCommunicator>({}, [](auto& inner) { return inner.size(); }), processes()); // its own may be nested
    });
}

/// Data that would not fit into one message, or one int, travel in several: here with a limit of 64 bytes.
TEST(Mpi, DataTravelInMessagesOfLimitedSize) {
    auto const body = [](auto& comm) {
        for (std::size_t const count : {1U, 17U, 997U, 4099U}) {
            auto data = conformance::values<float>(comm.rank(), count, 1);
            comm.all_reduce(std::span{data});
            conformance::expect_bits(
                data, [&](std::size_t i) { return conformance::expected_sum<float>(comm.size(), i, 1); }, "all_reduce",
                comm.rank(), comm.size());
            data = conformance::values<float>(comm.rank(), count, 2);
            comm.broadcast(std::span{data}, comm.size() - 1);
            EXPECT_EQ(data, conformance::values<float>(comm.size() - 1, count, 2));
        }
    };
    MpiCommunicator::launch({}, body, {.message_bytes = 64});
}

/// Lockstep is a guest: it neither takes part in the host's messages nor is disturbed by them.
TEST(Mpi, TheHostsOwnMessagesGoOnBeforeDuringAndAfter) {
    int const next = (world_rank() + 1) % processes();
    int const previous = (world_rank() + processes() - 1) % processes();
    int const sent = world_rank();
    int received = -1;
    MPI_Request requests[2];
    MPI_Irecv(&received, 1, MPI_INT, previous, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
    launch<MpiCommunicator>({}, [&](auto& comm) {
        EXPECT_EQ(all_reduce_sum(comm, 1.0), comm.size());
        MPI_Isend(&sent, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[1]);
        int sum = 1;
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        EXPECT_EQ(sum, comm.size());
        std::vector<float> data(1000, 1.0F);
        comm.all_reduce(std::span{data});
        EXPECT_EQ(data.back(), static_cast<float>(comm.size()));
    });
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    EXPECT_EQ(received, previous);
    int finalized = 0;
    MPI_Finalized(&finalized);
    EXPECT_EQ(finalized, 0);
}

TEST(Mpi, WorksOnAPartOfTheProcesses) {
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank() % 2, 0, &half);
    int size = 0;
    MPI_Comm_size(half, &size);
    auto const sum = MpiCommunicator::launch({}, [](auto& comm) { return all_reduce_sum(comm, 1.0); }, {.communicator = half});
    EXPECT_EQ(sum, size);
    MPI_Comm_free(&half);
}

TEST(Mpi, LaunchesMayBeNested) {
    launch<MpiCommunicator>({}, [](auto& outer) {
        launch<MpiCommunicator>({}, [&](auto& inner) {
            EXPECT_EQ(all_reduce_sum(inner, 1.0), outer.size());
            EXPECT_EQ(all_reduce_sum(outer, 2.0), 2.0 * outer.size());
        });
    });
}

template <class Body>
void expect_disagreement(std::string const& text, Body const& body) {
    if (processes() < 2) { return; }
    auto const last = std::to_string(processes() - 1);
    auto const told = error_of<WorkerError>([&] {
        launch<MpiCommunicator>({.timeout_seconds = 5}, [&](auto& comm) { body(comm, comm.rank() == comm.size() - 1); });
    });
    EXPECT_EQ(told, "rank 0 of " + std::to_string(processes()) + ": the workers disagree: " + text.substr(0, text.find('#')) +
                        last + text.substr(text.find('#') + 1));
}

/// Programs that are not the same: each rank has its own network, scalar or settings.
TEST(Mpi, WorkersThatTrainDifferentThingsAreRefusedOnAll) {
    auto const data = training::train_data();
    auto const fit = [&](auto& comm, auto model, DataLoaderOptions const& options, SGD const& sgd = {}) {
        DataLoader train{data, comm, options};
        Trainer trainer{std::move(model), CrossEntropyLoss{}, sgd, comm};
        trainer.fit(train);
    };
    using Other = Sequential<Linear<12, 5>>;
    expect_disagreement("network is Linear<12, 5> on rank #, but " + training::Net::description() + " on rank 0",
                        [&](auto& comm, bool different) {
                            if (different) { return fit(comm, Model<Other>{seed(1)}, {.batch_size = 10}); }
                            fit(comm, Model<training::Net>{seed(1)}, {.batch_size = 10});
                        });
    expect_disagreement("scalar type is double on rank #, but float on rank 0", [&](auto& comm, bool different) {
        if (different) { return fit(comm, Model<Other, CpuEngine, double>{seed(1)}, {.batch_size = 10}); }
        fit(comm, Model<Other>{seed(1)}, {.batch_size = 10});
    });
    expect_disagreement("model seed is 2 on rank #, but 1 on rank 0", [&](auto& comm, bool different) {
        fit(comm, Model<Other>{seed(different ? 2 : 1)}, {.batch_size = 10});
    });
    expect_disagreement("batch_size is 11 on rank #, but 10 on rank 0", [&](auto& comm, bool different) {
        fit(comm, Model<Other>{seed(1)}, {.batch_size = different ? 11U : 10U});
    });
}

TEST(Mpi, ANonFiniteLossOfOneStopsAllAtTheSameStep) {
    auto const text = error_of<WorkerError>([] {
        launch<MpiCommunicator>({}, [](auto& comm) {
            std::vector<float> inputs(40 * 2, 1.0F);
            inputs[2 * 25] = std::numeric_limits<float>::infinity(); // of one worker's part of one batch
            std::vector<float> targets(40, 1.0F);
            ArrayDataset<2, TargetVectors<1>> data{inputs, targets};
            DataLoader train{data, comm, {.batch_size = 10, .shuffle = false}};
            Trainer trainer{Model<Sequential<Linear<2, 1>>>{seed(1)}, MSELoss{}, SGD{.lr = 1e-3}, comm};
            trainer.fit(train);
        });
    });
    EXPECT_EQ(text.substr(0, text.find(": lower")),
              "rank 0 of " + std::to_string(processes()) + ": the loss is inf in epoch 1, step 3");
}

} // namespace

int main(int argc, char** argv) { return conformance::mpi_main(argc, argv); }
