#include "core/run_program.hpp"

#include "prelude.hpp"

namespace nas {
namespace {

ProgramResult shell(const std::string& lines, Output kept = Output::errors) {
  return run_program({"sh", "-c", lines}, kept);
}

TEST(RunProgram, SaysWhyAProgramDidNotStart) {
  const auto result = run_program({"/no/such/program"});
  EXPECT_FALSE(result.started);
  EXPECT_EQ(result.status, 127);
  EXPECT_EQ(result.output, "cannot be started: No such file or directory");
  EXPECT_TRUE(shell("exit 127").started);
}

TEST(RunProgram, KeepsTheEndOfALongComplaint) {
  const auto result = shell("yes | head -c 300000 >&2; echo end >&2");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.output.size(), 4096U);
  EXPECT_TRUE(result.output.ends_with("end\n"));
}

TEST(RunProgram, KeepsWhatItIsAskedFor) {
  const std::string both = "echo out; echo error >&2; cat";
  EXPECT_EQ(shell(both).output, "error\n");
  EXPECT_EQ(shell(both, Output::all).output, "out\nerror\n");
}

TEST(RunProgram, ASignalIsAStatus) { EXPECT_EQ(shell("kill -9 $$").status, 137); }

TEST(RunProgram, TheLastLineSaysSomething) {
  EXPECT_EQ(last_line("a\nb c \r\n \t\n"), "b c");
  EXPECT_EQ(last_line("a"), "a");
  EXPECT_EQ(last_line(" \n"), "");
}

}  // namespace
}  // namespace nas
