#include "serve/page_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.h"
#include "serve/listen.h"
#include "serve/page_files.h"
#include "serve/status_report.h"
#include "serve/worker_pool.h"

namespace memfathom {
namespace {

using httplib::Request;
using httplib::Response;

constexpr std::size_t kMaxBody = std::size_t{16} << 20;
constexpr std::size_t kThreads = 16;
constexpr const char* kJson = "application/json";
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src blob: "
    "data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

enum Status {
  kOk = 200,
  kBadRequest = 400,
  kUnauthorized = 401,
  kForbidden = 403,
  kNotFound = 404,
  kUnsupportedMedia = 415,
  kUnprocessable = 422,
  kTooManyRequests = 429,
  kInternal = 500
};

void refuse(Response& response, int status, const std::string& sentence) {
  response.status = status;
  response.set_content(nlohmann::json{{"schema", "memfathom.error/1"},
                                      {"id", nullptr},
                                      {"error", sentence},
                                      {"kind", status == kInternal ? "internal" : "input"}}
                           .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                       kJson);
}

// "127.0.0.1" of "127.0.0.1:8765", "[::1]" of "[::1]:8765".
std::string_view host_of(std::string_view header) {
  const std::size_t bracket = header.find(']');
  const std::size_t colon = header.find(':', bracket == std::string_view::npos ? 0 : bracket);
  return header.substr(0, colon);
}

bool is_loopback(std::string_view host) {
  return host == "127.0.0.1" || host == "localhost" || host == "::1" || host == "[::1]";
}

// Takes as long for a wrong token as for a right one.
bool is_same(std::string_view given, std::string_view expected) {
  unsigned difference = given.size() == expected.size() ? 0U : 1U;
  for (std::size_t i = 0; i < expected.size(); ++i)
    difference |= static_cast<unsigned char>(expected[i]) ^
                  static_cast<unsigned char>(i < given.size() ? given[i] : '\0');
  return difference == 0;
}

int http_status(memfathom_status status) {
  switch (status) {
    case MEMFATHOM_OK: return kOk;
    case MEMFATHOM_INPUT: return kBadRequest;
    case MEMFATHOM_ENVIRONMENT:
    case MEMFATHOM_NO_MEMORY: return kUnprocessable;
    case MEMFATHOM_INTERNAL: return kInternal;
  }
  return kInternal;
}

class PageServer {
 public:
  explicit PageServer(const ServeOptions& options)
      : options_(options),
        pool_(options.workers, options.database, options.limit),
        status_(command_of(options, {"status"})),
        calibrations_(command_of(options, {"calibrations", "list"})) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_payload_max_length(kMaxBody);
    constexpr time_t kSeconds = 10;
    server_.set_read_timeout(kSeconds);
    server_.set_write_timeout(kSeconds);
    server_.set_tcp_nodelay(true);
    server_.set_pre_routing_handler([this](const Request& request, Response& response) {
      return admit(request, response) ? httplib::Server::HandlerResponse::Unhandled
                                      : httplib::Server::HandlerResponse::Handled;
    });
    server_.set_error_handler([](const Request& request, Response& response) {
      if (response.body.empty())
        refuse(response, response.status,
               fmt::format("{} {}: not served; api/openapi.json lists what is", request.method,
                           request.path));
    });
    server_.set_exception_handler(
        [](const Request&, Response& response, const std::exception_ptr&) {
          refuse(response, kInternal, "the server failed");
        });
    add_files();
    add_questions();
  }

  void run() { listen_on(server_, "http", options_.host, options_.port); }

 private:
  static std::vector<std::string> command_of(const ServeOptions& options,
                                             const std::vector<std::string>& words) {
    std::vector<std::string> command{options.program};
    command.insert(command.end(), words.begin(), words.end());
    command.insert(command.end(), {"--format", "json"});
    if (!options.database.empty()) command.insert(command.end(), {"--db", options.database});
    return command;
  }

