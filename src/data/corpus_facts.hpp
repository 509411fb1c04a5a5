#pragma once

#include <cstdint>
#include <string>

#include "data/corpus.hpp"

namespace nas {

/// @return SHA-256 of everything about a corpus that can change a training run's result: of each
/// split the token ids, starts, explicit targets, length, last target and shift, names of further
/// splits, the vocabulary size and special ids, and another task than next_token with its labels. Names and descriptions do not count.
std::string corpus_hash(const Corpus& corpus);

/// @return how many scored targets at offset 0 are `id`; 0 for an id below 0.
std::int64_t count_targets(const Windows& windows, std::int64_t id);

/// @return what guessing among `num_values` different values yields: ln(num_values) nats per
/// target, 1 / num_values of them right. For associative recall, whose examples show that many.
ChanceLevel recall_chance(std::int64_t num_values);

/// @return what the frequencies of labels in a split yield without its inputs: their entropy, and
/// the share of the most frequent one. @param labels  C; each window's last target is below.
ChanceLevel label_chance(const Windows& windows, std::int64_t labels);

/// Perplexity of the add-one unigram model, the least that a language model has to beat:
///
///   exp(-1/n sum_i ln((c(y_i) + 1) / (N + V))),   y_1 .. y_n the targets of `valid`
///
/// c and N count the targets of `train`, windows read at offset 0. Targets that are not scored, or
/// that are the windows' last_target, do not count. Cost: one pass over both.
///
/// @param vocabulary  V; every target is below it.
/// @throws InputError if `valid` has no such target.
double unigram_perplexity(const Windows& train, const Windows& valid, std::int64_t vocabulary);

}  // namespace nas
