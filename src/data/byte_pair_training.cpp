#include <algorithm>
#include <iterator>
#include <queue>
#include <unordered_set>

#include "data/byte_pairs.hpp"

namespace nas {

namespace {

TokenPair pair_of(std::uint64_t pair) {
  return {static_cast<std::int32_t>(pair >> 32U), static_cast<std::int32_t>(pair & 0xFFFFFFFFU)};
}

/// A different pre-token: how often it is there, and its tokens so far in an array of all.
struct Word {
  std::int64_t count = 0;
  std::size_t begin = 0;
  std::size_t length = 0;
};

/// A pair as the heap has it: its count when it was put there, and the words that had it.
struct Candidate {
  std::int64_t count;
  std::uint64_t pair;
  std::size_t words;  ///< index of a list
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class Trainer {
 public:
  Trainer(std::string_view text, PretokenRule rule) {
    std::vector<std::int32_t> id_of_byte(256);
    for (const auto byte : bytes_in_order()) {
      id_of_byte[byte] = static_cast<std::int32_t>(tokens_.size());
      tokens_.emplace_back(1, static_cast<char>(byte));
      known_.emplace(tokens_.back(), id_of_byte[byte]);
    }
    std::unordered_map<std::string_view, std::size_t> index;
    for_each_pretoken(text, rule, [&](std::string_view pretoken) {
      const auto [found, fresh] = index.try_emplace(pretoken, words_.size());
      if (fresh) {
        words_.push_back({0, symbols_.size(), pretoken.size()});
        for (const char c : pretoken) {
          symbols_.push_back(id_of_byte[static_cast<unsigned char>(c)]);
        }
      }
      ++words_[found->second].count;
    });
  }

  std::vector<BytePairs::Merge> merges(std::int64_t size) {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const auto* symbols = symbols_.data() + words_[i].begin;
      for (std::size_t t = 0; t + 1 < words_[i].length; ++t) {
        change(pair_key(symbols[t], symbols[t + 1]), words_[i].count, i);
      }
    }
    push_changed();
    std::vector<TokenPair> order;
    while ((size == 0 || std::ssize(tokens_) < size) && !heap_.empty()) {
      auto top = heap_.top();
      heap_.pop();
      if (const auto now = counts_[top.pair]; now != top.count) {
        top.count = now;
        heap_.push(top);
        continue;
      }
      if (top.count < 2) break;
      const auto pair = pair_of(top.pair);
      const auto id = joined(pair);
      order.push_back(pair);
      const auto words = std::move(lists_[top.words]);
      for (const auto word : words) merge(word, pair, id);
      push_changed();
    }
    return ranked(order);
  }

  std::vector<std::string> take_tokens() { return std::move(tokens_); }

 private:
  /// The id of a pair's bytes, which another pair may have made before.
  std::int32_t joined(const TokenPair& pair) {
    auto text = tokens_[static_cast<std::size_t>(pair.first)] +
                tokens_[static_cast<std::size_t>(pair.second)];
    const auto [found, fresh] =
        known_.try_emplace(std::move(text), static_cast<std::int32_t>(tokens_.size()));
    if (fresh) tokens_.push_back(found->first);
    return found->second;
  }

  /// Counts a pair that is in a word now, or, by a number below 0, no more.
  void change(std::uint64_t pair, std::int64_t number, std::size_t word) {
    counts_[pair] += number;
    if (number < 0) return;
    const auto [found, fresh] = changed_.try_emplace(pair, lists_.size());
    if (fresh) lists_.emplace_back();
    auto& words = lists_[found->second];
    if (words.empty() || words.back() != word) words.push_back(static_cast<std::uint32_t>(word));
  }

  void push_changed() {
    for (const auto& [pair, words] : changed_) {
      if (const auto count = counts_[pair]; count > 0) heap_.push({count, pair, words});
    }
    changed_.clear();
  }

  void merge(std::size_t index, const TokenPair& pair, std::int32_t id) {
    auto& word = words_[index];
    auto* symbols = symbols_.data() + word.begin;
    std::size_t written = 0;
    for (std::size_t t = 0; t < word.length; ++t) {
      if (t + 1 == word.length || symbols[t] != pair.first || symbols[t + 1] != pair.second) {
        symbols[written++] = symbols[t];
        continue;
      }
      if (written > 0) {
        change(pair_key(symbols[written - 1], pair.first), -word.count, index);
        change(pair_key(symbols[written - 1], id), word.count, index);
      }
      if (t + 2 < word.length) {
        change(pair_key(pair.second, symbols[t + 2]), -word.count, index);
        change(pair_key(id, symbols[t + 2]), word.count, index);
      }
      symbols[written++] = id;
      ++t;
    }
    word.length = written;
  }

  /// A pair that was merged twice counts by its last time, as in tokenizers.
  static std::vector<BytePairs::Merge> ranked(const std::vector<TokenPair>& order) {
    std::unordered_set<std::uint64_t> seen;
    std::vector<BytePairs::Merge> merges;
    for (auto rank = std::ssize(order) - 1; rank >= 0; --rank) {
      const auto& pair = order[static_cast<std::size_t>(rank)];
      if (seen.insert(pair_key(pair.first, pair.second)).second) {
        merges.push_back({pair, static_cast<std::int32_t>(rank)});
      }
    }
    std::reverse(merges.begin(), merges.end());
    return merges;
  }

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int32_t> known_;
  std::vector<Word> words_;
  std::vector<std::int32_t> symbols_;
  std::unordered_map<std::uint64_t, std::int64_t, PairKeyHash> counts_;
  std::unordered_map<std::uint64_t, std::size_t, PairKeyHash> changed_;
  std::vector<std::vector<std::uint32_t>> lists_;
  std::priority_queue<Candidate> heap_;
};

}  // namespace

std::shared_ptr<const BytePairs> train_byte_pairs(std::string_view text, std::int64_t size,
                                                  PretokenRule rule) {
  Trainer trainer(text, rule);
  auto merges = trainer.merges(size);
  return std::make_shared<const BytePairs>(trainer.take_tokens(), std::move(merges), rule);
}

}  // namespace nas
