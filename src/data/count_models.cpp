#include "data/count_models.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/seed.hpp"

namespace nas {

namespace {

using Id = std::int32_t;
constexpr Id kNone = -1;

/// Pairs of an id and a token, numbered from 0 in the order in which they come: open addressing.
class PairIds {
 public:
  /// @return the pair's number, a new one where it was not there.
  Id insert(Id id, Id token) {
    if (3 * (size_ + 1) > 2 * entries_.size()) grow();
    const auto key = key_of(id, token);
    auto& entry = entries_[place_of(key)];
    if (entry.number == kNone) entry = {key, static_cast<Id>(size_++)};
    return entry.number;
  }
  /// @return the pair's number, or kNone.
  [[nodiscard]] Id find(Id id, Id token) const {
    return size_ == 0 ? kNone : entries_[place_of(key_of(id, token))].number;
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Entry {
    std::uint64_t key = 0;
    Id number = kNone;
  };

  static std::uint64_t key_of(Id id, Id token) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(id)) << 32U |
           static_cast<std::uint32_t>(token);
  }

  /// Where the key is, or would come.
  [[nodiscard]] std::size_t place_of(std::uint64_t key) const {
    const auto mask = entries_.size() - 1;
    auto place = static_cast<std::size_t>(mix64(key)) & mask;
    while (entries_[place].number != kNone && entries_[place].key != key) {
      place = (place + 1) & mask;
    }
    return place;
  }

  void grow() {
    constexpr std::size_t kFirst = 1024;
    const auto old = std::exchange(
        entries_, std::vector<Entry>(entries_.empty() ? kFirst : 2 * entries_.size()));
    for (const auto& entry : old) {
      if (entry.number != kNone) entries_[place_of(entry.key)] = entry;
    }
  }

  std::vector<Entry> entries_{};  ///< a power of two of them
  std::size_t size_ = 0;
};

/// Targets that count, each with the history that its window has of it.
struct Targets {
  std::int64_t length = 0;      ///< tokens per window
  std::vector<Id> inputs{};     ///< window after window
  std::vector<Id> targets{};    ///< those that count
  std::vector<Id> positions{};  ///< of each: index of the input that it follows
  std::vector<Id> contexts{};   ///< of each: number of its history at the present order, or kNone

  [[nodiscard]] std::size_t size() const { return targets.size(); }
  /// The token `back` tokens before target i, from 1 on; kNone beyond the window's beginning.
  [[nodiscard]] Id token_before(std::size_t i, std::int64_t back) const {
    const std::int64_t position = positions[i];
    if (position % length < back - 1) return kNone;
    return inputs[static_cast<std::size_t>(position - back + 1)];
  }
};

/// @param seen  by what identifies a target, whether it has been read; empty: all are new.
void append_window(const Windows& windows, const DrawnWindow& read, std::vector<bool>& seen,
                   std::vector<std::int64_t>& input, std::vector<std::int64_t>& target,
                   Targets& result) {
  windows.read(read.index, read.offset, input.data(), target.data());
  // An explicit target belongs to its window, one of the stream to its place there.
  const auto first = windows.targets.empty()
                         ? windows.starts[static_cast<std::size_t>(read.index)] + read.offset
                         : read.index * windows.length;
  const auto begin = std::ssize(result.inputs);
  bool any = false;
  for (std::int64_t t = 0; t < windows.length; ++t) {
    const auto id = target[static_cast<std::size_t>(t)];
    if (id == kNotScored || id == windows.last_target) continue;
    if (!seen.empty()) {
      const auto place = static_cast<std::size_t>(first + t);
      if (seen[place]) continue;
      seen[place] = true;
    }
    if (begin + t >= std::numeric_limits<Id>::max()) {
      throw InputError("count models: more than " + std::to_string(std::numeric_limits<Id>::max()) +
                       " tokens, must be fewer");
    }
    result.targets.push_back(static_cast<Id>(id));
    result.positions.push_back(static_cast<Id>(begin + t));
    any = true;
  }
  if (any) result.inputs.insert(result.inputs.end(), input.begin(), input.end());
}

Targets read_targets(const Windows& windows, std::span<const DrawnWindow> read,
                     std::vector<bool> seen) {
  Targets result{.length = windows.length};
  std::vector<std::int64_t> input(static_cast<std::size_t>(windows.length));
  std::vector<std::int64_t> target(input.size());
  for (const auto& window : read) append_window(windows, window, seen, input, target, result);
  result.contexts.assign(result.size(), 0);
  return result;
}

/// The token that a model ranks first, and its probability.
struct Best {
  Id token = 0;
  double probability = 0.0;

  void take(const Best& other) {
    const bool better = other.probability > probability ||
                        (other.probability == probability && other.token < token);
    if (better) *this = other;
  }
};

/// What follows a history.
struct Context {
  std::int64_t count = 0;  ///< c(h)
  std::int64_t types = 0;  ///< T(h)
  Best best{};

