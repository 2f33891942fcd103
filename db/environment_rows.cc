#include "db/rows.h"

namespace memfathom::rows {

std::int64_t environment_row(Connection& connection, const Environment& e) {
  Query(connection,
        "INSERT INTO environments (device_key, stack_key, gpu, architecture, memory_total_bytes, "
        "ecc, mig, driver, cuda,"
        " cublas, cudnn, cufft, framework, framework_version, os, module_loading)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        e.device_key(), e.stack_key(), e.gpu, e.architecture, e.memory_total, e.ecc, e.mig,
        e.driver, e.cuda, e.cublas, e.cudnn, e.cufft, e.framework, e.framework_version, e.os,
        e.module_loading)
      .run();
  Query query(connection,
              "SELECT id FROM environments WHERE gpu = ? AND architecture = ? AND "
              "memory_total_bytes = ? AND ecc = ?"
              " AND mig = ? AND driver = ? AND cuda = ? AND cublas = ? AND cudnn = ? AND cufft = ? "
              "AND framework = ?"
              " AND framework_version = ? AND os = ? AND module_loading = ?",
              e.gpu, e.architecture, e.memory_total, e.ecc, e.mig, e.driver, e.cuda, e.cublas,
              e.cudnn, e.cufft, e.framework, e.framework_version, e.os, e.module_loading);
  std::int64_t row = 0;
  if (query.step()) query.read(row);
  return row;
}

void read_environment(Query& query, Environment& e) {
  query.read_all(e.gpu, e.architecture, e.memory_total, e.ecc, e.mig, e.driver, e.cuda, e.cublas,
                 e.cudnn, e.cufft, e.framework, e.framework_version, e.os, e.module_loading);
}

}  // namespace memfathom::rows
