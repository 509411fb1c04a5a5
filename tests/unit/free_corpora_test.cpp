// Corpora that packages of Debian hold, from packages of a few bytes that are made here.

#include <array>
#include <filesystem>
#include <string>

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/registry.hpp"
#include "data/archive.hpp"
#include "data/corpus.hpp"
#include "data/data_set.hpp"
#include "data/shares.hpp"
#include "data_fixture.hpp"

namespace nas {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string gzip(const std::string& bytes) {
  std::string packed(2 * bytes.size() + 1000, '\0');
  std::size_t used = 0;
  archive* writer = archive_write_new();
  archive_write_add_filter_gzip(writer);
  archive_write_set_format_raw(writer);
  EXPECT_EQ(archive_write_open_memory(writer, packed.data(), packed.size(), &used), ARCHIVE_OK);
  archive_entry* entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  EXPECT_EQ(archive_write_header(writer, entry), ARCHIVE_OK);
  EXPECT_EQ(archive_write_data(writer, bytes.data(), bytes.size()),
            static_cast<la_ssize_t>(bytes.size()));
  archive_entry_free(entry);
  EXPECT_EQ(archive_write_close(writer), ARCHIVE_OK);
  archive_write_free(writer);
  packed.resize(used);
  return packed;
}

class FreeCorpora : public ::testing::Test {
 protected:
  /// Gets a corpus from the folder of what was written.
  void fetch(const std::string& name) const {
    auto set = *find_known_data_set(name);
    set.content_sha256.clear();  // of the real one
    get_data_set(set, location(), folder_.path() / "from");
  }
  [[nodiscard]] SplitTexts got(const std::string& name) const {
    fetch(name);
    return read_data_set(name, location());
  }
  [[nodiscard]] DataLocation location() const { return {.folder = folder_.path() / "data"}; }
  [[nodiscard]] Corpus loaded(const std::string& name, const Parameters& settings,
                              std::int64_t context) const {
    return corpora().at(name).make(settings, context, location());
  }
  [[nodiscard]] static Parameters defaults(const std::string& name) {
    return Parameters(corpora().at(name).description.settings);
  }

  TemporaryFolder folder_;
};

TEST_F(FreeCorpora, DealArticlesOfTheDictionary) {
  std::string text = "\n\n00-database-url\n   ftp://ftp.gnu.org\n\nThe notice\n\n";
  for (int i = 0; i < 20; ++i) {
    text += "Word" + std::to_string(i) +
            " \\Word\\ n.\n   1. fa\xe7"
            "ade\n\n   Syn: w\n\n";
  }
  folder_.write("from/usr/share/dictd/gcide.dict.dz", gzip(text));
  const auto texts = got("gcide");
  EXPECT_THAT(texts.train, StartsWith("Word0 \\Word\\ n.\n   1. fa\xef\xbf\xbd"
                                      "ade\n\n   Syn: w\n\nWord1"));
  EXPECT_THAT(texts.valid, StartsWith("Word9 "));
  EXPECT_THAT(texts.test, StartsWith("Word19 "));
  EXPECT_THAT(texts.train, Not(HasSubstr("Word9 ")));
}

TEST_F(FreeCorpora, DealSayingsWithoutColours) {
  std::string text;
  for (int i = 0; i < 10; ++i) text += "\x1b[33m言" + std::to_string(i) + "\x1b[m\n%\n";
  folder_.write("from/chinese", text);
  folder_.write("from/song100", text);
  folder_.write("from/tang300", "诗\n");
  const auto texts = got("fortunes_zh");
  EXPECT_THAT(texts.train, StartsWith("言0\n言1\n"));
  EXPECT_EQ(texts.valid, "言9\n");
  EXPECT_EQ(texts.test, "言9\n");
  EXPECT_THAT(texts.train, ::testing::EndsWith("诗\n"));
  EXPECT_EQ(loaded("fortunes_zh", defaults("fortunes_zh"), 4).unit, "char");
}

TEST_F(FreeCorpora, JoinLinesOfASequence) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += ">sp|A|B name=" + std::to_string(i) + "\nMKV\nLAW\n";
  folder_.write("from/DB.fasta.gz", gzip(text));
  EXPECT_EQ(got("proteins").valid, "MKVLAW\n");
  const auto corpus = loaded("proteins", defaults("proteins"), 5);
  EXPECT_EQ(corpus.unit, "residue");
  EXPECT_EQ(corpus.bytes_per_token, 1.0);
}

