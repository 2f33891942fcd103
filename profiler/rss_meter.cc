#include "profiler/rss_meter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "core/error.h"

namespace memfathom {
namespace {

// Plain read(): streams would allocate and change the measurement.
std::string read_status() {
  const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::array<char, 4096> buffer{};
  const ssize_t length = read(file, buffer.data(), buffer.size());
  close(file);
  return length > 0 ? std::string(buffer.data(), static_cast<std::size_t>(length)) : std::string();
}

Bytes required(std::string_view key) {
  const std::optional<Bytes> value = status_bytes(read_status(), key);
  if (!value) {
    throw Error(
        ErrorKind::kEnvironment,
        fmt::format("/proc/self/status has no {}; resident memory cannot be measured here", key));
  }
  return *value;
}

}  // namespace

std::optional<Bytes> status_bytes(const std::string& status, std::string_view key) {
  const std::string label = fmt::format("{}:", key);
  std::size_t at = 0;
  if (!status.starts_with(label)) {
    at = status.find("\n" + label);
    if (at == std::string::npos) return std::nullopt;
    ++at;
  }
  const std::size_t digits = status.find_first_not_of(" \t", at + label.size());
  if (digits == std::string::npos) return std::nullopt;
  std::int64_t kibibytes = 0;
  const auto [end, failure] =
      std::from_chars(status.data() + digits, status.data() + status.size(), kibibytes);
  if (failure != std::errc{}) return std::nullopt;
  return Bytes{1024} * kibibytes;
}

RssMeter::RssMeter() { used(); }

Bytes RssMeter::used() const { return required("VmRSS"); }

std::optional<Bytes> RssMeter::high_water() const { return required("VmHWM"); }

std::string RssMeter::disturbance() const {
  const Bytes swapped = status_bytes(read_status(), "VmSwap").value_or(Bytes{});
  if (swapped.count() == 0) return {};
  return fmt::format("{} of the process were swapped out", to_string(swapped));
}

}  // namespace memfathom
