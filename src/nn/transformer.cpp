#include "nn/transformer.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>

#include "core/error.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/costs.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/mixer_kind.hpp"
#include "genotype/slots.hpp"
#include "nn/block.hpp"
#include "nn/norm.hpp"
#include "nn/parts/option_set.hpp"
#include "nn/position_embedding.hpp"
#include "ops/embedding.hpp"
#include "ops/model_parts.hpp"
#include "ops/parameter.hpp"
#include "ops/product.hpp"
#include "ops/recomputed.hpp"
#include "ops/torch_compat.hpp"

namespace nas::nn {

namespace {

void require_alike(const std::vector<Architecture>& architectures) {
  if (architectures.empty()) throw std::invalid_argument("an array of no models");
  for (const auto& architecture : architectures) {
    require_valid(architecture);
    require_built(architecture);
    if (!alike(architecture, architectures.front())) {
      throw std::invalid_argument(
          "models of an array may differ in the options of their layers alone: " +
          to_string(architectures.front()) + ", " + to_string(architecture));
    }
  }
}

bool shares_keys(const Architecture& architecture) {
  return std::any_of(architecture.stack.begin(), architecture.stack.end(),
                     [](const auto& layer) { return layer.word("keys") == "shared"; });
}

}  // namespace

bool alike(const Architecture& a, const Architecture& b) {
  auto same = a;
  same.stack = b.stack;
  same.genes.set("bias", b.genes.word("bias"));  // what layers say counts
  if (same != b) return false;
  const bool share = shares_keys(a) || shares_keys(b);  // keys pass between layers that are alike
  for (std::int64_t i = 0; i < a.layers; ++i) {
    const auto& ours = a.layer(i);
    const auto& theirs = b.layer(i);
    if (share && (ours.word("mixer") != theirs.word("mixer") || giver(a, i) != giver(b, i)))
      return false;
    if (ours.word("ffn") != theirs.word("ffn") || hidden_width(a, ours) != hidden_width(b, theirs))
      return false;
    const auto& kind = mixer_kinds().at(ours.word("mixer"));
    if (ours.word("mixer") == theirs.word("mixer") &&
        kind.shape_key(ours) != kind.shape_key(theirs))
      return false;
  }
  return true;
}

namespace {

/// Layer i of each model of an array, a block for each group of models whose mixers one module
/// computes.
OptionSet<Block> make_blocks(const std::vector<Architecture>& architectures,
                             const ParameterScope& scope, std::int64_t i) {
  std::vector<std::string> keys;
  for (const auto& architecture : architectures) {
    const auto& layer = architecture.layer(i);
    keys.push_back(layer.word("mixer") + "|" +
                   mixer_kinds().at(layer.word("mixer")).shape_key(layer));
  }
  OptionSet<Block> blocks;
  for (auto& models : models_by_key(keys)) {
    std::vector<Architecture> members;
    for (const auto r : models) members.push_back(architectures[static_cast<std::size_t>(r)]);
    auto block = std::make_unique<Block>(members, scope_of(scope, models), i);
    blocks.add(std::move(models), std::move(block));
  }
  return blocks;
}

/// Models of an array that have a table of value embeddings.
Models models_with_values(const std::vector<Architecture>& architectures) {
  Models models;
  for (std::size_t r = 0; r < architectures.size(); ++r) {
    if (embeds_values(architectures[r])) models.push_back(static_cast<std::int64_t>(r));
  }
  return models;
}

/// Of tensors of the models `all`, those of some of these.
torch::Tensor rows_of(const torch::Tensor& tensor, const Models& all, const Models& some) {
  if (all == some) return tensor;
  Models places;
  for (const auto r : some) {
    places.push_back(std::lower_bound(all.begin(), all.end(), r) - all.begin());
  }
  return tensor.index_select(0, index_on(tensor.device(), places));
}

/// A pass of all models, for some of them.
Pass pass_of(const Pass& pass, const Models& models) {
  auto part = pass;
  part.seeds.clear();
  for (const auto r : models) {
    if (!pass.seeds.empty()) part.seeds.push_back(pass.seeds[static_cast<std::size_t>(r)]);
  }
  if (pass.device_seeds.defined()) {
    part.device_seeds =
        pass.device_seeds.index_select(0, index_on(pass.device_seeds.device(), models));
  }
  return part;
}

}  // namespace

struct TransformerArray::Impl {
  Impl(const std::vector<Architecture>& given, NumericalMode given_mode, torch::Device device)
      : architectures(given), mode(given_mode) {
    require_alike(architectures);
    with_values = models_with_values(architectures);
    shares = shares_keys(architectures.front());
    const auto& common = architectures.front();
    const ParameterScope scope(
        parameters, mode, first_models(static_cast<std::int64_t>(architectures.size())), device);
    embedding = scope.add("embedding.weight", {common.vocabulary, common.width}, Start::normal(),
                          Decay::no);
    positions.emplace(common, scope);
    if (!with_values.empty()) {
      values = scope.of(with_values)
                   .add("value_embedding.weight", {common.vocabulary, common.width},
                        Start::normal(), Decay::no);
    }
    for (std::int64_t i = 0; i < common.layers; ++i) {
      blocks.push_back(make_blocks(architectures, scope.child("layers." + std::to_string(i)), i));
    }
    if (has_final_norm(common.genes)) {
      final_norm = make_norm(common, scope.child("final_norm"));
    }
    if (common.genes.word("tied") == "0") {
      output =
          scope.add("head.weight", {common.vocabulary, common.width}, Start::normal(), Decay::yes);
    } else if (common.genes.word("tied") == "1") {
      output = embedding;
    } else {
      throw InputError("tied = " + common.genes.word("tied") + ", must be 1 or 0");
    }
  }

