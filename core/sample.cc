#include "core/sample.h"

namespace memfathom {

const char* to_string(SampleStatus status) { return enum_name(status).data(); }

const char* to_string(Metric metric) { return enum_name(metric).data(); }

std::optional<SampleStatus> parse_sample_status(std::string_view text) {
  return enum_from_name<SampleStatus>(text);
}

std::optional<Metric> parse_metric(std::string_view text) { return enum_from_name<Metric>(text); }

}  // namespace memfathom
