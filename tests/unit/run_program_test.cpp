#include "core/run_program.hpp"

#include <csignal>

#include <unistd.h>

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

TEST(ChildProcess, WhatItLeavesInItsGroupCanBeEnded) {
  const auto [read_from, write_to] = make_pipe();
  ChildProcess child({"sh", "-c", "sleep 60 & exit 3"}, {.output = write_to});
  close(write_to);
  EXPECT_FALSE(child.running(/*wait=*/true));
  EXPECT_EQ(child.status(), 3);
  child.end();
  EXPECT_EQ(child.status(), 3);
  char byte = 0;
  EXPECT_EQ(read(read_from, &byte, 1), 0) << "nobody holds its output";
  close(read_from);
}

TEST(ChildProcess, EndsWithTheObjectThatItIs) {
  const auto [read_from, write_to] = make_pipe();
  {
    ChildProcess child({"sh", "-c", "sleep 60 & wait"}, {.output = write_to});
    EXPECT_TRUE(child.running());
    close(write_to);
  }
  char byte = 0;
  EXPECT_EQ(read(read_from, &byte, 1), 0);
  close(read_from);
}

TEST(ChildProcess, SeesItsPipeBreak) {
  const auto [read_from, write_to] = make_pipe();
  close(read_from);
  ChildProcess child({"sh", "-c", "while echo more; do :; done"}, {.output = write_to});
  close(write_to);
  child.running(/*wait=*/true);
  EXPECT_EQ(child.status(), 128 + SIGPIPE);
}

TEST(RunProgram, TheLastLineSaysSomething) {
  EXPECT_EQ(last_line("a\nb c \r\n \t\n"), "b c");
  EXPECT_EQ(last_line("a"), "a");
  EXPECT_EQ(last_line(" \n"), "");
}

}  // namespace
}  // namespace nas
