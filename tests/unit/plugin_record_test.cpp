// Plug-ins of a configuration, and what records say of them.

#include "config_fixture.hpp"
#include "core/plugin.hpp"
#include "paper_components.hpp"
#include "prelude.hpp"
#include "stand_in_plugins.hpp"
#include "study/reader/experiment.hpp"
#include "study/session/continuing.hpp"

namespace nas {
namespace {

const std::string kFile = std::string(NAS_PLUGINS) + "/plugged.so";

class PluginRecordTest : public ConfigTest {
 protected:
  Experiment load(const std::string& text, const Texts& overrides = {}) const {
    return load_experiment(write("a.yaml", text), overrides);
  }
  std::string mistakes(const std::string& text) const {
    return error_of([&] { (void)load(text); });
  }
};

TEST_F(PluginRecordTest, AreLoadedBeforeTheRestIsRead) {
  const auto text = "data: {corpus: plugged}\nplugins: [" + kFile + "]\n";
  const auto experiment = load(text);
  EXPECT_EQ(experiment.corpus, "plugged");
  EXPECT_EQ(experiment.resolved.at("plugins"), nlohmann::json({kFile}));
  EXPECT_EQ(recorded_experiment(experiment.resolved).resolved, experiment.resolved);
  auto foreign = experiment.resolved;
  foreign["plugins"] = {"no.so"};
  EXPECT_EQ(recorded_experiment(foreign).resolved, experiment.resolved) << "a record loads nothing";
  EXPECT_THROW((void)recorded_experiment(foreign, {}, /*load_plugins=*/true), InputError);
  // Where a plug-in lies does not matter.
  auto elsewhere = experiment.resolved;
  elsewhere["plugins"] = {"/elsewhere/plugged.so"};
  EXPECT_EQ(differing_keys(elsewhere, experiment.resolved), Texts());
}

TEST_F(PluginRecordTest, CountFromTheConfigurationThatNamesThem) {
  fs::copy_file(kFile, path("beside.so"));
  EXPECT_EQ(load("plugins: beside.so\ndata: {corpus: plugged}\n").corpus, "plugged");
}

TEST_F(PluginRecordTest, MistakesSayWhereAndEndTheReading) {
  (void)write("text.so", "no library");
  EXPECT_EQ(mistakes("plugins: [" + path("no.so") + ",\n  text.so]\ndata: {corpus: pluged}\n"),
            "a.yaml:1:11: plugins: no.so: there is no such file, or it cannot be read\n"
            "a.yaml:2:3: plugins: text.so: is no plug-in of attnas, must be built by "
            "attnas_add_plugin()");
  EXPECT_THAT(mistakes("plugins: {file: a.so}\n"),
              HasSubstr("a.yaml:1:10: plugins = {file: a.so}"));
}

TEST_F(PluginRecordTest, ARunAsksForThosePluginsThatItHad) {
  (void)load_plugin(kFile, PluginSource::configuration);
  const auto record = plugins_record();
  ASSERT_EQ(record.size(), 1U);
  EXPECT_EQ(record[0]["registers"], Texts{"corpus plugged"});
  const auto missing = [](const nlohmann::json& plugins) {
    const nlohmann::json without = {{"torch", "1.13"}};
    const nlohmann::json with = {{"torch", "1.13"}, {"plugins", plugins}};
    return missing_plugins({without, with}, "run");
  };
  EXPECT_EQ(missing(record), "");
  auto other = record;
  other[0]["file"] = "/lost/norm.so";
  other[0]["registers"] = {"normalization lost"};
  EXPECT_EQ(missing(other),
            "run was made with plug-ins that are not loaded:\n"
            "  /lost/norm.so (normalization lost)\n"
            "give --plugin FILE.so, or, where a configuration is given, name them there (plugins: "
            "[FILE.so])");
}

TEST_F(PluginRecordTest, AnotherBuildIsRefusedUnlessTheCommandLineGivesIt) {
  const auto loaded = load_plugin(kFile, PluginSource::configuration);
  nlohmann::json environment = {{"torch", "1"}, {"blas", "b"}, {"instruction_set", "i"}};
  environment["plugins"] = plugins_record();
  Store store(path("store.sqlite"));
  store.begin_session(environment);
  check_plugins({environment}, "run");
  EXPECT_EQ(environment_warning(store, environment), "");
  environment["plugins"][0]["sha256"] = "0123456789abcdef";
  store.begin_session(environment);
  const auto change = kFile + ", SHA-256 0123456789ab -> " + loaded.sha256.substr(0, 12);
  EXPECT_EQ(error_of([&] { check_plugins({environment}, "run"); }),
            "run was made with other builds of plug-ins:\n  " + change +
                "\ntheir results may differ: give --plugin FILE.so to take both for the same, or "
                "another folder with --output");
  (void)load_plugin(kFile, PluginSource::command_line);
  check_plugins({environment}, "run");
  EXPECT_THAT(environment_warning(store, environment),
              HasSubstr(change + ". They are taken for the same"));
}

}  // namespace
}  // namespace nas
