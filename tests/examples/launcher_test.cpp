// How the big example reads --address and finds and calls mpirun: examples/fashion_mnist/launcher.hpp.
#include "examples/program.hpp"
#include "fashion_mnist/launcher.hpp"
#include "fashion_mnist/options.hpp"

#include <lockstep/core/error.hpp>

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace {

using Hosts = std::vector<Host>;

/// The text of the E that `call` throws.
template <class E, class Call>
std::string error_of(Call const& call) {
    try {
        call();
    } catch (E const& error) { return error.what(); }
    ADD_FAILURE() << "nothing was thrown";
    return "";
}

void expect_words(std::string const& text, Arguments const& words) {
    for (auto const& word : words) { EXPECT_NE(text.find(word), std::string::npos) << word << " is not in " << text; }
}

Environment environment(std::map<std::string, std::string> variables) {
    return [variables = std::move(variables)](char const* name) -> char const* {
        auto const found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
    };
}

VersionText executables(std::map<std::string, std::string> texts) {
    return [texts = std::move(texts)](std::string const& program) -> std::optional<std::string> {
        auto const found = texts.find(program);
        return found == texts.end() ? std::nullopt : std::optional{found->second};
    };
}

constexpr char const* open_mpi_says =
    "mpirun.openmpi (OpenRTE) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n";
constexpr char const* hydra_says = "HYDRA build details:\n    Version:                                 4.0.2\n"
                                   "    Release Date:                            Thu Apr  7 12:34:45 CDT 2022\n";
MpiVersion const open_mpi{MpiKind::open_mpi, "4.1.4"};
MpiVersion const mpich{MpiKind::mpich, "4.0.2"};

TEST(ParseHosts, Lists) {
    EXPECT_EQ(parse_hosts("a"), (Hosts{{"a", 0}}));
    EXPECT_EQ(parse_hosts("host1,host-2.example.org:4,10.0.0.3:1"),
              (Hosts{{"host1", 0}, {"host-2.example.org", 4}, {"10.0.0.3", 1}}));
}

TEST(ParseHosts, RefusesBadLists) {
    for (auto const* const text :
         {"",   ",",   "a,",    ",a",   "a,,b",  "a b",           "-a", "--host",          "a;b", "$(a)", "a:0",
          "a:", "a:x", "a:1:2", "a:-1", "a:1.5", "a:99999999999", "@",  "@/nowhere/hosts", "@/",  "a,a",  "a:2,b,a"}) {
        SCOPED_TRACE(text);
        expect_words(error_of<UsageError>([&] { static_cast<void>(parse_hosts(text)); }), {"--address"});
    }
    expect_words(error_of<UsageError>([] { static_cast<void>(parse_hosts("a,b:x")); }), {"\"x\""});
    expect_words(error_of<UsageError>([] { static_cast<void>(parse_hosts("a,b,a")); }), {"host a comes twice"});
    expect_words(error_of<UsageError>([] { static_cast<void>(parse_hosts("@/nowhere/hosts")); }), {"\"/nowhere/hosts\""});
}

TEST(ParseHosts, Files) {
    Folder const folder;
    auto const file = folder / "hosts";
    write_text(file, "# our cluster\n\na\n  b slots=4  # the big one\n\t\nc:2\r\nd slots=1");
    EXPECT_EQ(parse_hosts("@" + file), (Hosts{{"a", 0}, {"b", 4}, {"c", 2}, {"d", 1}}));
}

TEST(ParseHosts, NamesFileAndLine) {
    Folder const folder;
    auto const file = folder / "hosts";
    for (auto const* const line : {"b slots=0", "b slots=", "b slots=x", "b 4", "b slots = 4", "b slots=4 max_slots=8",
                                   "b:2 slots=4", "b,c", "a", "b slots=4x"}) {
        SCOPED_TRACE(line);
        write_text(file, std::string{"a\n\n"} + line + "\nc\n");
        expect_words(error_of<UsageError>([&] { static_cast<void>(parse_hosts("@" + file)); }),
                     {"--address", file + ", line 3: "});
    }
    write_text(file, "# none\n");
    expect_words(error_of<UsageError>([&] { static_cast<void>(parse_hosts("@" + file)); }), {"no host", file});
}

TEST(Spread, WithoutANumberAllSlots) { EXPECT_EQ(spread({{"a", 0}, {"b", 4}}, std::nullopt), (Hosts{{"a", 1}, {"b", 4}})); }

TEST(Spread, DealsOutEvenly) {
    EXPECT_EQ(spread({{"a", 0}, {"b", 0}}, 4), (Hosts{{"a", 2}, {"b", 2}}));
    EXPECT_EQ(spread({{"a", 0}, {"b", 0}}, 5), (Hosts{{"a", 3}, {"b", 2}}));
    EXPECT_EQ(spread({{"a", 0}, {"b", 1}, {"c", 0}}, 7), (Hosts{{"a", 3}, {"b", 1}, {"c", 3}}));
    EXPECT_EQ(spread({{"a", 4}, {"b", 4}}, 4), (Hosts{{"a", 2}, {"b", 2}}));
    EXPECT_EQ(spread({{"a", 4}, {"b", 4}}, 8), (Hosts{{"a", 4}, {"b", 4}}));
    EXPECT_EQ(spread({{"a", 0}, {"b", 0}, {"c", 0}}, 2), (Hosts{{"a", 1}, {"b", 1}}));
}

TEST(Spread, RefusesMoreThanThereIsRoomFor) {
    expect_words(error_of<UsageError>([] { static_cast<void>(spread({{"a", 2}, {"b", 1}}, 4)); }), {"4", "3"});
}

TEST(CheckCrowding, RefusesMoreThanAHostCanBear) {
    EXPECT_NO_THROW(check_crowding("--num-workers", 32, 2));
    EXPECT_EQ(error_of<UsageError>([] { check_crowding("--num-workers", 33, 2); }),
              "--num-workers: 33 workers on this host are too many, it takes up to 16 for each of its 2 cores");
}

TEST(StartedByLauncher, KnowsLaunchers) {
    EXPECT_FALSE(started_by_launcher(environment({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}})).has_value());
    auto const expect = [](std::map<std::string, std::string> variables, int rank, std::optional<int> size) {
        auto const started = started_by_launcher(environment(std::move(variables)));
        ASSERT_TRUE(started.has_value());
        EXPECT_EQ(started->rank, rank);
        EXPECT_EQ(started->size, size);
    };
    expect({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "2"}, {"SLURM_NTASKS", "9"}}, 2, 4);
    expect({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}}, 1, 3);                                     // MPICH, srun --mpi=pmi2
    expect({{"PMIX_RANK", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "6"}}, 5, 6); // srun --mpi=pmix
    expect({{"PMIX_RANK", "5"}}, 5, std::nullopt);
}

