#include "cli/estimate/estimate_batch.h"

#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "core/document.h"
#include "core/parallel_for.h"
#include "core/read_line.h"
#include "estimator/json/batch_line.h"

namespace memfathom {
namespace {

// Lines are processed in blocks of this size, which bounds memory.
constexpr std::size_t kBlock = 256;
constexpr std::size_t kBlockBytes = std::size_t{64} << 20;

struct BatchLine {
  std::string text;
  int number = 0;
  BatchAnswer answer;
};

void answer_all(std::vector<BatchLine>& lines, const std::string& name, const BatchOptions& options,
                const Estimator& estimator) {
  parallel_for(lines.size(), [&](std::size_t i) {
    BatchLine& line = lines[i];
    line.answer =
        answer_line(line.text, name, line.number, options.read, options.explains, estimator);
  });
}

}  // namespace

ExitCode estimate_batch(std::istream& input, const std::string& name, const BatchOptions& options,
                        const Estimator& estimator, Context& context) {
  bool failed = false;
  bool undecided = false;
  int number = 0;
  std::size_t bytes = 0;  // of the lines
  std::vector<BatchLine> lines;
  const auto flush = [&] {
    answer_all(lines, name, options, estimator);
    for (const BatchLine& line : lines) {
      context.out << line.answer.text << '\n';
      failed = failed || line.answer.failed;
      undecided = undecided || line.answer.undecided;
    }
    lines.clear();
    bytes = 0;
  };
  std::string text;
  while (read_line(input, name, DocumentLimits{}.max_file_bytes, text)) {
    ++number;
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    lines.push_back({std::move(text), number, {}});
    bytes += lines.back().text.size();
    // Whoever waits for an answer before the next line gets it.
    const bool awaited = input.rdbuf()->in_avail() <= 0;
    if (lines.size() == kBlock || bytes >= kBlockBytes || awaited) flush();
    if (awaited) context.out.flush();
  }
  if (!lines.empty()) flush();
  if (failed) return ExitCode::kUsage;
  return options.strict && undecided ? ExitCode::kUndecided : ExitCode::kYes;
}

}  // namespace memfathom
