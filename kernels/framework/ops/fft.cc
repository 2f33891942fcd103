#include "kernels/framework/ops/fft.h"

#include <array>
#include <cmath>

#include "kernels/framework/ops/arithmetic.h"
#include "kernels/framework/ops/matmul.h"
#include "kernels/framework/ops/views.h"
#include "kernels/framework/tensor/recording.h"

namespace memfathom {
namespace {

struct Transform {
  FftKind kind;
  int dims;
  bool inverse;
  double scale;
};

FftQuery query_of(const Transform& transform, const Tensor& real_side) {
  FftQuery query;
  query.kind = transform.kind;
  query.batch = 1;
  for (int i = 0; i < real_side.rank(); ++i) {
    if (i < real_side.rank() - transform.dims) {
      query.batch *= real_side.size(i);
    } else {
      query.extents.push_back(real_side.size(i));
    }
  }
  return query;
}

// One library transform into a new tensor, with its work area; no history.
Tensor transformed(const Transform& transform, const Tensor& in, const Shape& shape) {
  Session& session = in.session();
  session.note_cufft();
  const bool to_real = transform.kind == FftKind::kComplexToReal;
  Tensor out = session.empty(shape, to_real ? DType::kFp32 : DType::kComplex64);
  // A complex-to-real transform overwrites its input, and cuFFT requires real inputs aligned to
  // pairs, which a view at an odd offset is not; PyTorch copies the input in both cases.
  const bool is_odd = transform.kind == FftKind::kRealToComplex && in.impl()->offset % 2 != 0;
  const Tensor copied =
      to_real || is_odd ? session.kernel_temporary(in.shape(), in.dtype()) : Tensor();
  Tensor workspace;
  if (session.policy().count_workspaces) {
    const FftQuery query = query_of(transform, to_real ? out : in);
    workspace =
        session.workspace(session.workspaces().fft(query).bytes, Component::kWorkspaceCufft);
  }
  if (session.computes()) {
    if (copied) copy_into(copied, in);
    session.device().run(FftCall{transform.kind, transform.dims, transform.inverse, transform.scale,
                                 (copied ? copied : in).operand(), out.operand(),
                                 workspace.operand()});
  }
  return out;
}

double count_of(const Shape& shape, int dims) {
  double count = 1;
  for (int i = shape.rank() - dims; i < shape.rank(); ++i) count *= static_cast<double>(shape[i]);
  return count;
}

// The real parts of a complex tensor: every second element of the same memory.
Tensor real_part(const Tensor& x) {
  Shape strides = x.strides();
  for (std::int64_t& stride : strides) stride *= 2;
  Tensor view = x.alias(x.shape(), strides, x.impl()->offset * 2);
  view.impl()->dtype = DType::kFp32;
  return view;
}

Tensor sliced(const Tensor& x, const Region& region) {
  std::int64_t offset = x.impl()->offset;
  Shape shape = x.shape();
  for (int i = 0; i < x.rank(); ++i) {
    offset += region.begin[i] * x.strides()[i];
    shape[i] = region.end[i] - region.begin[i];
  }
  return x.alias(shape, x.strides(), offset);
}

}  // namespace

Tensor rfftn(const Tensor& x, int dims) {
  Session& session = x.session();
  Recording tape(session, "_fft_r2c", {&x});
  tape.save(x);
  Shape half = x.shape();
  half[-1] = half[-1] / 2 + 1;
  Tensor out = transformed({FftKind::kRealToComplex, dims, false, 1}, contiguous(x.detach()), half);
  tape.finish(out, [dims, full = x.shape()](Backward& b) {
    Session& s = b.session();
    const Tensor saved = b.saved(0);
    Tensor spectrum = b.gradient();
    if (spectrum.size(-1) < full[-1]) {
      // The other half of the spectrum has a zero gradient.
      Tensor whole = s.zeros(full, DType::kComplex64);
      copy_into(slice(whole, -1, 0, spectrum.size(-1)), spectrum);
      spectrum = whole;
    }
    b.give(0, real_part(transformed({FftKind::kComplexToComplex, dims, true, 1}, spectrum, full)));
  });
  return out;
}

Tensor irfftn(const Tensor& x, const Shape& extents) {
  Session& session = x.session();
  const int dims = extents.rank();
  Recording tape(session, "_fft_c2r", {&x});
  Shape shape = x.shape();
  for (int i = 0; i < dims; ++i) shape[shape.rank() - dims + i] = extents[i];
  const double scale = 1 / count_of(shape, dims);
  Tensor out = transformed({FftKind::kComplexToReal, dims, true, scale}, x, shape);
  tape.finish(out, [dims, scale, half = x.shape()](Backward& b) {
    Tensor spectrum =
        transformed({FftKind::kRealToComplex, dims, false, scale}, contiguous(b.gradient()), half);
    // Every column but the first (and, for even extents, the last) represents two frequencies.
    const std::int64_t full = b.gradient().size(-1);
    const std::int64_t doubled_end = full % 2 == 0 ? half[-1] - 1 : half[-1];
    if (b.session().computes() && doubled_end > 1) {
      const Tensor middle = slice(spectrum, -1, 1, doubled_end);
      b.session().device().run(ElementwiseCall{
          Elementwise::kMulScalar, middle.operand(), middle.operand(), {}, {}, {2}});
    }
    b.give(0, std::move(spectrum));
  });
  return out;
}

Tensor roll(const Tensor& x, std::span<const int> dims, bool inverse) {
  Session& session = x.session();
  Recording tape(session, "roll", {&x});
  Tensor out = session.empty(x.shape(), x.dtype());
  if (session.computes()) {
    // Swaps 2^n blocks, n = number of rolled dimensions.
    const std::size_t blocks = std::size_t{1} << dims.size();
    for (std::size_t block = 0; block < blocks; ++block) {
      Region from{x.shape(), x.shape()};
      for (std::int64_t& begin : from.begin) begin = 0;
      Region to = from;
      for (std::size_t k = 0; k < dims.size(); ++k) {
        const std::int64_t n = x.size(dims[k]);
        const std::int64_t shift = inverse ? n - n / 2 : n / 2;
        const bool wraps = (block >> k & 1) != 0;
        from.begin[dims[k]] = wraps ? n - shift : 0;
        from.end[dims[k]] = wraps ? n : n - shift;
        to.begin[dims[k]] = wraps ? 0 : shift;
        to.end[dims[k]] = wraps ? shift : n;
      }
      copy_into(sliced(out, to), sliced(x, from));
    }
  }
  Shape axes;
  for (const int dim : dims) axes.push_back(dim);
  tape.finish(out, [axes, inverse](Backward& b) {
    std::array<int, Shape::kMaxRank> back{};
    for (int i = 0; i < axes.rank(); ++i)
      back[static_cast<std::size_t>(i)] = static_cast<int>(axes[i]);
    b.give(0, roll(b.gradient(),
                   std::span<const int>(back.data(), static_cast<std::size_t>(axes.rank())),
                   !inverse));
  });
  return out;
}

void copy_into_region(Tensor& base, const Region& region, const Tensor& value) {
  Recording tape(base.session(), "CopySlices", {&base, &value});
  copy_into(sliced(base, region), value);
  Tensor changed = base.detach();
  tape.finish(changed, [region](Backward& b) {
    Session& s = b.session();
    Tensor rest =
        s.empty_strided(b.gradient().shape(), b.gradient().strides(), b.gradient().dtype());
    copy_into(rest, b.gradient());
    const Tensor part = sliced(rest, region);
    if (b.needs(1)) b.give(1, clone(part));
    if (s.computes())
      s.device().run(ElementwiseCall{Elementwise::kFill, part.operand(), {}, {}, {}, {0}});
    if (b.needs(0)) b.give(0, std::move(rest));
  });
  base = changed;
}

Tensor slice_region(const Tensor& x, const Region& region) {
  Tensor out = x;
  for (int i = 0; i < x.rank(); ++i) {
    if (region.begin[i] != 0 || region.end[i] != x.size(i))
      out = slice(out, i, region.begin[i], region.end[i]);
  }
  return out;
}

Tensor contract_modes(const Tensor& x, const Tensor& weight) {
  const int modes = x.rank() - 2;
  std::int64_t count = 1;
  Shape grid;
  for (int i = 0; i < modes; ++i) {
    grid.push_back(x.size(i + 2));
    count *= x.size(i + 2);
  }
  // [b, i, modes...] -> [modes, b, i] and [i, o, modes...] -> [modes, i, o]
  const auto modes_first = [&](const Tensor& tensor) {
    Tensor t = tensor;
    if (modes == 1) t = permute(t, {2, 0, 1});
    if (modes == 2) t = permute(t, {2, 3, 0, 1});
    if (modes == 3) t = permute(t, {2, 3, 4, 0, 1});
    return reshape(t, {count, tensor.size(0), tensor.size(1)});
  };
  const Tensor a = modes_first(x);
  const Tensor b = modes_first(weight);
  const Tensor product = bmm(a, b);
  Shape wide = grid;
  wide.push_back(x.size(0));
  wide.push_back(weight.size(1));
  const Tensor unfolded = view(product, wide);
  if (modes == 1) return permute(unfolded, {1, 2, 0});
  if (modes == 2) return permute(unfolded, {2, 3, 0, 1});
  return permute(unfolded, {3, 4, 0, 1, 2});
}

}  // namespace memfathom
