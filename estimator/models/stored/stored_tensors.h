// Stored tensors: names, shapes and types of a model's weights, from the headers of its safetensors
// files. Nothing but the headers is read.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"

namespace memfathom {

struct StoredTensor {
  std::string name;
  Shape shape;
  DType dtype = DType::kFp32;
};

// The header: its length in 8 bytes, then JSON. `name` stands in errors.
std::vector<StoredTensor> read_safetensors_header(std::istream& file, const std::string& name);

// All tensors of a model folder: of its one safetensors file, or of the files its index names; in
// the order of their names. Empty when the folder has neither. Throws Error(kInput) for files that
// are missing or damaged.
std::vector<StoredTensor> stored_tensors(const std::filesystem::path& folder);

}  // namespace memfathom
