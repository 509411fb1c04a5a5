#include "genotype/mixer_kind.hpp"

namespace nas {

namespace {

/// No mixer: a layer that is a feed-forward layer alone.
NAS_REGISTER_MIXER_KIND(
        .key = "none",
        .costs = [](const Mechanism&, const AttentionShape&) { return MixerCosts{}; });

}  // namespace

}  // namespace nas