TEST_F(FreeCorpora, DealSectionsOfTheReference) {
  std::string text = "Debian\n    1.1.1. A line of the contents\n1.1. List of tables\n";
  for (int i = 1; i <= 20; ++i) {
    text += "1." + std::to_string(i / 10) + "." + std::to_string(i) +
            ".\xC2\xA0Kopf\n\n    Wort\n 1.1.1. eingerückt\n2. Kapitel\n3.14 und mehr\n";
  }
  folder_.write("from/usr/share/debian-reference/debian-reference.zh-cn.txt.gz", gzip(text));
  const auto texts = got("debian_reference_zh_cn");
  EXPECT_THAT(texts.train, StartsWith("1.0.1.\xC2\xA0Kopf\n\n    Wort\n 1.1.1. eingerückt\n"
                                      "2. Kapitel\n3.14 und mehr\n1.0.2."));
  EXPECT_THAT(texts.valid, StartsWith("1.1.10."));
  EXPECT_THAT(texts.test, StartsWith("1.2.20."));
  EXPECT_THAT(texts.train, Not(HasSubstr("contents")));
}

TEST_F(FreeCorpora, DealFilesOfSource) {
  for (int i = 10; i < 30; ++i) {
    folder_.write("from/a-1/src/f" + std::to_string(i) + (i % 2 == 0 ? ".c" : ".h"),
                  "int f" + std::to_string(i) + ";" + (i == 19 ? "\xE4" : ""));
  }
  folder_.write("from/a-1/src/f.txt", "no source");
  const auto texts = got("sqlite");
  EXPECT_THAT(texts.train, StartsWith("int f10;\nint f11;\n"));
  EXPECT_EQ(texts.valid, "int f19;\xEF\xBF\xBD\n");
  EXPECT_EQ(texts.test, "int f29;\n");
}

TEST_F(FreeCorpora, RefuseFewParts) {
  folder_.write("from/DB.fasta.gz", gzip(">a\nMKV\n"));
  EXPECT_THAT(error_of([&] { (void)got("proteins"); }),
              HasSubstr("holds 1 parts of a text, must be at least 20"));
  folder_.write("from/DB.fasta.gz", ">a\nMKV\n");
  EXPECT_THAT(error_of([&] { (void)got("proteins"); }), HasSubstr("not compressed by gzip"));
}

TEST_F(FreeCorpora, RefuseAnotherSizeOfText8) {
  folder_.write("from/text8", "abc");
  EXPECT_THAT(error_of([&] { (void)got("text8"); }),
              HasSubstr("text8: has 3 bytes, must have 100000000"));
}

std::string idx(std::uint32_t magic, std::uint32_t items, const std::string& bytes) {
  std::string head;
  const auto word = [&](std::uint32_t x) {
    for (int shift = 24; shift >= 0; shift -= 8) head += static_cast<char>(x >> shift & 0xffU);
  };
  word(magic);
  word(items);
  if (magic == 0x803) {
    word(28);
    word(28);
  }
  return gzip(head + bytes);
}

