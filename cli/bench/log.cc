#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "cli/bench/run.h"
#include "core/atomic_file.h"
#include "core/error.h"

namespace memfathom {
namespace {

bool is_same_run(const BenchFile& a, const BenchFile& b) {
  return a.device == b.device && a.selection == b.selection && a.repetitions == b.repetitions &&
         a.environment == b.environment && a.program == b.program;
}

}  // namespace

BenchLog::BenchLog(std::string out, BenchFile fresh)
    : out_(std::move(out)), partial_(out_ + ".partial"), file_(std::move(fresh)) {
  std::error_code ignored;
  if (!std::filesystem::exists(partial_, ignored)) return;
  BenchFile before;
  try {
    before = read_bench_file(partial_);
  } catch (const Error&) {
    return;  // not a file of this program: overwrite it
  }
  if (!is_same_run(before, file_)) return;
  file_ = std::move(before);
  taken_over_ = file_.rows.size();
  for (const BenchRow& row : file_.rows) known_.emplace(row.name, row.repetition);
}

bool BenchLog::has(const std::string& name, int repetition) const {
  return known_.contains({name, repetition});
}

void BenchLog::add(std::vector<BenchRow> rows) {
  for (BenchRow& row : rows) {
    known_.emplace(row.name, row.repetition);
    file_.rows.push_back(std::move(row));
  }
  write_file_atomically(partial_, to_text(file_));
}

void BenchLog::finish() {
  const bool any = std::any_of(file_.rows.begin(), file_.rows.end(),
                               [](const BenchRow& row) { return row.error.empty(); });
  std::error_code ignored;
  if (!any) {
    std::filesystem::remove(partial_, ignored);
    throw Error(ErrorKind::kEnvironment,
                fmt::format("no benchmark could be run on {}: {}", file_.device,
                            file_.rows.empty() ? "none was selected" : file_.rows.front().error));
  }
  write_file_atomically(out_, to_text(file_));
  std::filesystem::remove(partial_, ignored);
}

BenchFilter::BenchFilter(const std::string& expression) {
  if (expression.empty()) {
    admits_ = [](const std::string&) { return true; };
    return;
  }
  try {
    const std::regex pattern(expression);
    admits_ = [pattern](const std::string& name) { return std::regex_search(name, pattern); };
  } catch (const std::regex_error& error) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--filter is \"{}\", which is not a regular expression: {}", expression,
                            error.what()));
  }
}

}  // namespace memfathom
