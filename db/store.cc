#include "db/store.h"

#include <fmt/format.h>

#include <random>

#include "core/name_lookup.h"
#include "db/calibration_file.h"
#include "db/rows.h"

namespace memfathom {
namespace {

std::string random_nonce() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

// One write that is durable when it returns.
template <typename Action>
auto written(Connection& connection, const char* doing, Action action) {
  return guarded(connection.path(), doing, [&] {
    WriteTransaction transaction(connection);
    auto result = action();
    transaction.commit();
    return result;
  });
}

// Outside a transaction only: SQLite ignores the foreign-keys pragma inside one.
class WithoutForeignKeys {
 public:
  explicit WithoutForeignKeys(Connection& connection) : connection_(connection) {
    connection.database().exec("PRAGMA foreign_keys = OFF");
  }
  ~WithoutForeignKeys() { connection_.database().tryExec("PRAGMA foreign_keys = ON"); }
  WithoutForeignKeys(const WithoutForeignKeys&) = delete;
  WithoutForeignKeys& operator=(const WithoutForeignKeys&) = delete;

 private:
  Connection& connection_;
};

std::optional<Calibration> first_calibration(Connection& connection, Query& query) {
  if (!query.step()) return std::nullopt;
  std::int64_t row = 0;
  query.read(row);
  return rows::calibration_at(connection, row);
}

std::vector<Calibration> all_calibrations(Connection& connection, Query& query) {
  std::vector<Calibration> all;
  while (query.step()) {
    std::int64_t row = 0;
    query.read(row);
    all.push_back(rows::calibration_at(connection, row));
  }
  return all;
}

// The newest calibration of the same name and device.
std::optional<Calibration> predecessor(Connection& connection, const Calibration& calibration) {
  const std::string device_key = calibration.environment.device_key();
  Query query(connection,
              "SELECT c.id FROM calibrations c JOIN environments e ON e.id = c.environment_id"
              " WHERE c.name = ? AND e.device_key = ? ORDER BY c.created DESC, c.uid DESC LIMIT 1",
              calibration.name, device_key);
  return first_calibration(connection, query);
}

}  // namespace

Store::Store(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Store Store::open(const std::filesystem::path& path, Mode mode) {
  const Access access = mode == Mode::kReadWrite ? Access::kReadWrite : Access::kReadOnly;
  return Store(std::make_unique<Connection>(Connection::open(path, access)));
}

std::optional<Store> Store::open_if_exists(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) || std::filesystem::is_empty(path, error))
    return std::nullopt;
  return open(path, Mode::kReadOnly);
}

struct Store::Batch::Impl {
  explicit Impl(Connection& c) : connection(c), transaction(c) {}

  Connection& connection;
  WriteTransaction transaction;
};

Store::Batch::Batch(Store& store)
    : impl_(guarded(store.connection_->path(), "starting to write",
                    [&] { return std::make_unique<Impl>(*store.connection_); })) {}

Store::Batch::~Batch() = default;

void Store::Batch::commit() {
  guarded(impl_->connection.path(), "committing a batch", [&] { impl_->transaction.commit(); });
}

std::string Store::begin_run(Run run) {
  if (run.nonce.empty()) run.nonce = random_nonce();
  return written(*connection_, "starting a run",
                 [&] { return rows::insert_run(*connection_, run).id; });
}

void Store::finish_run(std::string_view run, std::string_view finished) {
  written(*connection_, "finishing a run",
          [&] { return rows::finish_run(*connection_, run, finished), true; });
}

std::vector<Run> Store::runs() const {
  return guarded(connection_->path(), "reading the runs", [&] { return rows::runs(*connection_); });
}

std::optional<Run> Store::unfinished_run(const Environment& environment,
                                         std::string_view plan) const {
  std::optional<Run> newest;
  for (Run& run : runs()) {
    if (!run.finished && run.plan == plan && run.environment == environment)
      newest = std::move(run);
  }
  return newest;
}

