// A training in which one worker fails, as the fault matrix wants it:
//     fault_program <threads|mpi> <throw|exit|vanish|quit|abort|kill|stop|absent|sleep|stuck|non_finite|again> <worker>
//                   <init|step|reduction|evaluation> <file>
// Writes the time of the fault to the file, in seconds as in /proc/uptime. Its main is what a user's would be.
#include <lockstep/lockstep.hpp>
#ifdef FAULTS_WITH_MPI
#include <lockstep/comm/mpi.hpp>
#include <lockstep/comm/mpi_supervisor.hpp>
#endif

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>

using namespace lockstep;

namespace {

constexpr int workers = 3;
constexpr int fatal_step = 5; // the second of the second epoch
#ifdef FAULTS_WITH_MPI
bool stuck = false; // MPI_Finalize shall not return
#endif

struct Plan {
    std::string kind;
    int worker = 0;
    std::string phase;
    std::string time_file;
};

/// One worker's part in the plan.
class Culprit {
public:
    Culprit(Plan const& plan, int rank) : plan_{plan}, chosen_{rank == plan.worker} {}

    void begin_step() {
        ++steps_;
        if (steps_ == fatal_step) { reach("step"); }
    }
    void update() {
        if (steps_ == fatal_step) { reach("reduction"); }
    }
    void reach(std::string_view phase) {
        if (!chosen_ || phase != plan_.phase) { return; }
        chosen_ = false; // a stopped process may be continued
        fail();
    }

private:
    void fail() const {
        double now = 0;
        std::ifstream{"/proc/uptime"} >> now;
        std::ofstream{plan_.time_file} << std::fixed << now;
        if (plan_.kind == "throw" || plan_.kind == "again") { throw Error("injected fault"); }
        if (plan_.kind == "exit") { std::exit(0); }
        if (plan_.kind == "vanish") { std::_Exit(0); }
        if (plan_.kind == "quit") { std::_Exit(3); }
        if (plan_.kind == "abort") { std::abort(); }
        if (plan_.kind == "kill") { std::raise(SIGKILL); }
        if (plan_.kind == "stop") { std::raise(SIGSTOP); }
        if (plan_.kind == "sleep") { std::this_thread::sleep_for(std::chrono::seconds{40}); }
    }

    Plan const& plan_;
    bool chosen_;
    int steps_ = 0;
};

/// Steps ask for the gradient, evaluation for the value alone.
struct FaultyLoss {
    static constexpr TargetKind kind = TargetKind::labels;
    Culprit* culprit;

    [[nodiscard]] double value(auto outputs, auto const& targets) const {
        culprit->reach("evaluation");
        return CrossEntropyLoss::value(outputs, targets);
    }
    double value_and_gradient(auto outputs, auto const& targets, auto scale, auto gradient) const {
        culprit->begin_step();
        return CrossEntropyLoss::value_and_gradient(outputs, targets, scale, gradient);
    }
};

/// Element-wise, so each worker calls `update` within the reduction.
struct FaultySGD : SGD {
    Culprit* culprit;

    template <class T>
    void update(std::size_t offset, std::span<T> parameters, std::span<std::type_identity_t<T> const> gradients,
                State<T>& state) const {
        culprit->update();
        SGD::update(offset, parameters, gradients, state);
    }
};

/// Samples of which one, that only one worker sees, may be bad.
struct Samples {
    static constexpr std::size_t features = 32;
    static constexpr std::size_t classes = 4;
    ArrayDataset<features, ClassLabels<classes>> good;
    std::size_t bad = std::numeric_limits<std::size_t>::max();

