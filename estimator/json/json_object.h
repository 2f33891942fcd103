// JsonObject: an object built member by member, each value moved into its place. An initializer
// list of pairs would copy every value twice, which is a large part of a small job's answer.
//
//   Json line = JsonObject().add("name", name).add("bytes", 12);
#pragma once

#include <nlohmann/json.hpp>
#include <utility>

namespace memfathom {

class JsonObject {
 public:
  JsonObject() { members_.reserve(kUsual); }

  // The key is not yet in the object.
  template <typename Value>
  JsonObject&& add(const char* key, Value&& value) {
    members_.emplace_back(key, nlohmann::ordered_json(std::forward<Value>(value)));
    return std::move(*this);
  }

  // NOLINTNEXTLINE(google-explicit-constructor): the object is JSON
  operator nlohmann::ordered_json() && { return nlohmann::ordered_json(std::move(members_)); }

 private:
  static constexpr int kUsual = 8;  // members

  nlohmann::ordered_json::object_t members_;
};

}  // namespace memfathom
