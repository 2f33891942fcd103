// OptionParser: the options and arguments of a command. It hides CLI11, which is slow to compile,
// in one translation unit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace memfathom {

// `names` is a comma-separated list, "--sequence-length,--seq-length"; messages use the first name.
// Targets must outlive parse(). An optional stays empty, and any other target keeps its value, when
// the option is not given.
class OptionParser {
 public:
  explicit OptionParser(std::string_view command);
  ~OptionParser();

  void flag(const std::string& names, bool& target);
  void flag(const std::string& names, std::optional<bool>& target);  // --x, or --x=false
  void option(const std::string& names, std::string& target);
  void option(const std::string& names, std::optional<std::string>& target);
  // The value is optional; without it the target is `fallback`.
  void option_or(const std::string& names, const std::string& fallback,
                 std::optional<std::string>& target);
  void option(const std::string& names, std::int64_t& target);
  void option(const std::string& names, std::optional<std::int64_t>& target);
  void option(const std::string& names, double& target);
  void option(const std::string& names, std::optional<double>& target);
  void option(const std::string& names,
              std::vector<std::string>& target);  // repeatable, one value each time
  void list_option(const std::string& names,
                   std::vector<std::string>& target);  // takes all values up to the next option
  // Positional arguments, in order; `name` as in the help page: "JOB".
  void positional(const std::string& name, std::string& target);  // required
  void positional(const std::string& name, std::optional<std::string>& target);
  void positional(
      const std::string& name,
      std::vector<std::string>& target);  // the remaining arguments, including those after "--"

  // What the error says of an option that is not known: "give --x". Without a hint it names the
  // nearest option.
  void hint(const std::string& name, const std::string& what_to_do);

  // Throws Error(kUsage): unknown option (with its hint or the nearest one), missing or malformed
  // value, unexpected argument.
  void parse(const Arguments& arguments);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace memfathom