class FashionMnist : public FreeCorpora {
 protected:
  /// Image i is of class i % 10; its upper half has grey level 3 i % 256, the lower 255.
  void write(const std::string& name, std::uint32_t images) {
    std::string pixels;
    std::string classes;
    for (std::uint32_t i = 0; i < images; ++i) {
      pixels += std::string(392, static_cast<char>(3 * i % 256)) + std::string(392, '\xff');
      classes += static_cast<char>(i % 10);
    }
    folder_.write("from/" + name + "-images-idx3-ubyte.gz", idx(0x803, images, pixels));
    folder_.write("from/" + name + "-labels-idx1-ubyte.gz", idx(0x801, images, classes));
  }
  void get() {
    write("train", 5003);
    write("t10k", 4);
    fetch("fashion_mnist");
  }
};

TEST_F(FashionMnist, AsksForTheClassBehindTheLastPixel) {
  get();
  auto settings = defaults("fashion_mnist");
  settings.set("side", std::int64_t{7});
  settings.set("valid_examples", std::int64_t{30});
  const auto corpus = loaded("fashion_mnist", settings, 49);
  EXPECT_EQ(corpus.task, "classification");
  EXPECT_EQ(corpus.labels, 10);
  EXPECT_EQ(corpus.vocabulary, 26);
  EXPECT_EQ(corpus.train.size(), 3);
  EXPECT_EQ(corpus.valid.size(), 30);
  EXPECT_EQ(corpus.test.size(), 4);
  std::array<std::int64_t, 49> input{};
  std::array<std::int64_t, 49> target{};
  corpus.test.read(3, 0, input.data(), target.data());
  EXPECT_EQ(input[0], 10 + 9 * 16 / 256);
  EXPECT_EQ(input[48], 10 + 15);
  EXPECT_EQ(input[24], 10 + (9 + 255) / 2 * 16 / 256);  // the row in the middle has both
  EXPECT_EQ(target[47], kNotScored);
  EXPECT_EQ(target[48], 3);
  EXPECT_DOUBLE_EQ(corpus.chance->accuracy, 0.1);
}

TEST_F(FashionMnist, AsksForEachPixel) {
  get();
  auto settings = defaults("fashion_mnist");
  settings.set("side", std::int64_t{28});
  settings.set("levels", std::int64_t{256});
  settings.set("asks", std::string("pixels"));
  const auto corpus = loaded("fashion_mnist", settings, 784);
  EXPECT_EQ(corpus.task, "next_token");
  EXPECT_EQ(corpus.vocabulary, 267);
  EXPECT_EQ(corpus.test.num_scored(), 4 * 784);
  std::array<std::int64_t, 784> input{};
  std::array<std::int64_t, 784> target{};
  corpus.test.read(1, 0, input.data(), target.data());
  EXPECT_EQ(input[0], 266);
  EXPECT_EQ(target[0], 10 + 3);
  EXPECT_EQ(input[1], 10 + 3);
  EXPECT_EQ(target[783], 10 + 255);
}

TEST_F(FashionMnist, GivesPatchesAsTokens) {
  get();
  auto settings = defaults("fashion_mnist");
  settings.set("levels", std::int64_t{4});
  settings.set("patch", std::int64_t{2});
  const auto corpus = loaded("fashion_mnist", settings, 49);
  EXPECT_EQ(corpus.vocabulary, 10 + 256);
  EXPECT_THAT(corpus.description,
              HasSubstr("14 x 14 pixels of 4 levels, row by row, in patches of 2 x 2"));
  std::array<std::int64_t, 49> input{};
  std::array<std::int64_t, 49> target{};
  corpus.valid.read(97, 0, input.data(), target.data());  // image 100: 44 above, 255 below
  EXPECT_EQ(input[0], 10);
  EXPECT_EQ(input[24], 10 + 3 * (16 + 64));  // of the row in the middle the lower half
  EXPECT_EQ(input[48], 10 + 3 * (1 + 4 + 16 + 64));
  EXPECT_EQ(target[48], 0);
  settings.set("asks", std::string("pixels"));
  EXPECT_EQ(loaded("fashion_mnist", settings, 49).vocabulary, 10 + 256 + 1);
}

