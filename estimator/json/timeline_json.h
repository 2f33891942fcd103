// The JSON of a timeline: for charts (docs/contract.md §4), and as a trace that Chrome's
// chrome://tracing and Perfetto open.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "estimator/run/timeline.h"

namespace memfathom {

// {"phases": [{"name", "iteration"}], "components": [names], "points": [{"phase",
// "allocated_bytes", "reserved_bytes", "live": [bytes per component]}]}. Components that are never
// alive are left out.
nlohmann::ordered_json timeline_json(const Timeline& timeline);

// The Trace Event Format: phases as slices, live components and reserved memory as counters. A
// timeline has no clock: each of its points lasts a microsecond.
nlohmann::ordered_json trace_events_json(const Timeline& timeline);

}  // namespace memfathom
