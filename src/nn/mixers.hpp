#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/registry.hpp"
#include "core/visibility.hpp"
#include "genotype/component.hpp"
#include "genotype/mechanism.hpp"
#include "genotype/mixer_kind.hpp"
#include "genotype/semantics.hpp"
#include "nn/mixer.hpp"
#include "nn/parts/option.hpp"
#include "ops/parameter.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// What the mixer of one layer of an array is built from.
struct MixerContext {
  std::vector<Mechanism> mechanisms;  ///< of the R models, all of one mixer
  AttentionShape shape;               ///< of the layer; what sizes options have, mechanisms say
  Semantics semantics = Semantics::corrected;
  std::int64_t layer = 0;                ///< from 0
  Start output_start = Start::normal();  ///< of the matrix that writes to the residual stream
};

using MixerRegistry = Registry<std::unique_ptr<Mixer>(const MixerContext&, const ParameterScope&)>;

/// By the keys of gene mixer, each of which has a MixerKind: in src/mixers/kinds, where names and costs
/// need it without Torch, or in the same file.
MixerRegistry& mixers();

// NAS_REGISTER_MIXER(Class, .key = "attn", .summary = ...): the arguments after the class are
// designated initialisers of nas::Component, without its gene.
#define NAS_REGISTER_MIXER(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::mixers(), "mixer", Class, __VA_ARGS__)

}  // namespace nn
}  // namespace nas
