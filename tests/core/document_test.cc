#include "core/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace memfathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "(no error)";
}

std::string yaml_error(const std::string& text) {
  return error_of([&] { parse_yaml(text, "job.yaml"); });
}
std::string json_error(const std::string& text) {
  return error_of([&] { parse_json(text, "job.json"); });
}

TEST(DocumentTest, YamlAndJsonGiveTheSameTree) {
  const Node yaml = parse_yaml(
      "model: {preset: llama-2-7b}\n"
      "training:\n"
      "  batch_size: 4\n"
      "  dropout: 0.5\n"
      "  fused_loss: false\n"
      "  samples_per_epoch: null\n"
      "  image_size: [256, 512]\n",
      "job.yaml");
  const Node json = parse_json(
      R"({"model": {"preset": "llama-2-7b"}, "training": {"batch_size": 4, "dropout": 0.5,
          "fused_loss": false, "samples_per_epoch": null, "image_size": [256, 512]}})",
      "job.json");
  EXPECT_TRUE(yaml.same_value(json));
  EXPECT_EQ(to_json(yaml), to_json(json));
}

TEST(DocumentTest, PlainScalarsFollowTheCoreSchemaOfYaml12) {
  const auto type = [](const std::string& text) {
    return parse_yaml("k: " + text, "t").at("k").type();
  };
  for (const char* text : {"~", "null", "Null", "NULL", ""})
    EXPECT_EQ(type(text), Node::Type::kNull) << text;
  for (const char* text : {"true", "False", "TRUE"})
    EXPECT_EQ(type(text), Node::Type::kBool) << text;
  for (const char* text : {"0", "-7", "+7", "012", "0x1F", "0o17", "9223372036854775807"}) {
    EXPECT_EQ(type(text), Node::Type::kInt) << text;
  }
  for (const char* text :
       {"1e-4", "1.", ".5", "-2.5E+3", "9223372036854775808", ".inf", "-.INF", ".nan"}) {
    EXPECT_EQ(type(text), Node::Type::kDouble) << text;
  }
  for (const char* text : {"yes", "no", "on", "1_000", "24GiB", "0x", "0xG", "1e", ".", "+.e3",
                           "1.2.3", "'4'", "\"true\"", "\"\"", "2026-11-16", "e5", "nan", "inf"}) {
    EXPECT_EQ(type(text), Node::Type::kString) << text;
  }
}

TEST(DocumentTest, ReadsTheValuesOfScalars) {
  const Node node =
      parse_yaml("a: 0x1F\nb: 0o17\nc: 1e-4\nd: 012\ne: +7\nf: -9223372036854775808\n", "t");
  EXPECT_EQ(node.at("a").as_int(), 31);
  EXPECT_EQ(node.at("b").as_int(), 15);
  EXPECT_DOUBLE_EQ(node.at("c").as_number(), 1e-4);
  EXPECT_EQ(node.at("d").as_int(), 12);
  EXPECT_EQ(node.at("e").as_int(), 7);
  EXPECT_EQ(node.at("f").as_int(), std::numeric_limits<std::int64_t>::min());
}

TEST(DocumentTest, EveryValueHasItsLineAndPath) {
  const char* const yaml =
      "model:\n  layers:\n    - {type: linear,\n       out: 10}\n    - type: relu\n";
  const Node node = parse_yaml(yaml, "job.yaml");
  const Node& out = node.at("model").at("layers").items()[0].at("out");
  EXPECT_EQ(out.where(), "job.yaml:4");
  EXPECT_EQ(out.path(), "model.layers[0].out");
  EXPECT_EQ(out.key(), "out");
  EXPECT_EQ(node.at("model").at("layers").items()[1].at("type").line(), 5);
}

TEST(DocumentTest, JsonLineNumbersAreCorrectAfterNumbersAtLineEnds) {
  const Node node =
      parse_json("{\n \"a\": 1\n,\n \"b\": [2,\n 3\n],\n \"c\":\n true\n}", "job.json");
  EXPECT_EQ(node.line(), 1);
  EXPECT_EQ(node.at("a").line(), 2);
  EXPECT_EQ(node.at("b").line(), 4);
  EXPECT_EQ(node.at("b").items()[1].line(), 5);
  EXPECT_EQ(node.at("c").line(), 7);
}

TEST(DocumentTest, ALineOfALargerFileKeepsItsNumber) {
  const std::string error =
      error_of([] { parse_json(R"({"a": 0})", "jobs.jsonl", 17).at("a").as_int(1); });
  EXPECT_EQ(error, "jobs.jsonl:17: \"a\" is 0; it must be at least 1");
}

