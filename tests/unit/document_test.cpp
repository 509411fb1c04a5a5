#include "config/document.hpp"

#include <sys/stat.h>

#include "config_fixture.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

using Integers = std::vector<std::int64_t>;
using Kind = DocumentNode::Kind;

std::vector<Setting> settings() {
  return {
      {.name = "steps", .default_value = Integer{10}, .help = "steps", .min = 1},
      {.name = "rate",
       .default_value = 0.5,
       .help = "rate",
       .min = 0,
       .max = 1,
       .max_exclusive = true},
      {.name = "flag", .default_value = false, .help = "flag"},
      {.name = "word", .default_value = std::string("w"), .help = "word"},
      {.name = "at", .default_value = Integers{1}, .help = "steps"},
      {.name = "tags", .default_value = Texts{}, .help = "tags"},
  };
}

PluginSections plugin_sections() {
  return {{"data", {.key = "corpus", .plugin = "wiki", .shared = {"seed"}}}};
}

class DocumentTest : public ConfigTest {
 protected:
  DocumentNode load(const std::string& name, const Texts& overrides = {}) const {
    return load_document(path(name), overrides, plugin_sections());
  }

  /// Writes a.yaml and reads its section s. @return the mistakes.
  std::string mistakes(const std::string& text, const std::vector<Setting>& declared = settings(),
                       const Texts& overrides = {}) const {
    write("a.yaml", text);
    return error_of([&] {
      Diagnostics diagnostics;
      const auto document = load("a.yaml", overrides);
      (void)read_section("s", document.find("s"), declared, diagnostics);
      diagnostics.throw_if_any();
    });
  }

  /// Writes a.yaml and reads its section s, which must be right.
  Parameters parameters(const std::string& text, const Texts& overrides = {}) const {
    write("a.yaml", text);
    Diagnostics diagnostics;
    const auto document = load("a.yaml", overrides);
    auto parameters = read_section("s", document.find("s"), settings(), diagnostics);
    diagnostics.throw_if_any();
    return parameters;
  }
};

// Values.

TEST_F(DocumentTest, EveryTypeIsRead) {
  const auto given = parameters(
      "s:\n  steps: 7\n  rate: 0.25\n  flag: true\n  word: a b\n  at: [2, 3]\n  tags: [x, 'y']\n");
  EXPECT_EQ(given.get<Integer>("steps"), 7);
  EXPECT_EQ(given.get<double>("rate"), 0.25);
  EXPECT_TRUE(given.get<bool>("flag"));
  EXPECT_EQ(given.get<std::string>("word"), "a b");
  EXPECT_EQ(given.get<Integers>("at"), (Integers{2, 3}));
  EXPECT_EQ(given.get<Texts>("tags"), (Texts{"x", "y"}));
}

TEST_F(DocumentTest, WhatIsAbsentIsAtItsDefault) {
  for (const std::string text : {"", "# nothing\n", "s:\n", "s: {}\n", "s: ~\n"}) {
    const auto given = parameters(text);
    EXPECT_EQ(given.get<Integer>("steps"), 10) << text;
    EXPECT_EQ(given.get<Integers>("at"), Integers{1}) << text;
  }
}

TEST_F(DocumentTest, IntegersMayBeWrittenAsIntegralNumbers) {
  EXPECT_EQ(parameters("s: {steps: 5e3}").get<Integer>("steps"), 5000);
  EXPECT_EQ(parameters("s: {steps: 5000.0}").get<Integer>("steps"), 5000);
  EXPECT_EQ(parameters("s: {steps: 9223372036854775807}").get<Integer>("steps"),
            9223372036854775807);
  EXPECT_EQ(mistakes("s: {steps: 2.5}"),
            "a.yaml:1:12: s.steps = 2.5, must be an integer, got a number");
  EXPECT_EQ(mistakes("s: {steps: 1e300}"),
            "a.yaml:1:12: s.steps = 1e300, must be an integer, got a number");
}

