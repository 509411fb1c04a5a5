#include "data/ids.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/host.hpp"
#include "core/warning.hpp"
#include "data/corpus_facts.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Ids = std::vector<std::int32_t>;

constexpr std::int64_t kMost = 1'000'000'000'000;

/// The folder and its card.json, whose errors begin with the file's name.
class Card {
 public:
  explicit Card(fs::path folder) : folder_(std::move(folder)), file_(folder_ / "card.json") {
    std::ifstream in(file_);
    if (!in.is_open()) {
      throw InputError(file_.string() +
                       ": cannot be read; give a folder that attnas prepare has written");
    }
    json_ = Json::parse(in, nullptr, /*allow_exceptions=*/false);
    (void)integer("format", 1, 1);
    for (const auto& warning : json_.value("warnings", std::vector<std::string>())) warn(warning);
  }

  [[nodiscard]] const fs::path& folder() const { return folder_; }
  /// Whether there is something else than null.
  [[nodiscard]] bool has(const std::string& name) const {
    return json_.contains(name) && !json_.at(name).is_null();
  }
  [[nodiscard]] const Json& at(const Json& json, const std::string& name) const {
    if (!json.is_object() || !json.contains(name)) refuse(name + " is missing");
    return json.at(name);
  }
  [[nodiscard]] const Json& at(const std::string& name) const { return at(json_, name); }
  [[nodiscard]] std::int64_t integer(const Json& json, const std::string& name, std::int64_t least,
                                     std::int64_t most) const {
    const auto& value = at(json, name);
    if (value.is_number_integer() && value >= least && value <= most) return value;
    refuse(name + " = " + value.dump() + ", must be an integer in [" + std::to_string(least) +
           ", " + std::to_string(most) + "]");
  }
  [[nodiscard]] std::int64_t integer(const std::string& name, std::int64_t least,
                                     std::int64_t most) const {
    return integer(json_, name, least, most);
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    if (at(name).is_string()) return at(name);
    refuse(name + " = " + at(name).dump() + ", must be a text");
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError(file_.string() + ": " + what);
  }

  /// Of all splits, as far as the files are there.
  [[nodiscard]] double bytes_of_ids() const {
    double bytes = 0.0;
    for (const auto* file : {"train.bin", "valid.bin", "test.bin"}) {
      std::error_code missing;  // said by read()
      if (const auto size = fs::file_size(folder_ / file, missing); !missing) {
        bytes += static_cast<double>(size);
      }
    }
    return bytes;
  }

  /// What a file of the folder holds, of which the card has the digest.
  template <class Container>
  [[nodiscard]] Container read(const std::string& name) const {
    const auto file = folder_ / name;
    const auto& digest = at(at("sha256"), name);
    std::ifstream in(file, std::ios::binary | std::ios::ate);
    const auto size = in.is_open() ? static_cast<std::int64_t>(in.tellg()) : -1;
    if (size < 0) throw InputError(file.string() + ": cannot be read");
    constexpr auto kItem = static_cast<std::int64_t>(sizeof(typename Container::value_type));
    Container items(static_cast<std::size_t>(size / kItem), {});
    in.seekg(0);
    in.read(reinterpret_cast<char*>(items.data()), size / kItem * kItem);
    Sha256 hash;
    hash.update(items.data(), static_cast<std::size_t>(size / kItem * kItem));
    if (const auto found = hash.hex(); size % kItem != 0 || !in || digest != found) {
      throw InputError(file.string() + ": has " + std::to_string(size) + " bytes of SHA-256 " +
                       found.substr(0, 12) + "..., must have " + digest.dump() +
                       " as card.json says: it is cut or altered; prepare it again");
    }
    return items;
  }

