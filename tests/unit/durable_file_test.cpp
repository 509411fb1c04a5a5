#include "core/durable_file.hpp"

#include <cerrno>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/temporary_folder.hpp"
#include "prelude.hpp"
#include "unit/forked.hpp"

namespace {

/// How many of the next syncs a signal interrupts.
int interruptions = 0;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): of the test

}  // namespace

extern "C" int fsync(int file) {
  if (interruptions > 0) {
    --interruptions;
    errno = EINTR;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fsync, file));
}

namespace nas::testing {
namespace {

class DurableFile : public ::testing::Test {
 protected:
  const TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
};

TEST_F(DurableFile, ReadsBackAndReplaces) {
  const auto file = folder_ / "a" / "file";
  const std::string bytes("1\0\n2", 4);
  write_durably(file, bytes);
  EXPECT_EQ(read_bytes(file), bytes);
  const std::string large(3'000'000, 'x');
  write_durably(file, large);
  EXPECT_EQ(read_bytes(file), large);
  EXPECT_EQ(std::distance(fs::directory_iterator(file.parent_path()), {}), 1) << "nothing is left";
  remove_file(file);
  EXPECT_FALSE(fs::exists(file));
  remove_file(file);
}

TEST_F(DurableFile, AFolderThatCannotBeMadeIsToldBeforehand) {
  write_durably(folder_ / "file", "");
  for (const char* name : {"", "a", "a/b", "a/b/"}) check_folder(folder_ / name);
  check_folder("nowhere/yet");
  EXPECT_FALSE(fs::exists(folder_ / "a")) << "nothing is made";
  for (const char* name : {"file", "file/a", "file/a/b"}) {
    EXPECT_THAT(message_of<InputError>([&] { check_folder(folder_ / name); }),
                HasSubstr((folder_ / "file").string() + ": Not a directory"))
        << name;
  }
}

TEST_F(DurableFile, ALinkToNothingIsNamed) {
  fs::create_symlink("/nowhere/x", folder_ / "link");
  const auto words = (folder_ / "link").string() + ": is a link to /nowhere/x, which is not there";
  for (const char* name : {"link", "link/", "link/a", "link/a/b"}) {
    EXPECT_EQ(message_of<InputError>([&] { check_folder(folder_ / name); }), words) << name;
    EXPECT_EQ(message_of<InputError>([&] { make_folder(folder_ / name); }), words) << name;
  }
}

TEST_F(DurableFile, AFullDiskLeavesTheOldFileAndSaysSo) {
  const auto file = folder_ / "file";
  write_durably(file, "old");
  const int code = in_child([&] {
    limit_file_size(1000);
    const auto words =
        message_of<MachineError>([&] { write_durably(file, std::string(2000, 'x')); });
    return words.starts_with("no space left in " + folder_.string()) ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(read_bytes(file), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "half a file takes space";
}

TEST_F(DurableFile, ASignalWhileItIsSyncedIsNoFailure) {
  const auto file = folder_ / "file";
  interruptions = 2;
  write_durably(file, "text");
  EXPECT_EQ(interruptions, 0);
  EXPECT_EQ(read_bytes(file), "text");
  interruptions = 2;
  sync_to_disk(folder_);
  EXPECT_EQ(interruptions, 0);
}

TEST_F(DurableFile, WhatWasPlantedUnderItsTemporaryNameIsNotWrittenTo) {
  const auto file = folder_ / "file";
  const auto victim = temporary_.write("victim", "of somebody");
  for (const std::string planted : {"a link", "a second name", "a pipe"}) {
    const int code = in_child([&] {
      alarm(10);  // a pipe that nobody reads is never open
      const auto name = unfinished_name(file);
      if (planted == "a link") fs::create_symlink(victim, name);
      if (planted == "a second name") fs::create_hard_link(victim, name);
      if (planted == "a pipe" && mkfifo(name.c_str(), 0600) != 0) return 2;
      write_durably(file, planted);
      return fs::exists(fs::symlink_status(name)) ? 1 : 0;
    });
    EXPECT_EQ(code, 0) << planted;
    EXPECT_EQ(read_bytes(victim), "of somebody") << planted;
    ASSERT_TRUE(fs::is_regular_file(fs::symlink_status(file))) << planted;
    EXPECT_EQ(read_bytes(file), planted);
    fs::remove(file);
  }
}

TEST_F(DurableFile, ProcessesThatWriteOneFileDoNotDisturbEachOther) {
  const auto file = folder_ / "file";
  std::vector<pid_t> children;
  for (const char letter : {'a', 'b', 'c'}) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    for (int i = 0; i < 30; ++i) write_durably(file, std::string(100'000, letter));
    _exit(0);
  }
  for (const auto child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const auto bytes = read_bytes(file);
  EXPECT_EQ(bytes, std::string(100'000, bytes.front()));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(DurableFile, WhatKilledProcessesLeaveCanBeRemoved) {
  const auto file = folder_ / "a_0.pt";
  for (const auto* name :
       {"a_0.pt", "a_0.pt.host.1.tmp", "a_0.pt.other.23.tmp", "ba_0.pt.host.1.tmp"}) {
    write_durably(folder_ / name, "");
  }
  remove_unfinished(file);
  EXPECT_TRUE(fs::exists(file));
  EXPECT_TRUE(fs::exists(folder_ / "ba_0.pt.host.1.tmp"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2);
}

TEST_F(DurableFile, AFolderThatWasRemovedOrMovedDoesNotComeBack) {
  const auto run = folder_ / "run";
  fs::create_directory(run);
  write_durably(run / "checkpoints" / "a", "");
  EXPECT_TRUE(fs::exists(run / "checkpoints" / "a"));
  fs::rename(run, folder_ / "moved");
  EXPECT_EQ(
      message_of<MachineError>([&] { write_durably(run / "checkpoints" / "a", ""); }),
      (run / "checkpoints").string() + ": it, or a folder that it is in, was removed or moved");
  EXPECT_FALSE(fs::exists(run));
}

TEST_F(DurableFile, WhatStandsInTheWayIsNamed) {
  temporary_.write("in_the_way", "");
  EXPECT_THAT(message_of<MachineError>([&] { write_durably(folder_ / "in_the_way" / "file", ""); }),
              HasSubstr((folder_ / "in_the_way").string()));
  EXPECT_THAT(message_of<MachineError>([&] { (void)read_bytes(folder_); }),
              HasSubstr("Is a directory"));
  EXPECT_THAT(message_of<MachineError>([&] { (void)read_bytes(folder_ / "absent"); }),
              HasSubstr("absent: No such file"));
  fs::create_directory(folder_ / "full");
  temporary_.write("full/file", "");
  EXPECT_THAT(message_of<MachineError>([&] { remove_file(folder_ / "full"); }), HasSubstr("full"));
}

TEST(Fault, NamesTheDiskInWords) {
  EXPECT_EQ(io_failure("runs/x/store.sqlite", ENOSPC), "no space left in runs/x");
  EXPECT_EQ(io_failure("file", ENOSPC), "no space left in .");
  EXPECT_THAT(io_failure("runs/x/a", EDQUOT), HasSubstr("no space left in runs/x: the user's"));
  EXPECT_THAT(io_failure("runs/x/a", EFBIG), HasSubstr("no space left in runs/x: a would exceed"));
  EXPECT_EQ(io_failure("runs/x/a", EIO), "runs/x/a: Input/output error");
}

}  // namespace
}  // namespace nas::testing
