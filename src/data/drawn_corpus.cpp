#include "data/drawn_corpus.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/error.hpp"
#include "core/host.hpp"
#include "core/setting_forms.hpp"
#include "data/corpus_facts.hpp"

namespace nas {

namespace {

Windows draw_windows(std::int64_t num_examples, std::int64_t length, std::uint64_t seed,
                     bool training, const DrawExample& draw) {
  Windows windows;
  windows.length = length;
  const auto size = static_cast<std::size_t>(num_examples * length);
  windows.tokens.resize(size);
  windows.targets.resize(size, static_cast<std::int32_t>(kNotScored));
  RandomEngine random(seed);
  const auto part = static_cast<std::size_t>(length);
  for (std::size_t start = 0; start < size; start += part) {
    windows.starts.push_back(static_cast<std::int64_t>(start));
    draw(random, {.input = std::span(windows.tokens).subspan(start, part),
                  .target = std::span(windows.targets).subspan(start, part),
                  .training = training});
  }
  return windows;
}

/// The chance of draw_running_counts().
ChanceLevel count_chance(std::int64_t context, std::int64_t modulus) {
  ChanceLevel chance{.by = "guessing by the token and its place"};
  std::vector<double> before(static_cast<std::size_t>(modulus));
  before[0] = 1.0;
  for (std::int64_t t = 0; t < context; ++t) {
    chance.accuracy += *std::max_element(before.begin(), before.end());
    for (const double p : before) {
      if (p > 0.0) chance.nll -= p * std::log(p);
    }
    const auto now = before;
    for (std::size_t count = 0; count < now.size(); ++count) {
      before[count] = 0.5 * (now[count] + now[(count + now.size() - 1) % now.size()]);
    }
  }
  chance.accuracy /= static_cast<double>(context);
  chance.nll /= static_cast<double>(context);
  return chance;
}

/// One example of draw_recall(), of `own` ids that are keys or values.
void draw_recall_example(RandomEngine& random, const Example& example, const RecallTask& task,
                         std::int64_t own) {
  const auto draw = [&](std::int64_t begin, std::int64_t end) {
    return static_cast<std::int32_t>(begin + random.below(end - begin));
  };
  const auto put = [&](std::size_t t, std::int32_t first, std::int32_t second) {
    example.input[t] = first;
    example.input[t + 1] = second;
  };
  std::vector<std::int32_t> value_of(static_cast<std::size_t>(own / 2), -1);
  std::vector<std::int32_t> shown;
  const std::size_t last = example.input.size() - 2;
  // MAD draws this among all pairs, the last included, and fails where the others are noise then.
  const auto certain =
      2 * static_cast<std::size_t>(random.below(std::ssize(example.input) / 2 - 1));
  for (std::size_t t = 0; t < last; t += 2) {
    if (t != certain && task.noise_share > 0.0 && random.uniform() < task.noise_share) {
      const auto noise = draw(own, own + task.noise_vocabulary);
      put(t, noise, draw(own, own + task.noise_vocabulary));
      continue;
    }
    const std::int32_t key = draw(0, own / 2);
    auto& value = value_of[static_cast<std::size_t>(key)];
    if (value < 0) {
      value = draw(own / 2, own);
      shown.push_back(key);
    } else if (task.multi_query) {
      example.target[t] = value;
    }
    put(t, key, value);
  }
  const std::int32_t key = shown[static_cast<std::size_t>(random.below(std::ssize(shown)))];
  const std::int32_t value = value_of[static_cast<std::size_t>(key)];
  if (task.multi_query) {
    put(last, key, value);
  } else {
    put(last, static_cast<std::int32_t>(task.vocabulary - 1), key);
  }
  example.target[task.multi_query ? last : last + 1] = value;
  if (example.training) score_next_tokens(example);
}

}  // namespace

Setting multi_query_setting() {
  return {.name = "multi_query",
          .default_value = true,
          .help =
              "score every key that comes again (true), or the last one only, before which "
              "the last id stands (false)"};
}

Setting test_lengths_setting() {
  return {.name = "test_lengths",
          .default_value = std::vector<std::int64_t>{},
          .help = "further lengths to test on once, tokens; test_examples of each",
          .min = 1};
}

std::vector<Setting> with_example_settings(std::vector<Setting> own, std::int64_t train_examples,
                                           std::int64_t test_examples) {
  own.push_back(
      setting::at_least(1, setting::any("train_examples", train_examples, "examples to train on")));
  own.push_back(
      setting::at_least(1, setting::any("test_examples", test_examples,
                                        "examples to validate on, and as many others to test on")));
  own.push_back(setting::any("seed", std::int64_t{1}, "seed of the examples"));
  return own;
}

void refuse_setting(const std::string& key, const std::string& name, std::int64_t value,
                    const std::string& allowed) {
  throw InputError(key + ": " + name + " = " + std::to_string(value) + ", must be " + allowed);
}

void require_even_context(const std::string& key, std::int64_t context, std::int64_t least) {
  if (context % 2 != 0 || context < least) {
    refuse_setting(key, "model.context", context, "even and at least " + std::to_string(least));
  }
}

void draw_splits(Corpus& corpus, const Parameters& settings, std::int64_t context,
                 const DrawExample& draw) {
  const auto seed = static_cast<std::uint64_t>(settings.get<std::int64_t>("seed"));
  const auto train = settings.get<std::int64_t>("train_examples");
  const auto test = settings.get<std::int64_t>("test_examples");
  std::vector<std::int64_t> lengths;
  if (settings.contains("test_lengths")) {
    lengths = settings.get<std::vector<std::int64_t>>("test_lengths");
  }
  constexpr double kBytesPerToken = 2 * sizeof(std::int32_t);  // and its target
  double further_tokens = 0.0;
  for (const auto length : lengths) {
    if (length < 1) refuse_setting(corpus.name, "data.test_lengths", length, "at least 1");
    further_tokens += static_cast<double>(test) * static_cast<double>(length);
  }
  require_memory(corpus.name + ": data.train_examples = " + std::to_string(train) +
                     ", data.test_examples = " + std::to_string(test) +
                     " of model.context = " + std::to_string(context) + " tokens",
                 ((static_cast<double>(train) + 2.0 * static_cast<double>(test)) *
                      static_cast<double>(context) +
                  further_tokens) *
                     kBytesPerToken);
  const auto split = [&](std::string_view name, std::int64_t num_examples, std::int64_t length) {
    return draw_windows(num_examples, length, derive_seed(seed, 0, corpus.name, name),
                        name == "train", draw);
  };
  corpus.train = split("train", train, context);
  corpus.valid = split("valid", test, context);
  corpus.test = split("test", test, context);
  for (const auto length : lengths) {
    const auto name = "test_" + std::to_string(length);
    corpus.further[name] = split(name, test, length);
  }
  corpus.hash = corpus_hash(corpus);
}

void score_next_tokens(const Example& example) {
  std::copy(example.input.begin() + 1, example.input.end(), example.target.begin());
}

std::vector<std::int32_t> draw_distinct(RandomEngine& random, std::int64_t begin, std::int64_t end,
                                        std::int64_t count) {
  std::vector<std::int32_t> ids;
  while (std::ssize(ids) < count) {
    // Among those that are left: counted past the ones that were drawn, in their order.
    auto id = static_cast<std::int32_t>(begin + random.below(end - begin - std::ssize(ids)));
    auto drawn = ids;
    std::sort(drawn.begin(), drawn.end());
    for (const auto other : drawn) id += other <= id ? 1 : 0;
    ids.push_back(id);
  }
  return ids;
}

ChanceLevel uniform_chance(const std::string& what, std::int64_t num) {
  const auto values = static_cast<double>(num);
  return {.by = "guessing among " + what, .nll = std::log(values), .accuracy = 1.0 / values};
}

Corpus draw_running_counts(const std::string& key, const Parameters& settings, std::int64_t context,
                           std::int64_t modulus) {
  Corpus corpus;
  corpus.name = key;
  corpus.description = "ones so far modulo " + std::to_string(modulus) + " among " +
                       std::to_string(context) + " random bits";
  corpus.vocabulary = modulus;
  draw_splits(corpus, settings, context, [modulus](RandomEngine& random, const Example& example) {
    std::int64_t count = 0;
    for (std::size_t t = 0; t < example.input.size(); ++t) {
      example.input[t] = static_cast<std::int32_t>(random.below(2));
      count = (count + example.input[t]) % modulus;
      example.target[t] = static_cast<std::int32_t>(count);
    }
  });
  corpus.chance = count_chance(context, modulus);
  return corpus;
}

Corpus draw_recall(const std::string& key, const Parameters& settings, std::int64_t context,
                   const RecallTask& task) {
  require_even_context(key, context, 4);
  const std::int64_t others = task.noise_vocabulary + (task.multi_query ? 0 : 1);
  const std::int64_t own = task.vocabulary - others;
  if (own < 4) {
    refuse_setting(key, "data.vocabulary", task.vocabulary,
                   "at least " + std::to_string(others + 4) + ", of which " +
                       std::to_string(others) + " are neither keys nor values");
  }
  Corpus corpus;
  corpus.name = key;
  corpus.description = "recall of pairs of " + std::to_string(own / 2) + " keys and " +
                       std::to_string(own - own / 2) + " values in " + std::to_string(context) +
                       " tokens";
  corpus.vocabulary = task.vocabulary;
  draw_splits(corpus, settings, context, [&](RandomEngine& random, const Example& example) {
    draw_recall_example(random, example, task, own);
  });
  corpus.chance = uniform_chance("the values", own - own / 2);
  return corpus;
}

}  // namespace nas