  /// Ids below a number.
  [[nodiscard]] Ids ids(const std::string& name, std::int64_t below) const {
    auto ids = read<Ids>(name);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= 0 && ids[i] < below) continue;
      throw InputError((folder_ / name).string() + ": id " + std::to_string(i + 1) + " is " +
                       std::to_string(ids[i]) + ", must be in [0, " + std::to_string(below) + ")");
    }
    return ids;
  }

  /// Where lines begin, in order, among so many ids.
  [[nodiscard]] std::vector<std::int64_t> lines(const std::string& name, std::int64_t ids) const {
    auto lines = read<std::vector<std::int64_t>>(name);
    if (std::is_sorted(lines.begin(), lines.end()) &&
        (lines.empty() || (lines.front() >= 0 && lines.back() <= ids))) {
      return lines;
    }
    throw InputError((folder_ / name).string() + ": lines must begin in order, in [0, " +
                     std::to_string(ids) + "]");
  }

 private:
  fs::path folder_, file_;
  Json json_;
};

// The first id of a stream is input only, so it has one target less than ids.
Windows contiguous_windows(Ids stream, std::int64_t length, bool train) {
  const std::int64_t num_targets = std::ssize(stream) - 1;
  Windows windows;
  windows.length = length;
  windows.tokens = std::move(stream);
  std::int64_t end = num_targets;
  if (train) {
    // Every window must keep a target at every offset: a step on none would have no mean loss.
    windows.shift = std::clamp<std::int64_t>(num_targets, 1, length);
    end = std::max(num_targets - length + 1, std::min<std::int64_t>(num_targets, 1));
  }
  for (std::int64_t start = 0; start < end; start += length) windows.starts.push_back(start);
  return windows;
}

/// @param lines  where they begin; those of no more than `length` ids are left out.
Windows published_windows(const Ids& stream, std::vector<std::int64_t> lines, std::int64_t length,
                          std::int32_t pad) {
  Windows windows;
  windows.length = length;
  windows.last_target = pad;
  const std::int64_t stride = std::max<std::int64_t>(1, length / 2);
  windows.tokens.reserve(stream.size());
  lines.push_back(std::ssize(stream));
  for (std::size_t line = 0; line + 1 < lines.size(); ++line) {
    if (lines[line + 1] - lines[line] <= length) continue;
    const std::int64_t begin = std::ssize(windows.tokens);
    windows.tokens.insert(windows.tokens.end(), stream.begin() + lines[line],
                          stream.begin() + lines[line + 1]);
    for (auto start = begin; start < std::ssize(windows.tokens) - length; start += stride) {
      windows.starts.push_back(start);
    }
  }
  return windows;
}

/// Examples of L ids with a label each, or of one more where each next id is asked.
Windows example_windows(const Card& card, const std::string& split, Ids ids, std::int64_t labels,
                        std::int64_t length) {
  Windows windows;
  windows.length = length;
  windows.tokens = std::move(ids);
  const auto size = length + (labels > 0 ? 0 : 1);
  for (std::int64_t start = 0; start + size <= std::ssize(windows.tokens); start += size) {
    windows.starts.push_back(start);
  }
  if (labels == 0) return windows;
  const auto name = split + ".labels.bin";
  const auto label = card.ids(name, labels);
  if (std::ssize(label) != windows.size()) {
    throw InputError((card.folder() / name).string() + ": has " + std::to_string(label.size()) +
                     " labels, must be " + std::to_string(windows.size()));
  }
  windows.targets.assign(windows.tokens.size(), static_cast<std::int32_t>(kNotScored));
  for (std::size_t i = 0; i < label.size(); ++i) {
    windows.targets[(i + 1) * static_cast<std::size_t>(length) - 1] = label[i];
  }
  return windows;
}

/// Windows of fewer ids than were prepared for would lack the lines between, or parts of examples.
void require_context(const Card& card, const std::string& name, std::int64_t context,
                     bool examples) {
  if (!examples && !card.has("context")) return;
  const auto prepared = card.integer("context", 1, kMost);
  if (examples ? context == prepared : context >= prepared) return;
  throw InputError(name + ": model.context = " + std::to_string(context) + ", must be " +
                   (examples ? "" : "at least ") + std::to_string(prepared) + ", which " +
                   card.folder().string() + " was prepared for");
}