TEST_F(DocumentTest, ValuesAreThoseOfTheCoreSchemaOfYaml12) {
  for (const std::string text : {"true", "True", "TRUE"}) {
    EXPECT_TRUE(parameters("s: {flag: " + text + "}").get<bool>("flag")) << text;
  }
  for (const std::string text : {"false", "False", "FALSE"}) {
    EXPECT_FALSE(parameters("s: {flag: " + text + "}").get<bool>("flag")) << text;
  }
  const std::pair<const char*, Integer> integers[] = {{"+16", 16},    {"0x10", 16}, {"0xFf", 255},
                                                      {"0o20", 16},   {"016", 16},  {"+16.0", 16},
                                                      {"+1.6e1", 16}, {"16.", 16}};
  for (const auto& [text, value] : integers) {
    EXPECT_EQ(parameters("s: {steps: " + std::string(text) + "}").get<Integer>("steps"), value)
        << text;
    const std::vector<Setting> real{{.name = "r", .default_value = 0.0, .help = "real"}};
    EXPECT_EQ(mistakes("s: {r: " + std::string(text) + "}", real), "") << text;
  }
  EXPECT_EQ(parameters("s: {rate: +.5}").get<double>("rate"), 0.5);
  EXPECT_EQ(parameters("s: {at: [+2, 0x3]}").get<Integers>("at"), (Integers{2, 3}));
  EXPECT_EQ(parameters("s: {word: True, tags: [0x10, +1]}").get<Texts>("tags"),
            (Texts{"0x10", "+1"}));
  const std::vector<Setting> any{{.name = "n", .default_value = Integer{0}, .help = "any"}};
  EXPECT_EQ(mistakes("s: {n: -9223372036854775808}", any), "");
  for (const std::string text : {"tRUE", "yes", "on", "++1", "+-1", "-+1", "0x", "0x-1", "+0x1",
                                 "-0x1", "0o8", "0X1", "0b1", "1_000", "+", "'+1'"}) {
    EXPECT_NE(mistakes("s: {flag: " + text + "}"), "") << text;
    EXPECT_NE(mistakes("s: {n: " + text + "}", any), "") << text;
  }
}

TEST_F(DocumentTest, MergeKeysAreRefusedByName) {
  const auto refusal = [this](const std::string& text) {
    write("a.yaml", text);
    return error_of([&] { (void)load("a.yaml"); });
  };
  EXPECT_EQ(
      refusal("base: &b {x: 1}\ns:\n  <<: *b\n"),
      "a.yaml:3:3: the key <<, which merges maps in YAML 1.1, must be left out: extends takes "
      "over what another file says");
  EXPECT_NE(refusal("base: &b {x: 1}\ns: {<<: [*b, *b], y: 2}\n"), "");
  EXPECT_EQ(refusal("s: {'<<': 1}\n"), "") << "a word as any other";
}

TEST_F(DocumentTest, WhatIsNotFiniteIsNoNumber) {
  for (const std::string value : {".inf", "inf", ".nan", "nan", "1e999"}) {
    EXPECT_EQ(mistakes("s: {rate: " + value + "}"),
              "a.yaml:1:11: s.rate = " + value + ", must be a number, got text");
  }
}

TEST_F(DocumentTest, WhatIsQuotedIsText) {
  EXPECT_EQ(parameters("s: {word: '0.1'}").get<std::string>("word"), "0.1");
  EXPECT_EQ(parameters("s: {word: 0.1}").get<std::string>("word"), "0.1");
  EXPECT_EQ(parameters("s: {word: true}").get<std::string>("word"), "true");
  EXPECT_EQ(mistakes("s: {rate: '0.1'}"),
            "a.yaml:1:11: s.rate = '0.1', must be a number, got text");
  EXPECT_EQ(mistakes("s: {flag: \"true\"}"),
            "a.yaml:1:11: s.flag = 'true', must be true or false, got text");
}

TEST_F(DocumentTest, ASingleValueIsAListOfOne) {
  EXPECT_EQ(parameters("s: {at: 5}").get<Integers>("at"), Integers{5});
  EXPECT_EQ(parameters("s: {tags: x}").get<Texts>("tags"), Texts{"x"});
  EXPECT_EQ(parameters("s: {at: []}").get<Integers>("at"), Integers{});
}

// Mistakes.

