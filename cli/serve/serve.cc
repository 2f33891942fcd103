// serve: checks the options and becomes memfathom-serve, the program with the HTTP library.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "cli/commands.h"
#include "cli/database.h"
#include "cli/option_parser.h"
#include "core/companion_files.h"
#include "core/error.h"

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

}  // namespace

ExitCode run_serve(const Arguments& arguments, Context& context) {
  constexpr std::int64_t kMaxPort = 65535, kMaxSeconds = 3600, kMaxWorkers = 64;
  constexpr std::size_t kShortestToken = 16;
  OptionParser parser("serve");
  std::string host = "127.0.0.1";
  std::string token_file;
  std::int64_t port = 8765, seconds = 20, workers = 2;
  parser.option("--host", host);
  parser.option("--port", port);
  parser.option("--token-file", token_file);
  parser.option("--time-limit", seconds);
  parser.option("--workers", workers);
  parser.parse(arguments);
  in_range("--port", port, 0, kMaxPort);
  in_range("--time-limit", seconds, 1, kMaxSeconds);
  in_range("--workers", workers, 1, kMaxWorkers);
  const std::string token = token_of(token_file);
  if (!token.empty() && token.size() < kShortestToken)
    throw Error(ErrorKind::kUsage, fmt::format("the token has {} characters; use at least {}",
                                               token.size(), kShortestToken));
  if (!is_loopback(host) && token.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--host {} is reached from other machines; name a file with a token by "
                            "--token-file, or set MEMFATHOM_TOKEN",
                            host));
  }
  const std::optional<std::filesystem::path> database = find_database(context);
  std::error_code failure;
  std::string program = std::filesystem::read_symlink("/proc/self/exe", failure).string();
  std::string server = find_server().string();
  std::string path = database ? database->string() : "";
  std::string number = std::to_string(port), limit = std::to_string(seconds),
              count = std::to_string(workers);
  if (token.empty())
    unsetenv("MEMFATHOM_TOKEN");
  else
    setenv("MEMFATHOM_TOKEN", token.c_str(), 1);
  context.note("serving until Ctrl-C; the page is at the address below");
  const std::array<char*, 8> words{server.data(), host.data(), number.data(),  limit.data(),
                                   count.data(),  path.data(), program.data(), nullptr};
  execv(server.c_str(), words.data());
  throw Error(ErrorKind::kEnvironment,
              fmt::format("{} cannot be started: {}", server, std::strerror(errno)));
}

}  // namespace memfathom
