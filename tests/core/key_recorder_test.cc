#include "core/key_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace memfathom {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kConfig = R"({"a": 1, "b": 2, "text": {"c": 3, "d": 4}, "vision": {"e": 5}})";

TEST(KeyRecorderTest, ListsUnusedKeys) {
  const Node config = parse_json(kConfig, "config.json");
  const KeyRecorder recorder;
  EXPECT_NE(config.find("a"), nullptr);
  EXPECT_EQ(config.at("text").find("absent"), nullptr);
  EXPECT_EQ(config.at("text").at("d").as_int(), 4);
  EXPECT_THAT(recorder.unread_keys(config), ElementsAre("b", "text.c", "vision"));
}

TEST(KeyRecorderTest, RecordsKeysOfCopiesByPath) {
  const Node config = parse_json(kConfig, "config.json");
  const KeyRecorder recorder;
  const Node text = config.at("text");
  EXPECT_NE(text.find("c"), nullptr);
  EXPECT_THAT(recorder.unread_keys(config), ElementsAre("a", "b", "text.d", "vision"));
}

TEST(KeyRecorderTest, ForwardsToAnOuterRecorder) {
  const Node config = parse_json(kConfig, "config.json");
  const KeyRecorder outer;
  {
    const KeyRecorder inner;
    for (const char* key : {"a", "b", "vision"}) config.find(key);
  }
  config.at("text").find("c");
  config.at("text").find("d");
  EXPECT_THAT(outer.unread_keys(config), ElementsAre("vision.e"));
}

TEST(KeyRecorderTest, RecordsOnlyItsOwnThread) {
  const Node config = parse_json(R"({"a": 1})", "config.json");
  const KeyRecorder recorder;
  std::thread([&] { config.find("a"); }).join();
  EXPECT_THAT(recorder.unread_keys(config), ElementsAre("a"));
  config.find("a");
  EXPECT_THAT(recorder.unread_keys(config), IsEmpty());
}

}  // namespace
}  // namespace memfathom
