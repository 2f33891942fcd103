// Published sizes: parameters of models whose names say none, or only those that a token passes,
// and whose shapes are not known here.
#pragma once

#include <string_view>

namespace memfathom {

// As the model's card says; 0: not in the table. `name` may have an owner and other endings.
double published_parameters(std::string_view name);

}  // namespace memfathom