/// What is known before the ids are read.
void take_facts(const Card& card, Corpus& corpus) {
  corpus.vocabulary = card.integer("vocabulary", 1, 100'000'000);
  const auto special = [&](const char* token) {
    return static_cast<std::int32_t>(
        card.integer(card.at("special"), token, -1, corpus.vocabulary - 1));
  };
  corpus.special = {.pad = special("pad"),
                    .unknown = special("unknown"),
                    .end_of_sentence = special("end_of_sentence")};
  corpus.unit = card.text("unit");
  if (corpus.special.pad < 0 && card.text("layout") == "published") {
    card.refuse("special.pad is -1, must be an id in published layout");
  }
  if (card.has("task")) corpus.task = card.text("task");
  if (corpus.task != "next_token") corpus.labels = card.integer("labels", 1, corpus.vocabulary);
  if (!card.has("tokenizer_file")) return;
  corpus.tokenizer_file = card.text("tokenizer_file");
  if (corpus.tokenizer_file != fs::path(corpus.tokenizer_file).filename()) {
    card.refuse("tokenizer_file = " + corpus.tokenizer_file + ", must be a name without a folder");
  }
  corpus.tokenizer = card.read<std::string>(corpus.tokenizer_file);
}

}  // namespace

Corpus read_ids(const std::string& name, const fs::path& folder, std::int64_t context) {
  require_in_range("model.context", static_cast<double>(context), 2, 1e9);
  const Card card(folder);
  const auto layout = card.text("layout");
  const bool examples = layout == "examples";
  const bool published = layout == "published";
  if (!examples && !published && layout != "standard") {
    card.refuse("layout = " + layout + ", must be standard, published or examples");
  }
  require_context(card, name, context, examples);
  Corpus corpus;
  corpus.name = name;
  take_facts(card, corpus);
  const auto description = card.text("description");
  require_memory(name + ": " + description, card.bytes_of_ids());
  for (const auto& [split, windows] : {std::pair(std::string("train"), &corpus.train),
                                       {"valid", &corpus.valid},
                                       {"test", &corpus.test}}) {
    auto ids = card.ids(split + ".bin", corpus.vocabulary);
    if (published) {
      *windows = published_windows(ids, card.lines(split + ".lines.bin", std::ssize(ids)), context,
                                   corpus.special.pad);
    } else if (examples) {
      *windows = example_windows(card, split, std::move(ids), corpus.labels, context);
    } else {
      *windows = contiguous_windows(std::move(ids), context, windows == &corpus.train);
    }
    if (windows->size() > 0) continue;
    throw InputError(name + ": the " + split + " split has " +
                     (published ? "no line of more than " + std::to_string(context) +
                                      " words (the context), which layout = published needs"
                                : "no text"));
  }
  corpus.description = examples ? description
                                : description + "; " + std::to_string(corpus.vocabulary) + " " +
                                      card.text("many") + ", " + layout + " layout, windows of " +
                                      std::to_string(context);
  // Published windows score inner words twice and leave text out: bits per byte mean nothing there.
  if (layout == "standard") {
    const auto bytes_per_token = [&card](const char* split, const Windows& windows) {
      // What tokens lose of a text would be free of charge.
      if (card.has("keeps") && card.at("keeps").contains(split) &&
          card.at("keeps").at(split) == false) {
        return 0.0;
      }
      return static_cast<double>(card.integer(card.at("bytes"), split, 0, kMost)) /
             static_cast<double>(windows.num_scored());
    };
    corpus.bytes_per_token = bytes_per_token("valid", corpus.valid);
    corpus.test_bytes_per_token = bytes_per_token("test", corpus.test);
  }
  if (corpus.labels > 0) {
    corpus.chance = label_chance(corpus.valid, corpus.labels);
  } else {
    corpus.unigram_perplexity = unigram_perplexity(corpus.train, corpus.valid, corpus.vocabulary);
  }
  corpus.hash = corpus_hash(corpus);
  return corpus;
}

}  // namespace nas