  // Pages of other origins, and names that lead here by a trick of DNS, get nothing.
  bool admit(const Request& request, Response& response) const {
    response.set_header("Content-Security-Policy", kPolicy);
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("Cache-Control", "no-store");
    const std::string host = request.get_header_value("Host");
    if (is_loopback(options_.host) && !is_loopback(host_of(host))) {
      refuse(response, kForbidden, "the Host of the request is not this machine's loopback");
      return false;
    }
    const std::string origin = request.get_header_value("Origin");
    if (!origin.empty() && origin != "http://" + host) {
      refuse(response, kForbidden, "the request comes from another origin");
      return false;
    }
    if (!options_.token.empty() && request.path.starts_with("/api/") &&
        !is_same(request.get_header_value("Authorization"), "Bearer " + options_.token)) {
      response.set_header("WWW-Authenticate", "Bearer");
      refuse(response, kUnauthorized,
             "the token is missing or wrong; open the page with ?token=...");
      return false;
    }
    if (request.method == "POST" && request.path.starts_with("/api/") &&
        !request.get_header_value("Content-Type").starts_with(kJson)) {
      refuse(response, kUnsupportedMedia, "the body must be application/json");
      return false;
    }
    return true;
  }

  void add_files() {
    for (const EmbeddedFile& file : page_files()) {
      const std::string name(file.name);
      const std::string_view text = file.text;
      const char* type = name.ends_with(".html")  ? "text/html; charset=utf-8"
                         : name.ends_with(".css") ? "text/css; charset=utf-8"
                         : name.ends_with(".js")  ? "text/javascript; charset=utf-8"
                                                  : kJson;
      const std::string path = name == "index.html"     ? "/"
                               : name == "openapi.json" ? "/api/openapi\\.json"
                                                        : "/" + name;
      server_.Get(path, [text, type](const Request&, Response& response) {
        response.set_content(text.data(), text.size(), type);
      });
    }
  }

  void add_questions() {
    for (const char* method : {"estimate", "recommend", "compare", "gpus", "oom"}) {
      server_.Post(fmt::format("/api/{}", method),
                   [this, method](const Request& request, Response& response) {
                     answer(method, request.body, response);
                   });
    }
    for (const char* method : {"models", "gpus"}) {
      server_.Get(
          fmt::format("/api/{}", method),
          [this, method](const Request&, Response& response) { answer(method, "{}", response); });
    }
    add_report("status", status_);
    add_report("calibrations", calibrations_);
  }

  // What a command of the program prints, read anew when it is old.
  void add_report(const char* name, StatusReport& report) {
    server_.Get(fmt::format("/api/{}", name), [name, &report](const Request&, Response& response) {
      const std::string text = report.text();
      if (text.empty())
        refuse(response, kUnprocessable, fmt::format("memfathom {} failed on this machine", name));
      else
        response.set_content(text, kJson);
    });
  }

  void answer(const char* method, const std::string& body, Response& response) {
    if (body.find('\0') != std::string::npos) {
      refuse(response, kBadRequest, "request: it has a NUL; it must be JSON");
      return;
    }
    const PoolAnswer answered = pool_.ask(method, body);
    if (answered.how == Asked::kBusy) {
      refuse(response, kTooManyRequests, "all workers are busy; ask again later");
    } else if (answered.how == Asked::kTooLong) {
      refuse(response, kUnprocessable,
             fmt::format("the answer takes more than {} s or more memory than a worker may have; "
                         "memfathom itself has no such limits",
                         options_.limit.count() / 1000));
    } else if (answered.answer.text.empty()) {
      refuse(response, kUnprocessable, "the answer takes more memory than a worker may have");
    } else {
      response.status = http_status(answered.answer.status);
      response.set_content(answered.answer.text, kJson);
    }
  }

  ServeOptions options_;
  WorkerPool pool_;
  StatusReport status_;
  StatusReport calibrations_;
  httplib::Server server_;
};

}  // namespace

void serve(const ServeOptions& options) { PageServer(options).run(); }

}  // namespace memfathom
