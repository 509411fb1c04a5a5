#include <sys/stat.h>
#include <unistd.h>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/host.hpp"
#include "prelude.hpp"
#include "store/writer_lock.hpp"
#include "unit/report_fixture.hpp"

namespace nas {
namespace {

class ReportFilesTest : public ReportTest {
 protected:
  /// How many files' names begin so.
  [[nodiscard]] std::ptrdiff_t files_like(const std::string& begin) const {
    return std::count_if(
        fs::directory_iterator(folder_), fs::directory_iterator(),
        [&](const auto& entry) { return entry.path().filename().string().starts_with(begin); });
  }
};

TEST_F(ReportFilesTest, FilesAreWrittenWholeOrNotAtAll) {
  const auto text = [](std::ostream& out) { out << "text"; };
  write_file(folder_ / "x.txt", text);
  EXPECT_EQ(fs::file_size(folder_ / "x.txt"), 4U);
  EXPECT_EQ(files_like("x.txt"), 1);
  // Whose fault it is depends on what was done before, which is not known here.
  EXPECT_THROW(write_file(folder_ / "no" / "x.txt", text), fs::filesystem_error);
  fs::create_directories(folder_ / "taken" / "inside");
  try {
    write_file(folder_ / "taken", text);
    FAIL() << "a folder was replaced";
  } catch (const fs::filesystem_error& error) {
    EXPECT_EQ(error.path1(), folder_ / "taken");
    EXPECT_EQ(error.code(), std::errc::is_a_directory);
  }
  EXPECT_EQ(files_like("taken"), 1) << "half a file takes space";
}

TEST_F(ReportFilesTest, AResultIsWrittenThroughNoLink) {
  const auto victim = temporary_.write("victim", "of somebody");
  const auto result = folder_ / "results.json";
  const auto own = "results.json." + host_name() + "." + std::to_string(getpid()) + ".tmp";
  for (const auto& name : {std::string("results.json"), std::string("results.json.tmp"), own}) {
    fs::create_symlink(victim, folder_ / name);
  }
  write_file(result, [](std::ostream& out) { out << "text"; });
  EXPECT_EQ(read_bytes(victim), "of somebody");
  EXPECT_FALSE(fs::is_symlink(result));
  EXPECT_EQ(read_bytes(result), "text");
  EXPECT_FALSE(fs::is_symlink(folder_ / own));
  // What cannot be removed is not written to either.
  fs::create_directories(folder_ / own / "inside");
  EXPECT_THROW(write_file(result, [](std::ostream& out) { out << "more"; }), fs::filesystem_error);
  EXPECT_EQ(read_bytes(result), "text");
}

TEST_F(ReportFilesTest, AResultReplacesNeitherAPipeNorADevice) {
  const auto pipe = folder_ / "pipe";
  const auto link = folder_ / "link";
  const auto device = folder_ / "device";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink(pipe, link);
  fs::create_symlink("/dev/null", device);
  const auto refusal = [](const fs::path& file) {
    return message_of<InputError>([&] { write_file(file, [](std::ostream& /*out*/) {}); });
  };
  for (const auto& file : {pipe, link}) {
    EXPECT_EQ(refusal(file), file.string() + ": is a pipe, must be a regular file");
  }
  EXPECT_EQ(refusal(device), device.string() + ": is a device, must be a regular file");
  EXPECT_TRUE(fs::is_fifo(pipe));
  for (const auto& file : {link, device}) EXPECT_TRUE(fs::is_symlink(file)) << file;
}

TEST_F(ReportFilesTest, ALockIsWrittenThroughNoLink) {
  const auto victim = temporary_.write("victim", "of somebody");
  const auto store = folder_ / "locked.sqlite";
  const auto lock = store.string() + ".lock";
  const auto refusal = [&] {
    return message_of<InputError>([&] { const WriterLock held(store); });
  };
  const auto expected = lock + ": is a link or no regular file, must be a file without other names";
  fs::create_symlink(victim, lock);
  EXPECT_EQ(refusal(), expected);
  fs::remove(lock);
  fs::create_hard_link(victim, lock);
  EXPECT_EQ(refusal(), expected);
  EXPECT_EQ(read_bytes(victim), "of somebody");
  fs::remove(lock);
  fs::create_symlink(folder_ / "new", lock);
  EXPECT_EQ(refusal(), expected);
  EXPECT_FALSE(fs::exists(folder_ / "new"));
  fs::remove(lock);
  ASSERT_EQ(mkfifo(lock.c_str(), 0600), 0);
  EXPECT_EQ(refusal(), expected);
  fs::remove(lock);
  EXPECT_EQ(refusal(), "nothing was thrown");
  EXPECT_EQ(refusal(), "nothing was thrown") << "what an earlier holder left is no obstacle";
}

TEST_F(ReportFilesTest, WhatAKilledProcessLeftOfAResultIsRemoved) {
  temporary_.write("results.json.other.23.tmp", "{");
  write_results(folder_, RunSummary(*store_));
  EXPECT_EQ(files_like("results.json"), 1);
}

}  // namespace
}  // namespace nas