  /// The part of the lower order, T / (c + T).
  [[nodiscard]] double lower_weight() const {
    return static_cast<double>(types) / static_cast<double>(count + types);
  }
};

/// What is counted of a token after a history.
struct Gram {
  Id context = 0;
  Id token = 0;
  std::int64_t count = 0;    ///< c(h w)
  double probability = 0.0;  ///< that of the lower order, then p_n(w | h)
};

/// The counts of one order on top of those of the order below.
class Order {
 public:
  /// @param n      order, from 1 on.
  /// @param train  its contexts are those of order n - 1 before, and of order n then.
  /// @param grams  of each target of train the gram of order n - 1, likewise.
  Order(int n, double uniform, const Order* lower, Targets& train, std::vector<Id>& grams) : n_(n) {
    for (std::size_t i = 0; i < train.size(); ++i) {
      const auto below = train.contexts[i];
      const auto context = context_of(train, i, [this](Id id, Id t) { return ids_.insert(id, t); });
      train.contexts[i] = context;
      if (context == kNone) continue;
      if (static_cast<std::size_t>(context) == contexts_.size()) {
        contexts_.emplace_back();
        contexts_.back().best = lower == nullptr
                                    ? Best{0, uniform}
                                    : lower->contexts_[static_cast<std::size_t>(below)].best;
      }
      const auto gram = gram_ids_.insert(context, train.targets[i]);
      if (static_cast<std::size_t>(gram) == grams_.size()) {
        ++at(context).types;
        grams_.push_back({context, train.targets[i], 0,
                          lower == nullptr ? uniform : lower->at_gram(grams[i]).probability});
      }
      grams[i] = gram;
      ++at(context).count;
      ++grams_[static_cast<std::size_t>(gram)].count;
    }
    for (auto& context : contexts_) context.best.probability *= context.lower_weight();
    for (auto& gram : grams_) {
      auto& context = at(gram.context);
      gram.probability = (static_cast<double>(gram.count) +
                          static_cast<double>(context.types) * gram.probability) /
                         static_cast<double>(context.count + context.types);
      context.best.take({gram.token, gram.probability});
    }
  }

  /// Scores targets, of which the order below has left contexts, probabilities and what is best.
  CountScores score(Targets& judged, std::vector<double>& probabilities,
                    std::vector<Id>& best) const {
    CountScores scores{.tokens = static_cast<std::int64_t>(judged.size())};
    for (std::size_t i = 0; i < judged.size(); ++i) {
      const auto number =
          context_of(judged, i, [this](Id id, Id token) { return ids_.find(id, token); });
      judged.contexts[i] = number;
      if (number != kNone && !contexts_.empty()) {
        const auto& context = contexts_[static_cast<std::size_t>(number)];
        const auto gram = gram_ids_.find(number, judged.targets[i]);
        probabilities[i] =
            gram == kNone ? probabilities[i] * context.lower_weight() : at_gram(gram).probability;
        best[i] = context.best.token;
      }
      scores.nll -= std::log(probabilities[i]);
      scores.correct += best[i] == judged.targets[i] ? 1 : 0;
    }
    return scores;
  }

 private:
  /// The number of a target's history of n - 1 tokens, found by that of one token less; kNone where
  /// it is not known, or its window has not so many.
  template <class Number>
  Id context_of(const Targets& targets, std::size_t i, Number number) const {
    const auto below = targets.contexts[i];
    if (n_ == 1 || below == kNone) return below;
    const auto oldest = targets.token_before(i, n_ - 1);
    return oldest == kNone ? kNone : number(below, oldest);
  }

  Context& at(Id context) { return contexts_[static_cast<std::size_t>(context)]; }
  [[nodiscard]] const Gram& at_gram(Id gram) const {
    return grams_[static_cast<std::size_t>(gram)];
  }

  int n_;
  PairIds ids_{};       ///< (history without its oldest token, that token)
  PairIds gram_ids_{};  ///< (history, token)
  std::vector<Context> contexts_{};
  std::vector<Gram> grams_{};
};

}  // namespace

std::vector<DrawnWindow> all_windows(const Windows& windows) {
  std::vector<DrawnWindow> all(windows.starts.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i].index = static_cast<std::int64_t>(i);
  return all;
}

double CountScores::mean_nll() const { return nll / static_cast<double>(tokens); }

double CountScores::accuracy() const {
  return static_cast<double>(correct) / static_cast<double>(tokens);
}

CountedScores count_scores(const Windows& train, std::span<const DrawnWindow> read,
                           std::int64_t vocabulary, std::span<const Windows* const> judged) {
  const double uniform = 1.0 / static_cast<double>(vocabulary);
  const auto places = train.targets.empty()
                          ? train.tokens.size() + static_cast<std::size_t>(train.length)
                          : train.targets.size();
  auto counted = read_targets(train, read, std::vector<bool>(places));
  std::vector<Id> grams(counted.size());
  struct Split {
    Targets targets;
    std::vector<double> probabilities;
    std::vector<Id> best;
  };
  std::vector<Split> splits;
  for (const auto* windows : judged) {
    auto targets = read_targets(*windows, all_windows(*windows), {});
    const auto size = targets.size();
    splits.push_back(
        {std::move(targets), std::vector<double>(size, uniform), std::vector<Id>(size)});
  }
  CountedScores result{.tokens = static_cast<std::int64_t>(counted.size())};
  result.scores.resize(judged.size());
  std::optional<Order> lower;
  for (int n = 1; n <= kMostOrder; ++n) {
    Order order(n, uniform, lower ? &*lower : nullptr, counted, grams);
    for (std::size_t i = 0; i < splits.size(); ++i) {
      auto& split = splits[i];
      result.scores[i][static_cast<std::size_t>(n - 1)] =
          order.score(split.targets, split.probabilities, split.best);
    }
    lower = std::move(order);
  }
  return result;
}

std::vector<CountModel> count_models(const Corpus& corpus, std::span<const DrawnWindow> read) {
  const Windows* const judged[] = {&corpus.valid, &corpus.test};
  const auto counted = count_scores(corpus.train, read, corpus.vocabulary, judged);
  std::vector<CountModel> models;
  for (int order = 1; order <= kMostOrder; ++order) {
    const auto place = static_cast<std::size_t>(order - 1);
    models.push_back({order, counted.tokens, counted.scores[0][place], counted.scores[1][place]});
  }
  return models;
}

}  // namespace nas