TEST(DocumentTest, RefusesDuplicateKeysInYamlAndJson) {
  EXPECT_EQ(yaml_error("a: 1\nb: 2\na: 3\n"),
            "job.yaml:3: the key \"a\" is duplicated; keep one of them");
  EXPECT_EQ(json_error("{\"a\": 1,\n\"b\": {\"c\": 1, \"c\": 1}}"),
            "job.json:2: the key \"c\" is duplicated; keep one of them");
  EXPECT_NO_THROW(parse_yaml("a: {x: 1}\nb: {x: 1}\n", "t"));
}

TEST(DocumentTest, SyntaxErrorsNameTheLine) {
  EXPECT_THAT(yaml_error("a: 1\nb: [1, 2\nc: 3\n"), HasSubstr("job.yaml:3: not valid YAML"));
  EXPECT_THAT(json_error("{\"a\": 1,\n \"b\" 2}"), HasSubstr("job.json:2: not valid JSON"));
  EXPECT_THAT(json_error("{\"a\": 1} x"), HasSubstr("not valid JSON"));
  EXPECT_THAT(json_error(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(yaml_error(""), HasSubstr("the document is empty"));
}

TEST(DocumentTest, PythonConstantsInJsonAreNumbersThatNoSizeCanBe) {
  const Node node = parse_json(
      R"({"a": [0.0, Infinity, -Infinity, NaN], "NaN": "\\\"NaN Infinity"})", "config.json");
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_TRUE(node.at("a").items()[i].is_number());
    EXPECT_THROW(node.at("a").items()[i].as_int(), Error);
    EXPECT_THROW(node.at("a").items()[i].as_number(), Error);
  }
  EXPECT_EQ(node.at("NaN").as_string(), "\\\"NaN Infinity");
  EXPECT_THAT(json_error("[1NaN]"), HasSubstr("not valid JSON"));
}

TEST(DocumentTest, NoStringOfAFileIsTakenForAPythonConstant) {
  for (const char* text : {R"({"a": "\u0001NaN"})", R"({"a": "\u0001NaN", "b": NaN})"})
    EXPECT_EQ(parse_json(text, "config.json").at("a").as_string(), "\x01NaN") << text;
}

// DeepSpeed accepts comments in JSON, so users write them.
TEST(DocumentTest, CommentsInJsonAreSkippedAndTheirLinesCounted) {
  const Node node = parse_json("{ // ZeRO\n /* two\n lines */ \"stage\": 2}", "ds.json");
  EXPECT_EQ(node.at("stage").as_int(), 2);
  EXPECT_EQ(node.at("stage").line(), 3);
  EXPECT_EQ(parse_json(R"({"url": "a//b"})", "x.json").at("url").as_string(), "a//b");
  EXPECT_THAT(json_error("{\"a\": 1 /* never ends"), HasSubstr("not valid JSON"));
}

TEST(DocumentTest, RefusesASecondDocument) {
  EXPECT_EQ(yaml_error("a: 1\n---\nb: 2\n"),
            "job.yaml:2: a second document starts here; keep one document in a file");
}

TEST(DocumentTest, AliasesAreCopiesWithTheirOwnPaths) {
  const Node node = parse_yaml("base: &b {rank: 8, targets: [q]}\nother: *b\n", "job.yaml");
  EXPECT_TRUE(node.at("base").same_value(node.at("other")));
  EXPECT_EQ(node.at("other").at("rank").path(), "other.rank");
  EXPECT_EQ(node.at("other").line(), 2);
}

TEST(DocumentTest, BoundsTheExpansionOfAliases) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i <= 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int k = 0; k < 9; ++k) text += ", " + before;
    text += "]\n";
  }
  EXPECT_THAT(error_of([&] { parse_yaml(text, "bomb.yaml", 1, {.max_tree_bytes = 10 << 20}); }),
              HasSubstr("the document expands to more than 10.00 MiB"));
}

TEST(DocumentTest, BoundsLongPathsAsMuchAsManyValues) {
  std::string text = "list: &l [";
  for (int i = 0; i < 1000; ++i) text += "1,";
  text += "1]\n" + std::string(1000, 'k') + ": {";
  for (int i = 0; i < 100; ++i) text += "k" + std::to_string(i) + ": *l, ";
  text += "}\n";
  EXPECT_THAT(error_of([&] { parse_yaml(text, "bomb.yaml", 1, {.max_tree_bytes = 40 << 20}); }),
              HasSubstr("expands to more than"));
}

TEST(DocumentTest, RefusesAnAliasInsideItsOwnAnchor) {
  EXPECT_THAT(yaml_error("a: &a [1, *a]\n"), HasSubstr("job.yaml:1: "));
}

