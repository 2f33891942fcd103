// Environment: the device and the software that a calibration was made with. What is unknown is
// empty, or 0 for a size.
//
//     #include <memfathom/session.h>
//     #include <iostream>
//
//     void print(const memfathom::Estimate& estimate) {
//       const memfathom::Environment& e = estimate.calibration.environment;
//       std::cout << e.gpu << ", driver " << e.driver << ", CUDA " << e.cuda << ", " << e.framework
//       << ' '
//                 << e.framework_version << '\n';
//     }
#pragma once

#include <memfathom/bytes.h>

#include <nlohmann/json.hpp>
#include <string>

namespace memfathom {
inline namespace v0 {

struct Environment {
  std::string gpu;           // the driver's name for it
  std::string architecture;  // "sm_80"
  Bytes memory_total;
  std::string driver, cuda, cudnn, cublas;
  std::string framework, framework_version;
  nlohmann::json json;  // everything that the result says of it
};

}  // namespace v0
}  // namespace memfathom
