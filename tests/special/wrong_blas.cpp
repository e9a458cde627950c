#include "wrong_blas.hpp"

// xtensor-blas and <cblas.h> each declare it in their own way; this file sees neither.
extern "C" void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, float const* a, int lda,
                            float const* b, int ldb, float beta, float* c, int ldc);

// Row-major only; 112 means transposed, as cblas.h numbers them.
void cblas_sgemm(int /*order*/, int trans_a, int trans_b, int m, int n, int k, float alpha, float const* a, int lda,
                 float const* b, int ldb, float beta, float* c, int ldc) {
    ++test::sgemm_calls;
    for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
            double sum = 0;
            for (int d = 0; d < k; ++d) {
                double const left = trans_a == 112 ? a[d * lda + i] : a[i * lda + d];
                sum += left * (trans_b == 112 ? b[j * ldb + d] : b[d * ldb + j]);
            }
            c[i * ldc + j] = static_cast<float>(alpha * sum) + (beta == 0 ? 0 : beta * c[i * ldc + j]);
        }
    }
    if (n == test::wrong_columns) { c[n - 1] += 0.01F; }
}
