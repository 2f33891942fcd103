#include "kernels/devices/cpu/gather.h"

#include <algorithm>

namespace memfathom::cpu {
namespace {

using element::StridedSpan;

// Calls visit(offset in elements, stride, position in the chunk, length) for every run along the
// last dimension.
template <typename Visit>
void for_each_run(const StridedSpan& lane, std::int64_t first, std::int64_t count, Visit&& visit) {
  const int last = lane.rank - 1;
  const std::int64_t extent = lane.extent[last], stride = lane.stride[last];
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t within = lane.rank == 1 ? first + done : (first + done) % extent;
    const std::int64_t length = std::min(count - done, extent - within);
    visit(lane.offset(first + done), stride, done, length);
    done += length;
  }
}

template <typename T, typename Element, typename Convert>
void read_runs(const StridedSpan& lane, std::int64_t first, std::int64_t count, T* to,
               Convert convert) {
  const Element* data = static_cast<const Element*>(lane.data);
  for_each_run(lane, first, count,
               [=](std::int64_t offset, std::int64_t stride, std::int64_t done, std::int64_t n) {
                 const Element* from = data + offset;
                 T* out = to + done;
                 if (stride == 1) {
                   for (std::int64_t i = 0; i < n; ++i) out[i] = T(convert(from[i]));
                 } else if (stride == 0) {
                   std::fill_n(out, n, T(convert(*from)));
                 } else {
                   for (std::int64_t i = 0; i < n; ++i) out[i] = T(convert(from[i * stride]));
                 }
               });
}

template <typename T, typename Element, typename Convert>
void write_runs(const StridedSpan& lane, std::int64_t first, std::int64_t count, const T* from,
                Convert convert) {
  Element* data = static_cast<Element*>(lane.data);
  for_each_run(lane, first, count,
               [=](std::int64_t offset, std::int64_t stride, std::int64_t done, std::int64_t n) {
                 Element* to = data + offset;
                 const T* in = from + done;
                 if (stride == 1) {
                   for (std::int64_t i = 0; i < n; ++i) to[i] = convert(in[i]);
                 } else {
                   for (std::int64_t i = 0; i < n; ++i) to[i * stride] = convert(in[i]);
                 }
               });
}

}  // namespace

template <typename T>
void gather(const StridedSpan& lane, std::int64_t first, std::int64_t count, T* to) {
  switch (lane.dtype) {
    case DType::kFp32:
      return read_runs<T, float>(lane, first, count, to, [](float v) { return v; });
    case DType::kFp64:
      return read_runs<T, double>(lane, first, count, to, [](double v) { return v; });
    case DType::kFp16:
      return read_runs<T, std::uint16_t>(lane, first, count, to, element::fp16_to_float);
    case DType::kBf16:
      return read_runs<T, std::uint16_t>(lane, first, count, to, element::bf16_to_float);
    case DType::kBool:
    case DType::kUint8:
      return read_runs<T, std::uint8_t>(lane, first, count, to, [](std::uint8_t v) { return v; });
    case DType::kInt64:
    case DType::kInt32:
    case DType::kInt8:
    case DType::kComplex64:
    case DType::kNf4:
      for (std::int64_t i = 0; i < count; ++i) to[i] = lane.get<T>(first + i);
  }
}

template <typename T>
void scatter(const StridedSpan& lane, std::int64_t first, std::int64_t count, const T* from) {
  switch (lane.dtype) {
    case DType::kFp32:
      return write_runs<T, float>(lane, first, count, from, [](T v) { return float(v); });
    case DType::kFp64:
      return write_runs<T, double>(lane, first, count, from, [](T v) { return double(v); });
    case DType::kFp16:
      return write_runs<T, std::uint16_t>(lane, first, count, from,
                                          [](T v) { return element::float_to_fp16(float(v)); });
    case DType::kBf16:
      return write_runs<T, std::uint16_t>(lane, first, count, from,
                                          [](T v) { return element::float_to_bf16(float(v)); });
    case DType::kInt64:
    case DType::kInt32:
    case DType::kInt8:
    case DType::kUint8:
    case DType::kBool:
    case DType::kComplex64:
    case DType::kNf4:
      for (std::int64_t i = 0; i < count; ++i) lane.set<T>(first + i, from[i]);
  }
}

template void gather(const StridedSpan&, std::int64_t, std::int64_t, float*);
template void gather(const StridedSpan&, std::int64_t, std::int64_t, double*);
template void scatter(const StridedSpan&, std::int64_t, std::int64_t, const float*);
template void scatter(const StridedSpan&, std::int64_t, std::int64_t, const double*);

}  // namespace memfathom::cpu
