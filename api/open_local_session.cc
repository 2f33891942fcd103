#include "api/api_session.h"
#include "api/local_session.h"
#include "db/location.h"

namespace memfathom {
namespace {

class ApiLocalSession : public ApiSession {
 public:
  explicit ApiLocalSession(const SessionOptions& options) : local_(options) {}
  const Estimator& estimator() const override { return local_.estimator(); }

 private:
  LocalSession local_;
};

}  // namespace

std::unique_ptr<ApiSession> open_session(const Node& options) {
  options.check_keys({"database", "live_gpus"});
  SessionOptions session;
  const Node* database = options.find("database");
  if (database == nullptr) {
    session.database = find_default_database_path();
  } else if (!database->is_null()) {
    session.database = database->as_string();
  }
  if (const Node* live = options.find("live_gpus")) session.live_gpus = live->as_bool();
  return std::make_unique<ApiLocalSession>(session);
}

}  // namespace memfathom
