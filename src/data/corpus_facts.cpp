#include "data/corpus_facts.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/hash.hpp"

namespace nas {

namespace {

template <class Number>
void add_number(Sha256& hash, Number number) {
  hash.update(&number, sizeof number);
}

// The length goes first, so that no two lists of vectors give the same bytes.
template <class Number>
void add_vector(Sha256& hash, const std::vector<Number>& numbers) {
  add_number(hash, numbers.size());
  hash.update(numbers.data(), numbers.size() * sizeof(Number));
}

void add_windows(Sha256& hash, const Windows& windows) {
  add_number(hash, windows.length);
  add_number(hash, windows.last_target);
  add_number(hash, windows.shift);
  add_vector(hash, windows.tokens);
  add_vector(hash, windows.starts);
  add_vector(hash, windows.targets);
}

// Calls visit(id) for every target, those that are not scored included.
template <class Visit>
void for_each_target(const Windows& windows, Visit visit) {
  std::vector<std::int64_t> input(static_cast<std::size_t>(windows.length));
  std::vector<std::int64_t> target(input.size());
  for (std::int64_t i = 0; i < windows.size(); ++i) {
    windows.read(i, 0, input.data(), target.data());
    for (const std::int64_t id : target) visit(id);
  }
}

// Occurrences of each id among the targets that carry text.
std::vector<std::int64_t> count_text_targets(const Windows& windows, std::int64_t vocabulary) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(vocabulary));
  for_each_target(windows, [&](std::int64_t id) {
    if (id != kNotScored && id != windows.last_target) ++counts[static_cast<std::size_t>(id)];
  });
  return counts;
}

}  // namespace

std::string corpus_hash(const Corpus& corpus) {
  Sha256 hash;
  add_number(hash, corpus.vocabulary);
  add_number(hash, corpus.special.pad);
  add_number(hash, corpus.special.unknown);
  add_number(hash, corpus.special.end_of_sentence);
  add_windows(hash, corpus.train);
  add_windows(hash, corpus.valid);
  add_windows(hash, corpus.test);
  for (const auto& [name, windows] : corpus.further) {
    hash.update(name.data(), name.size() + 1);
    add_windows(hash, windows);
  }
  if (corpus.task != "next_token") {
    hash.update(corpus.task.data(), corpus.task.size() + 1);
    add_number(hash, corpus.labels);
  }
  return hash.hex();
}

std::int64_t count_targets(const Windows& windows, std::int64_t id) {
  if (id < 0) return 0;
  std::int64_t count = 0;
  for_each_target(windows, [&](std::int64_t target) { count += target == id ? 1 : 0; });
  return count;
}

UnknownShares unknown_shares(const Corpus& corpus) {
  UnknownShares shares;
  if (corpus.special.unknown < 0) return shares;
  for (const auto& [split, windows] :
       {std::pair("train", &corpus.train), {"valid", &corpus.valid}, {"test", &corpus.test}}) {
    if (const auto scored = static_cast<double>(windows->num_scored()); scored > 0) {
      const auto unknown = count_targets(*windows, corpus.special.unknown);
      shares[split] = static_cast<double>(unknown) / scored;
    }
  }
  return shares;
}

std::string unknown_text(const UnknownShares& shares) {
  std::string text;
  for (const auto* split : {"train", "valid", "test"}) {
    const auto share = shares.find(split);
    if (share == shares.end()) continue;
    text += (text.empty() ? "" : ", ") + shortest(std::round(1e4 * share->second) / 100.0) +
            " % of " +
            (text.empty() ? "the targets of " + share->first + " are <unk>" : share->first);
  }
  return text;
}

std::string unknown_warning(const UnknownShares& shares, const Parameters& settings) {
  constexpr double kMost = 0.05;
  const bool many = std::any_of(shares.begin(), shares.end(),
                                [&](const auto& share) { return share.second > kMost; });
  if (!many || !settings.contains("tokenizer")) return {};
  constexpr std::int64_t kPairs = 2000;
  const auto size = settings.get<std::int64_t>("vocabulary");
  const bool published = settings.get<std::string>("layout") != "standard";
  return unknown_text(shares) +
         ": what a model gets right there is no text. Pairs of bytes know all: data: "
         "{tokenizer: bpe, vocabulary: " +
         std::to_string(size > 256 ? size : kPairs) + (published ? ", layout: standard}" : "}");
}

ChanceLevel label_chance(const Windows& windows, std::int64_t labels) {
  ChanceLevel chance{.by = "guessing by how frequent the answers are"};
  const auto scored = static_cast<double>(windows.num_scored());
  for (std::int64_t label = 0; label < labels; ++label) {
    const double share = static_cast<double>(count_targets(windows, label)) / scored;
    if (share > 0.0) chance.nll -= share * std::log(share);
    chance.accuracy = std::max(chance.accuracy, share);
  }
  return chance;
}

double unigram_perplexity(const Windows& train, const Windows& valid, std::int64_t vocabulary) {
  const auto known = count_text_targets(train, vocabulary);
  const auto asked = count_text_targets(valid, vocabulary);
  std::int64_t total = vocabulary;
  for (const std::int64_t count : known) total += count;
  double nll = 0.0;
  std::int64_t tokens = 0;
  for (std::size_t id = 0; id < known.size(); ++id) {
    nll -= static_cast<double>(asked[id]) *
           std::log(static_cast<double>(known[id] + 1) / static_cast<double>(total));
    tokens += asked[id];
  }
  if (tokens == 0) throw InputError("the valid split has 0 scored targets, must be at least 1");
  return std::exp(nll / static_cast<double>(tokens));
}

}  // namespace nas
