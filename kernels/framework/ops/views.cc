#include "kernels/framework/ops/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.h"
#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/tensor/broadcast.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

int wrapped(int dim, int rank) { return dim < 0 ? dim + rank : dim; }

// Sizes or strides without dimension d.
Shape without(const Shape& extents, int d) {
  Shape rest;
  for (int i = 0; i < extents.rank(); ++i) {
    if (i != d) rest.push_back(extents[i]);
  }
  return rest;
}

Shape resolved(const Tensor& x, Shape shape) {
  std::int64_t known = 1;
  int open = -1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1) {
      open = i;
    } else {
      known *= shape[i];
    }
  }
  const std::int64_t elements = x.elements();
  if (open >= 0 && known > 0) shape[open] = elements / known;
  if (shape.elements() != elements) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("a tensor of shape {} cannot be viewed as {}: the layers do not fit together",
                    to_string(x.shape()), to_string(shape)));
  }
  return shape;
}

// Strides with which `x` can be viewed as `shape` without a copy: merges dimensions that are
// contiguous with each other.
std::optional<Shape> view_strides(const Tensor& x, const Shape& shape) {
  if (x.elements() == 0) return contiguous_strides(shape);  // an empty tensor occupies no memory
  Shape strides = shape;
  int target = shape.rank() - 1;
  std::int64_t run_elements = 1;
  std::int64_t view_elements = 1;
  std::int64_t base = x.rank() > 0 ? x.strides()[-1] : 1;
  for (int i = x.rank() - 1; i >= 0; --i) {
    run_elements *= x.size(i);
    const bool run_ends =
        i == 0 || (x.size(i - 1) != 1 && x.strides()[i - 1] != run_elements * base);
    if (!run_ends) continue;
    while (target >= 0 && (view_elements < run_elements || shape[target] == 1)) {
      strides[target] = view_elements * base;
      view_elements *= shape[target];
      --target;
    }
    if (view_elements != run_elements) return std::nullopt;
    if (i > 0) {
      base = x.strides()[i - 1];
      run_elements = 1;
      view_elements = 1;
    }
  }
  while (target >= 0 && shape[target] == 1) strides[target--] = 1;
  if (target >= 0) return std::nullopt;
  return strides;
}

// A tensor of zeros of extents `shape` into which `part` is copied at `offset` along `dim`.
Tensor placed_in_zeros(const Tensor& part, const Shape& shape, int dim, std::int64_t begin) {
  Session& session = part.session();
  Tensor whole = session.zeros(shape, part.dtype());
  copy_into(slice(whole, dim, begin, begin + part.size(dim)), part);
  return whole;
}

Tensor joined(std::span<const Tensor> parts, int dim) {
  const Tensor& first = parts.front();
  Shape shape = first.shape();
  shape[dim] = 0;
  DType dtype = first.dtype();
  bool channels_last = first.rank() == 4;
  for (const Tensor& part : parts) {
    shape[dim] += part.size(dim);
    dtype = promote(dtype, part.dtype());
    channels_last = channels_last && !part.is_contiguous() &&
                    part.strides() == channels_last_strides(part.shape());
  }
  Tensor out = first.session().empty_strided(
      shape, channels_last ? channels_last_strides(shape) : contiguous_strides(shape), dtype);
  std::int64_t begin = 0;
  for (const Tensor& part : parts) {
    if (first.session().computes()) {
      copy_into(out.alias(part.shape(), out.strides(), out.strides()[dim] * begin), part);
    }
    begin += part.size(dim);
  }
  return out;
}

}  // namespace

Tensor view(const Tensor& x, Shape shape) {
  const Shape target = resolved(x, shape);
  const std::optional<Shape> strides = view_strides(x, target);
  if (!strides) {
    throw Error(ErrorKind::kInternal, fmt::format("a view of {} as {} needs a copy",
                                                  to_string(x.shape()), to_string(target)));
  }
  Recording tape(x.session(), "view", {&x});
  Tensor out = x.alias(target, *strides, x.impl()->offset);
  tape.finish(out, [from = x.shape()](Backward& b) { b.give(0, reshape(b.gradient(), from)); });
  return out;
}

Tensor reshape(const Tensor& x, Shape shape) {
  const Shape target = resolved(x, shape);
  if (target == x.shape()) return x;
  if (view_strides(x, target)) return view(x, target);
  return view(clone(x), target);
}

Tensor flatten(const Tensor& x, int from) {
  const int first = wrapped(from, x.rank());
  Shape shape;
  for (int i = 0; i < first; ++i) shape.push_back(x.size(i));
  shape.push_back(-1);
  return reshape(x, shape);
}

