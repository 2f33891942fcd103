#include "db/rows.h"

namespace memfathom::rows {

std::string uid_of(const Removal& removal) {
  return ContentHash("removal")
      .add(removal.subject)
      .add(removal.number)
      .add(removal.removed)
      .add(removal.created)
      .add(removal.reason)
      .uid();
}

Insertion insert_removal(Connection& connection, const Removal& removal) {
  std::string uid = uid_of(removal);
  const int added =
      Query(connection,
            "INSERT INTO removals (uid, subject, number, removed, created, reason)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            uid, removal.subject, removal.number, removal.removed, removal.created, removal.reason)
          .run();
  return {std::move(uid), added > 0};
}

std::vector<Removal> removals(Connection& connection) {
  std::vector<Removal> all;
  Query query(connection,
              "SELECT uid, subject, number, removed, created, reason FROM removals"
              " ORDER BY subject, number, created, uid");
  while (query.step()) {
    Removal& removal = all.emplace_back();
    query.read_all(removal.id, removal.subject, removal.number, removal.removed, removal.created,
                   removal.reason);
  }
  return all;
}

std::optional<Removal> newest_removal(Connection& connection, const std::string& subject) {
  Query query(
      connection,
      "SELECT uid, subject, number, removed, created, reason FROM removals WHERE subject = ?"
      " ORDER BY number DESC, created DESC, uid DESC LIMIT 1",
      subject);
  if (!query.step()) return std::nullopt;
  Removal removal;
  query.read_all(removal.id, removal.subject, removal.number, removal.removed, removal.created,
                 removal.reason);
  return removal;
}

}  // namespace memfathom::rows
