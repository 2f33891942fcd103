// suggest: finds the known name nearest to a mistyped one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace memfathom {

// The name nearest to `given` by edit distance (a swap of neighbours counts once; case is ignored,
// and a hyphen equals an underscore), or nullopt if none is near. The view points into `names`.
std::optional<std::string_view> nearest_name(std::string_view given,
                                             std::span<const std::string_view> names);

// Whether `given` is `name` with one typo (a letter added, missing or wrong, two swapped, a hyphen
// for an underscore). Always false for short words.
bool is_likely_typo(std::string_view given, std::string_view name);

// Whether `given` is so close to `name` that it was meant: "gradient_checkpoint", "lorra_r". Allows
// one edit for every five letters, and no fewer than one.
bool is_near_miss(std::string_view given, std::string_view name);

// The end of an error message: "did you mean \"estimate\"?" or, if nothing is near, "use one of a,
// b, c".
std::string suggestion(std::string_view given, std::span<const std::string_view> names);

}  // namespace memfathom
