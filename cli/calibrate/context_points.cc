#include "cli/calibrate/context_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <optional>

#include "core/architecture.h"
#include "core/csv_line.h"
#include "core/document.h"
#include "core/error.h"
#include "core/gpus.h"
#include "core/parse_number.h"
#include "core/printable.h"
#include "core/read_line.h"

namespace memfathom {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kMaxMib = 1 << 20;  // 1 TiB
constexpr int kMaxMultiprocessors = 1000;

using Row = std::map<std::string, std::string>;

// The first release that a description names: "2.2-2.3 (msg)" and ">=2.2" are 2.2.
std::string release_in(const std::string& text) {
  const std::size_t digit = text.find_first_of("0123456789");
  if (digit == std::string::npos) return "";
  return release_series(std::string_view(text).substr(digit));
}

// A context in which kernels ran is no bare one: initializing, quantizing and adding launch some.
bool launched_kernels(const std::string& touched) {
  constexpr auto kWords = std::to_array<const char*>({"elementwise", "construction", "bnb"});
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](const char* word) { return touched.find(word) != std::string::npos; });
}

std::optional<OutsideStage> stage_of(const Row& row) {
  const std::string& kind = row.at("kind");
  if (kind == "context_only")
    return launched_kernels(row.at("touched")) ? OutsideStage::kComputed : OutsideStage::kBare;
  if (kind == "training_nccl") return OutsideStage::kCommunicated;
  if (kind == "training" || kind == "outlier" || kind == "after_conv" || kind == "after_matmul")
    return OutsideStage::kComputed;
  return std::nullopt;  // increments, and servers with allocators of their own
}

// Why the row says nothing about a PyTorch process on a known GPU; empty if it does.
std::string unusable(const Row& row) {
  if (row.at("mib").empty()) return "it has no figure";
  if (row.at("arch").empty() || row.at("sms").empty()) return "its GPU is not known";
  if (row.at("torch").starts_with("none")) return "it is not a PyTorch process";
  if (row.at("torch").find("dev") != std::string::npos)
    return "a development build: how it loads kernels is not known";
  if (row.at("touched").find("cached cuFFT plans") != std::string::npos)
    return "its figure is that of a whole process with cuFFT's plans";
  if (!stage_of(row)) return fmt::format("a row of kind {}", row.at("kind"));
  if (!row.at("lazy").starts_with("lazy") && !row.at("lazy").starts_with("eager"))
    return "how its stack loads kernels is not known";
  return "";
}

template <typename Number>
Number number_in(const Row& row, const std::string& column, Number most, const std::string& where) {
  const std::optional<Number> value = parse_number<Number>(row.at(column));
  if (value && *value > 0 && *value <= most) return *value;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: {} is \"{}\"; it must be a number above 0 and at most {}", where,
                          column, printable(row.at(column)), most));
}

OutsidePoint point_of(const Row& row, const std::string& where) {
  OutsidePoint point;
  point.id = where;
  const std::string& arch = row.at("arch");
  point.target.architecture =
      arch.starts_with("sm") && !arch.starts_with("sm_") ? "sm_" + arch.substr(2) : arch;
  const int capability = compute_capability(point.target.architecture);
  if (capability <= 0) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: arch is \"{}\"; write it as sm_80", where, printable(arch)));
  }
  point.target.multiprocessors = number_in<int>(row, "sms", kMaxMultiprocessors, where);
  point.target.kilothreads =
      point.target.multiprocessors * resident_threads_per_multiprocessor(capability) / 1024.0;
  point.target.loading =
      row.at("lazy").starts_with("eager") ? ModuleLoading::kEager : ModuleLoading::kLazy;
  if (point.target.loading == ModuleLoading::kLazy && !row.at("torch").empty())
    point.target.release = release_in(row.at("torch"));
  point.stage = *stage_of(row);
  point.is_guess = row.at("quality") == "D";
  point.used_cudnn = row.at("kind") == "after_conv";
  point.bytes = number_in<double>(row, "mib", kMaxMib, where) * kMiB;
  return point;
}

Row row_of(const std::vector<std::string>& columns, const std::vector<std::string>& fields,
           const std::string& where) {
  if (fields.size() != columns.size()) {
    throw Error(ErrorKind::kInput, fmt::format("{}: {} fields, but the first line names {} columns",
                                               where, fields.size(), columns.size()));
  }
  Row row;
  for (std::size_t i = 0; i < fields.size(); ++i) row[columns[i]] = fields[i];
  for (const char* needed :
       {"gpu", "arch", "sms", "torch", "lazy", "touched", "kind", "mib", "quality"}) {
    if (!row.contains(needed))
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: no column \"{}\"; the first line must name it", where, needed));
  }
  return row;
}

}  // namespace

ContextPoints read_context_points(const std::string& file) {
  std::ifstream input(file);
  if (!input) {
    throw Error(ErrorKind::kInput, fmt::format("{}: cannot be read; give a CSV file", file));
  }
  ContextPoints read;
  std::vector<std::string> columns;
  std::string line;
  for (int number = 1; read_line(input, file, DocumentLimits{}.max_file_bytes, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (columns.empty()) {
      columns = csv_fields(line);
      continue;
    }
    const std::string where = fmt::format("{}:{}", file, number);
    const Row row = row_of(columns, csv_fields(line), where);
    if (const std::string reason = unusable(row); !reason.empty()) {
      read.skipped.push_back(fmt::format("{}: {}", where, reason));
    } else {
      read.points.push_back(point_of(row, where));
    }
  }
  return read;
}

}  // namespace memfathom
