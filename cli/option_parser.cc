#include "cli/option_parser.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <map>
#include <optional>

#include "cli/global_options.h"
#include "core/error.h"
#include "core/lowercase.h"
#include "core/parse_number.h"
#include "core/suggest.h"

namespace memfathom {

class OptionParser::Implementation {
 public:
  explicit Implementation(std::string_view command) : command_(command) {
    app_.set_help_flag();  // main prints the page
    app_.allow_extras();   // for our own error messages
  }

  CLI::App& app() { return app_; }

  // CLI11's own conversion accepts numbers that do not fit.
  template <typename Number, typename Target>
  void number(const std::string& names, Target& target, const char* what) {
    app_.add_option_function<std::string>(
        names,
        [this, &target, what, name = names.substr(0, names.find(','))](const std::string& text) {
          const std::optional<Number> value = parse_number<Number>(text);
          if (!value) {
            throw Error(ErrorKind::kUsage,
                        fmt::format("{}: {} is \"{}\"; it must be {}", command_, name, text, what));
          }
          target = *value;
        });
  }

  void hint(const std::string& name, const std::string& what_to_do) { hints_[name] = what_to_do; }

  void rest(const std::string& name, std::vector<std::string>& target) {
    app_.add_option(name, target);
    rest_ = &target;
  }

  void parse(const Arguments& arguments) {
    const auto tail = std::find(arguments.begin(), arguments.end(), "--");
    Arguments own(arguments.begin(), tail);
    refuse_unknown_options(own);
    join_flags_with_words(own);
    std::reverse(own.begin(), own.end());  // CLI11 expects reverse order
    try {
      app_.parse(std::move(own));
    } catch (const CLI::ParseError& failure) {
      refuse(in_our_words(failure.what()));
    }
    for (const std::string& extra : app_.remaining()) {
      refuse(fmt::format("\"{}\" is an unexpected argument", extra));
    }
    if (tail == arguments.end()) return;
    if (rest_ == nullptr) refuse("no arguments are allowed after \"--\"");
    rest_->insert(rest_->end(), std::next(tail), arguments.end());
  }

 private:
  // CLI11 writes "--lora-rank: 1 required TEXT missing", "--gpu: At Most 1 required but received
  // 2".
  static std::string in_our_words(std::string what) {
    constexpr std::string_view kMissing = ": 1 required TEXT missing";
    if (const std::size_t at = what.find(kMissing); at != std::string::npos)
      what.replace(at, kMissing.size(), " needs a value");
    constexpr std::string_view kTwice = ": At Most 1 required but received ";
    if (const std::size_t at = what.find(kTwice); at != std::string::npos)
      what = fmt::format("{} is given {} times; give it once", what.substr(0, at),
                         what.substr(at + kTwice.size()));
    return what;
  }

  [[noreturn]] void refuse(std::string_view what) const {
    while (what.ends_with('.') || what.ends_with('\n')) what.remove_suffix(1);
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: {}; see memfathom {} --help", command_, what, command_));
  }

  // transformers' command lines write `--bf16 True`: the word is the value of the preceding flag.
  void join_flags_with_words(Arguments& arguments) const {
    for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
      const std::string word = lowercase(arguments[i + 1]);
      if ((word != "true" && word != "false") || !arguments[i].starts_with("--")) continue;
      const CLI::Option* option = app_.get_option_no_throw(arguments[i]);
      if (option == nullptr || option->get_items_expected_max() != 0) continue;
      arguments[i] += "=" + word;
      arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
  }

  // Runs before CLI11 reports missing options: a mistyped option is the more likely error.
  void refuse_unknown_options(const Arguments& arguments) const {
    std::vector<std::string> known;
    for (const CLI::Option* option : app_.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    for (const std::string& word : arguments) {
      const std::string name = word.substr(0, word.find('='));
      if (!name.starts_with("--") || std::find(known.begin(), known.end(), name) != known.end())
        continue;
      throw Error(ErrorKind::kUsage, fmt::format("{}: {} is not a known option; {}", command_, name,
                                                 instead_of(name, known)));
    }
  }

  std::string instead_of(const std::string& name, const std::vector<std::string>& known) const {
    if (const auto hint = hints_.find(name); hint != hints_.end()) return hint->second;
    std::vector<std::string_view> names(known.begin(), known.end());
    const auto globals = global_option_names();
    names.insert(names.end(), globals.begin(), globals.end());
    if (const auto near = nearest_name(name, names)) return fmt::format("did you mean {}?", *near);
    return fmt::format("see memfathom {} --help", command_);
  }

  std::string command_;
  CLI::App app_;
  std::map<std::string, std::string> hints_;
  std::vector<std::string>* rest_ = nullptr;
};

OptionParser::OptionParser(std::string_view command)
    : implementation_(std::make_unique<Implementation>(command)) {}
OptionParser::~OptionParser() = default;

void OptionParser::flag(const std::string& names, bool& target) {
  implementation_->app().add_flag(names, target);
}
void OptionParser::flag(const std::string& names, std::optional<bool>& target) {
  implementation_->app().add_flag_function(names,
                                           [&target](std::int64_t count) { target = count > 0; });
}
void OptionParser::option(const std::string& names, std::string& target) {
  implementation_->app().add_option(names, target);
}
void OptionParser::option(const std::string& names, std::optional<std::string>& target) {
  implementation_->app().add_option(names, target);
}
void OptionParser::option_or(const std::string& names, const std::string& fallback,
                             std::optional<std::string>& target) {
  implementation_->app()
      .add_option_function<std::vector<std::string>>(
          names,
          [&target, fallback](const std::vector<std::string>& values) {
            target = values.empty() || values.front().empty() ? fallback : values.front();
          })
      ->expected(0, 1);
}
void OptionParser::option(const std::string& names, std::int64_t& target) {
  implementation_->number<std::int64_t>(names, target, "a whole number");
}
void OptionParser::option(const std::string& names, std::optional<std::int64_t>& target) {
  implementation_->number<std::int64_t>(names, target, "a whole number");
}
void OptionParser::option(const std::string& names, double& target) {
  implementation_->number<double>(names, target, "a number");
}
void OptionParser::option(const std::string& names, std::optional<double>& target) {
  implementation_->number<double>(names, target, "a number");
}
void OptionParser::option(const std::string& names, std::vector<std::string>& target) {
  implementation_->app().add_option(names, target)->allow_extra_args(false);
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
  implementation_->rest(name, target);
}

void OptionParser::hint(const std::string& name, const std::string& what_to_do) {
  implementation_->hint(name, what_to_do);
}

void OptionParser::parse(const Arguments& arguments) { implementation_->parse(arguments); }

}  // namespace memfathom