TEST_F(DocumentTest, WrongTypesSayWhatIsWantedAndGiven) {
  EXPECT_EQ(mistakes("s:\n  steps: abc\n"),
            "a.yaml:2:10: s.steps = abc, must be an integer, got text");
  EXPECT_EQ(mistakes("s:\n  steps: [1, 2]\n"),
            "a.yaml:2:10: s.steps = [1, 2], must be an integer, got a list");
  EXPECT_EQ(mistakes("s:\n  steps:\n  rate: {a: 1}\n"),
            "a.yaml:2:3: s.steps = (empty), must be an integer, got nothing\n"
            "a.yaml:3:9: s.rate = {a: 1}, must be a number, got a map");
  EXPECT_EQ(mistakes("s:\n  flag: yes\n  word: [a]\n"),
            "a.yaml:2:9: s.flag = yes, must be true or false, got text\n"
            "a.yaml:3:9: s.word = [a], must be text, got a list");
  EXPECT_EQ(mistakes("s:\n  at: [1, x]\n  tags: [[a]]\n"),
            "a.yaml:2:7: s.at = [1, x], must be a list of integers, got a list\n"
            "a.yaml:3:9: s.tags = [[a]], must be a list of texts, got a list");
  EXPECT_EQ(mistakes("s: 5\n"), "a.yaml:1:4: s = 5, must be a map of settings");
}

TEST_F(DocumentTest, UnknownKeysNameTheNearest) {
  EXPECT_EQ(mistakes("s:\n  stepps: 5\n"),
            "a.yaml:2:3: s.stepps: unknown key; did you mean steps? Known: steps, rate, flag, "
            "word, at, tags");
  EXPECT_EQ(mistakes("s:\n  temperature: 5\n"),
            "a.yaml:2:3: s.temperature: unknown key, known: steps, rate, flag, word, at, tags");
}

TEST_F(DocumentTest, RepeatedKeysAreMistakes) {
  EXPECT_EQ(mistakes("s:\n  steps: 5\n  rate: 0\n  steps: 6\n"),
            "a.yaml:4:3: s.steps: given twice");
}

// Files.

TEST_F(DocumentTest, YamlSyntaxErrorsHaveAPosition) {
  EXPECT_EQ(mistakes("s: 1\nt: [1, 2\n"),
            "a.yaml:3:1: not valid YAML: end of sequence flow not found");
  EXPECT_EQ(mistakes("s:\n\tsteps: 1\n"),
            "a.yaml:2:7: not valid YAML: illegal map value: a tab at the beginning of the line, "
            "must be blanks");
  EXPECT_EQ(mistakes("s: *nowhere\n"),
            "a.yaml:1:4: not valid YAML: the referenced anchor is not defined");
}

TEST_F(DocumentTest, ARecordOrATableIsNoConfiguration) {
  using namespace std::string_literals;
  EXPECT_EQ(mistakes("SQLite format 3\0\x10"s),
            "a.yaml: is a table or the record of a run, must be a YAML file");
}

TEST_F(DocumentTest, AByteOrderMarkIsNoPartOfTheText) {
  EXPECT_EQ(parameters("\xef\xbb\xbfs: {steps: 3}\n").get<Integer>("steps"), 3);
  EXPECT_EQ(mistakes("\xef\xbb\xbfs: {steps: 0}\n"), "a.yaml:1:12: s.steps = 0, must be >= 1");
}

TEST_F(DocumentTest, NulIsRefusedWithItsPlace) {
  using namespace std::string_literals;
  EXPECT_EQ(mistakes("s:\n  word: a\0b\n"s), "a.yaml:2:10: a NUL byte, must be text in UTF-8");
  EXPECT_EQ(mistakes("\0"s), "a.yaml:1:1: a NUL byte, must be text in UTF-8");
  EXPECT_EQ(mistakes("s:\n  word: \"a\\0b\"\n"),
            "a.yaml:2:9: 'a' goes on with the character NUL (\\0), which no text may hold");
  EXPECT_EQ(mistakes("s:\n  \"a\\x00b\": 1\n"),
            "a.yaml:2:3: 'a' goes on with the character NUL (\\0), which no text may hold");
  EXPECT_EQ(mistakes("s: {}\n", settings(), {"s.word=\"a\\0b\""}),
            "command line: 'a' goes on with the character NUL (\\0), which no text may hold in "
            "'s.word=\"a\\0b\"'");
}

TEST_F(DocumentTest, AConfigurationIsOneMap) {
  EXPECT_EQ(mistakes("- 1\n"), "a.yaml:1:1: a configuration must be a map of keys and values");
  EXPECT_EQ(mistakes("s: {}\n---\nt: {}\n"),
            "a.yaml:3:1: a second document ('---') begins, must be one");
  EXPECT_EQ(mistakes(", a"), "a.yaml:1:1: not valid YAML: nothing may begin so");
  EXPECT_EQ(mistakes("? [1, 2]\n: 3\n"), "a.yaml:1:3: a key must be a word");
}

