// Catalogue: every model that can be asked for by name, with its size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace memfathom {

struct CataloguedModel {
  std::string name;
  std::string description;
  std::int64_t parameters = 0;  // counted by building it
};

// By family, then as the tables list them.
std::vector<CataloguedModel> model_catalogue();

}  // namespace memfathom
