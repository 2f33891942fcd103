#include "kernels/framework/ops/matmul.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/autocast.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/broadcast.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

// Whether cuBLAS can read the matrices of x in place: one stride is 1. It cannot read expanded
// matrices or matrices strided in both dimensions.
bool has_dense_rows_or_columns(const Tensor& x) {
  const std::int64_t rows = x.size(-2);
  const std::int64_t columns = x.size(-1);
  const std::int64_t down = x.strides()[-2];
  const std::int64_t across = x.strides()[-1];
  if (x.rank() == 2 && is_dense(x.shape(), x.strides())) return true;
  if (x.rank() == 3 && x.is_contiguous() && down != 0 && across != 0) return true;
  return (across == 1 && down >= std::max<std::int64_t>(1, columns)) ||
         (down == 1 && across >= std::max<std::int64_t>(1, rows));
}

// The copy that a gemm's host code makes of such a factor, after its output. Only its memory is
// reproduced: devices read any strides.
Tensor copy_for_gemm(const Tensor& x) {
  return has_dense_rows_or_columns(x) ? Tensor()
                                      : x.session().kernel_temporary(x.shape(), x.dtype());
}

// Which complex factor of a product is conjugated: in backward, the saved one.
enum class Conjugate : std::uint8_t { kNone, kFirst, kSecond };

// One gemm into a new tensor of rank 2 or 3.
Tensor gemm(const Tensor& a, const Tensor& b, const Tensor& bias = {},
            Conjugate conjugate = Conjugate::kNone) {
  Session& session = a.session();
  if (a.size(-1) != b.size(-2)) {
    throw Error(
        ErrorKind::kInput,
        fmt::format(
            "shapes {} and {} cannot be multiplied: {} is not {}; the layers do not fit together",
            to_string(a.shape()), to_string(b.shape()), a.size(-1), b.size(-2)));
  }
  Shape shape = a.shape();
  shape[-1] = b.size(-1);
  Tensor out = session.empty(shape, a.dtype());
  const Tensor copies[] = {copy_for_gemm(a), copy_for_gemm(b)};
  const Tensor workspace = session.before_gemm(bias.defined());
  if (session.computes()) {
    GemmCall call{out.operand(), a.operand(), b.operand(), bias.operand(), 1, 0};
    call.conjugate_a = is_complex(a.dtype()) && conjugate == Conjugate::kFirst;
    call.conjugate_b = is_complex(b.dtype()) && conjugate == Conjugate::kSecond;
    session.device().run(call);
  }
  return out;
}

// A view with the last two dimensions swapped; no history (used inside backward).
Tensor t(const Tensor& x) {
  Shape shape = x.shape();
  Shape strides = x.strides();
  std::swap(shape[-1], shape[-2]);
  std::swap(strides[-1], strides[-2]);
  return x.alias(shape, strides, x.impl()->offset);
}

bool column_major(const Tensor& x) { return x.strides()[-2] == 1 && x.strides()[-1] >= x.size(-2); }

// The gradient of the second factor, in the factor's layout: for a transposed factor, the
// transposed gradient is computed.
Tensor gradient_of_second(const Tensor& a, const Tensor& gradient, bool second_column_major) {
  return second_column_major ? t(gemm(t(gradient), a, {}, Conjugate::kSecond))
                             : gemm(t(a), gradient, {}, Conjugate::kFirst);
}

Tensor addmm(const Tensor& bias, const Tensor& x, const Tensor& weight) {
  Recording tape(x.session(), "addmm", {&x, &weight, &bias});
  tape.save(tape.needs(1) ? x : Tensor());
  tape.save(tape.needs(0) ? weight : Tensor());
  Tensor out = gemm(x, weight, bias);
  tape.finish(out, [column = column_major(weight)](Backward& b) {
    const Tensor first = b.saved(0);
    const Tensor second = b.saved(1);
    if (b.needs(0)) b.give(0, gemm(b.gradient(), t(second), {}, Conjugate::kSecond));
    if (b.needs(1)) b.give(1, gradient_of_second(first, b.gradient(), column));
    if (b.needs(2)) b.give(2, b.gradient());
  });
  return out;
}

