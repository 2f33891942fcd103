#include "core/enum_names.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "core/component.h"
#include "core/document.h"
#include "core/error.h"
#include "core/sample.h"
#include "core/source.h"
#include "core/workspace.h"

namespace memfathom {
namespace {

enum class Fruit : std::uint8_t { kApple, kPear };
enum class Incomplete : std::uint8_t { kOne, kTwo, kThree };
enum class NamedTwice : std::uint8_t { kOne, kTwo };
enum class SameName : std::uint8_t { kOne, kTwo };

}  // namespace

template <>
inline constexpr auto kEnumNames<Fruit> =
    std::to_array<EnumName<Fruit>>({{Fruit::kPear, "pear"}, {Fruit::kApple, "apple"}});
template <>
inline constexpr auto kEnumNames<Incomplete> =
    std::to_array<EnumName<Incomplete>>({{Incomplete::kOne, "one"}, {Incomplete::kTwo, "two"}});
template <>
inline constexpr auto kEnumNames<NamedTwice> =
    std::to_array<EnumName<NamedTwice>>({{NamedTwice::kOne, "one"}, {NamedTwice::kOne, "two"}});
template <>
inline constexpr auto kEnumNames<SameName> =
    std::to_array<EnumName<SameName>>({{SameName::kOne, "one"}, {SameName::kTwo, "one"}});

namespace {

static_assert(!names_are_complete<Incomplete>(), "kThree has no name");
static_assert(!names_are_complete<NamedTwice>(), "kTwo has no name");
static_assert(!names_are_complete<SameName>(), "one name cannot be read back");

TEST(EnumNamesTest, NamesDoNotFollowTheOrderOfTheEnum) {
  EXPECT_EQ(enum_name(Fruit::kApple), "apple");
  EXPECT_EQ(enum_name(Fruit::kPear), "pear");
  EXPECT_EQ(enum_from_name<Fruit>("pear"), Fruit::kPear);
  EXPECT_EQ(enum_from_name<Fruit>("plum"), std::nullopt);
}

TEST(EnumNamesTest, AliasesAreReadButNeverWritten) {
  constexpr auto kAliases = std::to_array<EnumName<Fruit>>({{Fruit::kPear, "pyrus"}});
  EXPECT_EQ(enum_from_name("pyrus", kAliases), Fruit::kPear);
  EXPECT_EQ(enum_from_name("apple", kAliases), Fruit::kApple);
  EXPECT_EQ(enum_name(Fruit::kPear), "pear");
}

TEST(EnumNamesTest, DocumentsAreReadByName) {
  EXPECT_EQ(parse_yaml("fruit: apple", "t").at("fruit").as_enum<Fruit>(), Fruit::kApple);
  try {
    parse_yaml("fruit: aple", "t").at("fruit").as_enum<Fruit>();
    FAIL() << "it must be refused";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "t:1: \"fruit\" is \"aple\"; it must be one of pear, apple; did you mean \"apple\"?");
  }
}

template <typename E>
class CoreEnumTest : public testing::Test {};

using CoreEnums =
    testing::Types<Component, Source, SampleStatus, Metric, Library, ConvolutionKind, FftKind>;
TYPED_TEST_SUITE(CoreEnumTest, CoreEnums);

TYPED_TEST(CoreEnumTest, EveryValueHasANameThatIsReadBack) {
  static_assert(names_are_complete<TypeParam>());
  for (std::size_t i = 0; i < kEnumNames<TypeParam>.size(); ++i) {
    const auto value = static_cast<TypeParam>(i);
    EXPECT_FALSE(enum_name(value).empty());
    EXPECT_EQ(enum_from_name<TypeParam>(enum_name(value)), value);
  }
}

}  // namespace
}  // namespace memfathom
