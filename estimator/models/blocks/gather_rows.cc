#include "estimator/models/blocks/gather_rows.h"

#include <utility>

#include "kernels/framework/tensor/recording.h"

namespace memfathom {

Tensor gather_rows(const Tensor& x, const Tensor& index) {
  Session& session = x.session();
  Recording tape(session, "index", {&x});
  tape.save(index);
  Shape shape = x.shape();
  shape[0] = index.elements();
  Tensor out = session.empty(shape, x.dtype());
  tape.finish(out, [from = x.shape(), dtype = x.dtype()](Backward& b) {
    const Tensor rows = b.saved(0);
    Tensor dx = b.session().zeros(from, dtype);
    const Tensor sorted = b.session().kernel_temporary(rows.shape(), DType::kInt64);
    const Tensor origins = b.session().kernel_temporary(rows.shape(), DType::kInt64);
    b.give(0, std::move(dx));
  });
  return out;
}

void add_rows(Tensor& whole, const Tensor& index, const Tensor& rows) {
  Recording tape(whole.session(), "index_add_", {&whole, &rows});
  tape.save(index);
  tape.save(rows);  // its shape is all that backward wants of it
  Tensor changed = whole.detach();
  tape.finish(changed, [shape = rows.shape()](Backward& b) {
    const Tensor kept = b.saved(0);
    if (b.needs(1)) b.give(1, b.session().empty(shape, b.gradient().dtype()));
    if (b.needs(0)) b.give(0, b.gradient());
  });
  whole = changed;
}

}  // namespace memfathom
