#include <dnnl.h>
#include <fmt/core.h>

#include "core/error.h"
#include "kernels/devices/cpu/gemm.h"

namespace memfathom::cpu {

void sgemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const Matrix& a,
           const Matrix& b, float beta, float* out, std::int64_t leading) {
  const dnnl_status_t status =
      dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, alpha, a.data,
                 a.leading, b.data, b.leading, beta, out, leading);
  if (status != dnnl_success) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("oneDNN rejected a {} x {} x {} matrix product with status {}", m, n, k,
                            int(status)));
  }
}

}  // namespace memfathom::cpu
