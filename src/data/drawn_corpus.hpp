#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/parameters.hpp"
#include "core/seed.hpp"
#include "data/corpus.hpp"

namespace nas {

/// Where one example is drawn to: as many targets as inputs. At first the inputs are 0 and the
/// targets kNotScored.
struct Example {
  std::span<std::int32_t> input, target;
  bool training;  ///< of the training split
};
/// Draws one example; the engine is that of its split.
using DrawExample = std::function<void(RandomEngine&, const Example&)>;

/// The settings of a corpus whose examples are drawn: its own, then train_examples, test_examples
/// (as many to validate on, and as many others to test on) and seed.
std::vector<Setting> with_example_settings(std::vector<Setting> own, std::int64_t train_examples,
                                           std::int64_t test_examples);

/// Lengths of further test splits, "test_LENGTH", for corpora whose examples may be longer than the
/// context: what was learned on short ones is tested on long ones.
Setting test_lengths_setting();

/// Which keys are scored, for corpora of pairs of a key and a value: see RecallTask::multi_query.
Setting multi_query_setting();

/// @throws InputError "KEY: NAME = VALUE, must be ALLOWED", always.
[[noreturn]] void refuse_setting(const std::string& key, const std::string& name,
                                 std::int64_t value, const std::string& allowed);
/// @throws InputError as refuse_setting() does, unless the context is even and at least `least`.
void require_even_context(const std::string& key, std::int64_t context, std::int64_t least);

/// Draws the three splits of the corpus, whose name (the key) is known, each by a seed of its own,
/// those of test_lengths if it has that setting, and their hash. Fewer examples are the beginning of
/// more.
/// @throws InputError if a length is below 1, or if they do not fit into this machine's memory.
void draw_splits(Corpus& corpus, const Parameters& settings, std::int64_t context,
                 const DrawExample& draw);

/// Every position but the last gets the token after it as target.
void score_next_tokens(const Example& example);

/// Draws `count` different ids of begin .. end - 1, uniform, in the order in which they came; there
/// are that many.
std::vector<std::int32_t> draw_distinct(RandomEngine& random, std::int64_t begin, std::int64_t end,
                                        std::int64_t count);

/// @return what guessing among `num` equally frequent answers reaches: ln(num) nats per target and
/// 1/num of them right. @param what  the answers, for people: "the values".
ChanceLevel uniform_chance(const std::string& what, std::int64_t num);

/// State tracking: tokens 0 and 1, each with probability 1/2, and at every position t the number of
/// ones among tokens 0 .. t, modulo `modulus`. Ids are 0 .. modulus - 1. Chance is what knows its own
/// token and place: with p_t the distribution of the count before t, accuracy = mean_t max p_t and
/// nll = the mean entropy of p_t; for modulus 2 they are (T + 1) / 2T and (T - 1)/T ln 2.
/// @throws InputError as draw_splits().
Corpus draw_running_counts(const std::string& key, const Parameters& settings, std::int64_t context,
                           std::int64_t modulus);

/// Recall of pairs of a key and a value, as the in-context recall of Poli et al. 2024 (MAD,
/// arXiv:2403.17844).
struct RecallTask {
  std::int64_t vocabulary;        ///< V ids, noise and the prefix among them
  std::int64_t noise_vocabulary;  ///< of them for noise
  double noise_share;             ///< probability of a pair of being noise
  bool multi_query;  ///< a key is scored from its second showing on; else the last only
};

/// T/2 pairs: keys are uniform over the lower half of the ids that are no noise and no prefix, values
/// over their upper half; in an example a key has one value. At least one pair is no noise. The last
/// key is one of those shown, uniform over them; unless multi_query, id V - 1 stands before it, and
/// its value is beyond the end. Training learns every next token; the answers alone are scored.
/// @throws InputError if a setting or the context does not fit, and as draw_splits().
Corpus draw_recall(const std::string& key, const Parameters& settings, std::int64_t context,
                   const RecallTask& task);

}  // namespace nas
