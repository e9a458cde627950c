#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace lockstep {

/// Base of every exception that this library throws for bad input or a failed run.
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A file or array that cannot be used; the text names it, what was expected and what was found.
struct DataError : Error {
    using Error::Error;
};

/// A call that was given values it cannot work with (a batch of 0, zero workers, spans of different sizes, …).
struct ArgumentError : Error {
    using Error::Error;
};

namespace detail {

/// Joins its arguments as `operator<<` prints them: the one way error texts are put together.
template <class... Parts>
[[nodiscard]] std::string concat(Parts const&... parts) {
    std::ostringstream text;
    static_cast<void>((text << ... << parts));
    return text.str();
}

} // namespace detail
} // namespace lockstep
