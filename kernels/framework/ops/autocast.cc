#include "kernels/framework/ops/autocast.h"

#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {

Tensor autocast_to_lower(const Tensor& x) {
  if (!x) return x;
  Session& session = x.session();
  if (!session.autocast || x.dtype() == *session.autocast || !is_floating(x.dtype()) ||
      x.dtype() == DType::kFp64) {
    return x;
  }
  const bool cacheable = x.dtype() == DType::kFp32 && x.requires_grad() && !x.impl()->grad_fn;
  if (!cacheable) return to_dtype(x, *session.autocast);
  const auto found = session.autocast_cache.find(x.impl());
  if (found != session.autocast_cache.end()) return found->second.second;
  Tensor cast = to_dtype(x, *session.autocast);
  session.autocast_cache.emplace(x.impl(), std::pair(x, cast));
  return cast;
}

Tensor autocast_to_fp32(const Tensor& x) {
  if (!x || !x.session().autocast || !is_16bit_float(x.dtype())) return x;
  return to_dtype(x, DType::kFp32);
}

}  // namespace memfathom
