// A view of rows does not convert to one of another width.
// expect: Rows<.*4
#include <lockstep/core/rows.hpp>

#ifdef LOCKSTEP_CONTROL
inline constexpr std::size_t width = 3;
#else
inline constexpr std::size_t width = 4;
#endif

void take(lockstep::Rows<float const, width> rows);

void give(lockstep::Rows<float, 3> rows) { take(rows); }
