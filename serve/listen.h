// listen_on: binds a server to its address, prints where it is, and serves until it is stopped.
#pragma once

#include <httplib.h>

#include <string>

namespace memfathom {

// Port 0 takes a free one. Throws Error(kEnvironment) if the address cannot be listened on.
void listen_on(httplib::Server& server, const char* scheme, const std::string& host, int port);

}  // namespace memfathom
