#include "cli/option_parser.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

#include "cli/global_options.h"
#include "core/error.h"
#include "core/suggest.h"

namespace memfathom {

class OptionParser::Implementation {
 public:
  explicit Implementation(std::string_view command) : command_(command) {
    app_.set_help_flag();  // main prints the page
    app_.allow_extras();   // so that we can say what was meant
  }

  CLI::App& app() { return app_; }

  void parse(const Arguments& arguments) {
    refuse_unknown_options(arguments);
    try {
      app_.parse(Arguments(arguments.rbegin(), arguments.rend()));  // CLI11 takes them reversed
    } catch (const CLI::ParseError& failure) {
      refuse(failure.what());
    }
    for (const std::string& extra : app_.remaining()) {
      refuse(fmt::format("\"{}\" is one word too many", extra));
    }
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    while (what.ends_with('.') || what.ends_with('\n')) what.remove_suffix(1);
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: {}; see memfathom {} --help", command_, what, command_));
  }

  // Before CLI11 looks for what is missing: a mistyped option is the likelier mistake.
  void refuse_unknown_options(const Arguments& arguments) const {
    std::vector<std::string> known;
    for (const CLI::Option* option : app_.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    for (const std::string& word : arguments) {
      if (word == "--") return;  // what follows is not ours
      const std::string name = word.substr(0, word.find('='));
      if (!name.starts_with("--") || std::find(known.begin(), known.end(), name) != known.end())
        continue;
      std::vector<std::string_view> names(known.begin(), known.end());
      const auto globals = global_option_names();
      names.insert(names.end(), globals.begin(), globals.end());
      const auto near = nearest_name(name, names);
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}: {} is not a known option; {}", command_, name,
                              near ? fmt::format("did you mean {}?", *near)
                                   : fmt::format("see memfathom {} --help", command_)));
    }
  }

  std::string command_;
  CLI::App app_;
};

OptionParser::OptionParser(std::string_view command)
    : implementation_(std::make_unique<Implementation>(command)) {}
OptionParser::~OptionParser() = default;

void OptionParser::flag(const std::string& names, bool& target) {
  implementation_->app().add_flag(names, target);
}
void OptionParser::flag(const std::string& names, std::optional<bool>& target) {
  implementation_->app().add_flag(names, target);
}
void OptionParser::option(const std::string& names, std::string& target) {
  implementation_->app().add_option(names, target);
}
void OptionParser::option(const std::string& names, std::optional<std::string>& target) {
  implementation_->app().add_option(names, target);
}
void OptionParser::option(const std::string& names, std::int64_t& target) {
  implementation_->app().add_option(names, target);
}
void OptionParser::option(const std::string& names, std::optional<std::int64_t>& target) {
  implementation_->app().add_option(names, target);
}
void OptionParser::option(const std::string& names, double& target) {
  implementation_->app().add_option(names, target);
}
void OptionParser::option(const std::string& names, std::optional<double>& target) {
  implementation_->app().add_option(names, target);
}
void OptionParser::option(const std::string& names, std::vector<std::string>& target) {
  implementation_->app().add_option(names, target)->expected(1)->take_all();
}
void OptionParser::list_option(const std::string& names, std::vector<std::string>& target) {
  implementation_->app().add_option(names, target);
}
void OptionParser::positional(const std::string& name, std::string& target) {
  implementation_->app().add_option(name, target)->required();
}
void OptionParser::positional(const std::string& name, std::optional<std::string>& target) {
  implementation_->app().add_option(name, target);
}
void OptionParser::positional(const std::string& name, std::vector<std::string>& target) {
  implementation_->app().add_option(name, target);
}

void OptionParser::parse(const Arguments& arguments) { implementation_->parse(arguments); }

}  // namespace memfathom
