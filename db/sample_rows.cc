#include <fmt/format.h>

#include <map>

#include "db/rows.h"

namespace memfathom::rows {
namespace {

std::string text_of(std::string_view view) { return std::string(view); }

// The rows of one run, as for_each_sample needs them.
struct RunRow {
  std::int64_t row = 0;
  std::string uid;
  std::shared_ptr<const Environment> environment;
};

bool admits(const SampleFilter& filter, const RunRow& run) {
  const Environment& environment = *run.environment;
  return (filter.run.empty() || filter.run == run.uid) &&
         (filter.device_key.empty() || filter.device_key == environment.device_key()) &&
         (filter.stack_key.empty() || filter.stack_key == environment.stack_key()) &&
         (filter.framework.empty() || filter.framework == environment.framework) &&
         (filter.include_virtual || !environment.is_virtual());
}

std::vector<RunRow> matching_runs(Connection& connection, const SampleFilter& filter) {
  std::vector<RunRow> matching;
  Query query(
      connection,
      "SELECT r.id, r.uid, gpu, architecture, memory_total_bytes, ecc, mig, driver, cuda, cublas, "
      "cudnn, cufft,"
      " framework, framework_version, os, module_loading FROM runs r"
      " JOIN environments e ON e.id = r.environment_id"
      " ORDER BY r.started, r.uid");
  while (query.step()) {
    RunRow run;
    query.read_all(run.row, run.uid);
    Environment environment;
    read_environment(query, environment);
    run.environment = std::make_shared<const Environment>(std::move(environment));
    if (admits(filter, run)) matching.push_back(std::move(run));
  }
  return matching;
}

// Several rows per statement: a sample has a dozen details, and a statement's overhead exceeds a
// row's cost.
constexpr std::size_t kStagesAtOnce = 8;
constexpr const char* kInsertStage =
    "INSERT INTO stages (sample_id, position, stage, device_used_bytes) VALUES (?, ?, ?, ?)";
constexpr const char* kInsertStages =
    "INSERT INTO stages (sample_id, position, stage, device_used_bytes) VALUES (?, ?, ?, ?), (?, "
    "?, ?, ?), (?, ?, ?, ?),"
    " (?, ?, ?, ?), (?, ?, ?, ?), (?, ?, ?, ?), (?, ?, ?, ?), (?, ?, ?, ?)";
constexpr std::size_t kWorkspacesAtOnce = 4;
constexpr const char* kInsertWorkspace =
    "INSERT INTO workspace_requests (sample_id, position, library, operation, shape, "
    "workspace_bytes)"
    " VALUES (?, ?, ?, ?, ?, ?)";
constexpr const char* kInsertWorkspaces =
    "INSERT INTO workspace_requests (sample_id, position, library, operation, shape, "
    "workspace_bytes)"
    " VALUES (?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?)";

// Inserts all of `items`, `at_once` rows per statement, then the remainder one by one.
template <typename Item, typename Bind>
void insert_all(Connection& connection, const std::vector<Item>& items, const char* one,
                const char* several, std::size_t at_once, Bind bind) {
  for (std::size_t next = 0; next < items.size();) {
    const std::size_t count = items.size() - next >= at_once ? at_once : 1;
    Query query(connection, count == 1 ? one : several);
    for (const std::size_t end = next + count; next < end; ++next) {
      bind(query, static_cast<std::int64_t>(next), items[next]);
    }
    query.run();
  }
}

void insert_details(Connection& connection, std::int64_t row, const Sample& sample) {
  insert_all(connection, sample.stages, kInsertStage, kInsertStages, kStagesAtOnce,
             [row](Query& query, std::int64_t position, const StageReading& reading) {
               query.bind_all(row, position, reading.stage, reading.device_used);
             });
  insert_all(connection, sample.workspaces, kInsertWorkspace, kInsertWorkspaces, kWorkspacesAtOnce,
             [row](Query& query, std::int64_t position, const WorkspaceRequest& request) {
               query.bind_all(row, position, to_string(request.library), request.operation,
                              request.shape, request.bytes);
             });
}

void read_details(Connection& connection, std::int64_t row, Sample& sample) {
  Query stages(connection,
               "SELECT stage, device_used_bytes FROM stages WHERE sample_id = ? ORDER BY position",
               row);
  while (stages.step()) {
    StageReading& reading = sample.stages.emplace_back();
    stages.read_all(reading.stage, reading.device_used);
  }
  Query workspaces(connection,
                   "SELECT library, operation, shape, workspace_bytes FROM workspace_requests "
                   "WHERE sample_id = ?"
                   " ORDER BY position",
                   row);
  while (workspaces.step()) {
    WorkspaceRequest& request = sample.workspaces.emplace_back();
    std::string library;
    workspaces.read_all(library, request.operation, request.shape, request.bytes);
    request.library = parsed(parse_library(library), connection, "library", library);
  }
}

}  // namespace

std::string uid_of(const Run& run) {
  ContentHash hash("run");
  hash.add(run.environment);
  hash.add(run.plan).add(run.started).add(run.program).add(run.nonce);
  // Rows from before it was recorded keep their id.
  if (!run.cudnn_directory.empty()) hash.add(run.cudnn_directory);
  return hash.uid();
}

Insertion insert_run(Connection& connection, Run run) {
  run.id = uid_of(run);
  const std::int64_t environment = environment_row(connection, run.environment);
  const int added =
      Query(connection,
            "INSERT INTO runs (uid, environment_id, plan, started, program, nonce,"
            " cudnn_directory) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            run.id, environment, run.plan, run.started, run.program, run.nonce, run.cudnn_directory)
          .run();
  if (run.finished) finish_run(connection, run.id, *run.finished);
  return {run.id, added > 0};
}

void finish_run(Connection& connection, std::string_view run, std::string_view finished) {
  // The latest end wins, so that merging two copies of a run gives the same result in any order.
  const int found =
      Query(connection, "UPDATE runs SET finished = max(coalesce(finished, ''), ?2) WHERE uid = ?1",
            text_of(run), text_of(finished))
          .run();
  if (found == 0)
    throw Error(ErrorKind::kInternal,
                fmt::format("{}: no run has the id {}", connection.path().string(), run));
}

std::vector<Run> runs(Connection& connection) {
  std::vector<Run> all;
  Query query(
      connection,
      "SELECT uid, plan, started, finished, program, nonce, cudnn_directory, gpu, "
      "architecture, "
      "memory_total_bytes, ecc, mig,"
      " driver, cuda, cublas, cudnn, cufft, framework, framework_version, os, module_loading"
      " FROM runs r JOIN environments e ON e.id = r.environment_id ORDER BY started, uid");
  while (query.step()) {
    Run& run = all.emplace_back();
    query.read_all(run.id, run.plan, run.started, run.finished, run.program, run.nonce,
                   run.cudnn_directory);
    read_environment(query, run.environment);
  }
  return all;
}

std::string uid_of(std::string_view run, std::int64_t number, const Sample& sample) {
  ContentHash hash("sample");
  hash.add(run)
      .add(number)
      .add(sample.workload)
      .add(sample.family)
      .add(sample.job)
      .add(sample.validation);
  hash.add(to_string(sample.status))
      .add(sample.status_note)
      .add(sample.allocated_peak)
      .add(sample.reserved_peak);
  hash.add(sample.device_peak)
      .add(sample.device_metric)
      .add(sample.seconds_per_step)
      .add(sample.repeats);
  hash.add(sample.spread)
      .add(sample.stop_criterion)
      .add(static_cast<std::int64_t>(sample.stages.size()));
  for (const StageReading& reading : sample.stages)
    hash.add(reading.stage).add(reading.device_used);
  for (const WorkspaceRequest& request : sample.workspaces) {
    hash.add(to_string(request.library))
        .add(request.operation)
        .add(request.shape)
        .add(request.bytes);
  }
  return hash.uid();
}

RunPosition position_in(Connection& connection, std::string_view run) {
  RunPosition position;
  position.run = run;
  Query query(connection,
              "SELECT id, (SELECT coalesce(max(number), 0) + 1 FROM samples WHERE run_id = r.id) "
              "FROM runs r WHERE uid = ?",
              position.run);
  if (!query.step()) {
    throw Error(ErrorKind::kInternal,
                fmt::format("{}: no run has the id {}", connection.path().string(), run));
  }
  query.read_all(position.row, position.next_number);
  return position;
}

Insertion insert_sample(Connection& connection, const RunPosition& position, const Sample& sample) {
  const std::int64_t number = position.next_number;
  std::string uid = uid_of(position.run, number, sample);
  const int added =
      Query(connection,
            "INSERT INTO samples (uid, run_id, number, workload, family, job, validation, status, "
            "status_note,"
            " allocated_peak_bytes, reserved_peak_bytes, device_peak_bytes, device_metric, "
            "seconds_per_step, repeats,"
            " spread_fraction, stop_criterion)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            uid, position.row, number, sample.workload, sample.family, sample.job,
            sample.validation, to_string(sample.status), sample.status_note, sample.allocated_peak,
            sample.reserved_peak, sample.device_peak, sample.device_metric, sample.seconds_per_step,
            sample.repeats, sample.spread, sample.stop_criterion)
          .run();
  if (added > 0) insert_details(connection, connection.database().getLastInsertRowid(), sample);
  return {std::move(uid), added > 0};
}

void for_each_sample(Connection& connection, const SampleFilter& filter,
                     const std::function<void(StoredSample&&)>& visit) {
  for (const RunRow& run : matching_runs(connection, filter)) {
    Query query(connection,
                "SELECT id, uid, number, workload, family, job, validation, status, status_note, "
                "allocated_peak_bytes,"
                " reserved_peak_bytes, device_peak_bytes, device_metric, seconds_per_step, "
                "repeats, spread_fraction,"
                " stop_criterion FROM samples WHERE run_id = ?1 AND (?2 IS NULL OR validation = ?2)"
                " AND (NOT ?3 OR status = 'ok') ORDER BY number, uid",
                run.row, filter.validation, filter.only_ok);
    while (query.step()) {
      StoredSample stored;
      stored.run = run.uid;
      stored.environment = run.environment;
      Sample& s = stored.sample;
      std::int64_t row = 0;
      std::string status;
      query.read_all(row, stored.id, stored.number, s.workload, s.family, s.job, s.validation,
                     status, s.status_note, s.allocated_peak, s.reserved_peak, s.device_peak,
                     s.device_metric, s.seconds_per_step, s.repeats, s.spread, s.stop_criterion);
      s.status = parsed(parse_sample_status(status), connection, "status", status);
      stored.removal = newest_removal(connection, stored.id);
      if (stored.removal && !stored.removal->removed) stored.removal.reset();
      if (stored.removal && !filter.include_removed) continue;
      read_details(connection, row, s);
      visit(std::move(stored));
    }
  }
}

}  // namespace memfathom::rows
