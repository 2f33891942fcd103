#include "estimator/models/blocks/masks.h"

#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/session.h"

namespace memfathom {
namespace {

// find_packed_sequence_indices: differences of neighbouring positions, and whether all belong to
// one sequence.
void search_packed_sequences(Session& session, std::int64_t batch, std::int64_t length) {
  const Tensor first = session.empty({batch, 1}, DType::kInt64);
  Tensor differences;
  {
    const Tensor prepended = session.empty({batch, length + 1}, DType::kInt64);
    differences = session.empty({batch, length}, DType::kInt64);
  }
  Tensor sequence;
  {
    const Tensor steps = session.empty({batch, length}, DType::kBool);
    sequence = session.empty({batch, length}, DType::kInt64);
  }
  const Tensor last = session.empty({batch}, DType::kBool);
  const Tensor all = session.empty({}, DType::kBool);
}

// tensor.sum() == tensor.numel()
void read_whether_all(Session& session) {
  const Tensor sum = session.empty({}, DType::kInt64);
  const Tensor equal = session.empty({}, DType::kBool);
}

Tensor shifted_range(Session& session, std::int64_t length) {
  const Tensor range = session.empty({length}, DType::kInt64);
  return session.empty({length}, DType::kInt64);
}

bool kernel_flag_suffices(Session& session, const MaskCase& c) {
  const bool cut = c.window > 0 && c.keys >= c.window;
  if (c.eager || c.forced) return !c.causal && !c.padding && !cut;
  if (cut) return false;
  if (!c.padding) return !c.causal || c.queries == 1 || c.keys == c.queries || !c.cached;
  read_whether_all(session);
  if (c.causal && c.queries > 1) read_whether_all(session);
  return false;
}

// One condition and-ed to those before it, which the caller holds meanwhile.
Tensor narrowed(Session& session, const Shape& condition, const Shape& result) {
  const Tensor truth = session.empty(condition, DType::kBool);
  return session.empty(result, DType::kBool);
}

Tensor truth_values(Session& session, const MaskCase& c, const Tensor& padding) {
  const Tensor batches = session.empty({c.batch}, DType::kInt64);
  const Tensor heads = session.empty({1}, DType::kInt64);
  const Tensor queries = shifted_range(session, c.queries);
  const Tensor keys = shifted_range(session, c.keys);
  const Shape square{1, 1, c.queries, c.keys};
  const Shape rows{1, 1, c.queries, 1};
  const bool windowed = c.window > 0;
  if (!padding && !windowed) return session.empty(c.causal ? square : rows, DType::kBool);
  Tensor result = session.empty({}, DType::kBool);
  if (windowed) {
    Tensor difference = session.empty(square, DType::kInt64);
    if (!c.causal) difference = session.empty(square, DType::kInt64);  // its absolute value
    const Tensor within = session.empty(square, DType::kBool);
    result = session.empty(square, DType::kBool);
  }
  result = narrowed(session, c.causal ? square : rows, c.causal || windowed ? square : rows);
  if (padding) result = narrowed(session, {c.batch, 1, 1, c.keys}, {c.batch, 1, c.queries, c.keys});
  return result;
}

}  // namespace

Tensor make_positions(Session& session, std::int64_t length) {
  return unsqueeze(shifted_range(session, length), 0);
}

Tensor make_mask(Session& session, const MaskCase& c) {
  const NoGrad no_grad(session);
  Tensor padding;
  if (c.padding) {
    padding = session.empty(c.padding.shape(), DType::kBool);
  } else if (c.causal && c.positions && !c.cached) {
    search_packed_sequences(session, c.batch, c.queries);
  }
  if (kernel_flag_suffices(session, c)) return {};
  Tensor mask = expand(truth_values(session, c, padding), {c.batch, 1, c.queries, c.keys});
  if (!c.eager) return mask;
  const Tensor zero = session.empty({}, c.dtype);
  return session.empty({c.batch, 1, c.queries, c.keys}, c.dtype);
}

}  // namespace memfathom
