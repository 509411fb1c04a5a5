#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/seed.hpp"
#include "core/setting_forms.hpp"
#include "data/corpus.hpp"
#include "data/drawn_corpus.hpp"

namespace nas {

namespace {

using Motif = std::vector<std::int32_t>;

struct Task {
  std::int64_t vocabulary;
  std::int64_t key_motif;    // most tokens of a key
  std::int64_t value_motif;  // most tokens of a value
  bool multi_query;

  // Ids: keys, values, the padding, and unless multi_query the sign before the last key.
  [[nodiscard]] std::int64_t own() const { return vocabulary - (multi_query ? 1 : 2); }
  [[nodiscard]] std::int64_t longest() const { return key_motif + value_motif; }
};

Task read_task(const Parameters& settings, std::int64_t context) {
  const std::string name = "fuzzy_recall";
  const Task task{.vocabulary = settings.get<std::int64_t>("vocabulary"),
                  .key_motif = settings.get<std::int64_t>("key_motif"),
                  .value_motif = settings.get<std::int64_t>("value_motif"),
                  .multi_query = settings.get<bool>("multi_query")};
  if (task.key_motif > task.own() / 2) {
    refuse_setting(name, "data.key_motif", task.key_motif,
                   "at most the number of keys' tokens (" + std::to_string(task.own() / 2) + ")");
  }
  if (const auto values = task.own() - task.own() / 2; task.value_motif > values) {
    refuse_setting(name, "data.value_motif", task.value_motif,
                   "at most the number of values' tokens (" + std::to_string(values) + ")");
  }
  if (context < 4 * task.longest()) {
    refuse_setting(name, "model.context", context,
                   "at least four times data.key_motif + data.value_motif (" +
                       std::to_string(4 * task.longest()) + ")");
  }
  return task;
}

// One example, from the left; then it is moved to the right end.
class Sequence {
 public:
  Sequence(const Task& task, RandomEngine& random, const Example& example)
      : task_(task), random_(random), example_(example) {}

  void draw() {
    const Motif last_key = draw_key();
    const Motif last_value = draw_value();
    const auto last = std::ssize(last_key) + std::ssize(last_value);
    const auto end = std::ssize(example_.input) - last - task_.longest();
    // MAD draws this up to T - 2 (length of the pair), so that in some examples the last key was
    // never shown and its value is anybody's guess.
    const std::int64_t place = random_.below(end - task_.longest() + 1);
    value_of_[last_key] = last_value;
    bool shown = false;
    while (std::ssize(tokens_) < end) {
      const bool here = !shown && std::ssize(tokens_) >= place;
      const Motif key = here ? last_key : draw_key();
      const Motif other = here ? last_value : draw_value();
      const Motif value = value_of_.try_emplace(key, other).first->second;
      shown = shown || key == last_key;
      add(key, value, false);
    }
    if (!task_.multi_query) append({static_cast<std::int32_t>(task_.vocabulary - 1)}, false);
    add(last_key, last_value, true);
    write();
  }

 private:
  Motif draw_motif(std::int64_t begin, std::int64_t end, std::int64_t size) {
    return draw_distinct(random_, begin, end, size);
  }
  // Keys have all sizes in training, else the longest.
  Motif draw_key() {
    const auto size = example_.training ? 1 + random_.below(task_.key_motif) : task_.key_motif;
    return draw_motif(0, task_.own() / 2, size);
  }
  Motif draw_value() {
    const auto size = 1 + random_.below(task_.value_motif);
    return draw_motif(task_.own() / 2, task_.own(), size);
  }

  void append(const Motif& motif, bool scored) {
    tokens_.insert(tokens_.end(), motif.begin(), motif.end());
    scored_.insert(scored_.end(), motif.size(), scored);
  }
  void add(const Motif& key, const Motif& value, bool last) {
    const bool again = std::find(keys_.begin(), keys_.end(), key) != keys_.end();
    if (!again) keys_.push_back(key);
    append(key, false);
    append(value, last || (again && task_.multi_query));
  }

  // The last token is a target only.
  void write() {
    const auto pad = example_.input.size() + 1 - tokens_.size();
    const auto padding = static_cast<std::int32_t>(task_.own());
    std::fill_n(example_.input.begin(), pad, padding);
    std::copy(tokens_.begin(), tokens_.end() - 1,
              example_.input.begin() + static_cast<std::ptrdiff_t>(pad));
    if (example_.training) score_next_tokens(example_);
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (scored_[i]) example_.target[pad + i - 1] = tokens_[i];
    }
  }

  Task task_;
  RandomEngine& random_;
  const Example& example_;
  std::map<Motif, Motif> value_of_;
  std::vector<Motif> keys_;
  Motif tokens_;
  std::vector<bool> scored_;
};

Corpus load(const Parameters& settings, std::int64_t context, const DataLocation& /*location*/) {
  const Task task = read_task(settings, context);
  const std::int64_t keys = task.own() / 2;
  Corpus corpus;
  corpus.name = "fuzzy_recall";
  corpus.description = "recall of keys and values of up to " + std::to_string(task.key_motif) +
                       " and " + std::to_string(task.value_motif) + " tokens out of " +
                       std::to_string(keys) + " and " + std::to_string(task.own() - keys) + " in " +
                       std::to_string(context) + " tokens";
  corpus.vocabulary = task.vocabulary;
  draw_splits(corpus, settings, context, [&](RandomEngine& random, const Example& example) {
    Sequence(task, random, example).draw();
  });
  corpus.chance = uniform_chance("the tokens of values", task.own() - keys);
  return corpus;
}

std::vector<Setting> settings() {
  return with_example_settings(
      {setting::integer("vocabulary", 16, 4, 1e6,
                        "ids: tokens of keys, tokens of values, the padding"),
       setting::integer("key_motif", 3, 1, 1e3,
                        "most tokens of a key; keys to validate and test on have so many"),
       setting::integer("value_motif", 3, 1, 1e3, "most tokens of a value"), multi_query_setting()},
      12800, 1280);
}

NAS_REGISTER_CORPUS(
    {.key = "fuzzy_recall",
     .summary = "in-context recall of keys and values of several tokens (Poli et al. 2024, MAD, "
                "arXiv:2403.17844)",
     .settings = settings(),
     .file = __FILE__},
    load);

}  // namespace

}  // namespace nas
