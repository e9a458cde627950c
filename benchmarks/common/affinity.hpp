#pragma once

#include <thread>

#include <pthread.h>
#include <sched.h>

namespace lockstep::benchmarks {

[[nodiscard]] inline cpu_set_t core(int number) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<unsigned>(number), &set);
    return set;
}

[[nodiscard]] inline cpu_set_t all_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (unsigned number = 0; number < std::thread::hardware_concurrency(); ++number) { CPU_SET(number, &set); }
    return set;
}

/// Keeps this thread, and those that it starts, on some cores while it lives.
class OnCores {
public:
    explicit OnCores(cpu_set_t const& set) {
        pthread_getaffinity_np(pthread_self(), sizeof before_, &before_);
        pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    }
    OnCores(OnCores const&) = delete;
    OnCores& operator=(OnCores const&) = delete;
    ~OnCores() { pthread_setaffinity_np(pthread_self(), sizeof before_, &before_); }

    [[nodiscard]] cpu_set_t const& before() const { return before_; }

private:
    cpu_set_t before_;
};

} // namespace lockstep::benchmarks