std::string Store::insert_sample(std::string_view run, const Sample& sample) {
  return written(*connection_, "storing a sample", [&] {
    return rows::insert_sample(*connection_, rows::position_in(*connection_, run), sample).id;
  });
}

void Store::insert_samples(std::string_view run, std::span<const Sample> samples) {
  guarded(connection_->path(), "storing samples", [&] {
    // Each detail's parent row was inserted just before: checking the foreign key for every detail
    // would cost a tenth of the time.
    const WithoutForeignKeys parents_are_there(*connection_);
    WriteTransaction transaction(*connection_);
    rows::RunPosition position = rows::position_in(*connection_, run);
    for (const Sample& sample : samples) {
      rows::insert_sample(*connection_, position, sample);
      ++position.next_number;
    }
    transaction.commit();
  });
}

void Store::for_each_sample(const SampleFilter& filter,
                            const std::function<void(StoredSample&&)>& visit) const {
  guarded(connection_->path(), "reading samples",
          [&] { rows::for_each_sample(*connection_, filter, visit); });
}

std::vector<StoredSample> Store::samples(const SampleFilter& filter) const {
  std::vector<StoredSample> all;
  for_each_sample(filter, [&](StoredSample&& sample) { all.push_back(std::move(sample)); });
  return all;
}

bool Store::insert_observation(const Observation& observation) {
  return written(*connection_, "storing an observation",
                 [&] { return rows::insert_observation(*connection_, observation).added; });
}

std::vector<Observation> Store::observations() const {
  std::vector<Observation> used;
  for (StoredObservation& stored : stored_observations()) {
    if (!stored.removal) used.push_back(std::move(stored.observation));
  }
  return used;
}

std::vector<StoredObservation> Store::stored_observations() const {
  return guarded(connection_->path(), "reading observations",
                 [&] { return rows::observations(*connection_); });
}

bool Store::is_removed(const Observation& observation) const {
  return guarded(connection_->path(), "reading observations", [&] {
    const std::optional<Removal> newest =
        rows::newest_removal(*connection_, rows::uid_of(observation));
    return newest && newest->removed;
  });
}

bool Store::set_removed(std::string_view subject, bool removed, std::string_view created,
                        std::string_view reason) {
  return written(*connection_, removed ? "removing a row" : "restoring a row", [&] {
    Removal removal;
    removal.subject = subject;
    removal.removed = removed;
    removal.created = created;
    removal.reason = reason;
    const std::optional<Removal> newest = rows::newest_removal(*connection_, removal.subject);
    if ((newest && newest->removed) == removed) return false;
    if (newest) removal.number = newest->number + 1;
    return rows::insert_removal(*connection_, removal).added;
  });
}

std::vector<Removal> Store::removals() const {
  return guarded(connection_->path(), "reading removals",
                 [&] { return rows::removals(*connection_); });
}

Calibration Store::save_calibration(Calibration calibration) {
  return written(*connection_, "saving a calibration", [&] {
    if (calibration.supersedes.empty()) {
      if (const std::optional<Calibration> old = predecessor(*connection_, calibration)) {
        // Saving the same calibration twice adds nothing: the copy would differ only in
        // `supersedes`.
        calibration.supersedes = old->supersedes;
        if (content_id(calibration) == old->id) return *old;
        calibration.supersedes = old->id;
      }
    }
    calibration.id = content_id(calibration);
    rows::insert_calibration(*connection_, calibration);
    return calibration;
  });
}

bool Store::import_calibration(const Calibration& calibration) {
  if (calibration.id != content_id(calibration)) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("calibration {}: its id {} does not match its content; it was changed after "
                    "it was saved",
                    calibration.name, calibration.id));
  }
  return written(*connection_, "importing a calibration",
                 [&] { return rows::insert_calibration(*connection_, calibration).added; });
}

std::vector<Calibration> Store::calibrations() const {
  return guarded(connection_->path(), "reading calibrations", [&] {
    Query query(*connection_, "SELECT id FROM calibrations ORDER BY created, uid");
    return all_calibrations(*connection_, query);
  });
}

