#include "estimator/models/blocks/image_source.h"

#include <utility>

#include "estimator/models/blocks/gather_rows.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

// whole[places, :] = rows, in place
void put_rows(Tensor& whole, const Tensor& places, const Tensor& rows) {
  Recording tape(whole.session(), "index_put_", {&whole, &rows});
  tape.save(places);
  Tensor changed = whole.detach();
  tape.finish(changed, [shape = rows.shape()](Backward& b) {
    const Tensor kept = b.saved(0);
    if (b.needs(0)) b.give(0, clone(b.gradient()));
    if (b.needs(1)) b.give(1, b.session().empty(shape, b.gradient().dtype()));
  });
  whole = changed;
}

}  // namespace

Tensor scatter_image_features(const Tensor& embeddings, const Tensor& ids, ImageFeatures& shown) {
  Session& session = embeddings.session();
  shown.places = session.empty(ids.shape(), DType::kBool);
  Recording tape(session, "masked_scatter", {&embeddings, &shown.features});
  tape.save(shown.places);
  Tensor out = session.empty(embeddings.shape(), embeddings.dtype());
  {
    // The kernel spreads the mask over the hidden size and counts along it.
    const Tensor spread = session.kernel_temporary(embeddings.shape(), DType::kBool);
    const Tensor counted = session.kernel_temporary(embeddings.shape(), DType::kInt64);
  }
  tape.finish(out, [shape = shown.features.shape()](Backward& b) {
    const Tensor mask = b.saved(0);
    const Tensor gradient = b.gradient();
    if (b.needs(0)) b.give(0, b.session().empty(gradient.shape(), gradient.dtype()));
    if (b.needs(1)) b.give(1, b.session().empty(shape, gradient.dtype()));
  });
  return out;
}

Tensor add_deepstack_features(const Tensor& hidden, const ImageFeatures& shown, std::size_t index) {
  Session& session = hidden.session();
  Tensor changed = clone(hidden);
  const Tensor& rows = shown.deeper[index];
  const Tensor places = session.empty({2, rows.size(0)}, DType::kInt64);
  Tensor local;
  {
    const Tensor flat = view(changed, {-1, hidden.size(2)});
    const Tensor picked = gather_rows(flat, view(slice(places, 0, 0, 1), {-1}));
    local = add(picked, rows);
  }
  put_rows(changed, places, local);
  return changed;
}

}  // namespace memfathom