Tensor transpose(const Tensor& x, int a, int b) {
  Recording tape(x.session(), "transpose", {&x});
  Shape shape = x.shape();
  Shape strides = x.strides();
  std::swap(shape[a], shape[b]);
  std::swap(strides[a], strides[b]);
  Tensor out = x.alias(shape, strides, x.impl()->offset);
  tape.finish(out, [a, b](Backward& bw) { bw.give(0, transpose(bw.gradient(), a, b)); });
  return out;
}

Tensor permute(const Tensor& x, std::initializer_list<int> order) {
  Recording tape(x.session(), "permute", {&x});
  Shape shape;
  Shape strides;
  std::array<int, Shape::kMaxRank> inverse{};
  int i = 0;
  for (const int dim : order) {
    shape.push_back(x.size(dim));
    strides.push_back(x.strides()[dim]);
    inverse[static_cast<std::size_t>(dim)] = i++;
  }
  Tensor out = x.alias(shape, strides, x.impl()->offset);
  tape.finish(out, [inverse](Backward& b) {
    const Tensor& g = b.gradient();
    Shape back;
    Shape back_strides;
    for (int k = 0; k < g.rank(); ++k) {
      back.push_back(g.size(inverse[static_cast<std::size_t>(k)]));
      back_strides.push_back(g.strides()[inverse[static_cast<std::size_t>(k)]]);
    }
    b.give(0, g.alias(back, back_strides, g.impl()->offset));
  });
  return out;
}

Tensor unsqueeze(const Tensor& x, int dim) {
  Recording tape(x.session(), "unsqueeze", {&x});
  const int at = wrapped(dim, x.rank() + 1);
  Shape shape;
  Shape strides;
  for (int i = 0; i <= x.rank(); ++i) {
    if (i == at) {
      shape.push_back(1);
      strides.push_back(i < x.rank() ? x.strides()[i] * x.size(i) : 1);
    }
    if (i < x.rank()) {
      shape.push_back(x.size(i));
      strides.push_back(x.strides()[i]);
    }
  }
  Tensor out = x.alias(shape, strides, x.impl()->offset);
  tape.finish(out, [from = x.shape()](Backward& b) { b.give(0, reshape(b.gradient(), from)); });
  return out;
}

Tensor expand(const Tensor& x, const Shape& shape) {
  Recording tape(x.session(), "expand", {&x});
  Shape strides = shape;
  const int missing = shape.rank() - x.rank();
  for (int i = 0; i < shape.rank(); ++i) {
    const bool repeated = i < missing || (x.size(i - missing) == 1 && shape[i] != 1);
    strides[i] = repeated ? 0 : x.strides()[i - missing];
  }
  Tensor out = x.alias(shape, strides, x.impl()->offset);
  tape.finish(out,
              [from = x.shape()](Backward& b) { b.give(0, sum_to_shape(b.gradient(), from)); });
  return out;
}

Tensor slice(const Tensor& x, int dim, std::int64_t begin, std::int64_t end) {
  const int d = wrapped(dim, x.rank());
  Recording tape(x.session(), "slice", {&x});
  Shape shape = x.shape();
  shape[d] = end - begin;
  Tensor out = x.alias(shape, x.strides(), x.impl()->offset + begin * x.strides()[d]);
  tape.finish(out, [from = x.shape(), d, begin](Backward& b) {
    b.give(0, placed_in_zeros(b.gradient(), from, d, begin));
  });
  return out;
}

Tensor select(const Tensor& x, int dim, std::int64_t index) {
  const int d = wrapped(dim, x.rank());
  Recording tape(x.session(), "select", {&x});
  Tensor out = x.alias(without(x.shape(), d), without(x.strides(), d),
                       x.impl()->offset + index * x.strides()[d]);
  tape.finish(out, [from = x.shape(), d, index](Backward& b) {
    b.give(0, placed_in_zeros(unsqueeze(b.gradient(), d), from, d, index));
  });
  return out;
}

namespace {

// A tensor per part: a batch of a hundred million rows is refused before its rows are made.
void check_parts(std::int64_t parts) {
  constexpr std::int64_t kMost = 1 << 20;
  if (parts <= kMost) return;
  throw Error(ErrorKind::kInput,
              fmt::format("a tensor would be taken apart into {} rows, each with operations of its "
                          "own; ask for a batch of at most {}",
                          parts, kMost));
}

}  // namespace