std::optional<Calibration> Store::calibration_for(const Environment& environment) const {
  return guarded(connection_->path(), "looking for a calibration", [&] {
    const std::string device_key = environment.device_key();
    const std::string stack_key = environment.stack_key();
    Query query(*connection_,
                "SELECT c.id FROM calibrations c JOIN environments e ON e.id = c.environment_id"
                " WHERE e.device_key = ? AND e.stack_key = ? AND c.usable ORDER BY c.created DESC, "
                "c.uid DESC LIMIT 1",
                device_key, stack_key);
    return first_calibration(*connection_, query);
  });
}

std::optional<Calibration> Store::newest_of_device(const Environment& environment) const {
  return guarded(connection_->path(), "looking for a calibration", [&] {
    const std::string device_key = environment.device_key();
    Query query(*connection_,
                "SELECT c.id FROM calibrations c JOIN environments e ON e.id = c.environment_id"
                " WHERE e.device_key = ? AND e.framework = ? AND c.usable ORDER BY c.created DESC, "
                "c.uid DESC LIMIT 1",
                device_key, environment.framework);
    return first_calibration(*connection_, query);
  });
}

std::vector<Calibration> Store::architecture_siblings(const Environment& environment) const {
  return guarded(connection_->path(), "looking for sibling calibrations", [&] {
    const std::string device_key = environment.device_key();
    Query query(
        *connection_,
        "SELECT id FROM (SELECT c.id, e.device_key, row_number() OVER (PARTITION BY e.device_key"
        " ORDER BY c.created DESC, c.uid DESC) AS age FROM calibrations c"
        " JOIN environments e ON e.id = c.environment_id"
        " WHERE e.architecture = ? AND e.framework = ? AND e.device_key <> ? AND c.usable)"
        " WHERE age = 1 ORDER BY device_key",
        environment.architecture, environment.framework, device_key);
    return all_calibrations(*connection_, query);
  });
}

std::optional<Calibration> Store::find_calibration(std::string_view name_or_id) const {
  return guarded(
      connection_->path(), "looking for a calibration", [&]() -> std::optional<Calibration> {
        std::vector<NamedEntry> listed;
        std::vector<std::int64_t> at;
        Query query(*connection_,
                    "SELECT id, uid, name, usable FROM calibrations ORDER BY created, uid");
        while (query.step()) {
          NamedEntry& one = listed.emplace_back();
          query.read_all(at.emplace_back(), one.id, one.name, one.usable);
        }
        const std::optional<std::size_t> found =
            find_by_name_or_id(listed, name_or_id, "calibrations");
        if (!found) return std::nullopt;
        return rows::calibration_at(*connection_, at[*found]);
      });
}

std::string Store::insert_baseline(const Baseline& baseline) {
  return written(*connection_, "storing a baseline",
                 [&] { return rows::insert_baseline(*connection_, baseline).id; });
}

std::vector<Baseline> Store::baselines() const {
  return guarded(connection_->path(), "reading baselines",
                 [&] { return rows::baselines(*connection_); });
}

std::optional<Baseline> Store::find_baseline(std::string_view name_or_id) const {
  std::vector<Baseline> all = baselines();
  std::vector<NamedEntry> listed;
  for (const Baseline& baseline : all) listed.push_back({baseline.id, baseline.name});
  const std::optional<std::size_t> found = find_by_name_or_id(listed, name_or_id, "baselines");
  return found ? std::optional(std::move(all[*found])) : std::nullopt;
}

std::string Store::annotate(const Annotation& annotation) {
  return written(*connection_, "storing an annotation",
                 [&] { return rows::insert_annotation(*connection_, annotation).id; });
}

std::vector<Annotation> Store::annotations(std::string_view subject) const {
  return guarded(connection_->path(), "reading annotations",
                 [&] { return rows::annotations(*connection_, subject); });
}

}  // namespace memfathom
