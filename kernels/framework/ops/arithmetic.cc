#include "kernels/framework/ops/arithmetic.h"

#include <algorithm>

#include "core/error.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/broadcast.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

// The extents of `x` with the given dimensions set to 1.
Shape reduced_shape(const Tensor& x, std::initializer_list<int> dims) {
  Shape shape = x.shape();
  for (const int dim : dims) shape[dim] = 1;
  return shape;
}

Shape without(const Shape& shape, std::initializer_list<int> dims) {
  Shape kept;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool dropped = std::any_of(dims.begin(), dims.end(), [&](int dim) {
      return (dim < 0 ? dim + shape.rank() : dim) == i;
    });
    if (!dropped) kept.push_back(shape[i]);
  }
  return kept;
}

Tensor reduce(Reduction op, const char* name, const Tensor& x, std::initializer_list<int> dims,
              bool keep_dims) {
  Session& session = x.session();
  Recording tape(session, name, {&x});
  const Shape reduced = reduced_shape(x, dims);
  // Under autocast sums return fp32; their full-size gradient is cast back to 16 bits.
  const bool widens = op == Reduction::kSum && session.autocast && is_16bit_float(x.dtype());
  Tensor out = reduce_to(op, x, reduced, widens ? DType::kFp32 : x.dtype());
  if (!keep_dims) {
    const Shape shape = without(reduced, dims);
    out = out.alias(shape, contiguous_strides(shape), 0);
  }
  const double count = static_cast<double>(x.elements()) /
                       static_cast<double>(std::max<std::int64_t>(1, reduced.elements()));
  tape.finish(out, [op, count, reduced, full = x.shape(), dtype = x.dtype()](Backward& b) {
    const Tensor gradient =
        b.gradient().alias(reduced, contiguous_strides(reduced), b.gradient().impl()->offset);
    const Tensor wide = expand(gradient, full);
    b.give(0, to_dtype(op == Reduction::kMean ? div_scalar(wide, count) : wide, dtype));
  });
  return out;
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b, double alpha) {
  Recording tape(a.session(), "add", {&a, &b});
  Tensor out = elementwise(Elementwise::kAdd, promote(a.dtype(), b.dtype()), {&a, &b}, {alpha});
  tape.finish(out, [alpha](Backward& bw) {
    if (bw.needs(1)) bw.give(1, alpha == 1 ? bw.gradient() : mul_scalar(bw.gradient(), alpha));
    if (bw.needs(0)) bw.give(0, bw.gradient());
  });
  return out;
}

Tensor sub(const Tensor& a, const Tensor& b) { return add(a, b, -1); }

Tensor add_scalar(const Tensor& x, double value) {
  Recording tape(x.session(), "add", {&x});
  Tensor out = elementwise(Elementwise::kAddScalar, x.dtype(), {&x}, {value});
  tape.finish(out, [](Backward& b) { b.give(0, b.gradient()); });
  return out;
}

Tensor mul(const Tensor& a, const Tensor& b) {
  Recording tape(a.session(), "mul", {&a, &b});
  const bool saves_b = tape.needs(0);
  tape.save(saves_b ? b : Tensor());
  tape.save(tape.needs(1) ? a : Tensor());
  Tensor out = elementwise(Elementwise::kMul, promote(a.dtype(), b.dtype()), {&a, &b});
  tape.finish(out, [](Backward& bw) {
    const Elementwise op =
        is_complex(bw.gradient().dtype()) ? Elementwise::kMulConjugate : Elementwise::kMul;
    const auto product = [&](const Tensor& other) {
      return elementwise(op, promote(bw.gradient().dtype(), other.dtype()),
                         {&bw.gradient(), &other});
    };
    Tensor other;
    Tensor self;
    if (bw.needs(1)) {
      self = bw.saved(1);
      bw.give(1, product(self));
    }
    if (bw.needs(0)) {
      other = bw.saved(0);
      bw.give(0, product(other));
    }
  });
  return out;
}

Tensor mul_scalar(const Tensor& x, double value) {
  Recording tape(x.session(), "mul", {&x});
  Tensor out = elementwise(Elementwise::kMulScalar, x.dtype(), {&x}, {value});
  tape.finish(out, [value](Backward& b) { b.give(0, mul_scalar(b.gradient(), value)); });
  return out;
}

Tensor div(const Tensor& a, const Tensor& b) {
  Recording tape(a.session(), "div", {&a, &b});
  tape.save(b);
  tape.save(tape.needs(1) ? a : Tensor());
  Tensor out = elementwise(Elementwise::kDiv, promote(a.dtype(), b.dtype()), {&a, &b});
  tape.finish(out, [](Backward& bw) {
    const Tensor other = bw.saved(0);
    if (bw.needs(1)) {
      const Tensor self = bw.saved(1);
      // -grad * ((self / other) / other)
      bw.give(1, mul(neg(bw.gradient()), div(div(self, other), other)));
    }
    if (bw.needs(0)) bw.give(0, div(bw.gradient(), other));
  });
  return out;
}