TEST_F(DocumentTest, MissingFilesAreNamed) {
  EXPECT_EQ(error_of([&] { (void)load("no.yaml"); }),
            "no.yaml: there is no such file, or it cannot be read");
  write("folder/a.yaml", "");
  EXPECT_EQ(error_of([&] { (void)load("folder"); }), "folder: is a folder, must be a YAML file");
}

TEST_F(DocumentTest, AnAnchorWithinItselfIsRefused) {
  EXPECT_EQ(mistakes("s: &s [1, *s]\n"),
            "a.yaml:1:8: nested too deeply, or an anchor within itself");
}

// Layers.

TEST_F(DocumentTest, ExtendsMergesMapsAndReplacesLists) {
  write("base/base.yaml", "s:\n  steps: 3\n  rate: 0.25\n  at: [1, 2, 3]\n");
  const auto given = parameters("extends: base/base.yaml\ns:\n  steps: 4\n  at: [9]\n");
  EXPECT_EQ(given.get<Integer>("steps"), 4);
  EXPECT_EQ(given.get<double>("rate"), 0.25);
  EXPECT_EQ(given.get<Integers>("at"), Integers{9});
}

TEST_F(DocumentTest, OfSeveralExtendedFilesTheLaterGoFirst) {
  write("common.yaml", "s: {steps: 1, rate: 0.5}\n");
  write("one.yaml", "extends: common.yaml\ns: {steps: 2}\n");
  write("two.yaml", "extends: common.yaml\ns: {steps: 3}\n");
  EXPECT_EQ(parameters("extends: [one.yaml, two.yaml]\n").get<Integer>("steps"), 3);
  EXPECT_EQ(parameters("extends: [two.yaml, one.yaml]\n").get<Integer>("steps"), 2);
  EXPECT_EQ(parameters("extends: [two.yaml, one.yaml]\ns: {steps: 4}\n").get<Integer>("steps"), 4);
}

TEST_F(DocumentTest, ExtendsIsRelativeToTheFileThatSaysIt) {
  write("base/first.yaml", "s: {steps: 3}\n");
  write("base/second.yaml", "extends: first.yaml\ns: {rate: 0.25}\n");
  const auto given = parameters("extends: base/second.yaml\n");
  EXPECT_EQ(given.get<Integer>("steps"), 3);
  EXPECT_EQ(given.get<double>("rate"), 0.25);
}

TEST_F(DocumentTest, AnEmptySectionChangesNothing) {
  write("base.yaml", "s: {steps: 3}\n");
  EXPECT_EQ(parameters("extends: base.yaml\ns:\n").get<Integer>("steps"), 3);
}

TEST_F(DocumentTest, MistakesAreReportedWhereTheyWereWritten) {
  write("base.yaml", "s:\n  steps: 0\n  rate: 0.25\n");
  EXPECT_EQ(mistakes("extends: base.yaml\ns:\n  rate: 2\n"),
            "a.yaml:3:9: s.rate = 2, must be in [0, 1)\n"
            "base.yaml:2:10: s.steps = 0, must be >= 1");
}

TEST_F(DocumentTest, AMapOfSeveralFilesIsWhereTheLastOneHasIt) {
  write("base.yaml", "s: {steps: 3, inner: {low: 1}}\n");
  write("a.yaml", "extends: base.yaml\ns:\n  inner: {high: 2}\n");
  const auto place = [this](const DocumentNode& node) {
    const auto text = node.origin.text();
    return text.starts_with(path("")) ? text.substr(path("").size()) : text;
  };
  const auto document = load("a.yaml", {"s.inner.low=3"});
  EXPECT_EQ(place(document), "a.yaml:1:1");
  EXPECT_EQ(place(*document.find("s")), "a.yaml:3:3");
  EXPECT_EQ(place(*document.find("s")->find("inner")), "a.yaml:3:10");
  EXPECT_EQ(place(*document.find("s")->find("steps")), "base.yaml:1:12");
  EXPECT_EQ(place(*document.find("s")->find("inner")->find("low")), "command line");
}