TEST(DocumentTest, BoundsDepthAndSize) {
  const std::string deep = std::string(65, '[') + std::string(65, ']');
  const std::string allowed = std::string(64, '[') + std::string(64, ']');
  EXPECT_THAT(json_error(deep), HasSubstr("nested more than 64 levels deep"));
  EXPECT_THAT(yaml_error(deep), HasSubstr("nested more than 64 levels deep"));
  EXPECT_NO_THROW(parse_json(allowed, "t"));
  EXPECT_NO_THROW(parse_yaml(allowed, "t"));
  EXPECT_THAT(yaml_error(std::string(100000, '[')), HasSubstr("job.yaml:1: "));
  EXPECT_THAT(error_of([] { parse_json("[1, 2, 3, 4]", "t", 1, {.max_file_bytes = 11}); }),
              HasSubstr("at most 11 B"));
  EXPECT_NO_THROW(parse_json("[1, 2, 3, 4]", "t", 1, {.max_file_bytes = 12}));
}

TEST(DocumentTest, RefusesTagsAndOtherNonData) {
  EXPECT_THAT(yaml_error("a: !!python/object:os.system x\n"), HasSubstr("job.yaml:1: the tag"));
  EXPECT_THAT(yaml_error("? [a, b]\n: 1\n"), HasSubstr("cannot be a key"));
  EXPECT_THAT(yaml_error(": 1\n"), HasSubstr("a key is empty"));
  EXPECT_THAT(yaml_error("a: 1\nc:\n  <<: 3\n"), HasSubstr("takes a map"));
  EXPECT_THAT(yaml_error("ok: 1\na: \xff\n"), HasSubstr("job.yaml:2: the text is not UTF-8"));
  EXPECT_THAT(json_error(std::string("[1, \0]", 6)), HasSubstr("the text is not UTF-8"));
  EXPECT_THAT(yaml_error("ok: 1\n\"a\\_b\": 2\n"), HasSubstr("job.yaml:2: an escape in this text"));
  EXPECT_THAT(yaml_error("a: \"x\\_\"\n"), HasSubstr("an escape in this text"));
}

TEST(DocumentTest, MergeKeysAddWhatAMapDoesNotSay) {
  const Node node = parse_yaml(
      "base: &base {size: 1, kind: a, inner: {x: 1}}\nother: &other {size: 5, more: 6}\n"
      "one:\n  <<: *base\n  size: 2\nboth: {<<: [*base, *other]}\nlist: [{<<: *other}]\n",
      "t");
  EXPECT_EQ(node.at("one").at("size").as_int(), 2);
  EXPECT_EQ(node.at("one").at("inner").at("x").path(), "one.inner.x");
  EXPECT_EQ(node.at("one").find("<<"), nullptr);
  EXPECT_EQ(node.at("both").at("size").as_int(), 1);
  EXPECT_EQ(node.at("both").at("more").as_int(), 6);
  EXPECT_EQ(node.at("list").items().front().at("more").as_int(), 6);
}

TEST(DocumentTest, TagsOfTheCoreSchemaAreHonoured) {
  const Node node = parse_yaml("a: !!str 12\nb: !!float 3\n", "t");
  EXPECT_EQ(node.at("a").as_string(), "12");
  EXPECT_EQ(node.at("b").type(), Node::Type::kDouble);
  EXPECT_THAT(yaml_error("a: !!int x\n"), HasSubstr("the tag"));
}

TEST(NodeTest, SuggestsTheNearestKeyForAnUnknownOne) {
  const Node node = parse_yaml("training:\n  batch_size: 1\n  optimiser: adam\n", "job.yaml");
  EXPECT_EQ(
      error_of([&] {
        node.at("training").check_keys({"batch_size", "optimizer", "precision"});
      }),
      "job.yaml:3: \"optimiser\" is not a known key of \"training\"; did you mean \"optimizer\"?");
  EXPECT_EQ(error_of([&] {
              node.check_keys({"model", "target"});
            }),
            "job.yaml:1: \"training\" is not a known key; use one of model, target");
  EXPECT_NO_THROW(node.check_keys({"training"}));
}