Tensor div_scalar(const Tensor& x, double value) {
  Recording tape(x.session(), "div", {&x});
  Tensor out = elementwise(Elementwise::kRealOverScalar, x.dtype(), {&x}, {value});
  tape.finish(out, [value](Backward& b) { b.give(0, div_scalar(b.gradient(), value)); });
  return out;
}

Tensor neg(const Tensor& x) {
  Recording tape(x.session(), "neg", {&x});
  Tensor out = elementwise(Elementwise::kNeg, x.dtype(), {&x});
  tape.finish(out, [](Backward& b) { b.give(0, neg(b.gradient())); });
  return out;
}

Tensor pow_scalar(const Tensor& x, double exponent) {
  Recording tape(x.session(), "pow", {&x});
  tape.save(x);
  Tensor out = elementwise(Elementwise::kPow, x.dtype(), {&x}, {exponent});
  tape.finish(out, [exponent](Backward& b) {
    const Tensor self = b.saved(0);
    b.give(0, mul(b.gradient(), mul_scalar(pow_scalar(self, exponent - 1), exponent)));
  });
  return out;
}

Tensor rsqrt(const Tensor& x) {
  Recording tape(x.session(), "rsqrt", {&x});
  Tensor out = elementwise(Elementwise::kRsqrt, x.dtype(), {&x});
  tape.save(out);
  tape.finish(out, [](Backward& b) {
    const Tensor result = b.saved(0);
    b.give(0, mul(mul_scalar(b.gradient(), -0.5), pow_scalar(result, 3)));
  });
  return out;
}

Tensor exp(const Tensor& x) {
  Recording tape(x.session(), "exp", {&x});
  Tensor out = elementwise(Elementwise::kExp, x.dtype(), {&x});
  tape.save(out);
  tape.finish(out, [](Backward& b) {
    const Tensor result = b.saved(0);
    b.give(0, mul(b.gradient(), result));
  });
  return out;
}

Tensor absolute(const Tensor& x) {
  Recording tape(x.session(), "abs", {&x});
  tape.save(x);
  Tensor out = elementwise(Elementwise::kAbs, x.dtype(), {&x});
  tape.finish(out, [](Backward& b) {
    const Tensor self = b.saved(0);
    const Tensor sign = elementwise(Elementwise::kSign, self.dtype(), {&self});
    b.give(0, mul(b.gradient(), sign));
  });
  return out;
}

Tensor to_dtype(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Recording tape(x.session(), "_to_copy", {&x});
  Tensor out = elementwise(Elementwise::kCopy, dtype, {&x});
  tape.finish(out, [from = x.dtype()](Backward& b) { b.give(0, to_dtype(b.gradient(), from)); });
  return out;
}

Tensor clone(const Tensor& x) {
  Recording tape(x.session(), "clone", {&x});
  Tensor out = x.session().empty(x.shape(), x.dtype());
  elementwise_into(Elementwise::kCopy, out, {&x}, {});
  tape.finish(out, [](Backward& b) { b.give(0, b.gradient()); });
  return out;
}

Tensor contiguous(const Tensor& x) { return x.is_contiguous() ? x : clone(x); }

Tensor sum(const Tensor& x, std::initializer_list<int> dims, bool keep_dims) {
  return reduce(Reduction::kSum, "sum", x, dims, keep_dims);
}

Tensor mean(const Tensor& x, std::initializer_list<int> dims, bool keep_dims) {
  return reduce(Reduction::kMean, "mean", x, dims, keep_dims);
}

namespace {

Tensor reduce_all(Reduction op, const char* name, const Tensor& x) {
  Recording tape(x.session(), name, {&x});
  Shape ones = x.shape();
  for (std::int64_t& extent : ones) extent = 1;
  Tensor out = reduce_to(op, x, ones, x.dtype()).alias({}, {}, 0);
  tape.finish(out, [op, full = x.shape()](Backward& b) {
    Tensor wide = expand(b.gradient(), full);
    b.give(0,
           op == Reduction::kMean ? div_scalar(wide, static_cast<double>(full.elements())) : wide);
  });
  return out;
}

}  // namespace

Tensor sum_all(const Tensor& x) { return reduce_all(Reduction::kSum, "sum", x); }

Tensor mean_all(const Tensor& x) { return reduce_all(Reduction::kMean, "mean", x); }

void add_in_place(Tensor& x, const Tensor& y) {
  Recording tape(x.session(), "add_", {&x, &y});
  add_into(x, y);
  Tensor changed = x.detach();
  tape.finish(changed, [](Backward& b) {
    if (b.needs(1)) b.give(1, b.gradient());
    if (b.needs(0)) b.give(0, b.gradient());
  });
  x = changed;
}

void mul_scalar_in_place(Tensor& x, double value) {
  Recording tape(x.session(), "mul_", {&x});
  elementwise_into(Elementwise::kMulScalar, x, {&x}, {value});
  Tensor changed = x.detach();
  tape.finish(changed, [value](Backward& b) { b.give(0, mul_scalar(b.gradient(), value)); });
  x = changed;
}

}  // namespace memfathom