    [[nodiscard]] std::size_t size() const { return good.size(); }
    template <class T>
    void load(std::size_t index, std::span<T, features> row) const {
        good.load(index, row);
        if (index == bad) { row[0] = std::numeric_limits<T>::quiet_NaN(); }
    }
    [[nodiscard]] Label target(std::size_t index) const { return good.target(index); }
};

using Net = Sequential<Linear<32, 64>, Tanh, Linear<64, 4>>;

/// The body of launch: 3 steps and an evaluation in each of 2 epochs.
Result train(Communicator auto& comm, Plan const& plan) {
    Culprit culprit{plan, comm.rank()};
    culprit.reach("init");
    Samples samples{synthetic_classification<32, 4>(96, seed(1))};
    if (plan.kind == "non_finite") { samples.bad = 60; } // in step 2
    Samples const tests{synthetic_classification<32, 4>(60, seed(1), {.split = 1})};
    // One shard for each worker, so that the loss is asked once per step.
    DataLoader train_loader{samples, comm, {.batch_size = 32, .shuffle = false, .shard_rows = 11}};
    DataLoader test_loader{tests, comm, {.batch_size = 20, .shuffle = false}};
    Trainer trainer{Model<Net>{seed(1)}, FaultyLoss{&culprit}, FaultySGD{{.lr = 0.1}, &culprit}, comm};
    return trainer.fit(train_loader, test_loader, {.epochs = 2});
}

template <class Comm>
Result train(Plan const& plan) {
    Scaling const scaling{.num_workers = workers, .timeout_seconds = plan.kind == "sleep" ? 30.0 : 3.0};
    return launch<Comm>(scaling, [&](Communicator auto& comm) { return train(comm, plan); });
}

/// A process whose launch has failed can launch again.
template <class Comm>
void fail_again_and_again(Plan plan) {
    for (auto const* const phase : {"init", "step", "reduction", "evaluation", "step"}) {
        for (plan.worker = 0; plan.worker < workers; ++plan.worker) {
            plan.phase = phase;
            bool failed = false;
            try {
                train<Comm>(plan);
            } catch (WorkerError const& error) { failed = error.rank == plan.worker; }
            if (!failed) { throw Error(detail::concat("worker ", plan.worker, " did not fail in ", phase)); }
        }
    }
    plan.phase = "none";
    auto const hashes = train<Comm>(plan).parameter_hashes;
    std::printf("trained after 15 failures, %zu replicas\n", hashes.size());
}

template <class Comm>
void run(Plan const& plan) {
    plan.kind == "again" ? fail_again_and_again<Comm>(plan) : static_cast<void>(train<Comm>(plan));
}

} // namespace

#ifdef FAULTS_WITH_MPI
/// The chosen worker does not come to MPI_Init.
static void stop_before_mpi(Plan const& plan) {
    for (auto const* const variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
        char const* const rank = std::getenv(variable);
        if (rank == nullptr || std::atoi(rank) != plan.worker) { continue; }
        double now = 0;
        std::ifstream{"/proc/uptime"} >> now;
        std::ofstream{plan.time_file} << std::fixed << now;
        std::raise(SIGSTOP);
    }
}

/// In place of MPI's own, as its profiling interface allows.
extern "C" int MPI_Finalize() {
    while (stuck) { std::this_thread::sleep_for(std::chrono::seconds{1}); }
    return PMPI_Finalize();
}
#endif

int main(int argc, char** argv) {
#ifdef FAULTS_WITH_MPI
    if (auto const ended = supervise()) {
        if (!ended->error.empty()) { std::fprintf(stderr, "error: %s\n", ended->error.c_str()); }
        return ended->exit_code;
    }
#endif
    if (argc != 6) { return 2; }
    Plan const plan{argv[2], std::atoi(argv[3]), argv[4], argv[5]};
    try {
#ifdef FAULTS_WITH_MPI
        if (std::string_view{argv[1]} == "mpi") {
            stuck = plan.kind == "stuck";
            if (plan.kind == "absent") { stop_before_mpi(plan); }
            run<MpiCommunicator>(plan);
            return stuck ? 7 : 0;
        }
#endif
        run<ThreadCommunicator>(plan);
        return 0;
    } catch (WorkerError const& error) {
        std::printf("main got: %s\n", error.what()); // in each process
        if (error.to_report) { std::fprintf(stderr, "error: %s\n", error.what()); }
    } catch (std::exception const& error) { std::fprintf(stderr, "error: %s\n", error.what()); }
    return 1;
}
