#pragma once

#include <unistd.h>

#include "core/error.hpp"
#include "prelude.hpp"

namespace nas {

/// A test with a folder of its own for configuration files.
class ConfigTest : public ::testing::Test {
 protected:
  ConfigTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string(test->test_suite_name()) + "_" + test->name();
    std::replace(name.begin(), name.end(), '/', '_');
    folder_ = fs::path(::testing::TempDir()) / ("nas_" + name + "_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  ~ConfigTest() override { fs::remove_all(folder_); }
  ConfigTest(const ConfigTest&) = delete;
  ConfigTest& operator=(const ConfigTest&) = delete;

  /// Writes a file into the folder. @return its path.
  std::string write(const std::string& name, const std::string& text) const {
    const auto path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }

  /// @return the text of the InputError that `function` throws, the folder's name left out; empty if it throws none.
  template <class Function>
  std::string error_of(Function function) const {
    try {
      function();
    } catch (const InputError& error) {
      std::string text = error.what();
      const auto prefix = folder_.string() + "/";
      for (auto at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
        text.erase(at, prefix.size());
      }
      return text;
    }
    return "";
  }

 private:
  fs::path folder_;
};

}  // namespace nas
