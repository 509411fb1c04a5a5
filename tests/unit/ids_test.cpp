#include "data/ids.hpp"

#include <tuple>

#include <nlohmann/json.hpp>

#include "core/hash.hpp"
#include "core/warning.hpp"
#include "data/corpus_facts.hpp"
#include "data_fixture.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<std::int32_t>;
using Lines = std::vector<std::int64_t>;
constexpr auto kNone = kNotScored;

template <class Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

/// A folder as `attnas prepare` writes it, of the words <unk> 0, <eos> 1, a 2, b 3, c 4.
class Folder {
 public:
  Folder() {
    split("train", {1, 2, 2, 2, 3, 1, 3, 4, 1});
    split("valid", {1, 2, 3, 1, 1, 0, 1});
    split("test", {1, 4, 1});
    file("vocabulary.txt", "<unk>\n<eos>\na\nb\nc\n");
  }
  void file(const std::string& name, const std::string& bytes) {
    folder_.write(name, bytes);
    card["sha256"][name] = sha256(bytes);
  }
  void split(const std::string& name, const Ids& ids) { file(name + ".bin", bytes_of(ids)); }
  void lines(const std::string& name, const Ids& ids, const Lines& begins) {
    split(name, ids);
    file(name + ".lines.bin", bytes_of(begins));
  }
  [[nodiscard]] Corpus read(std::int64_t context) const {
    folder_.write("card.json", card.dump());
    return read_ids("test", folder_.path(), context);
  }
  [[nodiscard]] std::string error(std::int64_t context = 2) const {
    return error_of([&] { (void)read(context); });
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_.path() / name).string();
  }

  Json card{{"format", 1},
            {"name", "own"},
            {"description", "a text"},
            {"unit", "word"},
            {"many", "words"},
            {"vocabulary", 5},
            {"special", {{"pad", -1}, {"unknown", 0}, {"end_of_sentence", 1}}},
            {"layout", "standard"},
            {"bytes", {{"train", 12}, {"valid", 7}, {"test", 2}}},
            {"tokenizer_file", "vocabulary.txt"}};

 private:
  TemporaryFolder folder_;
};

/// The same of <pad> 0, <unk> 1, <eos> 2 and a to f.
struct Published : Folder {
  explicit Published(std::int64_t context) {
    card["layout"] = "published";
    card["context"] = context;
    card["vocabulary"] = 9;
    card["special"] = {{"pad", 0}, {"unknown", 1}, {"end_of_sentence", 2}};
    // Lines of 5 words give one window of 4; 7 words start at 0 and 2; 8 words also only at 0 and 2,
    // since no word follows a window from 4.
    lines("train", {3, 4, 5, 6, 7, 8, 3, 4, 5, 6, 7, 8, 3, 4, 5}, {0, 7});
    lines("valid", {3, 4, 1, 6, 7}, {0});
    lines("test", {7, 6, 5, 4, 3, 7, 6, 5, 4, 3}, {0, 5});
  }
};

TEST(StandardLayout, OneStreamOfWhatTheFilesHold) {
  const auto corpus = Folder().read(2);
  EXPECT_EQ(corpus.name, "test");
  EXPECT_EQ(corpus.description, "a text; 5 words, standard layout, windows of 2");
  EXPECT_EQ(corpus.vocabulary, 5);
  EXPECT_THAT(corpus.train.tokens, ElementsAre(1, 2, 2, 2, 3, 1, 3, 4, 1));
  EXPECT_THAT(corpus.valid.tokens, ElementsAre(1, 2, 3, 1, 1, 0, 1));
  EXPECT_EQ(corpus.train.last_target, -1);
  EXPECT_EQ(corpus.unit, "word");
  EXPECT_EQ(corpus.tokenizer_file, "vocabulary.txt");
  EXPECT_EQ(corpus.tokenizer, "<unk>\n<eos>\na\nb\nc\n");
  EXPECT_EQ(corpus.special.unknown, 0);
  EXPECT_EQ(corpus.task, "next_token");
  EXPECT_EQ(corpus.hash, corpus_hash(corpus));
  EXPECT_DOUBLE_EQ(corpus.bytes_per_token, 7.0 / 6.0);
  EXPECT_DOUBLE_EQ(corpus.test_bytes_per_token, 2.0 / 2.0);
  EXPECT_DOUBLE_EQ(corpus.unigram_perplexity,
                   unigram_perplexity(corpus.train, corpus.valid, corpus.vocabulary));
  EXPECT_EQ(unknown_shares(corpus).at("valid"), 1.0 / 6.0);
}

TEST(StandardLayout, WhatIsNotKeptOfATextHasNoBytes) {
  Folder folder;
  folder.card["keeps"] = {{"valid", false}, {"test", true}};
  EXPECT_EQ(folder.read(2).bytes_per_token, 0.0);
  EXPECT_EQ(folder.read(2).test_bytes_per_token, 1.0);
}

