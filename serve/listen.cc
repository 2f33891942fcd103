#include "serve/listen.h"

#include <fmt/format.h>

#include <cstdio>

#include "core/error.h"

namespace memfathom {

void listen_on(httplib::Server& server, const char* scheme, const std::string& host, int port) {
  int bound = port;
  if (port == 0) {
    bound = server.bind_to_any_port(host);
  } else if (!server.bind_to_port(host, port)) {
    bound = -1;
  }
  if (bound < 0) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("{}:{} cannot be listened on; use another --port, or --port 0 for a "
                            "free one",
                            host, port));
  }
  std::printf("%s://%s:%d/\n", scheme, host.c_str(), bound);
  std::fflush(stdout);
  server.listen_after_bind();
}

}  // namespace memfathom
