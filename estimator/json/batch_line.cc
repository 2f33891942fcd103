#include "estimator/json/batch_line.h"

#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/error.h"
#include "estimator/json/estimate_json.h"

namespace memfathom {
namespace {

// The id of a line that may be no job at all.
std::string id_of(const Node& document) {
  const Node* id = document.is_map() ? document.find("id") : nullptr;
  if (id == nullptr) return "";
  return id->is_string() ? id->as_string() : id->shown();
}

}  // namespace

BatchAnswer answer_line(const std::string& text, const std::string& name, int line,
                        const std::function<JobInput(Node)>& read, bool explains,
                        const Estimator& estimator) {
  BatchAnswer answer;
  std::string id;
  try {
    const Node document = parse_json(text, name, line);
    id = id_of(document);
    const Node* inner = document.is_map() ? document.find("job") : nullptr;
    const JobInput input = read(inner != nullptr ? *inner : document);
    Estimate estimate = estimator.estimate_as_run(input.job, explains);
    input.annotate(estimate);
    if (estimate.id.empty()) estimate.id = id;
    answer.undecided = is_undecided(estimate);
    answer.text = to_text(estimate_json(estimate), kOneLine);
  } catch (const Error& error) {
    answer.failed = true;
    answer.text = error_json_line(id, error.what(), error.kind());
  } catch (const std::bad_alloc&) {
    answer.failed = true;
    answer.text = error_json_line(
        id, "this machine has no memory left for this job; close other programs or ask for less",
        ErrorKind::kOutOfMemory);
  } catch (const std::length_error&) {
    answer.failed = true;
    answer.text = error_json_line(id, "this job has more parts than can be listed; ask for less",
                                  ErrorKind::kInput);
  }
  return answer;
}

}  // namespace memfathom
