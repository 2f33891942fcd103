#include <fmt/core.h>

#include "core/error.h"
#include "kernels/devices/element/split.h"
#include "kernels/devices/reference/compute_type.h"
#include "kernels/devices/reference/reference.h"

namespace memfathom {

void run_reference(const EmbeddingCall& call) {
  const element::Rows table = element::rows_from(call.table, 1);
  const element::Rows out = element::rows_from(call.out, call.out.shape.rank() - 1);
  const element::StridedSpan index = element::whole(call.index);
  const std::int64_t count = out.rows(), width = out.length(), entries = call.table.shape[0];
  in_compute_type(computes_in_double({&call.table}), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t entry = index.get<std::int64_t>(i);
      if (entry < 0 || entry >= entries) {
        throw Error(ErrorKind::kInput,
                    fmt::format("embedding index {} is out of range; the table has {} rows", entry,
                                entries));
      }
      const element::StridedSpan row = table.row(entry), value = out.row(i);
      for (std::int64_t j = 0; j < width; ++j) {
        if (!call.backward) {
          value.set<T>(j, row.get<T>(j));
        } else if (entry != call.padding_index) {
          row.set<T>(j, row.get<T>(j) + value.get<T>(j));
        }
      }
    }
  });
}

}  // namespace memfathom
