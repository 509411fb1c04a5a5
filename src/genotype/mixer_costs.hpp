#pragma once

#include <cstdint>

#include "core/visibility.hpp"
#include "genotype/architecture.hpp"
#include "genotype/mixer_kind.hpp"

/// What the costs of several kinds of mixers are made of.

namespace nas {

void add(const Component& component, const AttentionShape& shape, MixerCosts& costs);

/// What a layer's components add: all that its mixer has but the mixer itself.
void add_components(const Mechanism& layer, const AttentionShape& shape, MixerCosts& costs);

/// A convolution of so many taps over so many channels, each by itself.
void add_convolution(std::int64_t taps, std::int64_t channels, std::int64_t tokens,
                     MixerCosts& costs);

/// What a layer whose input has a share of the token before takes besides.
void add_smear(const AttentionShape& shape, MixerCosts& costs);

/// Biases of projections to q, k, v, of so many values in all, and back to D.
std::int64_t num_biases(const Mechanism& layer, std::int64_t inner, std::int64_t width);

}  // namespace nas
