// What the program does where the surroundings are not as it would like them: encodings, folders
// instead of files, closed descriptors, missing variables, full disks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <iterator>

#include "api/local_session.h"
#include "core/document.h"
#include "estimator/json/batch_line.h"
#include "tests/cli/profiling_fixture.h"

namespace memfathom {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

const char* const kJob =
    R"({"model": {"preset": "gpt2"}, "training": {"sequence_length": 8}, "target": {"gpu": "t4"}})";

class HostileSurroundingsTest : public ProfilingFixture {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
    return folder_ + "/" + name;
  }
  // Through a shell, for redirections and variables that are to be unset.
  Outcome shell(const std::string& line) const {
    const int status = std::system(("cd " + folder_ +
                                    " && MEMFATHOM_NVML=/nonexistent && "
                                    "export MEMFATHOM_NVML && { " +
                                    line + "; } 2> err > out")
                                       .c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content("out"),
            content("err")};
  }
  std::string content(const std::string& name) const {
    std::ifstream stream(folder_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  Outcome observe(const std::string& text) { return run({"observe", file("runs.csv", text)}); }
};

TEST_F(HostileSurroundingsTest, CsvOfExcelIsRead) {
  file("job.json", kJob);
  const Outcome outcome = observe("\xef\xbb\xbfjob,metric,bytes\r\njob.json,device,3000000000\r\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "1 observations added, 0 already stored\n");
}

TEST_F(HostileSurroundingsTest, CsvThatIsNotUtf8IsBadInput) {
  file("job.json", kJob);
  const Outcome latin = observe("job,metric,bytes,note\njob.json,device,1,caf\xe9\n");
  EXPECT_EQ(latin.exit_code, 2) << latin.err;
  EXPECT_THAT(latin.err, HasSubstr("runs.csv:2: the text is not UTF-8"));
  const std::string wide("\xff\xfej\0o\0b\0\n\0x\0\n\0", 14);
  for (const std::string& text : {wide, wide.substr(2)}) {
    const Outcome utf16 = observe(text);
    EXPECT_EQ(utf16.exit_code, 2) << utf16.err;
    EXPECT_THAT(utf16.err, HasSubstr("runs.csv:1: the text is not UTF-8"));
  }
  EXPECT_EQ(run({"observe", folder_}).exit_code, 2);
}

TEST_F(HostileSurroundingsTest, AbsurdFiguresAreNotStored) {
  for (const auto& [bytes, sentence] :
       std::vector<std::pair<std::string, std::string>>{{"0", "at least 1"},
                                                        {"-1", "at least"},
                                                        {"9223372036854775807", "the memory of t4"},
                                                        {"20000000000", "the memory of t4"}}) {
    const Outcome outcome =
        run({"observe", file("runs.jsonl", R"({"metric": "device", "bytes": )" + bytes +
                                               R"(, "job": )" + kJob + "}\n")});
    EXPECT_EQ(outcome.exit_code, 2) << bytes;
    EXPECT_THAT(outcome.err, HasSubstr(sentence)) << bytes;
  }
  const Outcome unknown =
      run({"observe", "--gpu", "cpu",
           file("runs.jsonl", R"({"metric": "device", "bytes": 9223372036854775807, "gpu": "mine",
                                  "job": {"model": {"preset": "gpt2"}}})")});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(database()));
}

TEST_F(HostileSurroundingsTest, AFolderOrClosedInputAsABatchIsBadInput) {
  const Outcome folder = run({"estimate", "--batch", folder_});
  EXPECT_EQ(folder.exit_code, 2) << folder.err;
  EXPECT_THAT(folder.err, HasSubstr(folder_ + ": cannot be read"));
  const Outcome closed = shell(MEMFATHOM_BINARY " --db x.db estimate --batch - <&-");
  EXPECT_EQ(closed.exit_code, 2) << closed.err;
  EXPECT_THAT(closed.err, HasSubstr("standard input: cannot be read"));
  EXPECT_EQ(shell(MEMFATHOM_BINARY " --db x.db estimate - <&-").exit_code, 2);
  EXPECT_EQ(shell(MEMFATHOM_BINARY " --db x.db gpus >&-").exit_code, 4) << "closed output";
}

TEST_F(HostileSurroundingsTest, EmptyNamesAreNoBugOfOurs) {
  const std::string job = file("job.json", kJob);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"estimate", ""},
                                             {"estimate", "--from", ""},
                                             {"estimate", "--model", ""},
                                             {"estimate", "--batch", ""},
                                             {"estimate", job, "--gpu", ""},
                                             {"estimate", job, "--output", ""},
                                             {"db", "info", "--db", ""},
                                             {"db", "backup", ""},
                                             {"db", "export", ""},
                                             {"db", "import", ""},
                                             {"db", "merge", ""},
                                             {"observe", ""},
                                             {"bench", "compare", "", ""},
                                             {"bench", "baseline", "save", "", ""},
                                             {"calibrations", "show", ""},
                                             {"profile", "--device", "", "--trace", ""},
                                             {"accuracy", ""},
                                             {"", ""}}) {
    const Outcome outcome = run(words);
    EXPECT_NE(outcome.exit_code, 70) << testing::PrintToString(words) << outcome.err;
    EXPECT_LT(outcome.exit_code, 128) << testing::PrintToString(words) << outcome.err;
  }
}

TEST_F(HostileSurroundingsTest, ImportOfDeeplyNestedJsonIsBadInput) {
  const std::string deep = std::string(60'000, '[') + std::string(60'000, ']');
  for (const std::string& text :
       {deep, R"({"schema": "memfathom.calibration/1", "name": )" + deep + "}"}) {
    const Outcome outcome = run({"db", "import", file("deep.json", text)});
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("levels deep"));
  }
}

TEST_F(HostileSurroundingsTest, CheckRunsItsCommandWithoutATemporaryFolder) {
  const Outcome outcome = run({"check", "--model", "gpt2", "--sequence-length", "8", "--gpu",
                               "h100-80gb", "--", "sh", "-c", "echo trained"},
                              {"TMPDIR=/nonexistent"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "trained\n");
}

TEST_F(HostileSurroundingsTest, EstimatingNeedsNoHome) {
  file("job.json", kJob);
  const std::string bare = "env -u HOME -u XDG_DATA_HOME -u MEMFATHOM_DB " MEMFATHOM_BINARY " ";
  for (const char* words : {"estimate job.json", "estimate --batch job.json", "calibrations list",
                            "recommend job.json", "status"}) {
    const Outcome outcome = shell(bare + words);
    EXPECT_THAT(outcome.exit_code, AnyOf(0, 1)) << words << ": " << outcome.err;
    EXPECT_NE(outcome.out, "") << words;
  }
  const Outcome writing = shell(bare + "observe job.json");
  EXPECT_THAT(writing.exit_code, AnyOf(2, 4)) << writing.err;
}

TEST_F(HostileSurroundingsTest, ATraceThatCannotBeWrittenIsAnError) {
  for (const char* place : {"/dev/full", "/proc/trace.jsonl", "/nonexistent/trace.jsonl"}) {
    const Outcome outcome = run({"profile", "--device", "virtual:plain", "--filter",
                                 "mlp/w256-d8/fp32/256MiB", "--trace", place});
    EXPECT_EQ(outcome.exit_code, 4) << place << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(place));
  }
}

TEST_F(HostileSurroundingsTest, ControlsAndMarksOfDirectionAreShownEscaped) {
  const Outcome outcome = run({"estimate", "no\x1b]0;x\x07\u202efile.yaml"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("no\\u001b]0;x\\u0007\\u202efile.yaml"));
  const std::string job = file("job.json",
                               R"({"id": "\u001b[2J\u009b\u202e", "model": {"preset": "gpt2"},
                                   "training": {"sequence_length": 8}})");
  for (const char* format : {"table", "json", "csv", "markdown"}) {
    const Outcome shown = run({"estimate", job, "--format", format});
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    for (const char* raw : {"\x1b", "\u009b", "\u202e"})
      EXPECT_THAT(shown.out + shown.err, Not(HasSubstr(raw))) << format;
  }
}

TEST_F(HostileSurroundingsTest, ErrorsQuoteNothingOfFilesThatWereNotMeantAsInput) {
  const std::vector<std::string> files{
      file("shadow", "root:$6$SECRET:19000:0\nalice:$6$SECRET:1\n"),
      file("key", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaSECRET==\n-----END\n"),
      file("credentials", "[default]\naws_secret_access_key = SECRET\n"), file("token", "\"SECRET"),
      file("word", "SECRET")};
  for (const std::string& secret : files) {
    const std::string config = file("job.json", R"({"model": {"config": ")" + secret + R"("}})");
    const std::string trace = file("trace.json", R"({"model": {"trace": ")" + secret + R"("}})");
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"estimate", secret},
                                               {"estimate", "--from", secret},
                                               {"estimate", "--batch", secret},
                                               {"estimate", config},
                                               {"estimate", trace},
                                               {"observe", secret},
                                               {"accuracy", "--data", secret},
                                               {"fit", "--contexts", secret},
                                               {"db", "import", secret},
                                               {"db", "merge", secret},
                                               {"oom", secret},
                                               {"explain", secret},
                                               {"compare", secret},
                                               {"bench", "compare", secret, secret},
                                               {"report", "bench", secret, secret}}) {
      const Outcome outcome = run(words);
      EXPECT_EQ(outcome.exit_code, 2) << words[0] << ' ' << words[1] << ' ' << secret;
      EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("SECRET")))
          << words[0] << ' ' << words[1] << ' ' << secret;
    }
  }
}

