#include "db/rows.h"

namespace memfathom::rows {

std::string uid_of(const Baseline& baseline) {
  ContentHash hash("baseline");
  hash.add(baseline.environment);
  return hash.add(baseline.name).add(baseline.created).add(baseline.document).uid();
}

Insertion insert_baseline(Connection& connection, const Baseline& baseline) {
  std::string uid = uid_of(baseline);
  const std::int64_t environment = environment_row(connection, baseline.environment);
  const int added = Query(connection,
                          "INSERT INTO baselines (uid, name, environment_id, created, document) "
                          "VALUES (?, ?, ?, ?, ?)"
                          " ON CONFLICT DO NOTHING",
                          uid, baseline.name, environment, baseline.created, baseline.document)
                        .run();
  return {std::move(uid), added > 0};
}

std::vector<Baseline> baselines(Connection& connection) {
  std::vector<Baseline> all;
  Query query(connection,
              "SELECT uid, name, created, document, gpu, architecture, memory_total_bytes, ecc, "
              "mig, driver, cuda, cublas,"
              " cudnn, cufft, framework, framework_version, os, module_loading FROM baselines b"
              " JOIN environments e ON e.id = b.environment_id ORDER BY created, uid");
  while (query.step()) {
    Baseline& baseline = all.emplace_back();
    query.read_all(baseline.id, baseline.name, baseline.created, baseline.document);
    read_environment(query, baseline.environment);
  }
  return all;
}

std::string uid_of(const Annotation& annotation) {
  return ContentHash("annotation")
      .add(annotation.subject)
      .add(annotation.created)
      .add(annotation.note)
      .uid();
}

Insertion insert_annotation(Connection& connection, const Annotation& annotation) {
  std::string uid = uid_of(annotation);
  const int added =
      Query(connection,
            "INSERT INTO annotations (uid, subject, created, note) VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            uid, annotation.subject, annotation.created, annotation.note)
          .run();
  return {std::move(uid), added > 0};
}

std::vector<Annotation> annotations(Connection& connection, std::string_view subject) {
  std::vector<Annotation> all;
  const std::string about(subject);
  Query query(connection,
              "SELECT uid, subject, created, note FROM annotations WHERE ?1 = '' OR subject = ?1 "
              "ORDER BY created, uid",
              about);
  while (query.step()) {
    Annotation& annotation = all.emplace_back();
    query.read_all(annotation.id, annotation.subject, annotation.created, annotation.note);
  }
  return all;
}

}  // namespace memfathom::rows