TEST(NodeTest, ATypeErrorNamesFileLinePathValueAndRemedy) {
  const Node node =
      parse_yaml("training:\n  batch_size: many\n  flag: 1\n  list: {}\n", "job.yaml");
  const Node& training = node.at("training");
  EXPECT_EQ(error_of([&] { training.at("batch_size").as_int(); }),
            "job.yaml:2: \"training.batch_size\" is \"many\"; it must be a whole number");
  EXPECT_EQ(error_of([&] { training.at("flag").as_bool(); }),
            "job.yaml:3: \"training.flag\" is 1; it must be true or false");
  EXPECT_EQ(error_of([&] { training.at("list").items(); }),
            "job.yaml:4: \"training.list\" is a map; it must be a list");
  EXPECT_EQ(error_of([&] { node.at("model"); }),
            "job.yaml:1: the document has no key \"model\"; add it");
  EXPECT_EQ(error_of([&] { training.at("precision"); }),
            "job.yaml:1: \"training\" has no key \"precision\"; add it");
  EXPECT_EQ(error_of([&] { node.as_string(); }),
            "job.yaml:1: the document is a map; it must be a string");
}

TEST(NodeTest, ALongValueIsShortenedInAnError) {
  const std::string error =
      error_of([] { parse_yaml("a: " + std::string(1000, 'x'), "t").at("a").as_int(); });
  EXPECT_LT(error.size(), 150U);
}

TEST(NodeTest, WholeDoublesAreIntegersWithinTheLimits) {
  EXPECT_EQ(parse_yaml("8.0e9", "t").as_int(), 8000000000);
  EXPECT_EQ(Node::number(-9223372036854774784.0).as_int(), -9223372036854774784);
  EXPECT_THROW(Node::number(9223372036854775808.0).as_int(), Error);
  EXPECT_THROW(Node::number(0.5).as_int(), Error);
  EXPECT_THROW(Node::number(std::numeric_limits<double>::quiet_NaN()).as_int(), Error);
  EXPECT_EQ(Node::integer(3).as_int(3, 3), 3);
  EXPECT_THROW(Node::integer(3).as_int(4), Error);
  EXPECT_THROW(Node::integer(3).as_int(0, 2), Error);
}

TEST(NodeTest, ANumberMustBeFiniteAndInRange) {
  EXPECT_DOUBLE_EQ(Node::integer(2).as_number(), 2.0);
  EXPECT_THROW(Node::number(std::numeric_limits<double>::infinity()).as_number(), Error);
  EXPECT_THROW(Node::number(1.5).as_number(0, 1), Error);
  EXPECT_THROW(Node::string("1").as_number(), Error);
}

TEST(NodeTest, SizesNeedAUnitButZeroDoesNot) {
  EXPECT_EQ(parse_yaml("24GiB", "t").as_bytes(), Bytes{24LL << 30});
  EXPECT_EQ(parse_yaml("0", "t").as_bytes(), Bytes{0});
  EXPECT_THAT(error_of([] { parse_yaml("used: 24", "t").at("used").as_bytes(); }),
              HasSubstr("t:1: \"used\" is 24; a size needs its unit"));
  EXPECT_THAT(error_of([] { parse_yaml("used: 24GX", "t").at("used").as_bytes(); }),
              HasSubstr("\"24GX\""));
  EXPECT_THAT(error_of([] { parse_yaml("used: []", "t").at("used").as_bytes(); }),
              HasSubstr("a list of 0"));
}

TEST(NodeTest, ReadsListsOfIntegersTypesAndChoices) {
  EXPECT_THAT(parse_yaml("[16, 16]", "t").as_ints(1), ElementsAre(16, 16));
  EXPECT_THROW(parse_yaml("[16, 0]", "t").as_ints(1), Error);
  EXPECT_EQ(parse_yaml("bfloat16", "t").as_dtype(), DType::kBf16);
  EXPECT_THROW(parse_yaml("fp8", "t").as_dtype(), Error);
  EXPECT_EQ(parse_yaml("flash", "t").as_choice({"eager", "flash"}), 1U);
  EXPECT_THAT(error_of([] {
                parse_yaml("a: flsah", "t").at("a").as_choice({"eager", "flash"});
              }),
              HasSubstr("it must be one of eager, flash; did you mean \"flash\"?"));
}

TEST(NodeTest, AssignCreatesMissingMapsAndReplacesValues) {
  Node job = parse_yaml("training: {batch_size: 4}\nlayers: [{out: 1}, {out: 2}]\n", "job.yaml");
  job.assign("training.batch_size", parse_yaml("8", "--batch-size", 0));
  job.assign("training.lora.rank", parse_yaml("16", "--lora-rank", 0));
  job.assign("layers[1].out", parse_yaml("5", "--set", 0));
  EXPECT_EQ(job.at("training").at("batch_size").as_int(), 8);
  EXPECT_EQ(job.at("training").at("lora").at("rank").as_int(), 16);
  EXPECT_EQ(job.at("layers").items()[1].at("out").as_int(), 5);
  EXPECT_EQ(error_of([&] { job.at("training").at("batch_size").as_int(9); }),
            "--batch-size: \"training.batch_size\" is 8; it must be at least 9");
}

