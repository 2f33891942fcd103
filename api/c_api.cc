// The C interface (include/memfathom/memfathom.h): the one place where exceptions become statuses.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "api/api_session.h"
#include "api/requests.h"
#include "core/document.h"
#include "core/error.h"
#include "estimator/json/estimate_json.h"
#include "memfathom/memfathom.h"

struct memfathom_session {
  std::unique_ptr<memfathom::ApiSession> opened;
};

namespace memfathom {
namespace {

// Uses malloc so that C callers can free it; null if out of memory.
char* duplicate(const std::string& text) noexcept {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

memfathom_status status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kInput: return MEMFATHOM_INPUT;
    case ErrorKind::kEnvironment:
    case ErrorKind::kOutOfMemory: return MEMFATHOM_ENVIRONMENT;
    case ErrorKind::kInternal: return MEMFATHOM_INTERNAL;
  }
  return MEMFATHOM_INTERNAL;
}

memfathom_status fail(const std::string& sentence, ErrorKind kind, char** result) noexcept {
  try {
    if (result != nullptr) *result = duplicate(error_json_line("", sentence, kind));
  } catch (...) {
    return MEMFATHOM_NO_MEMORY;
  }
  return result != nullptr && *result == nullptr ? MEMFATHOM_NO_MEMORY : status_of(kind);
}

// Runs `answer`, whose text becomes the result; every exception becomes a status.
template <typename F>
memfathom_status guarded(char** result, F answer) noexcept {
  if (result != nullptr) *result = nullptr;
  try {
    if (result == nullptr) return MEMFATHOM_INPUT;
    const std::optional<std::string> text = answer();
    if (!text) return MEMFATHOM_OK;
    *result = duplicate(*text);
    return *result == nullptr ? MEMFATHOM_NO_MEMORY : MEMFATHOM_OK;
  } catch (const std::bad_alloc&) {
    return MEMFATHOM_NO_MEMORY;
  } catch (const Error& error) {
    return fail(error.what(), error.kind(), result);
  } catch (const std::exception& error) {
    return fail(error.what(), ErrorKind::kInternal, result);
  } catch (...) {
    return fail("an exception of unknown type", ErrorKind::kInternal, result);
  }
}

template <typename F>
memfathom_status ask(const memfathom_session* session, const char* request, char** result,
                     F answer) noexcept {
  return guarded(result, [&]() -> std::string {
    if (session == nullptr) throw Error(ErrorKind::kInput, "the session is NULL; open one first");
    if (request == nullptr)
      throw Error(ErrorKind::kInput, "the request is NULL; it must be a JSON object");
    return answer(request, session->opened->estimator());
  });
}

}  // namespace
}  // namespace memfathom

extern "C" {

const char* memfathom_version(void) { return MEMFATHOM_VERSION; }

memfathom_status memfathom_open(const char* options, memfathom_session** session, char** result) {
  return memfathom::guarded(result, [&]() -> std::optional<std::string> {
    if (session == nullptr)
      throw memfathom::Error(memfathom::ErrorKind::kInput, "the pointer to the session is NULL");
    *session = nullptr;
    *session = new memfathom_session{memfathom::open_session(
        memfathom::parse_json(options != nullptr ? options : "{}", "options"))};
    return std::nullopt;
  });
}

void memfathom_close(memfathom_session* session) { delete session; }

memfathom_status memfathom_estimate(const memfathom_session* session, const char* request,
                                    char** result) {
  return memfathom::ask(session, request, result, memfathom::estimate_request);
}

memfathom_status memfathom_estimate_batch(const memfathom_session* session, const char* jobs,
                                          const char* options, char** result) {
  return memfathom::ask(
      session, jobs, result, [&](const char* lines, const memfathom::Estimator& estimator) {
        return memfathom::batch_request(lines, options != nullptr ? options : "{}", estimator);
      });
}

memfathom_status memfathom_recommend(const memfathom_session* session, const char* request,
                                     char** result) {
  return memfathom::ask(session, request, result, memfathom::recommend_request);
}

memfathom_status memfathom_compare(const memfathom_session* session, const char* request,
                                   char** result) {
  return memfathom::ask(session, request, result, memfathom::compare_request);
}

memfathom_status memfathom_models(const memfathom_session* session, char** result) {
  return memfathom::ask(session, "{}", result, [](const char*, const memfathom::Estimator&) {
    return memfathom::models_request();
  });
}

memfathom_status memfathom_gpus(const memfathom_session* session, const char* request,
                                char** result) {
  return memfathom::ask(session, request != nullptr ? request : "{}", result,
                        memfathom::gpus_request);
}

memfathom_status memfathom_oom(const memfathom_session* session, const char* request,
                               char** result) {
  return memfathom::ask(
      session, request, result,
      [](const char* text, const memfathom::Estimator&) { return memfathom::oom_request(text); });
}

memfathom_status memfathom_admit(const memfathom_session* session, const char* request,
                                 char** result) {
  return memfathom::ask(session, request, result, memfathom::admission_request);
}

memfathom_status memfathom_accuracy(const memfathom_session* session, const char* request,
                                    char** result) {
  return memfathom::ask(session, request, result, memfathom::accuracy_request);
}

void memfathom_free(char* text) { std::free(text); }

}  // extern "C"
