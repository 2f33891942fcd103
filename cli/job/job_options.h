// Job options: command-line flags that define a job; each overrides a key of the job file.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/option_parser.h"
#include "core/document.h"

namespace memfathom {

class JobOptions {
 public:
  JobOptions();
  ~JobOptions();

  // Declares all of them; call before parser.parse().
  void declare(OptionParser& parser);
  // --model if it is a file or folder; read it like the --from files.
  std::optional<std::string> model_path() const;
  // The job as a document: files first, then flags, then each --set.
  Node document(Node job) const;
  // document() for many jobs: parses the flags once. This object must outlive it.
  std::function<Node(Node)> editor() const;
  bool any_given() const;
  // What the flags leave to assume, as a sentence; empty: nothing.
  std::string assumption() const;
  bool sets_batch_size() const;
  // Whether a flag sets the precision, which overrides the dtype of the stored weights.
  bool sets_precision() const;
  // --multi-gpu: the layers lie on several GPUs, in shares that only the script knows.
  bool divides_model() const;

 private:
  struct Values;
  struct ParsedValues;
  ParsedValues words() const;
  Node edited(Node job, const ParsedValues& words) const;
  std::unique_ptr<Values> values_;
};

}  // namespace memfathom