TEST(NodeTest, AssignRefusesInvalidPaths) {
  Node job = parse_yaml("training: {batch_size: 4}\nlayers: [1]\n", "job.yaml");
  for (const char* path :
       {"", ".", "a..b", "training.", "layers[1]", "layers[x]", "layers[0", "[0]", "layers[-1]",
        "layers[99999999999999999999]", "training.batch_size.x", "layers.x", "training[0]"}) {
    EXPECT_THROW(job.assign(path, Node::integer(1)), Error) << path;
  }
}

TEST(NodeTest, ConvertsToAndFromJson) {
  const Node node = parse_yaml("{a: [1, 2.5, null, true, x], b: {c: .inf}}", "t");
  const nlohmann::json json = to_json(node);
  EXPECT_EQ(json.dump(), R"({"a":[1,2.5,null,true,"x"],"b":{"c":null}})");
  const Node back = node_from_json(json, "db");
  EXPECT_EQ(back.at("a").items()[4].as_string(), "x");
  EXPECT_EQ(back.at("a").items()[4].where(), "db");
  EXPECT_EQ(back.at("b").at("c").path(), "b.c");
  EXPECT_EQ(node_from_json(nlohmann::json(18446744073709551615ULL)).type(), Node::Type::kDouble);
}

TEST(NodeTest, KeepsTheOrderOfKeysAndComparesWithoutIt) {
  const Node node = parse_json(R"({"z": 1, "a": 2})", "t");
  EXPECT_EQ(node.entries()[0].key(), "z");
  EXPECT_TRUE(node.same_value(parse_json(R"({"a": 2, "z": 1})", "u")));
  EXPECT_FALSE(node.same_value(parse_json(R"({"a": 2, "z": 1.0})", "u")));
  EXPECT_FALSE(node.same_value(parse_json(R"({"a": 2})", "u")));
}

TEST(NodeTest, AKeyWithDotsStaysOneKey) {
  const Node node = parse_json(R"({"h.0.attn": {"rank": 1}})", "t");
  EXPECT_EQ(node.entries()[0].key(), "h.0.attn");
  EXPECT_NE(node.find("h.0.attn"), nullptr);
}

TEST(DocumentTest, ChoosesTheFormatByNameOrFirstCharacter) {
  EXPECT_TRUE(parse_document("{a: 1}", "x.yaml").is_map());
  EXPECT_THAT(error_of([] { parse_document("{a: 1}", "standard input"); }),
              HasSubstr("not valid JSON"));
  EXPECT_TRUE(parse_document("a: 1", "job").is_map());
  EXPECT_THAT(error_of([] { parse_document("a: 1", "x.json"); }), HasSubstr("not valid JSON"));
}

TEST(DocumentTest, LoadsFilesAndNamesUnreadableOnes) {
  const std::string path = testing::TempDir() + "memfathom_document_test.yml";
  std::ofstream(path) << "a: 1\n";
  EXPECT_EQ(load_document(path).at("a").where(), path + ":1");
  std::remove(path.c_str());
  EXPECT_THAT(error_of([] { load_document("/nonexistent/job.yaml"); }),
              HasSubstr("/nonexistent/job.yaml: cannot be opened"));
  EXPECT_THAT(error_of([] { load_document(testing::TempDir()); }), HasSubstr("cannot be read"));
}

TEST(DocumentTest, TomlHasTheSameTreeAsYaml) {
  const Node toml = parse_document(
      "title = 'x'\n[model]\nflavor = \"8B\"\n[model.sizes]\nheads = 32\nscale = 0.5\nwide = "
      "true\nshape = [1, 2]\n",
      "x.toml");
  EXPECT_TRUE(toml.same_value(parse_yaml(
      "{title: x, model: {flavor: 8B, sizes: {heads: 32, scale: 0.5, wide: true, shape: [1, 2]}}}",
      "x.yaml")));
  EXPECT_EQ(toml.at("model").at("sizes").at("heads").where(), "x.toml:5");
  EXPECT_EQ(toml.at("model").at("sizes").at("heads").path(), "model.sizes.heads");
}

TEST(DocumentTest, BrokenTomlIsRefusedWithItsLine) {
  try {
    parse_document("a = 1\nb = [\n", "x.toml");
    FAIL() << "taken for TOML";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("not valid TOML"), std::string::npos);
  }
}

}  // namespace
}  // namespace memfathom
