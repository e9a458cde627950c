#include "preflight.hpp"

#include "launcher.hpp"
#include "workers.hpp"

#include <lockstep/core/error.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <netdb.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef FASHION_MNIST_WITH_MPI
#include <lockstep/comm/mpi.hpp>
#endif

using lockstep::detail::concat;

namespace {

std::string own_host() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) { return "unknown"; }
    return name.data();
}

std::string joined(std::vector<std::string> const& texts, char const* between) {
    std::string all;
    for (auto const& text : texts) { all += (all.empty() ? "" : between) + text; }
    return all;
}

/// The addresses of a host, none where its name has none here.
using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;
Addresses addresses_of(std::string const& name) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* found = nullptr;
    return {::getaddrinfo(name.c_str(), nullptr, &hints, &found) == 0 ? found : nullptr, ::freeaddrinfo};
}

/// Only this host's own addresses can be bound.
bool is_own(addrinfo const& address) {
    int const endpoint = ::socket(address.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (endpoint < 0) { return false; }
    bool const own = ::bind(endpoint, address.ai_addr, address.ai_addrlen) == 0;
    ::close(endpoint);
    return own;
}

bool is_this_host(std::string const& name) {
    auto const own = own_host();
    if (name == own || name == "localhost" || name == own.substr(0, own.find('.'))) { return true; }
    auto const addresses = addresses_of(name);
    for (auto const* address = addresses.get(); address != nullptr; address = address->ai_next) {
        if (is_own(*address)) { return true; }
    }
    return false;
}

/// The program that mpirun uses to start something on another host; a resource manager needs none.
std::string remote_shell(MpiKind mpi) {
    for (auto const* const manager : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"}) {
        if (std::getenv(manager) != nullptr) { return ""; }
    }
    char const* const agent = std::getenv(mpi == MpiKind::mpich ? "HYDRA_LAUNCHER_EXEC" : "OMPI_MCA_plm_rsh_agent");
    char const* const launcher = mpi == MpiKind::mpich ? std::getenv("HYDRA_LAUNCHER") : nullptr;
    if (agent == nullptr && launcher != nullptr && std::strcmp(launcher, "ssh") != 0) { return ""; } // its own way
    return agent != nullptr ? agent : "ssh -o BatchMode=yes -o ConnectTimeout=10";
}

/// What keeps `host` from starting `program`, or nothing. Host names are plain words (see parse_hosts).
std::optional<std::string> problem_of(std::string const& host, std::string const& shell, std::string const& program) {
    auto const runs = [&](std::string const& command) {
        // `shell` is split into words, as mpirun does it.
        int const status =
            std::system(("timeout 15 " + shell + ' ' + host + ' ' + command + " </dev/null >/dev/null 2>&1").c_str());
        return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    };
    if (!runs("true")) {
        return concat("host ", host, ": `", shell, ' ', host, " true` fails",
                      addresses_of(host) ? "" : "; the name has no address here");
    }
    if (!runs("test -x \"'" + program + "'\"")) { return concat("host ", host, ": there is no ", program); }
    return std::nullopt;
}

struct HostsCheck {
    int workers_here = 0; ///< how many this host gets
    std::vector<std::string> problems{};
};

/// Asks all other hosts at the same time. Throws UsageError when this one would get too many workers.
HostsCheck check(std::vector<Host> const& hosts) {
    HostsCheck found;
    auto const shell = remote_shell(parse_mpi_version(mpi_library_version()).kind);
    std::vector<std::future<std::optional<std::string>>> answers;
    for (auto const& host : hosts) {
        if (is_this_host(host.name)) {
            found.workers_here += host.slots;
        } else if (!shell.empty()) {
            answers.push_back(std::async(std::launch::async, [&] { return problem_of(host.name, shell, own_program()); }));
        }
    }
    for (auto& answer : answers) {
        if (auto problem = answer.get()) { found.problems.push_back(std::move(*problem)); }
    }
    check_crowding("--address", found.workers_here, surroundings(1).cores);
    return found;
}

void check_shared_memory(int workers, std::vector<std::string>& missing) {
    struct statvfs room {};
    unsigned long long const wanted = shared_memory_per_worker * static_cast<unsigned long long>(workers);
    if (::statvfs("/dev/shm", &room) != 0) { return missing.push_back("/dev/shm: there is none"); }
    if (unsigned long long const free = room.f_bavail * room.f_frsize; free < wanted) {
        missing.push_back(concat("/dev/shm has ", free >> 20U, " MiB free, ", workers, " workers take ", wanted >> 20U,
                                 " MiB (containers: --shm-size)"));
    }
}

/// As it would be typed.
std::string shell_words(Command const& command) {
    std::string text;
    for (auto const& [name, value] : command.settings) { text += concat(name, '=', value, ' '); }
    for (auto const& word : command.words) {
        bool const plain =
            !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                                    "-_./:,=@+") == std::string::npos;
        std::string quoted;
        for (char const c : word) { quoted += c == '\'' ? std::string{"'\\''"} : std::string{c}; }
        text += plain ? word + ' ' : "'" + quoted + "' ";
    }
    text.pop_back();
    return text;
}

} // namespace

