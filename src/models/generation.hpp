#pragma once

#include <cstdint>
#include <vector>

#include "nn/transformer.hpp"

namespace nas {

/// How a token is chosen from logits z.
struct Choice {
  double temperature = 0.0;  ///< 0: the largest of z, of equals the first; T > 0: by softmax(z / T)
  std::uint64_t seed = 1;    ///< of what is drawn
  std::vector<std::int64_t> never{};  ///< ids that are not chosen
  std::int64_t top_k = 0;             ///< drawn from: the k likeliest tokens; 0: all
  double top_p = 1.0;  ///< and of these from the fewest likeliest ones that have this share, (0, 1]
};

/// Goes on from some tokens as model.py does. A model of learned positions sees the last `context`
/// tokens, any other all.
///
/// Cost: a step of the decoder for each token, the prompt's too; once a model of learned positions
/// has its context full, or where its options need the whole sequence (nn::require_decodable), a
/// pass over all tokens that it sees for each.
/// @param ids  at least one.
/// @return `ids` and `tokens` more.
/// @throws InputError where a logit is infinite or no number.
std::vector<std::int64_t> generate(nn::Transformer& model, std::vector<std::int64_t> ids,
                                   std::int64_t tokens, const Choice& choice);

}  // namespace nas