TEST_F(HostileSurroundingsTest, MemoryThatOneLineOfABatchLacksIsItsOwnError) {
  const LocalSession session(std::optional<std::filesystem::path>{});
  const auto answer = [&](const auto& failure) {
    return answer_line(R"({"id": "seven", "job": {}})", "jobs", 7,
                       [&](const Node&) -> JobInput { throw failure; }, false, session.estimator());
  };
  for (const BatchAnswer& line :
       {answer(std::bad_alloc()), answer(std::length_error("vector::reserve"))}) {
    EXPECT_TRUE(line.failed);
    EXPECT_THAT(line.text, HasSubstr("seven"));
    EXPECT_THAT(line.text, HasSubstr("ask for less"));
  }
}

TEST_F(HostileSurroundingsTest, ALineOfABatchIsAnsweredBeforeTheNextOneComes) {
  // The second line is sent when the first one is answered.
  const Outcome outcome =
      shell("mkfifo jobs answers; " MEMFATHOM_BINARY
            " --db x.db estimate --batch - < jobs > answers & exec 5> jobs 6< answers; "
            "echo '" +
            std::string(kJob) +
            "' >&5; read -r first <&6; echo '{' >&5; exec 5>&-; "
            "read -r second <&6; echo \"$first\"; echo \"$second\"; wait");
  EXPECT_THAT(outcome.out, HasSubstr("device_peak_bytes"));
  EXPECT_THAT(outcome.out, HasSubstr("error"));
}

}  // namespace
}  // namespace memfathom
