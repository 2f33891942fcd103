// Language: the language of what people read on the terminal, and translation into it.
#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/enum_names.h"

namespace memfathom {

enum class Language { kEnglish, kChinese };

template <>
inline constexpr auto kEnumNames<Language> =
    std::to_array<EnumName<Language>>({{Language::kEnglish, "en"}, {Language::kChinese, "zh"}});

// Simplified Chinese if the first of LC_ALL, LC_MESSAGES and LANG that is set names it in UTF-8
// (zh_CN.UTF-8), else English.
Language language_of_environment();

// `english` in the language, if there is a translation (cli/language/messages_zh.h); else as it is.
// A sentence with values in it is found by a message with {} in their places.
std::string translated(Language language, std::string_view english);

// The message `english` in the language, with the values in the places of its {}.
std::string translated(Language language, std::string_view english,
                       std::initializer_list<std::string> values);

}  // namespace memfathom
