// OptionParser: what a command accepts on its line. CLI11 is behind it, in one translation unit (it
// is slow to compile).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace memfathom {

// `names` is a comma-separated list, "--sequence-length,--seq-length"; the first one stands in
// messages. Targets must outlive parse(). An optional stays empty, and any other target keeps its
// value, when the option is not given.
class OptionParser {
 public:
  explicit OptionParser(std::string_view command);
  ~OptionParser();

  void flag(const std::string& names, bool& target);
  void flag(const std::string& names, std::optional<bool>& target);  // --x, or --x=false
  void option(const std::string& names, std::string& target);
  void option(const std::string& names, std::optional<std::string>& target);
  // The value may be left out: then it is `fallback`.
  void option_or(const std::string& names, const std::string& fallback,
                 std::optional<std::string>& target);
  void option(const std::string& names, std::int64_t& target);
  void option(const std::string& names, std::optional<std::int64_t>& target);
  void option(const std::string& names, double& target);
  void option(const std::string& names, std::optional<double>& target);
  void option(const std::string& names,
              std::vector<std::string>& target);  // one value each time it is given
  void list_option(const std::string& names,
                   std::vector<std::string>& target);  // takes all values up to the next option
  // Words without dashes, in order; `name` as in the page: "JOB".
  void positional(const std::string& name, std::string& target);  // required
  void positional(const std::string& name, std::optional<std::string>& target);
  void positional(const std::string& name,
                  std::vector<std::string>& target);  // the rest and what follows "--"

  // Throws Error(kUsage): unknown option (with the nearest one), missing or malformed value, a word
  // too many.
  void parse(const Arguments& arguments);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace memfathom
