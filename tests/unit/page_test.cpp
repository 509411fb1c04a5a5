#include "cli/page.hpp"

#include <cstdlib>

#include <sys/stat.h>

#include "core/durable_file.hpp"
#include "core/temporary_folder.hpp"
#include "places.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

class PageTest : public ::testing::Test {
 protected:
  /// A program of a few shell lines.
  [[nodiscard]] fs::path program(const std::string& name, const std::string& lines) const {
    const auto file = folder_.path() / name;
    std::ofstream(file) << "#!/bin/sh\n" << lines << '\n';
    chmod(file.c_str(), 0755);
    return file;
  }

  /// The page's lines on standard output and standard error.
  void write(const std::optional<std::string>& python, const std::optional<fs::path>& script) {
    write_page(page_of_run(run_), python, script, out_, err_);
  }

  const TemporaryFolder folder_;
  // A name that a shell would take apart, and run in part.
  const fs::path run_ = folder_.path() / "a run; touch injected $(touch injected)";
  const fs::path injected_ = "injected";
  std::ostringstream out_, err_;

  PageTest() { fs::create_directories(run_); }
};

TEST_F(PageTest, PassesArgumentsOnAsTheyAre) {
  const auto python =
      program("python", "[ \"$1\" = -B ] && printf %s \"$*\" > \"$3/report.html\" && echo dropped");
  write(python.string(), "report.py");
  EXPECT_THAT(out_.str(), StartsWith("and " + (run_ / "report.html").string()));
  EXPECT_EQ(err_.str(), "");
  EXPECT_EQ(read_bytes(run_ / "report.html"), "-B report.py " + run_.string());
  EXPECT_FALSE(fs::exists(injected_));
}

TEST_F(PageTest, WarnsInOneLineWhereTheScriptFails) {
  const auto python =
      program("python", "echo Traceback >&2; echo 'OSError: disk full' >&2; exit 1");
  write(python.string(), "report.py");
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(err_.str(), "warning: " + (run_ / "report.html").string() +
                            " was not written: OSError: disk full\n");
}

TEST_F(PageTest, NamesTheExitCodeOfASilentFailureAndOfASignal) {
  write(program("python", "exit 3").string(), "report.py");
  EXPECT_THAT(err_.str(), HasSubstr("was not written: exit code 3\n"));
  err_.str("");
  write(program("python", "kill -9 $$").string(), "report.py");
  EXPECT_THAT(err_.str(), HasSubstr("was not written: exit code 137\n"));
}

TEST_F(PageTest, PrintsTheCommandWherePythonOrTheScriptIsMissing) {
  write(std::nullopt, "/share/report.py");
  EXPECT_EQ(out_.str(), "for a page about it: python3 /share/report.py '" + run_.string() +
                            "'  (needs Python with numpy and scipy)\n");
  out_.str("");
  write("python3.11", std::nullopt);
  EXPECT_EQ(out_.str(),
            "for a page about it: python3.11 analysis/report.py '" + run_.string() + "'\n");
  EXPECT_EQ(err_.str(), "");
}

TEST_F(PageTest, TakesThePythonOfTheEnvironmentFirstAndOnlyIfItImports) {
  const auto fitting = program("fitting", "[ \"$2\" = 'import numpy, scipy' ]");
  const auto bare = program("bare", "exit 1");
  ASSERT_EQ(setenv("NAS_PYTHON", fitting.c_str(), 1), 0);
  EXPECT_EQ(find_python(), fitting.string());
  ASSERT_EQ(setenv("NAS_PYTHON", bare.c_str(), 1), 0);
  ::testing::internal::CaptureStderr();
  EXPECT_NE(find_python(), bare.string());
  EXPECT_NE(::testing::internal::GetCapturedStderr().find(bare.string() + " does not run or lacks"),
            std::string::npos);
  unsetenv("NAS_PYTHON");
}

TEST_F(PageTest, ComparisonsNameTheirFolder) {
  const auto page = page_of_comparison("runs/x");
  write_page(page, std::nullopt, "/share/compare.py", out_, err_);
  EXPECT_EQ(out_.str(),
            "for a page about it: python3 /share/compare.py runs/x/comparison.sqlite --output "
            "runs/x  (needs Python with numpy and scipy)\n");
}

}  // namespace
}  // namespace nas
