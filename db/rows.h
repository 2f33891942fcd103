// Rows: writes each kind of record to its tables and reads it back. Private to db/; the caller
// holds the transaction and the guard.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/calibration.h"
#include "core/sample.h"
#include "db/content_hash.h"
#include "db/query.h"
#include "db/records.h"

namespace memfathom::rows {

// The uid of an added or existing row, and whether it was added.
struct Insertion {
  std::string id;
  bool added = false;
};

std::int64_t environment_row(Connection& connection,
                             const Environment& environment);   // adds it if it is new
void read_environment(Query& query, Environment& environment);  // from its columns gpu to os

// The enum value of a word in a column; an unknown word means a damaged or foreign row.
template <typename T>
T parsed(const std::optional<T>& meaning, const Connection& connection, const char* column,
         const std::string& word) {
  if (meaning) return *meaning;
  throw Error(ErrorKind::kInput,
              fmt::format("{} is damaged: a {} is \"{}\"; restore a backup",
                          connection.path().string(), column, word.substr(0, 40)));
}

std::string uid_of(const Run& run);
Insertion insert_run(Connection& connection, Run run);
void finish_run(Connection& connection, std::string_view run, std::string_view finished);
std::vector<Run> runs(Connection& connection);

std::string uid_of(std::string_view run, std::int64_t number, const Sample& sample);
// The insertion point of a run's next sample.
struct RunPosition {
  std::string run;  // its uid
  std::int64_t row = 0;
  std::int64_t next_number = 1;
};
RunPosition position_in(Connection& connection, std::string_view run);
Insertion insert_sample(Connection& connection, const RunPosition& position, const Sample& sample);
void for_each_sample(Connection& connection, const SampleFilter& filter,
                     const std::function<void(StoredSample&&)>& visit);

std::string uid_of(const Observation& observation);
Insertion insert_observation(Connection& connection, const Observation& observation);
std::vector<StoredObservation> observations(Connection& connection);  // removed ones too

Insertion insert_calibration(Connection& connection,
                             const Calibration& calibration);  // under its own id
Calibration calibration_at(Connection& connection, std::int64_t row);

std::string uid_of(const Baseline& baseline);
Insertion insert_baseline(Connection& connection, const Baseline& baseline);
std::vector<Baseline> baselines(Connection& connection);

std::string uid_of(const Annotation& annotation);
Insertion insert_annotation(Connection& connection, const Annotation& annotation);
std::vector<Annotation> annotations(Connection& connection, std::string_view subject);

std::string uid_of(const Removal& removal);
Insertion insert_removal(Connection& connection, const Removal& removal);
std::vector<Removal> removals(Connection& connection);
// The one that decides whether a sample or an observation is set aside.
std::optional<Removal> newest_removal(Connection& connection, const std::string& subject);

}  // namespace memfathom::rows
