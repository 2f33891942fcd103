// LineTransform: the discrete Fourier transform of one line of any length.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

namespace memfathom::cpu {

// By the length's prime factors; a length with a large one by a convolution with a chirp
// (Bluestein), whose length is a power of two. In fp64, so that only the results are rounded.
class LineTransform {
 public:
  using Number = std::complex<double>;

  explicit LineTransform(std::int64_t length);

  std::int64_t length() const { return length_; }
  // In place; sign -1 is forward, +1 is backward. Not scaled.
  void run(Number* line, int sign);

 private:
  void by_factors(Number* line, int sign);
  void by_chirp(Number* line, int sign);

  std::int64_t length_;
  std::vector<std::int64_t> factors_;  // empty: by the chirp
  std::vector<Number> roots_;          // exp(-2 pi i k / length)
  std::vector<Number> spare_;
  std::unique_ptr<LineTransform> padded_;
  std::vector<Number> chirp_, filter_;  // exp(-pi i k^2 / length), and its padded transform
};

}  // namespace memfathom::cpu
