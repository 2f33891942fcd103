// versions: what computes the products and the transforms of this cpu device, by name and version.
#pragma once

#include <string>

namespace memfathom::cpu {

std::string products_version();
std::string transforms_version();

}  // namespace memfathom::cpu
