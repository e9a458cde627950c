#pragma once

#include <lockstep/comm/mpi.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <string>
#include <thread>
#include <type_traits>

namespace lockstep::benchmarks {

/// The MPI processes of a benchmark. Rank 0 runs it and measures what needs no MPI alone; the others sleep until it has a job
/// for all. MPI belongs to the benchmark, and Lockstep is a guest in it.
///
/// `Job` is plain data; a benchmark gives all ranks the same `work`.
template <class Job>
class MpiCrew {
    static_assert(std::is_trivially_copyable_v<Job>);

public:
    /// Runs body(crew) on all processes, as soon as MPI is initialised. An error on any of them is printed and ends them all.
    template <class Body>
    static void run(Body const& body) {
        lockstep::detail::check_mpi(MPI_Init(nullptr, nullptr), "MPI_Init");
        try {
            MpiCrew crew;
            body(crew);
        } catch (std::exception const& error) {
            auto const* const of_worker = dynamic_cast<WorkerError const*>(&error);
            bool const tell = of_worker == nullptr || of_worker->to_report;
            if (tell) { std::cerr << "error: " << error.what() << std::endl; }
            if (!tell) { std::this_thread::sleep_for(std::chrono::seconds{2}); } // the one that tells goes first
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        MPI_Finalize();
    }

    MpiCrew(MpiCrew const&) = delete;
    MpiCrew& operator=(MpiCrew const&) = delete;

    [[nodiscard]] int rank() const { return rank_; }
    [[nodiscard]] int size() const { return size_; }

    /// Rank 0: wakes the others, and does its own part of the job.
    template <class Work>
    auto all(Job const& job, Work const& work) {
        next({.job = job, .last = false});
        return work(job);
    }

    /// The other ranks: their parts of all jobs, until rank 0 dismisses them.
    template <class Work>
    void serve(Work const& work) {
        for (auto order = next({}); !order.last; order = next({})) { static_cast<void>(work(order.job)); }
    }

    /// Rank 0: no more jobs.
    void dismiss() { next({}); }

private:
    MpiCrew() {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &size_);
    }

    struct Order {
        Job job{};
        bool last = true;
    };

    /// What rank 0 has ordered. A broadcast of MPI itself would wait by spinning, on a core that is being measured.
    Order next(Order order) {
        MPI_Request request = MPI_REQUEST_NULL;
        check(MPI_Ibcast(&order, sizeof order, MPI_BYTE, 0, MPI_COMM_WORLD, &request));
        int done = 0;
        for (;;) {
            check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
            if (done != 0) { return order; }
            std::this_thread::sleep_for(std::chrono::milliseconds{20}); // waking more often pushes threads from core to core
        }
    }
    static void check(int code) { lockstep::detail::check_mpi(code, "MPI in a benchmark"); }

    int rank_ = 0;
    int size_ = 1;
};

/// Throws Error unless MPI has as many processes as there are to be workers.
inline void check_processes(int workers, int processes) {
    if (workers != processes) {
        throw Error("there are to be " + std::to_string(workers) + " workers, but MPI has " + std::to_string(processes) +
                    (processes == 1 ? " process" : " processes") + ": benchmarks/run.sh starts as many as are needed");
    }
}

} // namespace lockstep::benchmarks
