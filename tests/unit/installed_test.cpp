// Where the names of files and of configurations lead.

#include "core/installed.hpp"

#include <cstdlib>

#include "config/document.hpp"
#include "config_fixture.hpp"
#include "places.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

/// In an empty current folder, here/ of the test's own.
class InstalledTest : public ConfigTest {
 protected:
  InstalledTest() {
    fs::create_directories(path("here"));
    fs::current_path(path("here"));
  }
  ~InstalledTest() override { fs::current_path(before_); }
  InstalledTest(const InstalledTest&) = delete;
  InstalledTest& operator=(const InstalledTest&) = delete;

 private:
  fs::path before_ = fs::current_path();
};

TEST_F(InstalledTest, FilesCountFromTheNamingFileThenFromHereThenFromTheInstallation) {
  const auto text = std::string("problems/tables/text.table");
  const auto installed = (fs::path(source_folder()) / text).string();
  EXPECT_EQ(located_file(text, path("a/a.yaml")), installed);
  write("here/" + text, "");
  EXPECT_EQ(located_file(text, path("a/a.yaml")), text);
  const auto beside = write("a/" + text, "");
  EXPECT_EQ(located_file(text, path("a/a.yaml")), beside);
  EXPECT_EQ(located_file("none.table", path("a/a.yaml")), "none.table");
  EXPECT_EQ(places_of_file(text, path("a/a.yaml")),
            " in " + path("a") + ", " + path("here") + ", " + source_folder());
  EXPECT_EQ(places_of_file("/none.table", path("a/a.yaml")), "")
      << "an absolute name has one place";
}

TEST_F(InstalledTest, TheHomeFolderIsMeantAsAShellMeansIt) {
  const std::string before = getenv("HOME") != nullptr ? getenv("HOME") : "";
  setenv("HOME", path("me").c_str(), 1);
  const auto text = write("me/texts/mine.txt", "");
  const auto config = write("me/own.yaml", "");
  for (const std::string home : {"~", "$HOME", "${HOME}"}) {
    EXPECT_EQ(at_home(home), path("me"));
    EXPECT_EQ(located_file(home + "/texts/mine.txt", path("a/a.yaml")), text);
    EXPECT_EQ(located_file(home + "/none", path("a/a.yaml")), path("me/none"));
    EXPECT_EQ(places_of_file(home + "/none", path("a/a.yaml")), "");
    EXPECT_EQ(located_plugin(home + "/mine.so", path("a/a.yaml")), path("me/mine.so"));
    EXPECT_EQ(located_configuration(home + "/own", path("a/a.yaml")), config);
  }
  for (const std::string other : {"~other/x", "a/~/x", "$HOMER/x", "x~", "${HOME", "./~"}) {
    EXPECT_EQ(at_home(other), other);
  }
  unsetenv("HOME");
  EXPECT_EQ(at_home("~/x"), "~/x");
  setenv("HOME", before.c_str(), 1);
}

TEST_F(InstalledTest, ConfigurationsAreFoundByName) {
  const auto installed = fs::path(source_folder()) / "configs/quickstart.yaml";
  for (const std::string name : {"quickstart", "quickstart.yaml", "configs/quickstart.yaml"}) {
    EXPECT_EQ(located_configuration(name), installed) << name;
    EXPECT_EQ(located_configuration(name, path("a/a.yaml")), installed) << name;
  }
  fs::create_directories(path("here/quickstart"));  // say, a run
  EXPECT_EQ(located_configuration("quickstart"), installed);
  write("here/quickstart.yaml", "");
  EXPECT_EQ(located_configuration("quickstart"), "quickstart.yaml");
  const auto beside = write("a/quickstart.yaml", "");
  EXPECT_EQ(located_configuration("quickstart.yaml", path("a/a.yaml")), beside);
  EXPECT_EQ(located_configuration(beside), beside);
  EXPECT_EQ(located_configuration("none"), "");
}

TEST_F(InstalledTest, AMissingConfigurationSaysWhereItWasLookedFor) {
  EXPECT_EQ(error_of([] { (void)find_configuration("quikstart"); }),
            std::string("quikstart: there is no such configuration in here, ") + source_folder() +
                ", " + source_folder() + "/configs; did you mean quickstart?");
  EXPECT_THAT(error_of([] { (void)find_configuration("of_nobody.yaml"); }), EndsWith("/configs"));
  EXPECT_EQ(error_of([] { (void)find_configuration("."); }), ".: is a folder, must be a YAML file");
}

TEST_F(InstalledTest, AnInstalledConfigurationIsExtendedByName) {
  const auto file = write("a/own.yaml", "extends: quickstart.yaml\nseed: 7\n");
  const auto document = load_document(file, {}, {});
  EXPECT_EQ(document.find("seed")->text, "7");
  EXPECT_NE(document.find("training"), nullptr) << "of quickstart.yaml";
  const auto wrong = write("a/wrong.yaml", "extends: quickstarts.yml\n");
  EXPECT_EQ(error_of([&] { (void)load_document(wrong, {}, {}); }),
            std::string("a/wrong.yaml:1:10: extends = quickstarts.yml, there is no file "
                        "quickstarts.yml in a, here, ") +
                source_folder() + ", " + source_folder() + "/configs");
}

}  // namespace
}  // namespace nas
