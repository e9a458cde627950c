#include "workers.hpp"

#include "preflight.hpp"

#include <cstdlib>

#ifdef FASHION_MNIST_WITH_MPI
#include <mpi.h>
#endif

namespace {

char const* from_environment(char const* name) { return std::getenv(name); }

} // namespace

std::string mpi_library_version() {
#ifdef FASHION_MNIST_WITH_MPI
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length); // one of the few that may be called before MPI_Init
    return {text, static_cast<std::size_t>(length)};
#else
    return {};
#endif
}

std::optional<Command> workers_command(Options const& options, std::vector<std::string> const& arguments) {
    std::vector<Host> hosts;
    if (!options.address.empty()) { hosts = spread(parse_hosts(options.address), options.num_workers); }
    int num_workers = hosts.empty() ? options.num_workers.value_or(2) : 0;
    for (auto const& host : hosts) { num_workers += host.slots; }
    if (hosts.empty() && num_workers == 1) { return std::nullopt; }
    auto const machine = surroundings(options.threads_per_worker);
    if (hosts.empty()) { check_crowding("--num-workers", num_workers, machine.cores); }

    auto const mpi = parse_mpi_version(mpi_library_version());
    std::vector<std::string> program{own_program()};
    auto const of_worker = worker_arguments(arguments);
    program.insert(program.end(), of_worker.begin(), of_worker.end());
    return mpirun_command(mpi, find_mpirun(mpi, from_environment, mpirun_version_text), num_workers, hosts, machine, program);
}

void start_workers(Options const& options, Process const& process, std::vector<std::string> const& arguments) {
    check_slurm_step(from_environment);
    if (options.backend != Backend::mpi) { return check_alone(process.started, name_of(options.backend)); }
    if (mpi_library_version().empty()) {
        throw UsageError(
            "this program was built without MPI: install one (Debian: libopenmpi-dev openmpi-bin) and configure with "
            "-DLOCKSTEP_MPI=ON");
    }
    if (process.started && !options.address.empty()) {
        throw UsageError("--address says where to start the workers, but a launcher has already started this one: leave it out");
    }
    if (process.started) { return; }
    options.preflight ? check_before_start(options, arguments) : check_hosts(options);
    if (auto const command = workers_command(options, arguments)) { become(*command); }
}