TEST(CheckAlone, RefusesSeveralProcesses) {
    EXPECT_NO_THROW(check_alone(std::nullopt, "threads"));
    EXPECT_NO_THROW(check_alone(Started{.rank = 0, .size = 1}, "threads"));
    EXPECT_NO_THROW(check_alone(Started{.rank = 0}, "threads"));
    for (auto const& started : {Started{.rank = 0, .size = 4}, Started{.rank = 3}}) {
        EXPECT_EQ(error_of<UsageError>([&] { check_alone(started, "serial"); }),
                  "a launcher started 4 processes, and each would train for itself with --backend serial: add --backend mpi");
    }
}

TEST(CheckSlurmStep, RefusesTasksThatDoNotKnowOfEachOther) {
    auto const check = [](std::map<std::string, std::string> variables) { check_slurm_step(environment(std::move(variables))); };
    EXPECT_NO_THROW(check({}));
    EXPECT_NO_THROW(check({{"SLURM_NTASKS", "4"}})); // a batch script
    EXPECT_NO_THROW(check({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}));
    EXPECT_NO_THROW(check({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"PMIX_RANK", "1"}}));
    try {
        check({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}});
        ADD_FAILURE() << "accepted";
    } catch (UsageError const& error) {
        EXPECT_EQ(std::string(error.what()), "srun started 4 tasks without an MPI plugin: use srun --mpi=pmix (Open MPI) or "
                                             "--mpi=pmi2 (MPICH), or mpirun");
    }
}

TEST(MpiVersions, AreRead) {
    EXPECT_EQ(parse_mpi_version("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022"),
              open_mpi);
    EXPECT_EQ(parse_mpi_version("MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022\nMPICH ABI:\t14:2:2\n"),
              mpich);
    EXPECT_EQ(parse_mpi_version(open_mpi_says), open_mpi);
    EXPECT_EQ(parse_mpi_version("mpirun (Open MPI) 5.0.3\n"), (MpiVersion{MpiKind::open_mpi, "5.0.3"}));
    EXPECT_EQ(parse_mpi_version(hydra_says), mpich);
    EXPECT_EQ(parse_mpi_version("Intel(R) MPI Library 2021.9 for Linux* OS\n").kind, MpiKind::other);
    EXPECT_EQ(parse_mpi_version("").kind, MpiKind::other);
}

TEST(FindMpirun, TakesTheOneOfTheSameMpi) {
    auto const both = executables(
        {{"mpirun", open_mpi_says}, {"mpirun.openmpi", open_mpi_says}, {"mpiexec.mpich", hydra_says}, {"mpiexec", hydra_says}});
    EXPECT_EQ(find_mpirun(open_mpi, environment({}), both), "mpirun.openmpi");
    EXPECT_EQ(find_mpirun(mpich, environment({}), both), "mpiexec.mpich");
    EXPECT_EQ(find_mpirun(mpich, environment({}), executables({{"mpirun", open_mpi_says}, {"mpiexec", hydra_says}})), "mpiexec");
    EXPECT_EQ(
        find_mpirun(open_mpi, environment({{"LOCKSTEP_MPIRUN", "/opt/mpirun"}}), executables({{"/opt/mpirun", open_mpi_says}})),
        "/opt/mpirun");
}