std::vector<Tensor> split(const Tensor& x, std::span<const std::int64_t> sizes, int dim) {
  const int d = wrapped(dim, x.rank());
  Recording tape(x.session(), "split", {&x});
  std::vector<Tensor> parts;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    Shape shape = x.shape();
    shape[d] = size;
    parts.push_back(x.alias(shape, x.strides(), x.impl()->offset + begin * x.strides()[d]));
    tape.attach(parts.back());
    begin += size;
  }
  tape.set_function([d, count = sizes.size(), from = x.shape(), dtype = x.dtype(),
                     sizes = std::vector<std::int64_t>(sizes.begin(), sizes.end())](Backward& b) {
    std::vector<Tensor> gradients;
    for (std::size_t i = 0; i < count; ++i) {
      Tensor gradient = b.gradient(i);
      if (!gradient) {
        Shape shape = from;
        shape[d] = sizes[i];
        gradient = b.session().zeros(shape, dtype);
      }
      gradients.push_back(std::move(gradient));
    }
    b.give(0, joined(gradients, d));
  });
  return parts;
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t parts, int dim) {
  check_parts(parts);
  const std::int64_t total = x.size(dim);
  const std::int64_t step = (total + parts - 1) / parts;
  std::vector<std::int64_t> sizes;
  for (std::int64_t begin = 0; begin < total; begin += step)
    sizes.push_back(std::min(step, total - begin));
  return split(x, sizes, dim);
}

std::vector<Tensor> unbind(const Tensor& x, int dim) {
  const int d = wrapped(dim, x.rank());
  Recording tape(x.session(), "unbind", {&x});
  const Shape shape = without(x.shape(), d);
  const Shape strides = without(x.strides(), d);
  check_parts(x.size(d));
  std::vector<Tensor> parts;
  for (std::int64_t k = 0; k < x.size(d); ++k) {
    parts.push_back(x.alias(shape, strides, x.impl()->offset + k * x.strides()[d]));
    tape.attach(parts.back());
  }
  tape.set_function([d, count = parts.size(), shape, dtype = x.dtype()](Backward& b) {
    std::vector<Tensor> gradients;
    for (std::size_t i = 0; i < count; ++i) {
      Tensor gradient = b.gradient(i);
      gradients.push_back(gradient ? std::move(gradient) : b.session().zeros(shape, dtype));
    }
    b.give(0, stack(gradients, d));
  });
  return parts;
}

Tensor cat(std::span<const Tensor> parts, int dim) {
  const int d = wrapped(dim, parts.front().rank());
  Session& session = parts.front().session();
  Recording tape(session, "cat", parts);
  Tensor out = joined(parts, d);
  std::vector<std::int64_t> sizes;
  for (const Tensor& part : parts) sizes.push_back(part.size(d));
  tape.finish(out, [d, sizes = std::move(sizes)](Backward& b) {
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (b.needs(i)) b.give(i, slice(b.gradient(), d, begin, begin + sizes[i]));
      begin += sizes[i];
    }
  });
  return out;
}

Tensor stack(std::span<const Tensor> parts, int dim) {
  std::vector<Tensor> rows;
  rows.reserve(parts.size());
  for (const Tensor& part : parts) rows.push_back(unsqueeze(part, dim));
  return cat(rows, dim);
}

Tensor pad(const Tensor& x, std::span<const std::int64_t> pairs) {
  Session& session = x.session();
  Recording tape(session, "constant_pad_nd", {&x});
  Shape shape = x.shape();
  std::vector<std::int64_t> inverse(pairs.begin(), pairs.end());
  for (std::int64_t& pair : inverse) pair = -pair;
  Tensor inner = x.detach();
  std::int64_t target_offset = 0;
  for (std::size_t i = 0; i < pairs.size() / 2; ++i) {
    const int d = x.rank() - 1 - static_cast<int>(i);
    shape[d] += pairs[2 * i] + pairs[2 * i + 1];
    const std::int64_t crop_front = std::max<std::int64_t>(0, -pairs[2 * i]);
    const std::int64_t crop_back = std::max<std::int64_t>(0, -pairs[2 * i + 1]);
    if (crop_front + crop_back > 0) inner = slice(inner, d, crop_front, x.size(d) - crop_back);
  }
  const bool crops_only =
      std::all_of(pairs.begin(), pairs.end(), [](std::int64_t p) { return p <= 0; });
  Tensor out;
  if (crops_only) {
    out = clone(inner);  // aten copies the cropped tensor
  } else {
    out = session.zeros(shape, x.dtype());
    for (std::size_t i = 0; i < pairs.size() / 2; ++i) {
      const int d = x.rank() - 1 - static_cast<int>(i);
      target_offset += std::max<std::int64_t>(0, pairs[2 * i]) * out.strides()[d];
    }
    copy_into(out.alias(inner.shape(), out.strides(), target_offset), inner);
  }
  const Shape back{std::span<const std::int64_t>(inverse)};
  tape.finish(out, [back](Backward& b) {
    b.give(0, pad(b.gradient(), std::span<const std::int64_t>(back.begin(), back.end())));
  });
  return out;
}

Tensor repeat_interleave_heads(const Tensor& x, std::int64_t times) {
  if (times == 1) return x;
  const Shape wide{x.size(0), x.size(1), times, x.size(2), x.size(3)};
  return reshape(expand(unsqueeze(x, 2), wide),
                 {x.size(0), x.size(1) * times, x.size(2), x.size(3)});
}

}  // namespace memfathom
