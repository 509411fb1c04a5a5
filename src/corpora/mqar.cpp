#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "core/host.hpp"
#include "core/seed.hpp"
#include "core/setting_forms.hpp"
#include "data/corpus.hpp"
#include "data/drawn_corpus.hpp"

namespace nas {

namespace {

struct Task {
  std::int64_t vocabulary;  // V
  std::int64_t length;      // L
  std::int64_t pairs;       // D
  std::int64_t updates;     // U
  double power;             // a
  bool random_non_queries;

  [[nodiscard]] std::int64_t context() const { return 2 * (pairs + updates); }
  [[nodiscard]] std::int64_t num_gaps() const { return (length - context()) / 2; }
};

Task read_task(const Parameters& settings, std::int64_t context) {
  const Task task{.vocabulary = settings.get<std::int64_t>("vocabulary"),
                  .length = context,
                  .pairs = settings.get<std::int64_t>("pairs"),
                  .updates = settings.get<std::int64_t>("updates"),
                  .power = settings.get<double>("power"),
                  .random_non_queries = settings.get<bool>("random_non_queries")};
  const auto length = settings.get<std::int64_t>("length");
  if (length != 0 && length != context) {
    refuse_setting("mqar", "data.length", length,
                   "0 or equal to model.context (" + std::to_string(context) + ")");
  }
  if (context % 2 != 0) refuse_setting("mqar", "model.context", context, "even");
  if (task.pairs > context / 4) {
    refuse_setting("mqar", "data.pairs", task.pairs,
                   "at most a quarter of model.context (" + std::to_string(context) + ")");
  }
  if (task.updates > std::min(task.pairs, context / 2 - 2 * task.pairs)) {
    refuse_setting("mqar", "data.updates", task.updates,
                   "at most data.pairs (" + std::to_string(task.pairs) +
                       ") and leave two tokens of model.context (" + std::to_string(context) +
                       ") for each query");
  }
  if (task.vocabulary <= context) {
    refuse_setting("mqar", "data.vocabulary", task.vocabulary,
                   "greater than model.context (" + std::to_string(context) + ")");
  }
  return task;
}

class Generator {
 public:
  explicit Generator(const Task& task)
      : task_(task), drawn_(static_cast<std::size_t>(task.vocabulary), false) {
    for (std::int64_t gap = 0; gap < task.num_gaps(); ++gap) {
      weights_.push_back(std::pow(static_cast<double>(gap + 1), task.power - 1.0));
    }
  }

  void draw(RandomEngine& random, const Example& example) {
    const std::int64_t first_value = task_.vocabulary / 2;
    draw_distinct_ids(random, 1, first_value, keys_);
    draw_distinct_ids(random, first_value, task_.vocabulary, values_);
    show(example, keys_, values_, 0);
    if (task_.updates > 0) draw_updates(random, example);
    draw_gaps(random);
    for (std::size_t pair = 0; pair < keys_.size(); ++pair) {
      const auto query = static_cast<std::size_t>(task_.context() + 2 * gaps_[pair].gap);
      example.input[query] = keys_[pair];
      example.target[query] = values_[pair];
    }
    if (!task_.random_non_queries) return;
    for (auto& token : example.input) {
      if (token == 0) token = static_cast<std::int32_t>(random.below(task_.vocabulary));
    }
  }

 private:
  struct Gap {
    double arrival;
    std::int64_t gap;
  };
  using Ids = std::vector<std::int32_t>;

  static void show(const Example& example, const Ids& keys, const Ids& values, std::size_t start) {
    for (std::size_t pair = 0; pair < keys.size(); ++pair) {
      example.input[start + 2 * pair] = keys[pair];
      example.input[start + 2 * pair + 1] = values[pair];
    }
  }

  // D distinct ids of begin .. end - 1, uniform. At most half of them are drawn, so that drawing
  // again on a repetition is cheap.
  void draw_distinct_ids(RandomEngine& random, std::int64_t begin, std::int64_t end, Ids& ids) {
    ids.clear();
    while (std::ssize(ids) < task_.pairs) {
      const std::int64_t id = begin + random.below(end - begin);
      if (drawn_[static_cast<std::size_t>(id)]) continue;
      drawn_[static_cast<std::size_t>(id)] = true;
      ids.push_back(static_cast<std::int32_t>(id));
    }
    for (const std::int32_t id : ids) drawn_[static_cast<std::size_t>(id)] = false;
  }

  // U of the keys are shown again, in any order, each with another value, which other keys may have.
  void draw_updates(RandomEngine& random, const Example& example) {
    const std::int64_t first_value = task_.vocabulary / 2;
    Ids keys;
    Ids values;
    for (const auto pair : draw_distinct(random, 0, task_.pairs, task_.updates)) {
      auto& value = values_[static_cast<std::size_t>(pair)];
      const auto other = first_value + random.below(task_.vocabulary - first_value - 1);
      value = static_cast<std::int32_t>(other < value ? other : other + 1);
      keys.push_back(keys_[static_cast<std::size_t>(pair)]);
      values.push_back(value);
    }
    show(example, keys, values, 2 * keys_.size());
  }

