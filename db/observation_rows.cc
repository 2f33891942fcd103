#include "db/rows.h"

namespace memfathom::rows {

std::string uid_of(const Observation& o) {
  ContentHash hash("observation");
  hash.add(o.job)
      .add(to_string(o.metric))
      .add(o.bytes)
      .add(o.fits)
      .add(o.gpu)
      .add(o.driver)
      .add(o.cuda)
      .add(o.cudnn);
  return hash.add(o.framework)
      .add(o.framework_version)
      .add(o.source)
      .add(o.group)
      .add(o.note)
      .uid();
}

Insertion insert_observation(Connection& connection, const Observation& o) {
  std::string uid = uid_of(o);
  const int added =
      Query(connection,
            "INSERT INTO observations (uid, job, metric, measured_bytes, fits, gpu, driver, cuda, "
            "cudnn,"
            " framework, framework_version, source, group_name, note)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            uid, o.job, to_string(o.metric), o.bytes, o.fits, o.gpu, o.driver, o.cuda, o.cudnn,
            o.framework, o.framework_version, o.source, o.group, o.note)
          .run();
  return {std::move(uid), added > 0};
}

std::vector<StoredObservation> observations(Connection& connection) {
  std::vector<StoredObservation> all;
  Query query(connection,
              "SELECT uid, job, metric, measured_bytes, fits, gpu, driver, cuda, cudnn, framework, "
              "framework_version, source,"
              " group_name, note FROM observations ORDER BY uid");
  while (query.step()) {
    StoredObservation& stored = all.emplace_back();
    Observation& o = stored.observation;
    std::string metric;
    query.read_all(stored.id, o.job, metric, o.bytes, o.fits, o.gpu, o.driver, o.cuda, o.cudnn,
                   o.framework, o.framework_version, o.source, o.group, o.note);
    o.metric = parsed(parse_metric(metric), connection, "metric", metric);
    stored.removal = newest_removal(connection, stored.id);
    if (stored.removal && !stored.removal->removed) stored.removal.reset();
  }
  return all;
}

}  // namespace memfathom::rows