TEST(StandardLayout, EveryTokenIsScoredOnce) {
  // 6 tokens with <eos>, windows of 4: 4 and 2.
  const Folder folder;
  const auto corpus = folder.read(4);
  EXPECT_THAT(corpus.valid.starts, ElementsAre(0, 4));
  EXPECT_EQ(corpus.valid.shift, 1);
  EXPECT_THAT(read_window(corpus.valid, 0).target, ElementsAre(2, 3, 1, 1));
  EXPECT_THAT(read_window(corpus.valid, 1).target, ElementsAre(0, 1, kNone, kNone));
  EXPECT_THAT(read_window(corpus.valid, 1).input, ElementsAre(1, 0, 1, 0));
  for (std::int64_t context = 2; context <= 8; ++context) {
    EXPECT_EQ(folder.read(context).valid.num_scored(), 6) << context;
    EXPECT_EQ(folder.read(context).test.num_scored(), 2) << context;
  }
}

TEST(StandardLayout, TrainingWindowsKeepATargetAtEveryOffset) {
  for (std::int64_t context = 2; context <= 12; ++context) {  // the stream has 8 targets
    const auto corpus = Folder().read(context);
    EXPECT_EQ(corpus.train.size(), std::max<std::int64_t>(1, 8 / context)) << context;
    EXPECT_EQ(corpus.train.shift, std::min<std::int64_t>(8, context)) << context;
    for (std::int64_t i = 0; i < corpus.train.size(); ++i) {
      for (std::int64_t offset = 0; offset < corpus.train.shift; ++offset) {
        EXPECT_NE(read_window(corpus.train, i, offset).target[0], kNone) << context;
      }
    }
  }
}

TEST(PublishedLayout, HalfOverlappingWindowsInLongLines) {
  const auto corpus = Published(4).read(4);
  EXPECT_THAT(corpus.train.starts, ElementsAre(0, 2, 7, 9));
  EXPECT_EQ(corpus.train.tokens.size(), 15U);
  EXPECT_THAT(corpus.valid.starts, ElementsAre(0));
  EXPECT_THAT(corpus.test.starts, ElementsAre(0, 5));
  EXPECT_EQ(corpus.train.shift, 1);
  EXPECT_EQ(corpus.bytes_per_token, 0.0);
  const auto window = read_window(corpus.valid, 0);
  EXPECT_THAT(window.input, ElementsAre(3, 4, 1, 6));
  EXPECT_THAT(window.target, ElementsAre(4, 1, 6, 0)) << "the last target is <pad>";
}

TEST(PublishedLayout, LinesThatAreTooShortForALongerContextAreLeftOut) {
  Published folder(4);
  folder.lines("valid", {3, 4, 1, 6, 7, 3, 4, 5, 6, 7, 8, 3}, {0, 5});
  folder.lines("test", {3, 4, 5, 6, 7, 8, 3}, {0});
  const auto corpus = folder.read(6);
  EXPECT_THAT(corpus.train.tokens, ElementsAre(3, 4, 5, 6, 7, 8, 3, 4, 5, 6, 7, 8, 3, 4, 5));
  EXPECT_THAT(corpus.valid.tokens, ElementsAre(3, 4, 5, 6, 7, 8, 3));
  EXPECT_THAT(corpus.valid.starts, ElementsAre(0));
  EXPECT_EQ(folder.error(3), "test: model.context = 3, must be at least 4, which " +
                                 fs::path(folder.path("card.json")).parent_path().string() +
                                 " was prepared for");
  EXPECT_EQ(folder.error(7),
            "test: the valid split has no line of more than 7 words (the context), which layout = "
            "published needs");
}

TEST(Examples, HaveALabelOrAskForTheirIds) {
  Folder folder;
  folder.card.update({{"layout", "examples"},
                      {"context", 2},
                      {"unit", ""},
                      {"tokenizer_file", nullptr},
                      {"special", {{"pad", -1}, {"unknown", -1}, {"end_of_sentence", -1}}}});
  for (const auto* split : {"train", "valid", "test"}) folder.split(split, {2, 3, 4, 4, 3, 2});
  auto corpus = folder.read(2);  // of three ids, the last one asked only
  EXPECT_THAT(corpus.train.starts, ElementsAre(0, 3));
  EXPECT_THAT(read_window(corpus.valid, 1).target, ElementsAre(3, 2));
  EXPECT_EQ(corpus.description, "a text");
  EXPECT_EQ(corpus.train.shift, 1);

  folder.card.update({{"task", "classification"}, {"labels", 2}});
  for (const auto* split : {"train", "valid", "test"}) {
    folder.file(std::string(split) + ".labels.bin", bytes_of(Ids{1, 0, 1}));
  }
  corpus = folder.read(2);
  EXPECT_THAT(corpus.train.starts, ElementsAre(0, 2, 4));
  EXPECT_THAT(read_window(corpus.test, 2).target, ElementsAre(kNone, 1));
  EXPECT_EQ(corpus.labels, 2);
  EXPECT_EQ(corpus.chance->accuracy, 2.0 / 3.0);
  EXPECT_EQ(corpus.unigram_perplexity, 0.0);
  EXPECT_THAT(folder.error(3), HasSubstr("test: model.context = 3, must be 2, which "));
  folder.file("valid.labels.bin", bytes_of(Ids{1, 0}));
  EXPECT_EQ(folder.error(), folder.path("valid.labels.bin") + ": has 2 labels, must be 3");
}

