#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "data/corpus.hpp"

namespace nas {

/// @return SHA-256 of everything about a corpus that can change a training run's result: of each
/// split the token ids, starts, explicit targets, length, last target and shift, names of further
/// splits, the vocabulary size and special ids, and another task than next_token with its labels. Names and descriptions do not count.
std::string corpus_hash(const Corpus& corpus);

/// @return how many scored targets at offset 0 are `id`; 0 for an id below 0.
std::int64_t count_targets(const Windows& windows, std::int64_t id);

/// Shares of <unk> among the scored targets by split ("train", "valid", "test"), in [0, 1]; empty
/// where the vocabulary has every token.
using UnknownShares = std::map<std::string, double>;
UnknownShares unknown_shares(const Corpus& corpus);

/// @return "22.24 % of the targets of train are <unk>, 21.90 % of valid, 23.00 % of test"; empty for
/// no shares.
std::string unknown_text(const UnknownShares& shares);

/// @return that, and the YAML of a tokenizer without <unk>, where a share is above 5 %; else empty.
/// @param settings  of the corpus, a text.
std::string unknown_warning(const UnknownShares& shares, const Parameters& settings);

/// @return what answering by the frequencies f_c of the scored targets reaches: -sum_c f_c ln f_c
/// nats per target and max_c f_c of them right. @param labels  C; targets are below.
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