TEST_F(DocumentTest, ExtendsMustNameAFile) {
  EXPECT_THAT(mistakes("s: {}\nextends: no.yaml\n"),
              StartsWith("a.yaml:2:10: extends = no.yaml, there is no file no.yaml in "));
  EXPECT_THAT(mistakes("extends: [b.yaml]\n"),
              StartsWith("a.yaml:1:11: extends = [b.yaml], there is no file b.yaml in "));
  EXPECT_EQ(
      mistakes("extends: [[b.yaml]]\n"),
      "a.yaml:1:11: extends = [[b.yaml]], must be the name of a file, or a list of such names");
  EXPECT_EQ(mistakes("extends: []\n"), "a.yaml:1:10: extends = [], must name at least one file");
  EXPECT_EQ(mistakes("extends:\n"),
            "a.yaml:1:1: extends = (empty), must be the name of a file, or a list of such names");
  write("b.yaml", "");
  EXPECT_EQ(mistakes("extends: b.yaml\nextends: b.yaml\n"),
            "a.yaml:2:10: extends = b.yaml, is given twice");
}

TEST_F(DocumentTest, WhatGrowsWithoutBoundIsRefused) {
  std::string aliases = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const auto before = "*a" + std::to_string(i - 1);
    aliases += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 1; j < 10; ++j) aliases += ", " + before;
    aliases += "]\n";
  }
  EXPECT_THAT(mistakes(aliases),
              EndsWith("more than 100000 values, aliases counted where they stand"));
  for (int i = 0; i < 24; ++i) {
    const auto next = std::to_string(i + 1) + ".yaml";
    write(std::to_string(i) + ".yaml", "extends: [" + next + ", " + next + "]\n");
  }
  write("24.yaml", "s: {steps: 1}\n");
  EXPECT_THAT(error_of([&] { (void)load("0.yaml"); }),
              EndsWith("more than 1000 files are extended, each counted as often as it is"));
}

TEST_F(DocumentTest, OnlyRegularFilesAreExtended) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(mistakes("extends: pipe\n"),
            "a.yaml:1:10: extends = pipe, must be the name of a regular file");
}

TEST_F(DocumentTest, OnlyRegularFilesAreRead) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { (void)load("pipe"); }), "pipe: is a pipe, must be a YAML file");
  EXPECT_EQ(error_of([&] { (void)load_document("/dev/zero", {}, {}); }),
            "/dev/zero: is a device, must be a YAML file");
  write("b.yaml", "s: {steps: 3}\n");
  fs::create_symlink(path("b.yaml"), path("link.yaml"));
  EXPECT_NE(load("link.yaml").find("s"), nullptr);
}

TEST_F(DocumentTest, FilesHaveALargestSize) {
  constexpr std::size_t kMost = std::size_t{4} << 20U;
  std::string text = "s: {steps: 3}\n";
  text.resize(kMost, '#');
  EXPECT_EQ(parameters(text).get<Integer>("steps"), 3);
  EXPECT_EQ(mistakes(text + "#"),
            "a.yaml: is larger than 4 MiB, the most that a configuration may have");
  write("b.yaml", text + "#");
  EXPECT_EQ(mistakes("extends: b.yaml\n"),
            "b.yaml: is larger than 4 MiB, the most that a configuration may have");
}

TEST_F(DocumentTest, TextsAreUtf8) {
  EXPECT_EQ(mistakes("s: {word: caf\xe9}\n"), "a.yaml:1:11: must be text in UTF-8, is not");
  EXPECT_EQ(parameters("s: {word: caf\u00e9}\n").get<std::string>("word"), "caf\u00e9");
}

TEST_F(DocumentTest, CyclesAreRefused) {
  EXPECT_EQ(mistakes("extends: a.yaml\n"),
            "a.yaml:1:10: extends = a.yaml, which extends this file in turn");
  write("b.yaml", "extends: ./c.yaml\n");
  write("c.yaml", "extends: a.yaml\n");
  EXPECT_EQ(mistakes("extends: b.yaml\n"),
            "c.yaml:1:10: extends = a.yaml, which extends this file in turn");
}

TEST_F(DocumentTest, OverridesComeLastAndInOrder) {
  const auto given = parameters("s: {steps: 3, at: [1]}\n",
                                {"s.steps=4", "s.at=[5, 6]", "s.word=x=y", "s.steps=5"});
  EXPECT_EQ(given.get<Integer>("steps"), 5);
  EXPECT_EQ(given.get<Integers>("at"), (Integers{5, 6}));
  EXPECT_EQ(given.get<std::string>("word"), "x=y");
}

