#include "estimator/json/timeline_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace memfathom {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t bytes_of(const TimelinePoint& point, Component component) {
  return point.live[static_cast<std::size_t>(component)];
}

// Those that are alive at some point, in the order of the enum.
std::vector<Component> live_components(const Timeline& timeline) {
  std::vector<Component> components;
  for (const auto& row : kEnumNames<Component>) {
    const auto is_alive = [&](const TimelinePoint& point) {
      return bytes_of(point, row.value) != 0;
    };
    if (std::any_of(timeline.points.begin(), timeline.points.end(), is_alive))
      components.push_back(row.value);
  }
  return components;
}

std::string title_of(const TimelinePhase& phase) {
  return phase.iteration == 0 ? phase.name : fmt::format("{} {}", phase.name, phase.iteration);
}

// Every event belongs to the one process and thread of the trace.
Json event(const char* kind, const std::string& name, std::size_t time) {
  return {{"ph", kind}, {"name", name}, {"pid", 1}, {"tid", 1}, {"ts", time}};
}

}  // namespace

Json timeline_json(const Timeline& timeline) {
  const std::vector<Component> components = live_components(timeline);
  Json json{{"phases", Json::array()}, {"components", Json::array()}, {"points", Json::array()}};
  for (const TimelinePhase& phase : timeline.phases)
    json["phases"].push_back({{"name", phase.name}, {"iteration", phase.iteration}});
  for (const Component component : components) json["components"].push_back(to_string(component));
  for (const TimelinePoint& point : timeline.points) {
    Json live = Json::array();
    for (const Component component : components) live.push_back(bytes_of(point, component));
    json["points"].push_back({{"phase", point.phase},
                              {"allocated_bytes", point.allocated},
                              {"reserved_bytes", point.reserved},
                              {"live", std::move(live)}});
  }
  return json;
}

Json trace_events_json(const Timeline& timeline) {
  const std::vector<Component> components = live_components(timeline);
  Json events = Json::array();
  Json process = event("M", "process_name", 0);
  process["args"] = {{"name", "memfathom: one microsecond per allocation, not to scale in time"}};
  events.push_back(std::move(process));
  std::size_t begin = 0;
  for (std::size_t i = 0; i < timeline.points.size(); ++i) {
    const TimelinePoint& point = timeline.points[i];
    Json live = event("C", "allocated", i);
    for (const Component component : components)
      live["args"][std::string(to_string(component))] = bytes_of(point, component);
    events.push_back(std::move(live));
    Json reserved = event("C", "reserved", i);
    reserved["args"] = {{"bytes", point.reserved}};
    events.push_back(std::move(reserved));
    if (i + 1 < timeline.points.size() && timeline.points[i + 1].phase == point.phase) continue;
    Json phase = event("X", title_of(timeline.phases[point.phase]), begin);
    phase["dur"] = i + 1 - begin;
    events.push_back(std::move(phase));
    begin = i + 1;
  }
  return {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
}

}  // namespace memfathom
