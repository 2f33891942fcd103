#include "core/source.h"

namespace memfathom {

const char* to_string(Source source) { return enum_name(source).data(); }

std::optional<Source> parse_source(std::string_view text) { return enum_from_name<Source>(text); }

}  // namespace memfathom
