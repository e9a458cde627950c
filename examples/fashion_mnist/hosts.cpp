// The part of launcher.hpp that reads --address.
#include "launcher.hpp"
#include "options.hpp"

#include <lockstep/core/error.hpp>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>

using lockstep::detail::concat;

namespace {

constexpr int most_slots = 1'000'000;

bool is_host_name(std::string_view text) {
    auto const fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
    };
    return !text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), fits);
}

/// `where` begins the message.
int slots_of(std::string const& where, std::string_view text) {
    int slots = 0;
    auto const [stop, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
    if (error != std::errc{} || stop != text.data() + text.size() || slots < 1 || slots > most_slots) {
        throw UsageError(concat(where, "the number of workers of a host must be from 1 to ", most_slots, ", got \"", text, "\""));
    }
    return slots;
}

void add(std::vector<Host>& hosts, std::string const& where, std::string_view name, int slots) {
    if (!is_host_name(name)) { throw UsageError(concat(where, "expected a host name, got \"", name, "\"")); }
    if (std::any_of(hosts.begin(), hosts.end(), [&](Host const& host) { return host.name == name; })) {
        throw UsageError(concat(where, "the host ", name, " comes twice; ", name, ":2 puts two workers there"));
    }
    hosts.push_back({std::string{name}, slots});
}

/// `host` or `host:4`
void add(std::vector<Host>& hosts, std::string const& where, std::string_view text) {
    auto const colon = text.find(':');
    add(hosts, where, text.substr(0, colon), colon == std::string_view::npos ? 0 : slots_of(where, text.substr(colon + 1)));
}

std::vector<Host> read_hosts(std::string const& file) {
    std::ifstream stream{file};
    std::vector<Host> hosts;
    std::string line;
    for (int number = 1; std::getline(stream, line); ++number) {
        auto const where = concat("--address: ", file, ", line ", number, ": ");
        std::istringstream words{line.substr(0, line.find('#'))};
        std::string host;
        if (!(words >> host)) { continue; }
        std::string word;
        if (!(words >> word)) {
            add(hosts, where, host);
            continue;
        }
        if (std::string more; !word.starts_with("slots=") || words >> more) {
            throw UsageError(concat(where, "expected `host`, `host:4` or `host slots=4`, got \"", line, "\""));
        }
        add(hosts, where, host, slots_of(where, std::string_view{word}.substr(6)));
    }
    // getline's own end is not an error; a file that could not be opened, or a folder, is.
    if (!stream.eof()) { throw UsageError("--address: cannot read the file \"" + file + "\""); }
    if (hosts.empty()) { throw UsageError("--address: there is no host in the file \"" + file + "\""); }
    return hosts;
}

} // namespace

std::vector<Host> parse_hosts(std::string const& address) {
    if (address.starts_with('@')) { return read_hosts(address.substr(1)); }
    std::vector<Host> hosts;
    std::size_t begin = 0;
    do {
        auto const comma = std::min(address.find(',', begin), address.size());
        add(hosts, "--address: ", std::string_view{address}.substr(begin, comma - begin));
        begin = comma + 1;
    } while (begin <= address.size());
    return hosts;
}

void check_crowding(std::string const& flag, int workers, int cores) {
    if (workers <= static_cast<long>(most_workers_per_core) * cores) { return; }
    throw UsageError(concat(flag, ": ", workers, " workers on this host are too many, it takes up to ", most_workers_per_core,
                            " for each of its ", cores, cores == 1 ? " core" : " cores"));
}

std::vector<Host> spread(std::vector<Host> const& hosts, std::optional<int> num_workers) {
    std::vector<Host> dealt = hosts;
    if (!num_workers) {
        for (auto& host : dealt) { host.slots = std::max(host.slots, 1); }
        return dealt;
    }
    long total = 0;
    bool unlimited = false;
    for (auto& host : dealt) {
        total += host.slots;
        unlimited = unlimited || host.slots == 0;
        host.slots = 0;
    }
    if (!unlimited && *num_workers > total) {
        throw UsageError(concat("--num-workers is ", *num_workers, ", but the hosts of --address have room for ", total));
    }
    for (int left = *num_workers; left > 0;) {
        for (std::size_t i = 0; i < hosts.size() && left > 0; ++i) {
            if (hosts[i].slots != 0 && dealt[i].slots == hosts[i].slots) { continue; }
            ++dealt[i].slots;
            --left;
        }
    }
    std::erase_if(dealt, [](Host const& host) { return host.slots == 0; });
    return dealt;
}