  /// Rows E_v[token] of the models that have value embeddings; undefined: none has.
  [[nodiscard]] torch::Tensor value_rows(const torch::Tensor& tokens) const {
    if (with_values.empty()) return {};
    const auto all = first_models(static_cast<std::int64_t>(architectures.size()));
    return embed(rows_of(tokens, all, with_values), values, {}, mode);
  }

  /// The stream behind a layer. @param pass  with the rows of all models that have some.
  [[nodiscard]] torch::Tensor behind(const OptionSet<Block>& layer, const torch::Tensor& stream,
                                     const Pass& pass) const {
    return layer.apply_to_groups(
        [&](const auto& group, const torch::Tensor& part) {
          auto of_group = layer.size() == 1 ? pass : pass_of(pass, group.models);
          of_group.value_rows = group.option->reads_values()
                                    ? rows_of(pass.value_rows, with_values, group.models)
                                    : torch::Tensor();
          return group.option->forward(part, of_group);
        },
        stream);
  }

  /// The same, computed again for gradients. Keys that layers share go in and out beside the stream.
  [[nodiscard]] torch::Tensor behind_recomputed(const OptionSet<Block>& layer,
                                                const torch::Tensor& stream,
                                                const Pass& pass) const {
    const bool given = pass.shared != nullptr && !pass.shared->empty();
    const auto before = given ? pass.shared->front() : SharedKeys{};
    const auto out = recomputed(
        [this, &layer, shared = pass.shared != nullptr,
         own = pass](const std::vector<torch::Tensor>& in) mutable {
          std::vector<SharedKeys> keys;
          if (in[2].defined()) keys = {{in[2], in[3]}};
          own.shared = shared ? &keys : nullptr;
          own.value_rows = in[1];
          std::vector<torch::Tensor> made{behind(layer, in[0], own)};
          own.mixed = {};  // it has seen this layer
          own.value_rows = torch::Tensor();
          // Those of an earlier layer go around this one.
          if (!keys.empty() && !keys.front().keys.is_same(in[2])) {
            made.insert(made.end(), {keys.front().keys, keys.front().values});
          }
          return made;
        },
        {stream, pass.value_rows, before.keys, before.values});
    if (out.size() > 1) *pass.shared = {{out[1], out[2]}};
    return out[0];
  }

