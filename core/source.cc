#include "core/source.h"

namespace memfathom {

const char* to_string(Source source) {
  switch (source) {
    case Source::kExact: return "exact";
    case Source::kMeasured: return "measured";
    case Source::kFitted: return "fitted";
    case Source::kPublished: return "published";
    case Source::kDefault: return "default";
  }
  return "default";
}

std::optional<Source> parse_source(std::string_view text) {
  for (const Source source :
       {Source::kExact, Source::kMeasured, Source::kFitted, Source::kPublished, Source::kDefault}) {
    if (text == to_string(source)) return source;
  }
  return std::nullopt;
}

}  // namespace memfathom
