// TorchCase: one small computation and PyTorch's result, read from tests/data/torch_cases.
#pragma once

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/kernels/devices/reference/host_tensor.h"
#include "tests/support/paths.h"

namespace memfathom::testing {

struct TorchCase {
  std::string name, kind;
  nlohmann::json options;
  std::map<std::string, HostTensor> in, out;

  const HostTensor& input(const std::string& key) const { return in.at(key); }
  Operand input_or_absent(const std::string& key) const {
    return in.count(key) ? in.at(key).operand() : Operand{};
  }
  Shape shape_option(const std::string& key) const {
    Shape shape;
    for (const auto& value : options.at(key)) shape.push_back(value.get<std::int64_t>());
    return shape;
  }
};

inline HostTensor read_tensor(const nlohmann::json& json) {
  Shape shape;
  for (const auto& extent : json.at("shape")) shape.push_back(extent.get<std::int64_t>());
  HostTensor tensor(shape, parse_dtype(json.at("dtype").get<std::string>()).value());
  const auto values = json.at("values").get<std::vector<double>>();
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (is_complex(tensor.operand().dtype)) {
      tensor.lane().set<element::Complex>(
          i, {static_cast<float>(values[2 * at]), static_cast<float>(values[2 * at + 1])});
    } else {
      tensor.set(i, values[at]);
    }
  }
  return tensor;
}

inline std::vector<TorchCase> read_torch_cases(const std::string& group) {
  std::ifstream file(test_data().string() + "/torch_cases/" + group + ".json");
  std::vector<TorchCase> cases;
  const nlohmann::json document = nlohmann::json::parse(file);
  for (const auto& json : document.at("cases")) {
    TorchCase c{json.at("name"), json.at("kind"), json.at("options"), {}, {}};
    for (const auto& [key, value] : json.at("in").items()) c.in[key] = read_tensor(value);
    for (const auto& [key, value] : json.at("out").items()) c.out[key] = read_tensor(value);
    cases.push_back(c);
  }
  return cases;
}

}  // namespace memfathom::testing
