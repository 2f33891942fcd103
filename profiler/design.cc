#include <array>
#include <cmath>
#include <limits>

#include "core/collectives.h"
#include "profiler/plan.h"

namespace memfathom {
namespace {

constexpr int kColumns = 1 + kMeasuredLibraries.size();
using Matrix = std::array<std::array<double, kColumns>, kColumns>;

std::array<double, kColumns> row_of(const LibraryUse& uses) {
  std::array<double, kColumns> row{1.0};
  for (std::size_t i = 0; i < kMeasuredLibraries.size(); ++i)
    row[i + 1] = uses.*kMeasuredLibraries[i].used ? 1.0 : 0.0;
  return row;
}

// Jacobi: rotates two columns at a time until the off-diagonal elements vanish.
void diagonalize(Matrix& m) {
  constexpr int kSweeps = 32;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t p = 0; p < kColumns; ++p) {
      for (std::size_t q = p + 1; q < kColumns; ++q) {
        if (std::abs(m[p][q]) < 1e-15) continue;
        const double angle = 0.5 * std::atan2(2 * m[p][q], m[q][q] - m[p][p]);
        const double c = std::cos(angle);
        const double s = std::sin(angle);
        for (std::size_t k = 0; k < kColumns; ++k) {
          const double a = m[k][p];
          const double b = m[k][q];
          m[k][p] = c * a - s * b;
          m[k][q] = s * a + c * b;
        }
        for (std::size_t k = 0; k < kColumns; ++k) {
          const double a = m[p][k];
          const double b = m[q][k];
          m[p][k] = c * a - s * b;
          m[q][k] = s * a + c * b;
        }
      }
    }
  }
}

}  // namespace

double design_condition(const std::vector<Workload>& workloads) {
  Matrix gram{};
  for (const Workload& workload : workloads) {
    if (workload.validation || workload.family == kCollectivesFamily) continue;
    const std::array<double, kColumns> row = row_of(workload.forecast.uses);
    for (std::size_t i = 0; i < kColumns; ++i)
      for (std::size_t j = 0; j < kColumns; ++j) gram[i][j] += row[i] * row[j];
  }
  std::array<double, kColumns> length{};
  for (std::size_t i = 0; i < kColumns; ++i) {
    length[i] = std::sqrt(gram[i][i]);
    if (length[i] == 0) return std::numeric_limits<double>::infinity();
  }
  for (std::size_t i = 0; i < kColumns; ++i)
    for (std::size_t j = 0; j < kColumns; ++j) gram[i][j] /= length[i] * length[j];
  diagonalize(gram);
  double least = gram[0][0];
  double most = gram[0][0];
  for (std::size_t i = 1; i < kColumns; ++i) {
    least = std::min(least, gram[i][i]);
    most = std::max(most, gram[i][i]);
  }
  if (least < 1e-12 * most) return std::numeric_limits<double>::infinity();
  return std::sqrt(most / least);
}

}  // namespace memfathom
