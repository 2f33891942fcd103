// Job options: the flags that say a job on the command line, each overriding the file's key.
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
  // --model when it is a file or a folder: to be read like the files of --from.
  std::optional<std::string> model_path() const;
  // The job as a document: what the files say, then the flags, then every --set.
  Node document(Node job) const;
  // document() for many jobs: the flags' words are read once. This must outlive it.
  std::function<Node(Node)> editor() const;
  bool any_given() const;
  // Whether a flag says the precision: the type of the files' weights is then of no concern.
  bool sets_precision() const;

 private:
  struct Values;
  struct ParsedValues;
  ParsedValues words() const;
  Node edited(Node job, const ParsedValues& words) const;
  std::unique_ptr<Values> values_;
};

}  // namespace memfathom
