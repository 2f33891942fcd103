#include "core/dtype.h"

#include <array>
#include <utility>

namespace memfathom {
namespace {

using Name = std::pair<std::string_view, DType>;

constexpr std::array<Name, 29> kNames{
    {{"fp64", DType::kFp64},        {"float64", DType::kFp64},
     {"double", DType::kFp64},      {"fp32", DType::kFp32},
     {"float32", DType::kFp32},     {"float", DType::kFp32},
     {"fp16", DType::kFp16},        {"float16", DType::kFp16},
     {"half", DType::kFp16},        {"bf16", DType::kBf16},
     {"bfloat16", DType::kBf16},    {"int64", DType::kInt64},
     {"long", DType::kInt64},       {"int32", DType::kInt32},
     {"int", DType::kInt32},        {"int8", DType::kInt8},
     {"uint8", DType::kUint8},      {"byte", DType::kUint8},
     {"bool", DType::kBool},        {"complex64", DType::kComplex64},
     {"cfloat", DType::kComplex64}, {"nf4", DType::kNf4},
     {"F64", DType::kFp64},         {"F32", DType::kFp32},
     {"F16", DType::kFp16},         {"BF16", DType::kBf16},
     {"I64", DType::kInt64},        {"I8", DType::kInt8},
     {"U8", DType::kUint8}}};

}  // namespace

std::string_view to_string(DType type) {
  for (const auto& [name, value] : kNames) {
    if (value == type) return name;  // the first name of a type is memfathom's own
  }
  return "unknown";
}

std::optional<DType> parse_dtype(std::string_view text) {
  constexpr std::string_view kPrefix = "torch.";
  if (text.substr(0, kPrefix.size()) == kPrefix) text.remove_prefix(kPrefix.size());
  for (const auto& [name, value] : kNames) {
    if (name == text) return value;
  }
  return std::nullopt;
}

}  // namespace memfathom
