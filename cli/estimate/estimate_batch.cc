#include "cli/estimate/estimate_batch.h"

#include <fmt/format.h>

#include <istream>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "cli/estimate/slim_batch.h"
#include "core/document.h"
#include "core/parallel_for.h"
#include "core/read_line.h"
#include "estimator/json/batch_line.h"

namespace memfathom {
namespace {

// Lines are processed in blocks of this size, which bounds memory.
constexpr std::size_t kBlock = 256;
constexpr std::size_t kBlockBytes = std::size_t{64} << 20;

// Equal jobs are found within a block and before it, so slim blocks are larger.
constexpr std::size_t kSlimBlock = 4096;

// The answers of a block, on all cores.
class Answers {
 public:
  Answers(const BatchOptions& options, const std::string& name, const Estimator& estimator)
      : options_(options),
        name_(name),
        estimator_(estimator),
        slim_(options.read, name, estimator) {}

  std::vector<BatchAnswer> of(const std::vector<SlimLine>& lines) {
    if (options_.slim) return slim_.answer(lines);
    std::vector<BatchAnswer> answers(lines.size());
    parallel_for(lines.size(), [&](std::size_t i) {
      answers[i] = answer_line(lines[i].text, name_, lines[i].number, options_.read,
                               options_.explains, estimator_);
    });
    return answers;
  }
  std::int64_t estimated() const { return slim_.estimated(); }

 private:
  const BatchOptions& options_;
  const std::string& name_;
  const Estimator& estimator_;
  SlimAnswers slim_;
};

}  // namespace

ExitCode estimate_batch(std::istream& input, const std::string& name, const BatchOptions& options,
                        const Estimator& estimator, Context& context) {
  bool failed = false;
  bool undecided = false;
  int number = options.lines_before;
  std::int64_t answered = 0;
  std::int64_t consumed = 0;  // bytes of the input
  std::size_t bytes = 0;      // of the lines
  std::vector<SlimLine> lines;
  Answers answers(options, name, estimator);
  const auto flush = [&] {
    for (const BatchAnswer& answer : answers.of(lines)) {
      context.out << answer.text << '\n';
      failed = failed || answer.failed;
      undecided = undecided || answer.undecided;
      ++answered;
    }
    lines.clear();
    bytes = 0;
  };
  std::string text;
  const std::size_t block = options.slim ? kSlimBlock : kBlock;
  while ((options.bytes < 0 || consumed < options.bytes) &&
         read_line(input, name, DocumentLimits{}.max_file_bytes, text)) {
    ++number;
    consumed += static_cast<std::int64_t>(text.size()) + 1;
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    lines.push_back({std::exchange(text, {}), number});
    bytes += lines.back().text.size();
    // Whoever waits for an answer before the next line gets it.
    const bool awaited = input.rdbuf()->in_avail() <= 0;
    if (lines.size() == block || bytes >= kBlockBytes || awaited) flush();
    if (awaited) context.out.flush();
  }
  if (!lines.empty()) flush();
  if (options.slim)
    context.detail(fmt::format("{} jobs, {} different", answered, answers.estimated()));
  if (failed) return ExitCode::kUsage;
  return options.strict && undecided ? ExitCode::kUndecided : ExitCode::kYes;
}

}  // namespace memfathom