void check_hosts(Options const& options) {
    if (options.address.empty()) { return; }
    auto const found = check(spread(parse_hosts(options.address), options.num_workers));
    if (!found.problems.empty()) { throw lockstep::Error(joined(found.problems, "; ")); }
}

void check_before_start(Options const& options, std::vector<std::string> const& arguments) {
    std::vector<std::string> missing;
    std::optional<Command> command;
    try {
        command = workers_command(options, arguments);
    } catch (lockstep::Error const& error) { missing.emplace_back(error.what()); }

    int here = options.num_workers.value_or(2);
    if (!options.address.empty()) {
        auto const found = check(spread(parse_hosts(options.address), options.num_workers));
        here = found.workers_here;
        missing.insert(missing.end(), found.problems.begin(), found.problems.end());
    }
    if (here > 0) { check_shared_memory(here, missing); }
    if (!missing.empty()) { throw PreflightError(joined(missing, "\n")); }
    if (command) {
        std::printf("starting: %s\n", shell_words(*command).c_str());
        std::fflush(stdout);
    }
}

#ifdef FASHION_MNIST_WITH_MPI

namespace {

/// What every worker tells the others: 8 words of host name, and whether it needs a setting that it does not have.
constexpr std::size_t words_per_worker = 9;
using Words = std::vector<std::uint64_t>;

bool lacks_single_copy_setting() {
    char const* const mechanism = std::getenv("OMPI_MCA_btl_vader_single_copy_mechanism");
    bool const set = mechanism != nullptr && std::strcmp(mechanism, "none") == 0;
    return parse_mpi_version(mpi_library_version()).kind == MpiKind::open_mpi && !set && !surroundings(1).single_copy;
}

std::string host_of(Words const& all, std::size_t rank) {
    std::array<char, 8 * sizeof(std::uint64_t) + 1> name{};
    std::memcpy(name.data(), all.data() + rank * words_per_worker, name.size() - 1);
    return name.data();
}

/// "4 workers on 2 hosts (a: 2, b: 2)"
std::string description(Words const& all) {
    std::vector<std::pair<std::string, int>> hosts;
    for (std::size_t rank = 0; rank < all.size() / words_per_worker; ++rank) {
        auto const host = host_of(all, rank);
        auto known = hosts.begin();
        while (known != hosts.end() && known->first != host) { ++known; }
        if (known == hosts.end()) { known = hosts.insert(hosts.end(), {host, 0}); }
        ++known->second;
    }
    std::string list;
    for (auto const& [host, count] : hosts) { list += concat(list.empty() ? "" : ", ", host, ": ", count); }
    auto const workers = all.size() / words_per_worker;
    return concat(workers, workers == 1 ? " worker on " : " workers on ", hosts.size(),
                  hosts.size() == 1 ? " host (" : " hosts (", list, ')');
}

} // namespace

void check_workers(Options const& options) {
    bool const lacks = lacks_single_copy_setting(); // starts processes of its own, so before MPI does
    bool first = false;
    lockstep::Scaling const scaling{.num_workers = options.num_workers, .timeout_seconds = options.timeout_seconds};
    auto const all = lockstep::launch<lockstep::MpiCommunicator>(scaling, [&](lockstep::Communicator auto& comm) {
        first = comm.rank() == 0;
        Words words(static_cast<std::size_t>(comm.size()) * words_per_worker);
        auto* const own = words.data() + static_cast<std::size_t>(comm.rank()) * words_per_worker;
        auto const host = own_host().substr(0, 8 * sizeof(std::uint64_t));
        std::memcpy(own, host.data(), host.size());
        own[words_per_worker - 1] = lacks ? 1 : 0;
        comm.all_reduce(std::span{words}); // all others have zeros there
        return words;
    });
    std::vector<std::string> missing;
    for (std::size_t rank = 0; rank < all.size() / words_per_worker; ++rank) {
        if (all[(rank + 1) * words_per_worker - 1] == 0) { continue; }
        missing.push_back(
            concat("rank ", rank, " on host ", host_of(all, rank),
                   ": processes may not read each other's memory there; set OMPI_MCA_btl_vader_single_copy_mechanism=none"));
    }
    if (!missing.empty()) { throw PreflightError(joined(missing, "\n")); }
    if (first) {
        std::printf("OK: %s, %s\n", description(all).c_str(), to_string(parse_mpi_version(mpi_library_version())).c_str());
    }
}

#else

void check_workers(Options const& /*options*/) {
    throw UsageError("this program was built without MPI"); // start_workers has said so at length
}

#endif
