#include "kernels/devices/cpu/portable/line_transform.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace memfathom::cpu {
namespace {

using Number = LineTransform::Number;
constexpr double kPi = 3.14159265358979323846;
// Above it a chirp is faster than a step that multiplies every pair.
constexpr std::int64_t kLargestFactor = 31;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

Number turned(double part_of_circle) { return std::polar(1.0, -2 * kPi * part_of_circle); }

// Empty if one of them is too large.
std::vector<std::int64_t> factors_of(std::int64_t n) {
  std::vector<std::int64_t> factors;
  for (std::int64_t p = 2; p <= kLargestFactor; ++p) {
    for (; n % p == 0; n /= p) factors.push_back(p);
  }
  return n == 1 ? factors : std::vector<std::int64_t>{};
}

std::int64_t power_of_two_from(std::int64_t n) {
  std::int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

// std::complex's own product looks for infinities.
Number times(const Number& a, const Number& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

LineTransform::LineTransform(std::int64_t length) : length_(length), factors_(factors_of(length)) {
  if (length == 1) return;
  if (!factors_.empty()) {
    roots_.resize(at(length));
    spare_.resize(at(length));
    for (std::int64_t k = 0; k < length; ++k)
      roots_[at(k)] = turned(static_cast<double>(k) / static_cast<double>(length));
    return;
  }
  padded_ = std::make_unique<LineTransform>(power_of_two_from(2 * length - 1));
  chirp_.resize(at(length));
  filter_.resize(at(padded_->length()));
  spare_.resize(filter_.size());
  for (std::int64_t k = 0; k < length; ++k) {
    // The square modulo the circle, which it exceeds by far.
    const auto square = static_cast<double>(k * k % (2 * length));
    chirp_[at(k)] = turned(square / static_cast<double>(2 * length));
    filter_[at(k)] = std::conj(chirp_[at(k)]);
    if (k > 0) filter_[filter_.size() - at(k)] = filter_[at(k)];
  }
  padded_->run(filter_.data(), -1);
}

void LineTransform::run(Number* line, int sign) {
  if (length_ == 1) return;
  if (factors_.empty()) {
    by_chirp(line, sign);
  } else {
    by_factors(line, sign);
  }
}

// Each step joins r transforms of length l, of elements that lie m * r apart, to ones of length l *
// r: the frequency k + l s of the elements p, p + m, ... is the sum over q of exp(-2 pi i q (k + l
// s) / (l r)) times the frequency k of the elements p + m q, p + m q + m r, ...
void LineTransform::by_factors(Number* line, int sign) {
  Number* from = line;
  Number* to = spare_.data();
  std::int64_t l = 1;
  for (const std::int64_t r : factors_) {
    const std::int64_t m = length_ / (l * r);
    for (std::int64_t k = 0; k < l; ++k) {
      for (std::int64_t s = 0; s < r; ++s) {
        Number* result = to + (k + l * s) * m;
        const Number* part = from + k * m * r;
        for (std::int64_t p = 0; p < m; ++p) result[p] = part[p];
        for (std::int64_t q = 1; q < r; ++q) {
          const Number root = roots_[at(q * (k + l * s) % (l * r) * m)];
          const Number turn = sign < 0 ? root : std::conj(root);
          part += m;
          for (std::int64_t p = 0; p < m; ++p) result[p] += times(turn, part[p]);
        }
      }
    }
    std::swap(from, to);
    l *= r;
  }
  if (from != line) std::copy_n(from, length_, line);
}

void LineTransform::by_chirp(Number* line, int sign) {
  // The backward transform is the conjugate of that of the conjugates.
  const auto forward = [sign](const Number& value) { return sign < 0 ? value : std::conj(value); };
  spare_.assign(spare_.size(), Number(0));
  for (std::int64_t k = 0; k < length_; ++k) spare_[at(k)] = times(forward(line[k]), chirp_[at(k)]);
  padded_->run(spare_.data(), -1);
  for (std::size_t k = 0; k < spare_.size(); ++k) spare_[k] = times(spare_[k], filter_[k]);
  padded_->run(spare_.data(), 1);
  const double scale = 1.0 / static_cast<double>(padded_->length());
  for (std::int64_t k = 0; k < length_; ++k)
    line[k] = forward(times(spare_[at(k)], chirp_[at(k)]) * scale);
}

}  // namespace memfathom::cpu
