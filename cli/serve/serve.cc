// serve: checks the options and becomes memfathom-serve, the program with the HTTP library.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <vector>

#include "cli/commands.h"
#include "cli/database.h"
#include "cli/option_parser.h"
#include "core/companion_files.h"
#include "core/error.h"
#include "core/gpus.h"

namespace memfathom {
namespace {

std::filesystem::path find_server() {
  std::error_code failure;
  for (const std::filesystem::path& place :
       companion_places(own_binaries(), "libexec", "memfathom-serve")) {
    if (std::filesystem::exists(place, failure)) return place;
  }
  throw Error(ErrorKind::kEnvironment,
              "memfathom-serve is not installed: this build was made without cpp-httplib (Debian: "
              "libcpp-httplib-dev)");
}

bool is_loopback(const std::string& host) {
  return host == "127.0.0.1" || host == "localhost" || host == "::1";
}

std::string token_of(const std::string& file) {
  if (file.empty()) {
    const char* given = std::getenv("MEMFATHOM_TOKEN");
    return given != nullptr ? given : "";
  }
  std::ifstream input(file);
  std::string token;
  if (!(input >> token))
    throw Error(ErrorKind::kInput,
                fmt::format("{}: no token could be read; write one word into it", file));
  return token;
}

std::int64_t in_range(const char* option, std::int64_t value, std::int64_t least,
                      std::int64_t most) {
  if (value < least || value > most)
    throw Error(ErrorKind::kUsage,
                fmt::format("{} is {}; write a number from {} to {}", option, value, least, most));
  return value;
}

constexpr std::int64_t kMaxPort = 65535, kMaxSeconds = 3600, kMaxWorkers = 64;

[[noreturn]] void become(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(words.front().c_str(), pointers.data());
  throw Error(ErrorKind::kEnvironment,
              fmt::format("{} cannot be started: {}", words.front(), std::strerror(errno)));
}

struct AdmissionFlags {
  bool asked = false;
  std::string certificate, key, gpu;
  std::optional<double> probability;
};

// Reads the flags of one kind of server and refuses those of the other.
void check_admission(const AdmissionFlags& flags, const std::string& token_file) {
  if (!flags.asked) {
    if (!flags.certificate.empty() || !flags.key.empty() || !flags.gpu.empty() || flags.probability)
      throw Error(ErrorKind::kUsage,
                  "--tls-cert, --tls-key, --gpu and --probability belong to --admission");
    return;
  }
  if (flags.certificate.empty() || flags.key.empty())
    throw Error(
        ErrorKind::kUsage,
        "--admission needs --tls-cert and --tls-key: Kubernetes asks webhooks over TLS only");
  if (!token_file.empty())
    throw Error(ErrorKind::kUsage,
                "--token-file is not for --admission: Kubernetes sends no token");
  if (flags.probability && !(*flags.probability >= 0.5 && *flags.probability < 1)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--probability is {}; write 0.5 to below 1: above it a job is refused",
                            *flags.probability));
  }
}

}  // namespace

ExitCode run_serve(const Arguments& arguments, Context& context) {
  constexpr std::size_t kShortestToken = 16;
  constexpr std::int64_t kSeconds = 20, kAdmissionSeconds = 2, kPort = 8765, kAdmissionPort = 8443;
  OptionParser parser("serve");
  std::optional<std::string> host;
  std::string token_file;
  std::optional<std::int64_t> port, seconds;
  std::int64_t workers = 2;
  AdmissionFlags admission;
  parser.option("--host", host);
  parser.option("--port", port);
  parser.option("--token-file", token_file);
  parser.option("--time-limit", seconds);
  parser.option("--workers", workers);
  parser.flag("--admission", admission.asked);
  parser.option("--tls-cert", admission.certificate);
  parser.option("--tls-key", admission.key);
  parser.option("--gpu", admission.gpu);
  parser.option("--probability", admission.probability);
  parser.parse(arguments);
  check_admission(admission, token_file);
  const std::string number = std::to_string(
      in_range("--port", port.value_or(admission.asked ? kAdmissionPort : kPort), 0, kMaxPort));
  const std::string limit = std::to_string(
      in_range("--time-limit", seconds.value_or(admission.asked ? kAdmissionSeconds : kSeconds), 1,
               kMaxSeconds));
  const std::string count = std::to_string(in_range("--workers", workers, 1, kMaxWorkers));
  const std::optional<std::filesystem::path> database = find_database(context);
  const std::string path = database ? database->string() : "";
  const std::string server = find_server().string();
  if (admission.asked) {
    const std::string gpu =
        admission.gpu.empty() ? "" : std::string(gpu_named(admission.gpu, "--gpu: ").name);
    become({server, "--admission", host.value_or("0.0.0.0"), number, limit, count, path,
            admission.certificate, admission.key,
            fmt::format("{}", admission.probability.value_or(0.95)), gpu});
  }
  const std::string address = host.value_or("127.0.0.1");
  const std::string token = token_of(token_file);
  if (!token.empty() && token.size() < kShortestToken)
    throw Error(ErrorKind::kUsage, fmt::format("the token has {} characters; use at least {}",
                                               token.size(), kShortestToken));
  if (!is_loopback(address) && token.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--host {} is reachable from other machines, so a token is required: "
                            "pass --token-file FILE or set MEMFATHOM_TOKEN",
                            address));
  }
  std::error_code failure;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", failure).string();
  if (token.empty())
    unsetenv("MEMFATHOM_TOKEN");
  else
    setenv("MEMFATHOM_TOKEN", token.c_str(), 1);
  context.note("serving until Ctrl-C; the page is at the address below");
  become({server, address, number, limit, count, path, program});
}

}  // namespace memfathom
