#include "serve/admission_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.h"
#include "core/json_value.h"
#include "serve/admission_review.h"
#include "serve/listen.h"
#include "serve/tls_certificate.h"
#include "serve/worker_pool.h"

namespace memfathom {
namespace {

using httplib::Request;
using httplib::Response;
using nlohmann::json;

constexpr std::size_t kMaxBody = std::size_t{8} << 20;  // an object and its former self
constexpr std::size_t kThreads = 32;
constexpr const char* kJson = "application/json";

enum Outcome { kAllow, kNote, kRefuse, kNoAnswer, kOutcomes };
constexpr std::array<const char*, kOutcomes> kOutcomeNames{"allow", "note", "refuse", "no_answer"};

struct PodAnswer {
  Outcome outcome = kNote;
  std::string sentence;
};

void refuse(Response& response, int status, const std::string& sentence) {
  response.status = status;
  response.set_content(
      json{{"schema", "memfathom.error/1"}, {"id", nullptr}, {"error", sentence}, {"kind", "input"}}
          .dump(-1, ' ', false, json::error_handler_t::replace),
      kJson);
}

class AdmissionServer {
 public:
  explicit AdmissionServer(const AdmissionOptions& options)
      : options_(options),
        certificate_(options.certificate, options.key),
        pool_(options.workers, options.database, options.limit),
        server_([this](SSL_CTX& context) {
          certificate_.use_in(context);
          return true;
        }) {
    if (!server_.is_valid())
      throw Error(ErrorKind::kEnvironment, "OpenSSL cannot be used for the admission webhook");
    constexpr time_t kSeconds = 5;
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_payload_max_length(kMaxBody);
    server_.set_read_timeout(kSeconds);
    server_.set_write_timeout(kSeconds);
    server_.set_keep_alive_timeout(kSeconds);
    server_.set_tcp_nodelay(true);
    server_.set_error_handler([](const Request& request, Response& response) {
      if (response.body.empty())
        refuse(response, response.status,
               fmt::format("{} {}: not served; POST an AdmissionReview to /validate or /mutate",
                           request.method, request.path));
    });
    server_.set_exception_handler(
        [](const Request&, Response& response, const std::exception_ptr&) {
          constexpr int kInternal = 500;  // failurePolicy: Ignore lets the object through
          refuse(response, kInternal, "the webhook failed");
        });
    for (const bool patches : {false, true}) {
      server_.Post(patches ? "/mutate" : "/validate",
                   [this, patches](const Request& request, Response& response) {
                     answer(request, patches, response);
                   });
    }
    server_.Get("/healthz", [](const Request&, Response& response) {
      response.set_content("ok\n", "text/plain");
    });
    server_.Get("/metrics", [this](const Request&, Response& response) {
      response.set_content(metrics(), "text/plain; version=0.0.4");
    });
  }

  void run() { listen_on(server_, "https", options_.host, options_.port); }

 private:
  void answer(const Request& request, bool patches, Response& response) {
    constexpr int kBadRequest = 400, kUnsupportedMedia = 415;
    const Deadline deadline = std::chrono::steady_clock::now() + options_.limit;
    if (!request.get_header_value("Content-Type").starts_with(kJson)) {
      refuse(response, kUnsupportedMedia, "the body must be application/json");
      return;
    }
    try {
      const AdmissionReview review = read_review(request.body);
      response.set_content(answer_text(review, judged(review, patches, deadline), patches), kJson);
    } catch (const Error& error) {
      refuse(response, kBadRequest, error.what());
    }
  }

  // /mutate only annotates: what is refused there would hide what other webhooks say.
  ReviewAnswer judged(const AdmissionReview& review, bool patches, Deadline deadline) {
    ReviewAnswer answer;
    for (const ReviewedPod& pod : review.pods) {
      const PodAnswer of_pod = judged(pod, deadline);
      if (!patches) ++outcomes_[of_pod.outcome];
      const std::string where = pod.where.empty() ? "" : pod.where + ": ";
      const std::string sentence = fmt::format("memfathom: {}{}", where, of_pod.sentence);
      answer.annotation += (answer.annotation.empty() ? "" : "; ") + where + of_pod.sentence;
      if (patches) continue;
      if (of_pod.outcome == kRefuse) {
        answer.is_allowed = false;
        answer.refusal += (answer.refusal.empty() ? "" : "; ") + sentence;
      } else if (of_pod.outcome != kAllow) {
        answer.warnings.push_back(sentence);
      }
    }
    return answer;
  }

  PodAnswer judged(const ReviewedPod& pod, Deadline deadline) {
    if (!pod.unknown_gpu.empty()) {
      return {kNote, fmt::format("the GPU product \"{}\" is unknown; it is let through (annotate "
                                 "memfathom.io/gpu)",
                                 pod.unknown_gpu)};
    }
    if (pod.job.is_null())
      return {kNote,
              "nothing says what it trains; it is let through (annotate memfathom.io/job, or write "
              "the training command into the container's command)"};
    json question = pod.job;
    question["probability"] = options_.probability;
    if (pod.gpus > 0) question["gpus"] = pod.gpus;
    const std::string& gpu = pod.gpu.empty() ? options_.gpu : pod.gpu;
    if (!gpu.empty()) question["gpu"] = gpu;
    try {
      const PoolAnswer asked = pool_.ask(
          "admit", question.dump(-1, ' ', false, json::error_handler_t::replace), deadline);
      if (asked.how != Asked::kAnswered || asked.answer.text.empty()) return no_answer();
      return read_answer(asked.answer);
    } catch (const std::exception&) {
      return no_answer();
    }
  }

  PodAnswer no_answer() const {
    return {kNoAnswer, fmt::format("no answer within {:.3g} s; it is let through",
                                   std::chrono::duration<double>(options_.limit).count())};
  }

  static PodAnswer read_answer(const WorkerAnswer& answer) {
    const json text = parse_json_value(answer.text, "a worker's answer");
    if (answer.status != MEMFATHOM_OK)
      return {kNote, fmt::format("unknown, and let through: {}", text.value("error", ""))};
    const std::string decision = text.value("decision", "");
    const auto outcome = std::find(kOutcomeNames.begin(), kOutcomeNames.end(), decision);
    return {outcome == kOutcomeNames.end() ? kNoAnswer
                                           : static_cast<Outcome>(outcome - kOutcomeNames.begin()),
            text.value("sentence", "")};
  }

  std::string metrics() const {
    constexpr const char* kName = "memfathom_admission_reviews_total";
    std::string text = fmt::format(
        "# HELP {0} Pods judged by the admission webhook.\n# TYPE {0} counter\n", kName);
    for (std::size_t i = 0; i < kOutcomes; ++i)
      text +=
          fmt::format("{}{{decision=\"{}\"}} {}\n", kName, kOutcomeNames[i], outcomes_[i].load());
    return text;
  }

  AdmissionOptions options_;
  TlsCertificate certificate_;
  WorkerPool pool_;
  std::array<std::atomic<std::int64_t>, kOutcomes> outcomes_{};
  httplib::SSLServer server_;
};

}  // namespace

void serve_admission(const AdmissionOptions& options) { AdmissionServer(options).run(); }

}  // namespace memfathom
