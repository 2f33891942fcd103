#include "kernels/memory/allocator/snapshot.h"

#include <nlohmann/json.hpp>

namespace memfathom {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Statistic& statistic) {
  return {{"current", statistic.current}, {"peak", statistic.peak}};
}

Json json_of(const PoolStatistic& statistic) {
  return {{"all", json_of(statistic.all)},
          {"small_pool", json_of(statistic.small_pool)},
          {"large_pool", json_of(statistic.large_pool)}};
}

Json json_of(const AllocatorStatistics& statistics) {
  return {{"allocated_bytes", json_of(statistics.allocated_bytes)},
          {"reserved_bytes", json_of(statistics.reserved_bytes)},
          {"active_bytes", json_of(statistics.active_bytes)},
          {"inactive_split_bytes", json_of(statistics.inactive_split_bytes)},
          {"requested_bytes", json_of(statistics.requested_bytes)},
          {"allocation", json_of(statistics.allocation)},
          {"segment", json_of(statistics.segment)},
          {"active", json_of(statistics.active)},
          {"inactive_split", json_of(statistics.inactive_split)},
          {"num_alloc_retries", statistics.num_alloc_retries},
          {"num_ooms", statistics.num_ooms}};
}

Json json_of(const SegmentSnapshot& segment) {
  Json blocks = Json::array();
  for (const BlockSnapshot& block : segment.blocks) {
    blocks.push_back({{"address", block.address},
                      {"size", block.size.count()},
                      {"requested_size", block.requested.count()},
                      {"state", to_string(block.state)}});
  }
  return {{"address", segment.address},
          {"total_size", segment.size.count()},
          {"stream", segment.stream},
          {"segment_type", segment.small_pool ? "small" : "large"},
          {"is_expandable", segment.expandable},
          {"blocks", std::move(blocks)}};
}

}  // namespace

const char* to_string(BlockState state) {
  switch (state) {
    case BlockState::kAllocated: return "active_allocated";
    case BlockState::kAwaitingEvents: return "active_awaiting_free";
    case BlockState::kFree: return "inactive";
    case BlockState::kUnmapped: return "unmapped";
  }
  return "inactive";
}

std::string to_json(const AllocatorStatistics& statistics) { return json_of(statistics).dump(2); }

std::string to_json(const AllocatorSnapshot& snapshot) {
  Json segments = Json::array();
  for (const SegmentSnapshot& segment : snapshot.segments) segments.push_back(json_of(segment));
  return Json{{"segments", std::move(segments)}, {"statistics", json_of(snapshot.statistics)}}.dump(
      2);
}

}  // namespace memfathom
