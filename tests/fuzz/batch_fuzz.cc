// Any text is a line of a batch, whose answer is one line of JSON with the schema of an error or an
// estimate. What jobs say is job_fuzz's matter: here none is run.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "core/calibration_source.h"
#include "core/document.h"
#include "core/error.h"
#include "core/live_gpu.h"
#include "core/workspace_source.h"
#include "estimator/job/read_job.h"
#include "estimator/json/batch_line.h"
#include "tests/fuzz/no_files.h"
#include "tests/fuzz/no_machine.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memfathom;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (text.find('\n') != std::string::npos) return 0;  // two lines
  static const NoMachine machine;
  const auto read = [](const Node& document) -> JobInput {
    read_job(document, NoFiles());
    document.refuse("no job is run here");
  };
  const BatchAnswer answer = answer_line(text, "fuzz", 1, read, false, machine.estimator());
  const std::size_t newline = answer.text.find('\n');
  const bool is_one_line = newline == std::string::npos || newline + 1 == answer.text.size();
  if (!answer.failed || !is_one_line) std::abort();
  const Node line = parse_json(answer.text, "answer");
  if (line.at("schema").as_string() != "memfathom.error/1") std::abort();
  if (line.at("kind").as_string() == "internal") std::abort();
  return 0;
}