// Folds the leading dimensions of x into rows; copies only if no view is possible.
Tensor folded(const Tensor& x) { return x.rank() == 2 ? x : reshape(x, {-1, x.size(-1)}); }

Tensor unfolded(const Tensor& rows, const Tensor& like) {
  if (like.rank() == 2) return rows;
  Shape shape = like.shape();
  shape[-1] = rows.size(-1);
  return view(rows, shape);
}

}  // namespace

Tensor mm(const Tensor& a, const Tensor& b) {
  Recording tape(a.session(), "mm", {&a, &b});
  tape.save(tape.needs(0) ? b : Tensor());
  tape.save(tape.needs(1) ? a : Tensor());
  Tensor out = gemm(a, b);
  tape.finish(out, [column = column_major(b)](Backward& bw) {
    const Tensor second = bw.saved(0);
    const Tensor first = bw.saved(1);
    if (bw.needs(1)) bw.give(1, gradient_of_second(first, bw.gradient(), column));
    if (bw.needs(0)) bw.give(0, gemm(bw.gradient(), t(second), {}, Conjugate::kSecond));
  });
  return out;
}

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  const Tensor b = autocast_to_lower(bias);
  const Tensor w = autocast_to_lower(weight);
  const Tensor x = autocast_to_lower(input);
  const Tensor wt = transpose(w, 0, 1);
  if (!b) return unfolded(mm(folded(x), wt), x);
  if (x.rank() == 2 || x.is_contiguous()) return unfolded(addmm(b, folded(x), wt), x);
  // A non-contiguous input is copied, and the bias is added afterwards.
  Tensor out = unfolded(mm(folded(x), wt), x);
  if (!x.session().policy().in_place_shortcuts) return add(out, b);
  add_in_place(out, b);
  return out;
}

Tensor linear_transposed(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  const Tensor rows = folded(input);
  const Tensor w = autocast_to_lower(weight);
  const Tensor x = autocast_to_lower(rows);
  const Tensor b = autocast_to_lower(bias);
  return unfolded(addmm(b, x, w), input);
}

Tensor bmm(const Tensor& first, const Tensor& second) {
  const Tensor b = autocast_to_lower(second);
  const Tensor a = autocast_to_lower(first);
  Recording tape(a.session(), "bmm", {&a, &b});
  tape.save(tape.needs(0) ? b : Tensor());
  tape.save(tape.needs(1) ? a : Tensor());
  Tensor out = gemm(a, b);
  tape.finish(out, [](Backward& bw) {
    const Tensor right = bw.saved(0);
    const Tensor left = bw.saved(1);
    if (bw.needs(1)) bw.give(1, gemm(t(left), bw.gradient(), {}, Conjugate::kFirst));
    if (bw.needs(0)) bw.give(0, gemm(bw.gradient(), t(right), {}, Conjugate::kSecond));
  });
  return out;
}

Tensor matmul(const Tensor& first, const Tensor& second) {
  const Tensor b = autocast_to_lower(second);
  const Tensor a = autocast_to_lower(first);
  if (b.rank() == 2) return unfolded(mm(folded(a), b), a);
  Shape leading_a = a.shape();
  Shape leading_b = b.shape();
  leading_a[-1] = leading_a[-2] = leading_b[-1] = leading_b[-2] = 1;
  Shape batch = broadcast_shapes(leading_a, leading_b);
  const auto batched = [&](const Tensor& x) {
    Shape wide = batch;
    wide[-2] = x.size(-2);
    wide[-1] = x.size(-1);
    const Tensor stretched = wide == x.shape() ? x : expand(x, wide);
    return reshape(stretched, {-1, x.size(-2), x.size(-1)});
  };
  const Tensor rows = batched(a);
  const Tensor product = bmm(rows, batched(b));
  batch[-2] = a.size(-2);
  batch[-1] = b.size(-1);
  return view(product, batch);
}

}  // namespace memfathom
