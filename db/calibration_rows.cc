#include "db/calibration_file.h"
#include "db/rows.h"

namespace memfathom::rows {
namespace {

void insert_coefficients(Connection& connection, std::int64_t row, const Calibration& calibration) {
  int position = 0;
  for (const Coefficient& c : calibration.coefficients) {
    Query(connection,
          "INSERT INTO coefficients (calibration_id, position, name, value, standard_error, unit, "
          "source, prior_only,"
          " sample_count) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
          row, position++, c.name, c.value, c.standard_error, c.unit, to_string(c.source),
          c.prior_only, c.samples)
        .run();
  }
  const std::size_t size = calibration.coefficients.size();
  for (std::size_t i = 0; i < calibration.covariance.size(); ++i) {
    Query(connection,
          "INSERT INTO covariances (calibration_id, position, other_position, covariance) VALUES "
          "(?, ?, ?, ?)",
          row, static_cast<std::int64_t>(i / size), static_cast<std::int64_t>(i % size),
          calibration.covariance[i])
        .run();
  }
}

void insert_ratios(Connection& connection, std::int64_t row, const Calibration& calibration) {
  int group_position = 0;
  for (const RatioGroup& group : calibration.ratios) {
    Query(connection,
          "INSERT INTO ratio_groups (calibration_id, position, group_name) VALUES (?, ?, ?)", row,
          group_position, group.group)
        .run();
    int position = 0;
    for (const double ratio : group.ratios) {
      Query(connection,
            "INSERT INTO ratios (calibration_id, group_position, position, ratio) VALUES (?, ?, ?, "
            "?)",
            row, group_position, position++, ratio)
          .run();
    }
    ++group_position;
  }
}

void read_coefficients(Connection& connection, std::int64_t row, Calibration& calibration) {
  Query query(
      connection,
      "SELECT name, value, standard_error, unit, source, prior_only, sample_count FROM coefficients"
      " WHERE calibration_id = ? ORDER BY position",
      row);
  while (query.step()) {
    Coefficient& c = calibration.coefficients.emplace_back();
    std::string source;
    query.read_all(c.name, c.value, c.standard_error, c.unit, source, c.prior_only, c.samples);
    c.source = parsed(parse_source(source), connection, "source", source);
  }
  Query covariance(connection,
                   "SELECT covariance FROM covariances WHERE calibration_id = ? ORDER BY position, "
                   "other_position",
                   row);
  while (covariance.step()) covariance.read(calibration.covariance.emplace_back());
}

void read_ratios(Connection& connection, std::int64_t row, Calibration& calibration) {
  Query groups(
      connection,
      "SELECT position, group_name FROM ratio_groups WHERE calibration_id = ? ORDER BY position",
      row);
  while (groups.step()) {
    RatioGroup& group = calibration.ratios.emplace_back();
    std::int64_t group_position = 0;
    groups.read_all(group_position, group.group);
    Query ratios(connection,
                 "SELECT ratio FROM ratios WHERE calibration_id = ? AND group_position = ? ORDER "
                 "BY position",
                 row, group_position);
    while (ratios.step()) ratios.read(group.ratios.emplace_back());
  }
}

}  // namespace

Insertion insert_calibration(Connection& connection, const Calibration& c) {
  require_storable(c);
  const std::int64_t environment = environment_row(connection, c.environment);
  const int added = Query(connection,
                          "INSERT INTO calibrations (uid, name, environment_id, created, source, "
                          "provenance, usable, refusal,"
                          " sample_count, held_out_median_error, held_out_p90_error, "
                          "under_by_10_percent, coverage_90,"
                          " validation_rows, supersedes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                          "?, ?, ?, ?) ON CONFLICT DO NOTHING",
                          c.id, c.name, environment, c.created, to_string(c.source), c.provenance,
                          c.usable, c.refusal, c.samples, c.quality.held_out_median_error,
                          c.quality.held_out_p90_error, c.quality.under_by_10_percent,
                          c.quality.coverage_90, c.quality.validation_rows, c.supersedes)
                        .run();
  if (added > 0) {
    const std::int64_t row = connection.database().getLastInsertRowid();
    insert_coefficients(connection, row, c);
    insert_ratios(connection, row, c);
  }
  return {c.id, added > 0};
}

Calibration calibration_at(Connection& connection, std::int64_t row) {
  Calibration c;
  Query query(connection,
              "SELECT uid, name, created, source, provenance, usable, refusal, sample_count, "
              "held_out_median_error,"
              " held_out_p90_error, under_by_10_percent, coverage_90, validation_rows, supersedes, "
              "gpu, architecture,"
              " memory_total_bytes, ecc, mig, driver, cuda, cublas, cudnn, cufft, framework, "
              "framework_version, os, module_loading"
              " FROM calibrations c JOIN environments e ON e.id = c.environment_id WHERE c.id = ?",
              row);
  if (!query.step()) return c;
  std::string source;
  query.read_all(c.id, c.name, c.created, source, c.provenance, c.usable, c.refusal, c.samples,
                 c.quality.held_out_median_error, c.quality.held_out_p90_error,
                 c.quality.under_by_10_percent, c.quality.coverage_90, c.quality.validation_rows,
                 c.supersedes);
  read_environment(query, c.environment);
  c.source = parsed(parse_source(source), connection, "source", source);
  read_coefficients(connection, row, c);
  read_ratios(connection, row, c);
  return c;
}

}  // namespace memfathom::rows
