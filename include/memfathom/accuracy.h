// Accuracy: estimates compared with measured jobs (docs/contract.md section 6).
//
//     #include <memfathom/session.h>
//     #include <iostream>
//
//     void score(const memfathom::Session& session) {
//       for (const memfathom::AccuracyRow& row : session.accuracy("measured.jsonl"))
//         std::cout << row.data << ": median error " << row.median_error.value_or(0) << '\n';
//     }
#pragma once

#include <optional>
#include <string>

namespace memfathom {
inline namespace v0 {

struct AccuracyRow {
  std::string data;  // "timm:device"
  int rows = 0, answered = 0;
  std::optional<double> median_error, p90_error, under_by_10_percent;  // relative
  std::optional<double> coverage;        // of the 90 % intervals, device figures only
  std::optional<double> verdicts_right;  // where only "fitted" or "failed" is known
};

}  // namespace v0
}  // namespace memfathom