  // Weighted draws without replacement, in order: the D first arrivals of exponential clocks with
  // the weights as rates (Efraimidis and Spirakis 2006).
  void draw_gaps(RandomEngine& random) {
    gaps_.clear();
    for (std::size_t gap = 0; gap < weights_.size(); ++gap) {
      gaps_.push_back(
          {-std::log1p(-random.uniform()) / weights_[gap], static_cast<std::int64_t>(gap)});
    }
    std::partial_sort(gaps_.begin(), gaps_.begin() + task_.pairs, gaps_.end(),
                      [](const Gap& a, const Gap& b) { return a.arrival < b.arrival; });
  }

  Task task_;
  std::vector<bool> drawn_;
  std::vector<double> weights_;
  Ids keys_, values_;
  std::vector<Gap> gaps_;
};

/// What the best guess that knows nothing but a query's place reaches, by frequencies n_tj of
/// pair j being asked for at place t: accuracy = sum_t max_j n_tj / n, nll = the entropy of j given
/// t. That is 1/D and ln D where all gaps weigh the same (power 1); where short ones weigh more,
/// early pairs are asked for early.
ChanceLevel guess_by_place(const Windows& examples, const Task& task) {
  std::vector<std::vector<double>> asked(static_cast<std::size_t>(task.length),
                                         std::vector<double>(static_cast<std::size_t>(task.pairs)));
  for (const auto start : examples.starts) {
    const auto* input = examples.tokens.data() + start;
    const auto* target = examples.targets.data() + start;
    for (std::int64_t t = task.context(); t < task.length; ++t) {
      if (target[t] == kNotScored) continue;
      std::int64_t pair = 0;
      while (input[2 * pair] != input[t]) ++pair;
      ++asked[static_cast<std::size_t>(t)][static_cast<std::size_t>(pair)];
    }
  }
  const auto all = static_cast<double>(std::ssize(examples.starts) * task.pairs);
  ChanceLevel chance{.by = std::string("guessing among the ") +
                           (task.updates > 0 ? "last values of the keys" : "values shown") +
                           ", by the place of the query"};
  for (const auto& pairs : asked) {
    const auto here = std::accumulate(pairs.begin(), pairs.end(), 0.0);
    chance.accuracy += *std::max_element(pairs.begin(), pairs.end()) / all;
    for (const auto count : pairs) {
      if (count > 0.0) chance.nll -= count / all * std::log(count / here);
    }
  }
  return chance;
}

std::vector<Setting> settings() {
  return {
      setting::integer("vocabulary", 256, 4, 1e6,
                       "V ids: keys 1 .. V/2-1, values V/2 .. V-1; greater than the context"),
      setting::integer("length", 0, 0,
                       "L tokens of an example; 0 = model.context, which it must equal"),
      setting::integer("pairs", 4, 1,
                       "D key-value pairs of an example, at most a quarter of the context"),
      setting::integer(
          "updates", 0, 0,
          "U keys of an example get another value, shown behind the D pairs; right is the last"),
      setting::number("power", 0.01, 0, "a: a query stands at gap g with weight (g + 1)^(a - 1)"),
      setting::integer("train_examples", 10000, 1, "examples to train on"),
      setting::integer("test_examples", 1000, 1,
                       "examples to validate on, and as many others to test on"),
      setting::any("random_non_queries", true,
                   "tokens between the queries: uniform over the vocabulary (true) or 0 (false)"),
      setting::any("seed", std::int64_t{1}, "seed of the examples"),
  };
}

Corpus load(const Parameters& settings, std::int64_t context, const DataLocation& /*location*/) {
  const Task task = read_task(settings, context);
  const auto train = settings.get<std::int64_t>("train_examples");
  const auto test = settings.get<std::int64_t>("test_examples");
  constexpr double kBytesPerToken = 2 * sizeof(std::int32_t);  // and its target
  const auto per_token =
      (static_cast<double>(train) + 2.0 * static_cast<double>(test)) * kBytesPerToken +
      static_cast<double>(task.pairs) * sizeof(double);  // of guess_by_place()
  require_memory("mqar: data.train_examples = " + std::to_string(train) +
                     ", data.test_examples = " + std::to_string(test) +
                     ", data.pairs = " + std::to_string(task.pairs) +
                     " of model.context = " + std::to_string(context) + " tokens",
                 static_cast<double>(context) * per_token);
  Corpus corpus;
  corpus.name = "mqar";
  corpus.description = "multi-query associative recall; " + std::to_string(task.pairs) +
                       " pairs in " + std::to_string(context) + " tokens, vocabulary " +
                       std::to_string(task.vocabulary);
  if (task.updates > 0) {
    corpus.description += "; second values: " + std::to_string(task.updates);
  }
  corpus.vocabulary = task.vocabulary;
  Generator generator(task);
  draw_splits(corpus, settings, context, [&](RandomEngine& random, const Example& example) {
    generator.draw(random, example);
  });
  corpus.chance = guess_by_place(corpus.train, task);
  return corpus;
}

NAS_REGISTER_CORPUS(
    {.key = "mqar",
     .summary = "multi-query associative recall, drawn and not downloaded (Arora et "
                "al. 2023, Zoology, arXiv:2312.04927)",
     .settings = settings(),
     .file = __FILE__},
    load);

}  // namespace

}  // namespace nas
