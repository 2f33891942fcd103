// ApiSession: what a session of the C interface holds. CMake chooses the source of open_session:
// open_local_session.cc here, web/open_page_session.cc in a page.
#pragma once

#include <memory>

#include "core/document.h"
#include "estimator/session/estimator.h"

namespace memfathom {

class ApiSession {
 public:
  virtual ~ApiSession() = default;
  // Thread-safe.
  virtual const Estimator& estimator() const = 0;
};

// `options`: those of memfathom_open. Throws Error(kInput).
std::unique_ptr<ApiSession> open_session(const Node& options);

}  // namespace memfathom
