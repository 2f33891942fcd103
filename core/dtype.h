// DType: the element types of tensors and their sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace memfathom {

// kNf4 is 4-bit storage: two elements per byte.
enum class DType : std::uint8_t {
  kFp64,
  kFp32,
  kFp16,
  kBf16,
  kInt64,
  kInt32,
  kInt8,
  kUint8,
  kBool,
  kComplex64,
  kNf4
};

// Bits of one element (4-bit types are not a whole number of bytes).
constexpr int bits_of(DType type) {
  switch (type) {
    case DType::kFp64:
    case DType::kInt64:
    case DType::kComplex64: return 64;
    case DType::kFp32:
    case DType::kInt32: return 32;
    case DType::kFp16:
    case DType::kBf16: return 16;
    case DType::kInt8:
    case DType::kUint8:
    case DType::kBool: return 8;
    case DType::kNf4: return 4;
  }
  return 0;
}

constexpr bool is_floating(DType type) {
  return type == DType::kFp64 || type == DType::kFp32 || type == DType::kFp16 ||
         type == DType::kBf16;
}
constexpr bool is_16bit_float(DType type) { return type == DType::kFp16 || type == DType::kBf16; }
constexpr bool is_complex(DType type) { return type == DType::kComplex64; }

// "fp32", "bf16", "int64", ...
std::string_view to_string(DType type);

// Accepts our names and common aliases: float32, float, half, bfloat16, torch.float16, long, ...
std::optional<DType> parse_dtype(std::string_view text);

}  // namespace memfathom
