#include "kernels/devices/cpu/host.h"

#include <fmt/core.h>
#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "kernels/devices/cpu/versions.h"

namespace memfathom::cpu {
namespace {

std::string_view trimmed(std::string_view text) {
  const char* blanks = " \t\"";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// The value of the first line `key<separator>value`; empty if there is none.
std::string value_of(const char* file, std::string_view key, char separator) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    const std::string_view view = line;
    const std::size_t split = view.find(separator);
    if (split != std::string_view::npos && trimmed(view.substr(0, split)) == key) {
      return std::string(trimmed(view.substr(split + 1)));
    }
  }
  return {};
}

std::int64_t leading_number(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Bytes kibibytes_of(std::string_view key) {
  return Bytes{1024} * leading_number(value_of("/proc/meminfo", key, ':'));
}

std::string or_unknown(const std::string& text) { return text.empty() ? "unknown" : text; }

}  // namespace

Environment host_environment() {
  utsname system{};
  uname(&system);
  const std::string model = or_unknown(value_of("/proc/cpuinfo", "model name", ':'));
  Environment environment;
  environment.gpu = fmt::format("{}, {} cores (cpu)", model, std::thread::hardware_concurrency());
  environment.architecture = system.machine;
  environment.memory_total = kibibytes_of("MemTotal");
  environment.driver = fmt::format("{} {}", system.sysname, system.release);
  environment.cublas = products_version();
  environment.cudnn = products_version();
  environment.cufft = transforms_version();
  environment.framework = "memfathom";
  environment.framework_version = MEMFATHOM_VERSION;
  environment.os = or_unknown(value_of("/etc/os-release", "PRETTY_NAME", '='));
  return environment;
}

Bytes usable_memory() {
  Bytes usable = kibibytes_of("MemAvailable");
  std::ifstream group("/sys/fs/cgroup/memory.max");
  std::int64_t limit = 0;
  if (group >> limit && limit > 0) usable = std::min(usable, Bytes{limit});
  return Bytes{usable.count() / 10 * 9};
}

}  // namespace memfathom::cpu