TEST_F(FashionMnist, RefusesWhatIsNoImage) {
  const auto refused = [&](const std::string& bytes) {
    for (const auto* split : {"train", "valid", "test"}) {
      folder_.write("data/fashion_mnist/" + std::string(split) + ".txt", bytes);
    }
    return error_of([&] { (void)loaded("fashion_mnist", defaults("fashion_mnist"), 196); });
  };
  EXPECT_EQ(
      refused("3 " + std::string(1568, '0') + "\n"),  // as splits were before
      "fashion_mnist: a split has 1571 bytes, must be a multiple of 785: move its folder away "
      "and get it again with: nas-data get fashion_mnist");
  EXPECT_EQ(refused("\x0a" + std::string(784, '\0')),
            "fashion_mnist: image 1 of a split is of class 10, must be below 10");
}

TEST_F(FashionMnist, RefusesSizesThatDoNotFit) {
  get();
  auto settings = defaults("fashion_mnist");
  EXPECT_EQ(error_of([&] { (void)loaded("fashion_mnist", settings, 128); }),
            "fashion_mnist: model.context = 128, must be the pixels of an image: 196 where "
            "data.side = 14");
  settings.set("side", std::int64_t{10});
  EXPECT_THAT(error_of([&] { (void)loaded("fashion_mnist", settings, 100); }),
              HasSubstr("data.side = 10, must divide 28"));
  settings.set("side", std::int64_t{14});
  settings.set("patch", std::int64_t{4});
  EXPECT_EQ(error_of([&] { (void)loaded("fashion_mnist", settings, 196); }),
            "fashion_mnist: data.patch = 4, must divide data.side = 14");
  settings.set("side", std::int64_t{28});
  EXPECT_EQ(error_of([&] { (void)loaded("fashion_mnist", settings, 49); }),
            "fashion_mnist: data.levels = 16 to the power 16, the pixels of a patch, must be at "
            "most 65536");
  settings.set("patch", std::int64_t{2});
  EXPECT_EQ(error_of([&] { (void)loaded("fashion_mnist", settings, 49); }),
            "fashion_mnist: model.context = 49, must be the pixels of an image: 196 where "
            "data.side = 28, data.patch = 2");
}

TEST(DebianPackage, IsUnpackedToWhatItInstalls) {
  const TemporaryFolder folder;
  const auto member = [](const std::string& name, const std::string& bytes) {
    std::array<char, 61> head{};
    std::snprintf(head.data(), head.size(), "%-16s%-12d%-6d%-6d%-8o%-10zu`\n", name.c_str(), 0, 0,
                  0, 0100644, bytes.size());
    return std::string(head.data(), 60) + bytes + (bytes.size() % 2 == 1 ? "\n" : "");
  };
  std::string data(512, '\0');
  std::snprintf(data.data(), 100, "usr/share/text");
  std::snprintf(data.data() + 100, 8, "%07o", 0644);
  std::snprintf(data.data() + 124, 12, "%011o", 3);
  data[156] = '0';
  std::snprintf(data.data() + 257, 6, "ustar");
  unsigned sum = 8 * ' ';
  for (const char c : data) sum += static_cast<unsigned char>(c);
  std::snprintf(data.data() + 148, 8, "%06o", sum);
  data += "abc" + std::string(509 + 1024, '\0');
  const auto package =
      folder.write("a.deb", "!<arch>\n" + member("debian-binary", "2.0\n") +
                                member("control.tar.gz", gzip(std::string(1024, '\0'))) +
                                member("data.tar.gz", gzip(data)));
  fs::create_directories(folder.path() / "in");
  unpack(package, folder.path() / "in");
  EXPECT_EQ(read_text_file(folder.path() / "in/usr/share/text"), "abc");
  EXPECT_FALSE(fs::exists(folder.path() / "in/debian-binary"));
  EXPECT_FALSE(fs::exists(folder.path() / "in/data.tar.gz"));
}

}  // namespace
}  // namespace nas
