#include "cli/estimate/estimate_batch.h"

#include <istream>
#include <ostream>
#include <streambuf>
#include <string>
#include <vector>

#include "core/document.h"
#include "core/error.h"
#include "core/parallel_for.h"
#include "estimator/answer/estimate_json.h"

namespace memfathom {
namespace {

// Lines are read, answered and written in blocks of this many: memory stays bounded, whatever comes
// in.
constexpr std::size_t kBlock = 256;

struct BatchLine {
  std::string text;
  int number = 0;
  std::string answer;
  bool failed = false;
  bool undecided = false;
};

// The id of a line that may be no job at all.
std::string id_of(const Node& document) {
  const Node* id = document.is_map() ? document.find("id") : nullptr;
  if (id == nullptr) return "";
  return id->is_string() ? id->as_string() : id->shown();
}

void answer(BatchLine& line, const std::string& name, const BatchOptions& question,
            const Estimation& estimation) {
  std::string id;
  try {
    const Node document = parse_json(line.text, name, line.number);
    id = id_of(document);
    // Either a job, or an object that holds one beside its id.
    const Node* inner = document.is_map() ? document.find("job") : nullptr;
    const JobInput input = question.read(inner != nullptr ? *inner : document);
    Estimate estimate = estimation.estimate_as_run(input.job, question.explains);
    input.annotate(estimate);
    if (estimate.id.empty()) estimate.id = id;
    line.undecided = is_undecided(estimate);
    line.answer = to_json_text(estimate, false);
  } catch (const Error& error) {
    line.failed = true;
    line.answer = error_json_line(id, error.what(), error.kind());
  }
}

void answer_all(std::vector<BatchLine>& lines, const std::string& name,
                const BatchOptions& question, const Estimation& estimation) {
  parallel_for(lines.size(), [&](std::size_t i) { answer(lines[i], name, question, estimation); });
}

// The next line without its end; of one that is longer than any job only the beginning, which is
// enough to be refused.
bool read_line(std::istream& input, std::string& text) {
  constexpr std::size_t kMaxLineBytes = DocumentLimits{}.max_file_bytes + 1;
  text.clear();
  std::streambuf& buffer = *input.rdbuf();
  bool any = false;
  for (int c = buffer.sbumpc(); c != std::char_traits<char>::eof(); c = buffer.sbumpc()) {
    any = true;
    if (c == '\n') return true;
    if (text.size() < kMaxLineBytes) text.push_back(static_cast<char>(c));
  }
  return any;
}

}  // namespace

ExitCode estimate_batch(std::istream& input, const std::string& name, const BatchOptions& question,
                        const Estimation& estimation, Context& context) {
  bool failed = false;
  bool undecided = false;
  int number = 0;
  std::vector<BatchLine> lines;
  const auto flush = [&] {
    answer_all(lines, name, question, estimation);
    for (const BatchLine& line : lines) {
      context.out << line.answer << '\n';
      failed = failed || line.failed;
      undecided = undecided || line.undecided;
    }
    lines.clear();
  };
  std::string text;
  while (read_line(input, text)) {
    ++number;
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    lines.push_back({std::move(text), number, {}, false, false});
    if (lines.size() == kBlock) flush();
  }
  if (!lines.empty()) flush();
  if (failed) return ExitCode::kUsage;
  return question.strict && undecided ? ExitCode::kUndecided : ExitCode::kYes;
}

}  // namespace memfathom
