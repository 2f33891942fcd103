#include "kernels/framework/ops/embedding.h"

#include <array>

#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

// Up to this many indices aten's kernel adds row by row; above, it sorts them first.
constexpr std::int64_t kUnsortedLimit = 3072;

// The sorted indices and their original positions, which the sorting kernel allocates.
std::array<Tensor, 2> sorting_temporaries(Session& session, const Tensor& index) {
  if (index.elements() <= kUnsortedLimit) return {};
  return {session.kernel_temporary({index.elements()}, DType::kInt64),
          session.kernel_temporary({index.elements()}, DType::kInt64)};
}

}  // namespace

Tensor embedding(const Tensor& table, const Tensor& index) {
  Session& session = table.session();
  Recording tape(session, "embedding", {&table});
  tape.save(index);
  Shape shape = index.shape();
  shape.push_back(table.size(1));
  Tensor out = session.empty(shape, table.dtype());
  if (session.computes())
    session.device().run(EmbeddingCall{false, -1, table.operand(), index.operand(), out.operand()});
  tape.finish(out, [rows = table.size(0)](Backward& b) {
    Session& s = b.session();
    const Tensor saved_index = b.saved(0);
    const Tensor gradient = contiguous(b.gradient());
    Tensor dtable = s.zeros({rows, gradient.size(-1)}, gradient.dtype());
    const std::array<Tensor, 2> temporaries = sorting_temporaries(s, saved_index);
    if (s.computes()) {
      s.device().run(
          EmbeddingCall{true, -1, dtable.operand(), saved_index.operand(), gradient.operand()});
    }
    b.give(0, std::move(dtable));
  });
  return out;
}

}  // namespace memfathom
