// Job: what is to be run, and on what. A job is the text of a job file (docs/jobs.md), files that
// already describe it (a Hugging Face folder, TrainingArguments, DeepSpeed, axolotl, ...;
// docs/your-files.md), or both; keys that are set win over either.
//
//     #include <memfathom/job.h>
//
//     memfathom::Job job() {
//       memfathom::Job job("model: {preset: llama-2-7b}");
//       job.set("training.precision", "bf16").set("training.batch_size", 4);
//       job.set("training.sequence_length", 2048).set("target.gpu", "rtx-4090");
//       return job;
//     }
//
// Nothing is read or checked before a Session is asked about the job. A Job is a value.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memfathom {
inline namespace v0 {

class Job {
 public:
  Job() = default;
  // `text`: YAML or JSON. Paths in it are relative to the working directory.
  explicit Job(std::string_view text) { request_["job"] = text; }
  // `paths`: job files, model folders and files of other tools; a later one wins.
  static Job from_files(std::vector<std::string> paths) {
    Job job;
    job.request_["files"] = std::move(paths);
    return job;
  }

  // Sets a dotted key of the job, as the program's --set does: "training.lora.rank".
  template <typename T>
  Job& set(const std::string& key, const T& value) {
    request_["set"][key] = value;
    return *this;
  }

  // The request that memfathom/memfathom.h describes, without the keys of a question.
  const nlohmann::json& request() const { return request_; }

 private:
  nlohmann::json request_ = nlohmann::json::object();
};

}  // namespace v0
}  // namespace memfathom
