#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/seed.hpp"
#include "data/corpus.hpp"
#include "evaluation/settings.hpp"
#include "training/trainer.hpp"

namespace nas::test {

/// A language with one rule: the next token is the last one plus one, modulo V. Learnable in a few
/// steps.
inline Corpus counting_corpus(std::int64_t vocabulary, std::int64_t length, std::int64_t windows) {
  Corpus corpus;
  corpus.name = "counting";
  corpus.vocabulary = vocabulary;
  for (auto* split : {&corpus.train, &corpus.valid, &corpus.test}) {
    split->length = length;
    RandomEngine random(split == &corpus.train ? 1 : 2);
    for (std::int64_t i = 0; i < windows; ++i) {
      split->starts.push_back(static_cast<std::int64_t>(split->tokens.size()));
      auto token = random.below(vocabulary);
      for (std::int64_t t = 0; t <= length; ++t) {
        split->tokens.push_back(static_cast<std::int32_t>(token));
        token = (token + 1) % vocabulary;
      }
    }
  }
  corpus.hash = "counting";
  return corpus;
}

/// How small models learn it.
inline TrainingSettings settings(std::int64_t steps, std::vector<std::int64_t> checkpoints = {},
                                 double rate = 1e-2) {
  Parameters parameters(training_settings());
  parameters.set("steps", steps);
  parameters.set("batch_size", std::int64_t{8});
  parameters.set("learning_rate", rate);
  parameters.set("checkpoints", std::move(checkpoints));
  parameters.set("evaluation_batch_size", std::int64_t{7});
  return TrainingSettings(parameters);
}

}  // namespace nas::test
