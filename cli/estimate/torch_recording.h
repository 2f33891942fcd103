// Recording with the user's PyTorch, in a process of its own: what `capture` and `--via torch`
// share.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "core/document.h"
#include "estimator/session/job_input.h"

namespace memfathom {

// A file for a trace: the user's, or a temporary one that is removed on destruction.
class RecordingFile {
 public:
  explicit RecordingFile(std::string kept = "", std::string_view suffix = ".jsonl.gz");
  ~RecordingFile();
  RecordingFile(const RecordingFile&) = delete;
  RecordingFile& operator=(const RecordingFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool temporary_;
};

// What the recorded program is told about its GPU; without a target it is an A100 with 80 GB.
nlohmann::json gpu_facts(const Node& document);

// Runs `python -m memfathom._with_torch words...`; its output goes to standard error. Returns its
// exit code; throws Error(kEnvironment) if that Python has no PyTorch.
int run_with_torch(const std::string& python, const std::vector<std::string>& words);

// What the program wrote for us at its end; null if it wrote nothing.
nlohmann::json told_in(const RecordingFile& file);

// Which jobs are recorded in place of being built: `--via`.
struct ViaTorch {
  std::string via = "auto";  // auto: models that no family is known of; torch; builders
  std::string python;
  std::vector<std::string> vary;  // sizes that the recording must be able to change

  // Throws Error(kUsage) for another word.
  void check() const;
  bool applies_to(const JobInput& input) const;
};

// The job about a recording of the model that the job's configuration describes, by the user's
// transformers, diffusers or timm. `trace` receives the recording and must outlive the job.
JobInput recorded_job(const JobInput& input, const ViaTorch& options, const RecordingFile& trace);
// The same where it applies, which makes `trace`; where `--via` left it open and nothing can be
// recorded, the job itself.
JobInput recorded_if_asked(JobInput input, const ViaTorch& options,
                           std::optional<RecordingFile>& trace, Context& context);

}  // namespace memfathom