  std::vector<Architecture> architectures;
  NumericalMode mode;
  std::vector<Parameter> parameters;
  torch::Tensor embedding;
  std::optional<PositionEmbedding> positions;
  bool recomputes = false;               ///< layers, for gradients
  bool shares = false;                   ///< whether layers read keys of earlier ones
  Models with_values;                    ///< models that have value embeddings
  torch::Tensor values;                  ///< the tables of these
  std::vector<OptionSet<Block>> blocks;  ///< of each layer
  std::unique_ptr<Norm> final_norm;
  torch::Tensor output;  ///< matrix of the logits (R, V, D): the embedding, or its own
};

TransformerArray::TransformerArray(const std::vector<Architecture>& architectures,
                                   NumericalMode mode, torch::Device device)
    : impl_(std::make_shared<Impl>(architectures, mode, device)) {}
TransformerArray::~TransformerArray() = default;
TransformerArray::TransformerArray(TransformerArray&&) noexcept = default;
TransformerArray& TransformerArray::operator=(TransformerArray&&) noexcept = default;

void TransformerArray::initialise(const std::vector<StartSeed>& seeds) {
  nn::initialise(impl_->parameters, seeds);
}

void TransformerArray::to(torch::Device device, torch::ScalarType type) {
  move_to(impl_->parameters, device, type);
}

void TransformerArray::recompute_layers(bool again) { impl_->recomputes = again; }

bool TransformerArray::recomputes_layers() const { return impl_->recomputes; }

Hidden TransformerArray::hidden(const torch::Tensor& tokens, const Pass& given) {
  auto pass = given.on(tokens.device());
  std::vector<SharedKeys> shared;
  if (impl_->shares) pass.shared = &shared;
  const auto& common = impl_->architectures.front();
  const bool bounded = common.genes.word("position_embedding") == "learned";
  if (tokens.dim() != 3 || tokens.size(0) != num_models() ||
      (bounded && tokens.size(2) > common.context)) {
    throw std::invalid_argument(
        "tokens have " + std::to_string(tokens.dim()) + " dimensions, " +
        std::to_string(tokens.size(0)) + " models and length " + std::to_string(tokens.size(-1)) +
        ", must be (R, B, T) with R = " + std::to_string(num_models()) +
        (bounded ? " and T <= context = " + std::to_string(common.context) : ""));
  }
  set_float_products(tokens.device(), impl_->mode);
  const auto positions = (*impl_->positions)(tokens.size(2));
  auto [stream, output] = embed_tied(tokens, impl_->embedding, positions, impl_->mode);
  if (!impl_->output.is_same(impl_->embedding)) output = impl_->output;
  stream = dropout(stream, dropout_masks(common.dropout, pass, kEmbeddingSite, num_models()));
  pass.value_rows = impl_->value_rows(tokens);
  std::int64_t behind = 0;
  if (pass.watch) pass.watch(behind, stream);
  for (const auto& blocks : impl_->blocks) {
    stream = impl_->recomputes ? impl_->behind_recomputed(blocks, stream, pass)
                               : impl_->behind(blocks, stream, pass);
    if (pass.watch) pass.watch(++behind, stream);
  }
  if (impl_->final_norm) stream = impl_->final_norm->normalised(stream);
  return {stream, output, impl_->mode};
}

torch::Tensor TransformerArray::features(const torch::Tensor& tokens, const Pass& pass) {
  return hidden(tokens, pass).features;
}

torch::Tensor TransformerArray::logits(const torch::Tensor& tokens, const Pass& pass) {
  const auto of = hidden(tokens, pass);
  return linear(of.features, of.output, {}, of.mode);
}

torch::Tensor TransformerArray::loss(const torch::Tensor& tokens, const torch::Tensor& targets,
                                     const Pass& pass) {
  const auto of = hidden(tokens, pass);
  return linear_cross_entropy(of.features, of.output, targets, of.mode);
}

TokenScores TransformerArray::scores(const torch::Tensor& tokens, const torch::Tensor& targets) {
  const at::NoGradGuard no_grad;
  return score_tokens(features(tokens, Pass{}).flatten(1, 2), impl_->output, targets.flatten(1),
                      impl_->mode);
}

SequenceState TransformerArray::start(std::int64_t room) const {
  SequenceState state;
  for (const auto& blocks : impl_->blocks) state.layers.push_back(blocks.front().start(room));
  return state;
}

torch::Tensor TransformerArray::step(const torch::Tensor& tokens, SequenceState& state) {
  const at::NoGradGuard no_grad;
  set_float_products(tokens.device(), impl_->mode);
  auto stream = embed(tokens.unsqueeze(-1), impl_->embedding,
                      impl_->positions->of_place(state.tokens), impl_->mode);
  Pass pass;
  std::vector<SharedKeys> shared;
  if (impl_->shares) pass.shared = &shared;
  pass.value_rows = impl_->value_rows(tokens.unsqueeze(-1));
  for (std::size_t i = 0; i < impl_->blocks.size(); ++i) {
    stream = impl_->blocks[i].front().step(stream, pass, state.layers[i].get());
  }
  ++state.tokens;
  if (impl_->final_norm) stream = impl_->final_norm->normalised(stream);
  return linear(stream, impl_->output, {}, impl_->mode).squeeze(2);
}

const std::vector<Parameter>& TransformerArray::parameters() const { return impl_->parameters; }

bool TransformerArray::decays(const Parameter& parameter) const {
  return impl_->architectures.front().semantics == Semantics::published ||
         parameter.decay == Decay::yes;
}

std::int64_t TransformerArray::num_models() const {
  return static_cast<std::int64_t>(impl_->architectures.size());
}

const std::vector<Architecture>& TransformerArray::architectures() const {
  return impl_->architectures;
}

NumericalMode TransformerArray::numerical_mode() const { return impl_->mode; }

Transformer::Transformer(const Architecture& architecture, NumericalMode mode)
    : array_({architecture}, mode) {}

void Transformer::initialise(std::uint64_t run_seed, std::int64_t replicate) {
  array_.initialise({{run_seed, replicate}});
}

void Transformer::to(torch::Device device, torch::ScalarType type) { array_.to(device, type); }

torch::Tensor Transformer::features(const torch::Tensor& tokens, const Pass& pass) {
  return array_.features(tokens.unsqueeze(0), pass)[0];
}

torch::Tensor Transformer::logits(const torch::Tensor& tokens, const Pass& pass) {
  return array_.logits(tokens.unsqueeze(0), pass)[0];
}

torch::Tensor Transformer::loss(const torch::Tensor& tokens, const torch::Tensor& targets,
                                const Pass& pass) {
  return array_.loss(tokens.unsqueeze(0), targets.unsqueeze(0), pass)[0];
}

TokenScores Transformer::scores(const torch::Tensor& tokens, const torch::Tensor& targets) {
  const auto scores = array_.scores(tokens.unsqueeze(0), targets.unsqueeze(0));
  return {scores.nll[0], scores.correct[0]};
}

std::vector<std::pair<std::string, torch::Tensor>> Transformer::parameters() const {
  std::vector<std::pair<std::string, torch::Tensor>> named;
  for (const auto& parameter : array_.parameters()) {
    named.emplace_back(parameter.name, parameter.tensor);
  }
  return named;
}

namespace {

/// The layers of an architecture's canonical form, each once.
std::vector<Mechanism> distinct_layers(const Architecture& canonical_form) {
  std::vector<Mechanism> layers;
  for (std::int64_t i = 0; i < canonical_form.layers; ++i) {
    const auto& layer = canonical_form.layer(i);
    if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
  }
  return layers;
}

constexpr std::int64_t kSmallWidth = 16;
constexpr std::int64_t kSmallHeads = 2;
constexpr std::int64_t kSmallContext = 12;
constexpr std::int64_t kSmallVocabulary = 13;

/// A layer in a small model, where each of its options still does something: windows hide keys,
/// blocks are several, query heads share keys.
Mechanism shrunk(Mechanism layer, std::int64_t heads) {
  layer = with_small_sizes(std::move(layer));
  mixer_kinds().at(layer.word("mixer")).shrink(layer, heads, kSmallWidth, kSmallHeads);
  layer.set("ratio", 0);
  return layer;
}

/// For each distinct layer a model of two such layers, whose results take milliseconds.
std::vector<Architecture> small_models(const Architecture& given) {
  const auto architecture = canonical(given);
  std::vector<Architecture> models;
  for (const auto& layer : distinct_layers(architecture)) {
    const auto own =
        shrunk(layer, layer.integer("heads") > 0 ? layer.integer("heads") : architecture.heads);
    auto first = own;
    if (own.word("keys") == "shared") first.set("keys", "own").set("pattern", "full");
    Architecture small{.genes = architecture.genes,
                       .stack = {first, own},
                       .semantics = architecture.semantics,
                       .layers = 2,
                       .width = kSmallWidth,
                       .heads = kSmallHeads,
                       .context = kSmallContext,
                       .vocabulary = kSmallVocabulary,
                       .feed_forward = 2};
    models.push_back(small);
  }
  return models;
}

/// Calls check(model, tokens (2, 12), their logits) for each small model in each way in which an
/// option may be computed, in double precision.
template <class Check>
void for_small_models(const Architecture& architecture, std::uint64_t seed, const Check& check) {
  // Usual initial values are so flat that a leak may hide below the tolerance; from here it is
  // above 1e-4.
  constexpr double kSpread = 0.5;
  const at::NoGradGuard no_grad;
  for (const auto& small : small_models(architecture)) {
    // An option may compute otherwise inside the fused kernel.
    for (const auto mode : {NumericalMode::reference, NumericalMode::exact}) {
      Transformer model(small, mode);
      model.to(at::kCPU, at::kDouble);
      const auto generator = make_generator(at::kCPU, seed);
      for (auto& [name, tensor] : model.parameters()) tensor.normal_(0.0, kSpread, generator);
      const auto tokens = at::randint(kSmallVocabulary, {2, kSmallContext}, generator,
                                      at::TensorOptions(at::kLong));
      check(model, tokens, model.logits(tokens, Pass{}));
    }
  }
}

double largest_difference(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

constexpr double kUnchanged = 1e-9;

}  // namespace

CausalityReport check_causality(const Architecture& architecture, std::uint64_t seed) {
  constexpr std::array<std::int64_t, 4> kPositions{0, 3, 7, 10};
  CausalityReport report;
  for_small_models(architecture, seed, [&](auto& model, const auto& tokens, const auto& logits) {
    for (const auto position : kPositions) {
      auto changed = tokens.clone();
      changed.slice(1, position + 1).add_(1).remainder_(kSmallVocabulary);
      const auto difference =
          largest_difference(model.logits(changed, Pass{}).slice(1, 0, position + 1),
                             logits.slice(1, 0, position + 1));
      report.largest_change = std::max(report.largest_change, difference);
    }
  });
  report.causal = report.largest_change <= kUnchanged;
  return report;
}

PrefixReport check_prefixes(const Architecture& architecture) {
  constexpr std::array<std::int64_t, 4> kLengths{1, 4, 8, 11};
  PrefixReport report;
  for_small_models(architecture, 1, [&](auto& model, const auto& tokens, const auto& logits) {
    for (const auto length : kLengths) {
      const auto difference = largest_difference(model.logits(tokens.slice(1, 0, length), Pass{}),
                                                 logits.slice(1, 0, length));
      report.largest_change = std::max(report.largest_change, difference);
    }
  });
  report.consistent = report.largest_change <= kUnchanged;
  return report;
}

}  // namespace nas::nn
