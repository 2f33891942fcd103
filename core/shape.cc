#include "core/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"

namespace memfathom {

void Shape::throw_too_deep() {
  throw Error(ErrorKind::kInput, fmt::format("a tensor has more than {} dimensions", kMaxRank));
}

void Shape::throw_too_large(const Shape& shape) {
  throw Error(ErrorKind::kInput, fmt::format("a tensor of shape {} cannot be counted: an extent is "
                                             "negative or the product does not fit in 64 bits",
                                             to_string(shape)));
}

Bytes size_of(const Shape& shape, DType type) {
  const std::int64_t n = shape.elements();
  if (bits_of(type) == 4) return Bytes{n / 2 + n % 2};
  return Bytes{n} * (bits_of(type) / 8);
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace memfathom
