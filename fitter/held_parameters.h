// Some parameters of a Ceres block stay at their values. Ceres 2.1 names that a manifold;
// Ubuntu 22.04 has 2.0, where it is a local parameterization.
#pragma once

#include <ceres/problem.h>
#include <ceres/version.h>

#include <vector>

#if CERES_VERSION_MAJOR > 2 || (CERES_VERSION_MAJOR == 2 && CERES_VERSION_MINOR >= 1)
#include <ceres/manifold.h>
#else
#include <ceres/local_parameterization.h>
#endif

namespace memfathom {

inline void hold_parameters(ceres::Problem& problem, double* values, int size,
                            const std::vector<int>& held) {
  if (held.empty()) return;
#if CERES_VERSION_MAJOR > 2 || (CERES_VERSION_MAJOR == 2 && CERES_VERSION_MINOR >= 1)
  problem.SetManifold(values, new ceres::SubsetManifold(size, held));
#else
  problem.SetParameterization(values, new ceres::SubsetParameterization(size, held));
#endif
}

}  // namespace memfathom
