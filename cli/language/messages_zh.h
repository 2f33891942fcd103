// Messages in Chinese: everything the program can say in it, in one table.
#pragma once

#include <span>
#include <string_view>

namespace memfathom {

// {} stands for a value; {0}, {1}, ... in the Chinese where their order differs.
struct Message {
  std::string_view english;
  std::string_view chinese;
};

std::span<const Message> chinese_messages();

}  // namespace memfathom
