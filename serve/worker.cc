#include "serve/worker.h"

#include <sys/resource.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "memfathom/memfathom.h"
#include "serve/framing.h"
#include "serve/sealed.h"

namespace memfathom {
namespace {

constexpr rlim_t kMaxMemory = rlim_t{6} << 30;

struct CallerText {
  char* text = nullptr;
  ~CallerText() { memfathom_free(text); }
};

memfathom_status ask(const memfathom_session* session, const Frame& question, char** result) {
  const char* const text = question.text.c_str();
  if (question.word == "estimate") return memfathom_estimate(session, text, result);
  if (question.word == "recommend") return memfathom_recommend(session, text, result);
  if (question.word == "compare") return memfathom_compare(session, text, result);
  if (question.word == "gpus") return memfathom_gpus(session, text, result);
  if (question.word == "admit") return memfathom_admit(session, text, result);
  if (question.word == "oom") return memfathom_oom(session, text, result);
  return memfathom_models(session, result);
}

}  // namespace

int run_worker(const std::string& database) {
  const rlimit memory{kMaxMemory, kMaxMemory};
  setrlimit(RLIMIT_AS, &memory);
  nlohmann::json options{{"live_gpus", false}, {"database", nullptr}};
  if (!database.empty()) options["database"] = database;
  memfathom_session* session = nullptr;
  CallerText opened;
  if (memfathom_open(options.dump().c_str(), &session, &opened.text) != MEMFATHOM_OK) {
    std::fprintf(stderr, "memfathom-serve: %s\n",
                 opened.text != nullptr ? opened.text : "no memory");
    return MEMFATHOM_ENVIRONMENT;
  }
  try {
    seal_process();
  } catch (const Error& error) {
    std::fprintf(stderr, "memfathom-serve: %s\n", error.what());
    return MEMFATHOM_ENVIRONMENT;
  }
  send_frame(kWorkerSocket, "ready", "");
  while (const std::optional<Frame> question = receive_frame(kWorkerSocket, std::nullopt)) {
    CallerText result;
    const memfathom_status status = ask(session, *question, &result.text);
    if (!send_frame(kWorkerSocket, std::to_string(status),
                    result.text != nullptr ? result.text : ""))
      break;
  }
  memfathom_close(session);
  return 0;
}

}  // namespace memfathom