TEST(FindMpirun, SaysWhatIsMissing) {
    auto const error = [](MpiVersion const& mpi, std::map<std::string, std::string> variables,
                          std::map<std::string, std::string> texts) {
        return error_of<lockstep::Error>(
            [&] { static_cast<void>(find_mpirun(mpi, environment(std::move(variables)), executables(std::move(texts)))); });
    };
    expect_words(error(open_mpi, {}, {}), {"Open MPI 4.1.4", "openmpi-bin", "LOCKSTEP_MPIRUN"});
    expect_words(error(mpich, {}, {{"mpirun", open_mpi_says}}), {"MPICH 4.0.2", "Debian: mpich", "mpirun is of Open MPI 4.1.4"});
    expect_words(error(open_mpi, {}, {{"mpirun", "mpirun (Open MPI) 5.0.3"}}), {"4.1.4", "5.0.3"});
    expect_words(error(open_mpi, {{"LOCKSTEP_MPIRUN", "/none"}}, {{"mpirun", open_mpi_says}}), {"LOCKSTEP_MPIRUN", "/none"});
    expect_words(error(open_mpi, {{"LOCKSTEP_MPIRUN", "hydra"}}, {{"hydra", hydra_says}}),
                 {"LOCKSTEP_MPIRUN", "Open MPI 4.1.4", "MPICH 4.0.2"});
}

TEST(MpirunVersionText, RunsTheProgram) {
    Folder const folder;
    auto const program = folder / "mpi run";
    write_text(program, "#!/bin/sh\n[ \"$*\" = --version ] && echo 'MPICH 4.0'\n");
    EXPECT_FALSE(mpirun_version_text(program).has_value()) << "it is not executable";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    EXPECT_EQ(mpirun_version_text(program), "MPICH 4.0\n");
    EXPECT_FALSE(mpirun_version_text(folder / "none").has_value());
}

/// With its settings before it, in one line.
std::string line(Command const& command) {
    std::string text;
    for (auto const& [name, value] : command.settings) { text += name + "=" + value + " "; }
    for (auto const& word : command.words) { text += "[" + word + "]"; }
    return text;
}

TEST(WorkerArguments, AddressIsDoneWith) {
    EXPECT_EQ(worker_arguments({"--backend", "mpi", "--lr", "1"}), (Arguments{"--backend", "mpi", "--lr", "1"}));
    EXPECT_EQ(worker_arguments({"--lr", "1", "--address", "a,b", "-n", "4"}),
              (Arguments{"--lr", "1", "-n", "4", "--backend", "mpi"}));
    EXPECT_EQ(worker_arguments({"--address=a", "--address", "b"}), (Arguments{"--backend", "mpi"}));
}

TEST(MpirunCommand, OneHost) {
    Surroundings const quiet{.is_root = false, .cores = 4, .single_copy = true, .threads_per_worker = 1};
    EXPECT_EQ(line(mpirun_command(open_mpi, "mpirun", 4, {}, quiet, {"/p", "--json", "a b"})),
              "[mpirun][-n][4][/p][--json][a b]");
    EXPECT_EQ(line(mpirun_command(mpich, "mpiexec", 4, {}, quiet, {"/p"})), "[mpiexec][-n][4][/p]");
    EXPECT_EQ(line(mpirun_command(open_mpi, "mpirun", 5, {}, quiet, {"/p"})),
              "OMPI_MCA_rmaps_base_oversubscribe=1 [mpirun][--bind-to][none][-n][5][/p]");
    EXPECT_EQ(line(mpirun_command(mpich, "mpiexec", 5, {}, quiet, {"/p"})), "[mpiexec][-n][5][/p]");
    auto threads = quiet;
    threads.threads_per_worker = 2;
    EXPECT_EQ(line(mpirun_command(open_mpi, "mpirun", 2, {}, threads, {"/p"})), "[mpirun][--bind-to][none][-n][2][/p]");
    Surroundings const container{.is_root = true, .cores = 4, .single_copy = false, .threads_per_worker = 1};
    EXPECT_EQ(line(mpirun_command(open_mpi, "mpirun", 2, {}, container, {"/p"})),
              "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none "
              "[mpirun][-n][2][/p]");
    EXPECT_EQ(line(mpirun_command(mpich, "mpiexec", 2, {}, container, {"/p"})), "[mpiexec][-n][2][/p]");
}

TEST(MpirunCommand, SeveralHosts) {
    Surroundings const quiet{.is_root = false, .cores = 1, .single_copy = true, .threads_per_worker = 1};
    EXPECT_EQ(line(mpirun_command(open_mpi, "mpirun", 3, {{"a", 2}, {"b", 1}}, quiet, {"/p"})),
              "[mpirun][-n][3][--host][a:2,b:1][/p]");
    EXPECT_EQ(line(mpirun_command(mpich, "mpiexec", 3, {{"a", 2}, {"b", 1}}, quiet, {"/p"})),
              "[mpiexec][-n][3][-hosts][a:2,b:1][/p]");
}

} // namespace
