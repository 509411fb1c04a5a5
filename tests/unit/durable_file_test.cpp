#include "core/durable_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/temporary_folder.hpp"
#include "unit/forked.hpp"

namespace nas::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class DurableFile : public ::testing::Test {
 protected:
  static std::string fault_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const MachineError& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

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
  EXPECT_FALSE(fs::exists(file.string() + ".tmp"));
  remove_file(file);
  EXPECT_FALSE(fs::exists(file));
  remove_file(file);
}

TEST_F(DurableFile, AFullDiskLeavesTheOldFileAndSaysSo) {
  const auto file = folder_ / "file";
  write_durably(file, "old");
  const int code = in_child([&] {
    limit_file_size(1000);
    const auto words = fault_of([&] { write_durably(file, std::string(2000, 'x')); });
    return words.starts_with("no space left in " + folder_.string()) ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(read_bytes(file), "old");
  EXPECT_FALSE(fs::exists(file.string() + ".tmp")) << "half a file takes space";
}

TEST_F(DurableFile, AFolderThatWasRemovedOrMovedDoesNotComeBack) {
  const auto run = folder_ / "run";
  fs::create_directory(run);
  write_durably(run / "checkpoints" / "a", "");
  EXPECT_TRUE(fs::exists(run / "checkpoints" / "a"));
  fs::rename(run, folder_ / "moved");
  EXPECT_EQ(
      fault_of([&] { write_durably(run / "checkpoints" / "a", ""); }),
      (run / "checkpoints").string() + ": it, or a folder that it is in, was removed or moved");
  EXPECT_FALSE(fs::exists(run));
}

TEST_F(DurableFile, WhatStandsInTheWayIsNamed) {
  temporary_.write("in_the_way", "");
  EXPECT_THAT(fault_of([&] { write_durably(folder_ / "in_the_way" / "file", ""); }),
              HasSubstr((folder_ / "in_the_way").string()));
  EXPECT_THAT(fault_of([&] { (void)read_bytes(folder_); }), HasSubstr("Is a directory"));
  EXPECT_THAT(fault_of([&] { (void)read_bytes(folder_ / "absent"); }),
              HasSubstr("absent: No such file"));
  fs::create_directory(folder_ / "full");
  temporary_.write("full/file", "");
  EXPECT_THAT(fault_of([&] { remove_file(folder_ / "full"); }), HasSubstr("full"));
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