TEST_F(DocumentTest, OverridesMakeSections) {
  EXPECT_EQ(parameters("", {"s.steps=4"}).get<Integer>("steps"), 4);
  EXPECT_EQ(parameters("", {"s={steps: 4}"}).get<Integer>("steps"), 4);
}

TEST_F(DocumentTest, MistakesOfOverrides) {
  EXPECT_EQ(mistakes("s:\n  rate: 5\n", settings(), {"s.steps=0"}),
            "a.yaml:2:9: s.rate = 5, must be in [0, 1)\n"
            "command line: s.steps = 0, must be >= 1");
  EXPECT_EQ(mistakes("", settings(), {"s.stepps=3"}),
            "command line: s.stepps: unknown key; did you mean steps? Known: steps, rate, flag, "
            "word, at, tags");
  EXPECT_EQ(mistakes("", settings(), {"s={steps: {a: 1}}"}),
            "command line: s.steps = {a: 1}, must be an integer, got a map");
  EXPECT_EQ(mistakes("", settings(), {"s.steps="}),
            "command line: s.steps = (empty), must be an integer, got nothing");
}

TEST_F(DocumentTest, OverridesHaveAForm) {
  for (const std::string text : {"s.steps", "=3", ".s=3", "s.=3", "s..steps=3", ""}) {
    EXPECT_EQ(mistakes("", settings(), {text}),
              "command line: '" + text + "', must be key.path=value");
  }
  EXPECT_EQ(mistakes("", settings(), {"s.at=[1"}),
            "command line: not valid YAML: end of sequence flow not found in 's.at=[1'");
}

// Plug-in sections.

class PluginSectionTest : public DocumentTest {
 protected:
  /// The section data of a file that extends one with corpus brown.
  std::string data(const std::string& extending, const Texts& overrides = {}) const {
    write("base.yaml", "data: {corpus: brown, vocabulary: 2000, seed: 7}\n");
    write("a.yaml", "extends: base.yaml\n" + extending);
    return load("a.yaml", overrides).find("data")->summary();
  }
};

TEST_F(PluginSectionTest, TheSamePlugInInherits) {
  EXPECT_EQ(data("data: {corpus: brown, layout: x}"),
            "{corpus: brown, vocabulary: 2000, seed: 7, layout: x}");
  EXPECT_EQ(data("data: {vocabulary: 50}"), "{corpus: brown, vocabulary: 50, seed: 7}");
}

TEST_F(PluginSectionTest, AnotherPlugInInheritsWhatIsShared) {
  EXPECT_EQ(data("data: {corpus: mqar, pairs: 2}"), "{seed: 7, corpus: mqar, pairs: 2}");
  EXPECT_EQ(data("", {"data.corpus=mqar"}), "{seed: 7, corpus: mqar}");
}

TEST_F(PluginSectionTest, ATextNamesThePlugIn) {
  EXPECT_EQ(data("data: mqar"), "{seed: 7, corpus: mqar}");
  EXPECT_EQ(data("data: brown"), "{corpus: brown, vocabulary: 2000, seed: 7}");
  EXPECT_EQ(data("", {"data=mqar"}), "{seed: 7, corpus: mqar}");
}

TEST_F(PluginSectionTest, ThePlugInThatIsNotNamedIsTheDefault) {
  write("base.yaml", "data: {vocabulary: 2000}\n");
  write("a.yaml", "extends: base.yaml\ndata: wiki\n");
  EXPECT_EQ(load("a.yaml").find("data")->summary(), "{vocabulary: 2000, corpus: wiki}");
  EXPECT_EQ(load("a.yaml", {"data.corpus=brown"}).find("data")->summary(), "{corpus: brown}");
}

TEST_F(PluginSectionTest, OverridesAreForThePlugInThatIsChosenInTheEnd) {
  EXPECT_EQ(data("", {"data.pairs=1", "data.corpus=mqar"}), "{seed: 7, pairs: 1, corpus: mqar}");
  EXPECT_EQ(data("", {"data.pairs=1", "data.corpus=mqar", "data.pairs=2"}),
            "{seed: 7, pairs: 2, corpus: mqar}");
  EXPECT_EQ(data("", {"data={corpus: wiki, layout: x}", "data.corpus=mqar", "data.pairs=2"}),
            "{seed: 7, corpus: mqar, pairs: 2}");
}

}  // namespace
}  // namespace nas
