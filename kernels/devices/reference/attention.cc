#include "kernels/devices/element/attention.h"

#include "kernels/devices/element/geometry.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom {

void run_reference(const AttentionCall& call) {
  const element::AttentionView view = element::view_of(call);
  for (std::int64_t b = 0; b < view.batch; ++b) {
    for (std::int64_t h = 0; h < view.heads; ++h) {
      for (std::int64_t s = 0; s < view.queries; ++s) {
        if (!call.backward) element::attention_query<double>(view, b, h, s);
        if (call.backward && view.dq) element::attention_query_backward<double>(view, b, h, s);
      }
    }
    if (!call.backward || !view.dk) continue;
    for (std::int64_t kv = 0; kv < view.kv_heads; ++kv) {
      for (std::int64_t t = 0; t < view.keys; ++t)
        element::attention_key_backward<double>(view, b, kv, t);
    }
  }
}

}  // namespace memfathom
