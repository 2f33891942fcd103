#include "estimator/models/stored/stored_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <istream>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/document.h"
#include "core/error.h"

namespace memfathom {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 40;

constexpr std::array<std::string_view, 2> kStems{"model", "diffusion_pytorch_model"};

// Types of one byte that have no name here are counted as bytes.
constexpr std::array<std::pair<std::string_view, DType>, 13> kTypes{{{"F64", DType::kFp64},
                                                                     {"F32", DType::kFp32},
                                                                     {"F16", DType::kFp16},
                                                                     {"BF16", DType::kBf16},
                                                                     {"I64", DType::kInt64},
                                                                     {"U64", DType::kInt64},
                                                                     {"I32", DType::kInt32},
                                                                     {"U32", DType::kInt32},
                                                                     {"I8", DType::kInt8},
                                                                     {"U8", DType::kUint8},
                                                                     {"BOOL", DType::kBool},
                                                                     {"F8_E4M3", DType::kUint8},
                                                                     {"F8_E5M2", DType::kUint8}}};

DType type_of(const Node& node) {
  for (const auto& [name, type] : kTypes) {
    if (node.as_string() == name) return type;
  }
  node.refuse("it is not a supported safetensors dtype (F32, F16, BF16, I8, ...)");
}

[[noreturn]] void reject_file(const std::string& name, std::string_view why) {
  throw Error(ErrorKind::kInput, fmt::format("{}: {}", name, why));
}

std::vector<StoredTensor> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) reject_file(path.string(), "cannot be read; its header holds the shapes of the model");
  return read_safetensors_header(file, path.string());
}

std::vector<StoredTensor> read_indexed(const fs::path& index) {
  const Node tree = load_document(index.string());
  std::set<std::string> files;
  for (const Node& entry : tree.at("weight_map").entries()) {
    const fs::path file = entry.as_string();
    if (file.empty() || file.is_absolute() || file.has_parent_path())
      entry.refuse("it must name a file in the same folder as the index");
    files.insert(file.string());
  }
  std::vector<StoredTensor> tensors;
  for (const std::string& file : files) {
    std::vector<StoredTensor> part = read_file(index.parent_path() / file);
    std::move(part.begin(), part.end(), std::back_inserter(tensors));
  }
  return tensors;
}

}  // namespace

std::vector<StoredTensor> read_safetensors_header(std::istream& file, const std::string& name) {
  std::array<unsigned char, 8> prefix{};
  file.read(reinterpret_cast<char*>(prefix.data()), prefix.size());
  if (file.gcount() != 8) reject_file(name, "it ends within the 8 bytes of its header's length");
  std::uint64_t length = 0;
  for (std::size_t i = prefix.size(); i-- > 0;) length = length << 8 | prefix[i];
  if (length < 2 || length > kMaxHeaderBytes)
    reject_file(name, fmt::format("its header would have {} bytes; safetensors allow 2 to {}",
                                  length, kMaxHeaderBytes));
  // A damaged length must not make us ask for memory that the file cannot fill.
  std::string text;
  constexpr std::uint64_t kPiece = 1 << 20;
  while (text.size() < length) {
    const std::size_t begin = text.size();
    const std::size_t piece = std::min<std::uint64_t>(kPiece, length - begin);
    text.resize(begin + piece);
    file.read(text.data() + begin, static_cast<std::streamsize>(piece));
    if (static_cast<std::size_t>(file.gcount()) != piece)
      reject_file(name, fmt::format("it ends within its header of {} bytes", length));
  }
  std::vector<StoredTensor> tensors;
  const Node header = parse_json(text, name, 0, {.max_file_bytes = std::size_t{kMaxHeaderBytes}});
  for (const Node& entry : header.entries()) {
    if (entry.key() == "__metadata__") continue;
    const std::vector<std::int64_t> extents = entry.at("shape").as_ints(0, kMaxExtent);
    if (extents.size() > Shape::kMaxRank)
      entry.at("shape").refuse("tensors of more than 8 dimensions are not read");
    StoredTensor tensor{std::string(entry.key()), Shape(extents), type_of(entry.at("dtype"))};
    size_of(tensor.shape, tensor.dtype);  // refuses what no file could hold
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::vector<StoredTensor> stored_tensors(const fs::path& folder) {
  std::vector<StoredTensor> tensors;
  std::error_code ignored;
  for (const std::string_view stem : kStems) {
    const fs::path one = folder / fmt::format("{}.safetensors", stem);
    const fs::path index = folder / fmt::format("{}.safetensors.index.json", stem);
    if (fs::exists(one, ignored)) {
      tensors = read_file(one);
    } else if (fs::exists(index, ignored)) {
      tensors = read_indexed(index);
    } else {
      continue;
    }
    break;
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  return tensors;
}

}  // namespace memfathom