TEST(Ids, HashDependsOnIdsAndWindowsAndOnNothingElse) {
  Folder folder;
  const auto hash = folder.read(2).hash;
  folder.card["description"] = folder.card["name"] = "other";
  EXPECT_EQ(folder.read(2).hash, hash);
  EXPECT_NE(folder.read(3).hash, hash);
  folder.split("test", {1, 3, 1});
  EXPECT_NE(folder.read(2).hash, hash);
}

TEST(Ids, WarningsOfTheCardAreSaid) {
  Folder folder;
  folder.card["warnings"] = {"first", "second"};
  Texts said;
  const WarningListener listener([&said](const std::string& text) { said.push_back(text); });
  (void)folder.read(2);
  EXPECT_THAT(said, ElementsAre("first", "second"));
}

TEST(Ids, WhatIsMissingCutOrAlteredIsNamed) {
  EXPECT_EQ(error_of([] { (void)read_ids("ids", "/no/such", 2); }),
            "/no/such/card.json: cannot be read; give a folder that attnas prepare has written");
  const auto changed = [](auto change) {
    Folder folder;
    change(folder);
    return std::pair(folder.error(), folder.path(""));
  };
  auto [error, path] = changed([](Folder& folder) { fs::remove(folder.path("valid.bin")); });
  EXPECT_EQ(error, path + "valid.bin: cannot be read");
  std::tie(error, path) = changed([](Folder& f) { fs::resize_file(f.path("valid.bin"), 24); });
  EXPECT_THAT(error, StartsWith(path + "valid.bin: has 24 bytes of SHA-256 "));
  EXPECT_THAT(error, HasSubstr(" as card.json says: it is cut or altered; prepare it again"));
  std::tie(error, path) = changed([](Folder& f) { fs::resize_file(f.path("valid.bin"), 30); });
  EXPECT_THAT(error, StartsWith(path + "valid.bin: has 30 bytes of SHA-256 "));
  for (const auto* name : {"test.bin", "vocabulary.txt"}) {
    std::tie(error, path) = changed([name](Folder& folder) {
      std::fstream(folder.path(name), std::ios::in | std::ios::out | std::ios::binary) << '\3';
    });
    EXPECT_THAT(error, StartsWith(path + name + ": has ")) << name;
  }
}

TEST(Ids, WhatIsNoIdIsNamed) {
  for (const std::int32_t id : {5, -1}) {
    Folder folder;
    folder.split("valid", {1, 2, id});
    EXPECT_EQ(folder.error(),
              folder.path("valid.bin") + ": id 3 is " + std::to_string(id) + ", must be in [0, 5)");
  }
  Published folder(2);
  for (const auto& begins : {Lines{0, 6}, Lines{3, 0}, Lines{-1, 2}}) {
    folder.lines("valid", {3, 4, 5, 6, 7}, begins);
    EXPECT_EQ(folder.error(),
              folder.path("valid.lines.bin") + ": lines must begin in order, in [0, 5]");
  }
}

TEST(Ids, WhatACardMayNotSayIsNamed) {
  const auto error = [](const Json& change) {
    Folder folder;
    folder.card.merge_patch(change);
    const auto text = folder.error();
    const auto file = folder.path("card.json") + ": ";
    return text.starts_with(file) ? text.substr(file.size()) : text;
  };
  EXPECT_EQ(error({{"format", 2}}), "format = 2, must be an integer in [1, 1]");
  EXPECT_EQ(error({{"format", nullptr}}), "format is missing");
  EXPECT_EQ(error({{"vocabulary", 2.5}}), "vocabulary = 2.5, must be an integer in [1, 100000000]");
  EXPECT_EQ(error({{"special", {{"unknown", 5}}}}), "unknown = 5, must be an integer in [-1, 4]");
  EXPECT_EQ(error({{"layout", "other"}}),
            "layout = other, must be standard, published or examples");
  EXPECT_EQ(error({{"layout", "published"}}),
            "special.pad is -1, must be an id in published layout");
  EXPECT_EQ(error({{"unit", 3}}), "unit = 3, must be a text");
  EXPECT_EQ(error({{"sha256", {{"train.bin", nullptr}}}}), "train.bin is missing");
  EXPECT_EQ(error({{"tokenizer_file", "../key"}}),
            "tokenizer_file = ../key, must be a name without a folder");
  EXPECT_THAT(error({{"layout", "examples"}}), HasSubstr("context is missing"));
}

TEST(Ids, RefuseAnEmptySplitAndAContextBelowTwo) {
  for (const auto* split : {"train", "valid", "test"}) {
    Folder folder;
    folder.split(split, {1});
    EXPECT_EQ(folder.error(), "test: the " + std::string(split) + " split has no text");
  }
  EXPECT_THAT(Folder().error(1), HasSubstr("model.context = 1, must be in [2"));
}

}  // namespace
}  // namespace nas
