// Shared libraries of plug-ins, as they are loaded. What one registers stays, so each case says what it needs.

#include "core/plugin.hpp"

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/temporary_folder.hpp"
#include "core/version.hpp"
#include "data/corpus.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/shorthand.hpp"
#include "prelude.hpp"
#include "unit/paper_components.hpp"

namespace nas::testing {
namespace {

const fs::path kFolder = NAS_PLUGINS;

PluginFile load(const fs::path& file) { return load_plugin(file, PluginSource::configuration); }

std::string mistake(const fs::path& file) {
  return message_of<InputError>([&] { (void)load(file); });
}

TEST(Plugin, RegistersWhatItsFileHolds) {
  const auto file = kFolder / "plugged.so";
  const auto loaded = load(file);
  EXPECT_EQ(loaded.file, file.string());
  EXPECT_EQ(loaded.sha256, sha256_file(file));
  EXPECT_THAT(loaded.registers, ElementsAre("corpus plugged"));
  EXPECT_EQ(corpora().at("plugged").description.summary, "plugged");
}

TEST(Plugin, TheSameBytesAreLoadedOnce) {
  const TemporaryFolder folder;
  (void)load(kFolder / "plugged.so");
  fs::copy_file(kFolder / "plugged.so", folder.path() / "copy.so");
  EXPECT_EQ(load(folder.path() / "copy.so").file, (kFolder / "plugged.so").string());
  EXPECT_THAT(loaded_plugins(), SizeIs(1));
}

TEST(Plugin, TheCommandLineStandsForAConfigurationsFileOfOneName) {
  const TemporaryFolder folder;
  const auto given = load_plugin(kFolder / "plugged.so", PluginSource::command_line);
  EXPECT_EQ(given.source, PluginSource::command_line);
  EXPECT_EQ(load(folder.path() / "plugged.so").file, given.file) << "though there is none";
  EXPECT_THAT(mistake(folder.path() / "other.so"), HasSubstr("there is no such file"));
  EXPECT_THAT(loaded_plugins(), SizeIs(1));
}

TEST(Plugin, ATakenKeyIsRefusedNamingTheFirst) {
  (void)load(kFolder / "plugged.so");
  const auto file = kFolder / "plugged_again.so";
  const auto text = file.string() + ": corpus plugged is registered already, by counting.cpp";
  EXPECT_EQ(mistake(file), text);
  EXPECT_EQ(mistake(file), text) << "it stays refused";
  EXPECT_EQ(corpora().at("plugged").description.summary, "plugged");
  EXPECT_THAT(loaded_plugins(), SizeIs(1));
}

TEST(Plugin, WhatIsNoPluginIsRefused) {
  const TemporaryFolder folder;
  EXPECT_EQ(mistake(folder.path() / "no.so"),
            (folder.path() / "no.so").string() + ": there is no such file, or it cannot be read");
  EXPECT_THAT(mistake(folder.path()), HasSubstr("there is no such file"));
  fs::copy_file(kFolder / "plugged.so", folder.path() / "caf\xe9.so");
  EXPECT_THAT(mistake(folder.path() / "caf\xe9.so"),
              HasSubstr("caf\xe9.so: must have a path in UTF-8"));
  EXPECT_THAT(mistake(kFolder / "unstamped.so"),
              HasSubstr("unstamped.so: is no plug-in of attnas, must be built by "
                        "attnas_add_plugin()"));
  EXPECT_THAT(mistake(kFolder / "empty.so"), HasSubstr("empty.so: registers nothing"));
  const auto text = folder.write(
      "text.so", std::string("attnas plug-in for ") + kVersion + " (" + kRevision + ")");
  EXPECT_THAT(mistake(text), HasSubstr("text.so: cannot be loaded: "));
}

TEST(Plugin, AnotherBuildOfAttnasIsRefusedUnloaded) {
  const TemporaryFolder folder;
  auto bytes = read_bytes(kFolder / "plugged_again.so");
  const auto place = bytes.find(kVersion, bytes.find("attnas plug-in for "));
  ASSERT_NE(place, std::string::npos);
  bytes[place] = '9';
  const auto other = '9' + std::string(kVersion).substr(1);
  EXPECT_THAT(
      mistake(folder.write("old.so", bytes)),
      AllOf(HasSubstr("old.so: was built for attnas " + other + " ("),
            HasSubstr("), this is " + std::string(kVersion) + " ("), HasSubstr("build it again")));
}

TEST(Plugin, ShorthandNamesTheOptionThatAFileRegisters) {
  const Architecture frame{};
  const auto meant = [&](const std::string& text) {
    return to_string(canonical(named_model(text, frame)));
  };
  EXPECT_THAT(message_of<InputError>([&] { (void)meant("normalizing.so"); }),
              HasSubstr("'normalizing.so' is not loaded, must be among `plugins`"));
  (void)load(kFolder / "normalizing.so");
  EXPECT_EQ(meant("normalizing.so"), "dot|plugged_norm|none|fixed|bias|0.1");
  EXPECT_EQ(meant((kFolder / "normalizing.so").string() + "+no_bias"),
            "dot|plugged_norm|none|fixed|no_bias|0.1");
  (void)load(kFolder / "plugged.so");
  EXPECT_THAT(message_of<InputError>([&] { (void)meant("plugged.so"); }),
              HasSubstr("must register one option of a gene, registers corpus plugged"));
}

TEST(Plugin, MixersAndOptionsHaveSizesOfTheirOwn) {
  (void)load(kFolder / "sized.so");
  const Architecture frame{};
  const auto name = [&](const std::string& text) {
    return to_string(canonical(parse_model(text, frame)));
  };
  const auto refusal = [&](const std::string& text) {
    return message_of<InputError>([&] { (void)name(text); });
  };
  EXPECT_EQ(name("2*sized{taps=3}"), "2*sized{taps=3}");
  EXPECT_EQ(name("2*sized{taps=4}"), "2*sized");
  EXPECT_THAT(refusal("2*sized{taps=9}"), HasSubstr("taps = 9, must be an integer in [2, 8]"));
  EXPECT_THAT(refusal("2*sized{tap=3}"), HasSubstr("did you mean taps?"));
  EXPECT_THAT(refusal("2*attn{taps=3}"), HasSubstr("unknown gene of mixer attn 'taps'"));
  EXPECT_EQ(name("2*attn{pattern=sized_option,sized_step=3}"),
            "2*attn{pattern=sized_option,sized_step=3}");
  EXPECT_EQ(name("2*attn{pattern=strided,sized_step=3}"), "2*attn{pattern=strided}");
  EXPECT_THAT(refusal("2*recurrent{sized_step=3}"), HasSubstr("unknown gene of mixer recurrent"));
}

TEST(Plugin, GenesThatNothingDeclaresAndSizesThatNothingHasAreRefused) {
  (void)load(kFolder / "sized.so");
  const auto said = [](const std::string& name) { return mistake(kFolder / (name + ".so")); };
  EXPECT_THAT(said("misspelt"),
              HasSubstr("mixer misspelt: nothing declares gene 'tabs'; did you mean taps?"));
  EXPECT_THAT(said("voiding"), HasSubstr("pattern voiding_option: nothing declares gene 'colour'"));
  EXPECT_THAT(said("unused"), HasSubstr("size unused_step: no mixer has it"));
  EXPECT_THAT(said("otherwise"), HasSubstr("size taps is declared already, and otherwise"));
  EXPECT_THAT(said("outside"), HasSubstr("size taps: its default is none of its values"));
  EXPECT_THAT(said("misspelt"), HasSubstr("tabs")) << "it stays refused";
}

}  // namespace
}  // namespace nas::testing
