// The reference job: Fashion-MNIST, trained data-parallel. `fashion_mnist --help` lists the flags.
#include "options.hpp"
#include "run_file.hpp"

#include <lockstep/lockstep.hpp>

#include <algorithm>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

using namespace lockstep;

namespace {

using Net = Sequential<Linear<784, 512>, ReLU, Linear<512, 128>, ReLU, Linear<128, 64>, ReLU, Linear<64, 10>>;

template <class Comm>
Result train(FashionMnist const& data, Options const& options) {
    return launch<Comm>({.num_workers = options.num_workers}, [&](Communicator auto& comm) {
        DataLoader train{data.train, comm, {.batch_size = options.batch_size, .seed = options.seed}};
        DataLoader test{data.test, comm, {.batch_size = 500, .shuffle = false}};
        SGD const sgd{.lr = options.lr, .momentum = options.momentum};
        Trainer trainer{Model<Net>{seed(options.seed)}, CrossEntropyLoss{}, sgd, comm, ConsoleReporter{}};
        return trainer.fit(train, test, {.epochs = options.epochs});
    });
}

Result train(FashionMnist const& data, Options const& options) {
    switch (options.backend) {
    case Backend::serial:
        return train<SerialCommunicator>(data, options);
    case Backend::threads:
        return train<ThreadCommunicator>(data, options);
    }
    throw Error("unknown backend");
}

/// The first `count` of some images, or all of them.
FashionMnist::Images first(FashionMnist::Images const& images, std::size_t count) {
    std::vector<Label> labels(std::min(count, images.size()));
    for (std::size_t i = 0; i < labels.size(); ++i) { labels[i] = images.target(i); }
    return {images.stored_inputs().flat().first(labels.size() * FashionMnist::Images::features), labels};
}

FashionMnist load(Options const& options) {
    auto data = fashion_mnist(options.data);
    if (constexpr std::size_t steps = 300; options.smoke_test && options.batch_size < data.train.size() / steps) {
        data.train = first(data.train, steps * options.batch_size);
    }
    std::printf("Fashion-MNIST from %s: %zu training and %zu test images\n", data.source.c_str(), data.train.size(),
                data.test.size());
    return data;
}

/// What the training has not yet said.
void summarise(Result const& result, Options const& options) {
    auto const& last = result.history.back();
    std::printf("accuracy %.2f %%  validation loss %.4f  %.0f samples/s\n", 100 * last.accuracy.value(),
                last.validation_loss.value(), last.samples_per_second);
    if (!options.print_hash) { return; }
    for (std::size_t rank = 0; rank < result.parameter_hashes.size(); ++rank) {
        std::printf("rank %zu  0x%016" PRIx64 "\n", rank, result.parameter_hashes[rank]);
    }
}

void run(Options const& options) {
    if (!options.json.empty()) { check_writable(options.json); }
    CpuEngine::set_num_threads(options.threads_per_worker);
    if (auto const warning = blas::info().warning; !warning.empty()) { std::fprintf(stderr, "warning: %s\n", warning.c_str()); }
    auto const data = load(options);
    auto const result = train(data, options);
    summarise(result, options);
    std::fflush(stdout); // the file may be the same terminal or pipe
    if (!options.json.empty()) { write_run(options, CpuEngine::name, result); }
}

/// One line, whatever bytes the user's own words bring into it.
int fail(std::string text, int exit_code) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ') || c == 0x7F; }, ' ');
    std::fflush(stdout);
    std::fprintf(stderr, "error: %s\n", text.c_str());
    return exit_code;
}

} // namespace

int main(int argc, char** argv) {
    try {
        auto const options = parse_options(argc, argv);
        if (options.help.empty()) {
            run(options);
        } else {
            std::fputs(options.help.c_str(), stdout);
        }
        if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) { throw Error("cannot write to the standard output"); }
        return 0;
    } catch (UsageError const& error) {
        return fail(error.what() + std::string{" (--help lists the flags)"}, 2);
    } catch (std::exception const& error) { return fail(error.what(), 1); }
}
