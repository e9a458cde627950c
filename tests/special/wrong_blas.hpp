#pragma once

/// A cblas_sgemm of this program's own, in front of the BLAS library's.
namespace test {

inline int wrong_columns = 0; ///< it errs where the result has this many columns; 0: nowhere
inline long sgemm_calls = 0;

} // namespace test
