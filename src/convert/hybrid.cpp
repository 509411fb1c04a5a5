#include "convert/hybrid.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/words.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/costs.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/mixer_kind.hpp"
#include "ops/embedding.hpp"
#include "ops/loss.hpp"
#include "ops/product.hpp"

namespace nas {

namespace {

/// The teacher with one form of all layers listed.
Architecture with_layer(const Architecture& teacher, std::int64_t i, Mechanism layer) {
  auto model = teacher;
  model.stack.clear();
  for (std::int64_t j = 0; j < teacher.layers; ++j) model.stack.push_back(teacher.layer(j));
  model.stack[static_cast<std::size_t>(i)] = std::move(layer);
  return model;
}

/// A layer that shares keys as its giver lets it be.
Mechanism beside(Mechanism layer, const Mechanism& giver, const Architecture& model) {
  const auto heads = attention_shape(model, giver).key_heads();
  layer.set("kv_heads", heads == attention_shape(model, layer).heads ? std::int64_t{0} : heads);
  if (giver.word("pattern") != "window") return layer;
  for (const auto* size : {"window", "globals"}) {
    const auto own = layer.integer(size), kept = giver.integer(size);
    layer.set(size, layer.word("pattern") == "window" ? std::min(own, kept) : kept);
  }
  layer.set("full_groups", giver.integer("full_groups"));
  return layer.set("pattern", "window");
}

std::string range_text(std::int64_t first, std::int64_t last) {
  return first == last ? std::to_string(first) : std::to_string(first) + "-" + std::to_string(last);
}

std::string prefix_of(std::int64_t layer) { return "layers." + std::to_string(layer) + "."; }

}  // namespace

std::vector<std::size_t> layers_of(std::string_view text, std::int64_t layers) {
  std::vector<std::size_t> found;
  for (const auto range : split(text, ',')) {
    const auto dash = range.find('-');
    const auto first = number_in(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_in(range.substr(dash + 1));
    if (!first || !last || *first < 0 || *last >= static_cast<double>(layers) || *first > *last)
      throw InputError("layers " + std::string(range) + ", must be in [0, " +
                       std::to_string(layers - 1) + "]");
    for (auto i = static_cast<std::size_t>(*first); i <= static_cast<std::size_t>(*last); ++i)
      found.push_back(i);
  }
  return found;
}

Conversion::Conversion(Architecture teacher, std::vector<LayerBlock> blocks,
                       std::vector<std::size_t> open)
    : teacher_(canonical(std::move(teacher))), blocks_(std::move(blocks)), open_(std::move(open)) {
  for (std::int64_t i = 0; i < teacher_.layers; ++i) {
    auto& forms = forms_.emplace_back();
    const auto& own = teacher_.layer(i);
    for (const auto& block : blocks_) {
      if (own.word("mixer") != "attn") {
        forms.push_back(own);
        continue;
      }
      try {
        auto layer = block.layer(own);
        const auto from = nas::giver(teacher_, i);
        if (layer.word("keys") == "own") {
          forms.push_back(canonical(with_layer(teacher_, i, layer)).layer(i));
          continue;
        }
        if (from >= 0) {  // can it be?
          const auto& kept = teacher_.layer(from);
          (void)canonical(with_layer(teacher_, i, beside(layer, kept, teacher_)));
        }
        forms.push_back(std::move(layer));
      } catch (const InputError& error) {
        throw InputError("block " + block.text + " of layer " + std::to_string(i) + ": " +
                         error.what());
      }
    }
  }
}

std::vector<std::size_t> Conversion::choices(std::int64_t layer) const {
  if (!open_.empty() &&
      std::find(open_.begin(), open_.end(), static_cast<std::size_t>(layer)) == open_.end())
    return {0};
  const auto& forms = forms_[static_cast<std::size_t>(layer)];
  std::vector<std::size_t> choices;
  for (std::size_t b = 0; b < forms.size(); ++b) {
    if (forms[b].word("keys") == "shared" && nas::giver(teacher_, layer) < 0) continue;
    if (std::find(forms.begin(), forms.begin() + static_cast<std::ptrdiff_t>(b), forms[b]) ==
        forms.begin() + static_cast<std::ptrdiff_t>(b))
      choices.push_back(b);
  }
  return choices;
}

Placement Conversion::alone(std::int64_t layer, std::size_t block) const {
  Placement placement(static_cast<std::size_t>(layers()), 0);
  placement[static_cast<std::size_t>(layer)] = block;
  return placement;
}

std::int64_t Conversion::giver(const Placement& placement, std::int64_t i) const {
  if (raw(placement, i).word("keys") != "shared") return -1;
  auto from = i - 1;
  while (from >= 0 && !gives_keys(raw(placement, from))) --from;
  if (from >= 0) return from;
  throw InputError("layer " + std::to_string(i) + " shares keys, and no earlier layer keeps any");
}

Mechanism Conversion::layer(const Placement& placement, std::int64_t i) const {
  const auto from = giver(placement, i);
  return from < 0 ? raw(placement, i) : beside(raw(placement, i), raw(placement, from), teacher_);
}

std::string Conversion::refusal(const Placement& placement) const {
  try {
    for (std::int64_t i = 0; i < layers(); ++i) (void)giver(placement, i);
    return {};
  } catch (const InputError& error) {
    return error.what();
  }
}

std::string Conversion::form(const Placement& placement, std::int64_t i) const {
  auto one = teacher_;
  one.layers = 1;
  one.stack = {layer(placement, i)};
  return to_string(one);
}

Architecture Conversion::architecture(const Placement& placement) const {
  auto model = teacher_;
  model.stack.clear();
  for (std::int64_t i = 0; i < layers(); ++i) model.stack.push_back(layer(placement, i));
  return canonical(std::move(model));
}

std::int64_t Conversion::mixer_parameters(std::int64_t layer, std::size_t block) const {
  const auto own = this->layer(alone(layer, block), layer);
  return mixer_kinds().at(own.word("mixer")).costs(own, attention_shape(teacher_, own)).parameters;
}

std::int64_t Conversion::cache_bytes(const Placement& placement, std::int64_t tokens) const {
  std::int64_t bytes = 0;
  for (std::int64_t i = 0; i < layers(); ++i) {
    if (blocks_[placement[static_cast<std::size_t>(i)]].keeps_nothing) continue;
    auto one = teacher_;
    one.layers = 1;
    one.stack = {layer(placement, i)};
    bytes += state_bytes(one, tokens);
  }
  return bytes;
}

std::string Conversion::name(const Placement& placement) const {
  std::string text;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    std::string places;
    for (std::int64_t i = 0; i < layers();) {
      const auto has = [&](std::int64_t j) {
        return j < layers() && placement[static_cast<std::size_t>(j)] == b;
      };
      auto last = i;
      while (has(i) && has(last + 1)) ++last;
      if (has(i)) places += (places.empty() ? "" : ",") + range_text(i, last);
      i = last + 1;
    }
    if (!places.empty()) text += (text.empty() ? "" : "; ") + blocks_[b].text + " " + places;
  }
  return text;
}

Placement Conversion::parse(const std::string& name) const {
  constexpr auto kNone = static_cast<std::size_t>(-1);
  const auto refuse = [&](const std::string& why) {
    return InputError("placement '" + name + "': " + why);
  };
  Placement placement(static_cast<std::size_t>(layers()), kNone);
  for (const auto part : split(name, ';')) {
    const auto space = part.find(' ');
    const auto text = std::string(part.substr(0, space));
    const auto block = std::find_if(blocks_.begin(), blocks_.end(),
                                    [&](const auto& one) { return one.text == text; });
    if (block == blocks_.end() || space == std::string_view::npos)
      throw refuse("must be BLOCK LAYERS; ..., not " + std::string(part));
    std::vector<std::size_t> places;
    try {
      places = layers_of(part.substr(space + 1), layers());
    } catch (const InputError& error) {
      throw refuse(error.what());
    }
    for (const auto i : places) {
      if (placement[i] != kNone) throw refuse("layer " + std::to_string(i) + " has two blocks");
      placement[i] = static_cast<std::size_t>(block - blocks_.begin());
    }
  }
  const auto lacks = std::find(placement.begin(), placement.end(), kNone);
  if (lacks != placement.end())
    throw refuse("layer " + std::to_string(lacks - placement.begin()) + " has no block");
  return placement;
}

Weights weights_of(const nn::Transformer& model) {
  Weights weights;
  for (const auto& [name, tensor] : model.parameters()) weights.emplace(name, tensor.squeeze(0));
  return weights;
}

torch::Tensor start_of(const Conversion& conversion, const Weights& teacher, std::int64_t layer,
                       std::size_t block, const nn::Parameter& parameter) {
  const auto& model = conversion.teacher();
  const auto prefix = prefix_of(layer);
  const auto made = conversion.blocks()[block].weight(
      {.name = parameter.name,
       .sizes = parameter.tensor.sizes().slice(1).vec(),
       .shape = attention_shape(model, model.layer(layer)),
       .own = [&](const std::string& name) { return teacher.at(prefix + name); }});
  if (made.defined()) return made;
  std::vector<nn::Parameter> drawn{parameter};
  drawn.front().name = prefix + parameter.name;
  drawn.front().tensor = at::empty_like(parameter.tensor.detach().narrow(0, 0, 1));
  drawn.front().models = {0};
  nn::initialise(drawn, {nn::StartSeed{}});
  return drawn.front().tensor.squeeze(0);
}

namespace {

/// A parameter of a layer in which a block is: learned, or as it begins. @param parameter  by its name in the model.
torch::Tensor weight_of(const Conversion& conversion, const Weights& teacher, std::int64_t layer,
                        std::size_t block, nn::Parameter parameter, const TrainedBlocks& trained) {
  parameter.name.erase(0, prefix_of(layer).size());
  const auto learned = trained ? trained(layer, block) : nullptr;
  const auto found = learned ? learned->find(parameter.name) : Weights::const_iterator{};
  if (learned && found != learned->end()) return found->second;
  return start_of(conversion, teacher, layer, block, parameter);
}

}  // namespace

void share(torch::Tensor parameter, const torch::Tensor& weight) {
  const auto shared = weight.unsqueeze(0);
  if (shared.sizes() != parameter.sizes()) throw std::logic_error("a weight of another shape");
  parameter.set_data(shared);
}

Weights weights_of(const Conversion& conversion, const Weights& teacher, const Placement& placement,
                   const TrainedBlocks& trained) {
  nn::Transformer shapes(conversion.architecture(placement), NumericalMode::exact);
  Weights weights;
  for (const auto& parameter : shapes.array().parameters()) {
    const auto& name = parameter.name;
    const auto parts = split(name, '.');
    if (parts.front() != "layers") {
      weights.emplace(name, teacher.at(name));
      continue;
    }
    const auto layer = static_cast<std::int64_t>(*number_in(parts[1]));
    const auto block = placement[static_cast<std::size_t>(layer)];
    weights.emplace(name, weight_of(conversion, teacher, layer, block, parameter, trained));
  }
  return weights;
}

HybridModel::HybridModel(const Conversion& conversion, const Weights& weights, NumericalMode mode,
                         TrainedBlocks trained)
    : conversion_(conversion), weights_(weights), mode_(mode), trained_(std::move(trained)) {
  const auto& model = conversion.teacher();
  embedding_ = weights.at("embedding.weight").detach().unsqueeze(0);
  output_ = model.genes.word("tied") == "1" ? embedding_
                                            : weights.at("head.weight").detach().unsqueeze(0);
  const nn::ParameterScope scope(parameters_, mode);
  positions_ = std::make_unique<nn::PositionEmbedding>(model, scope);
  if (weights.contains("final_norm.weight")) {
    final_norm_ = nn::make_norm(model, scope.child("final_norm"));
  }
  for (const auto& parameter : parameters_) share(parameter.tensor, weights.at(parameter.name));
  blocks_.resize(static_cast<std::size_t>(model.layers));
}

torch::Tensor HybridModel::embedded(const torch::Tensor& tokens) {
  const at::NoGradGuard no_grad;
  return nn::embed(tokens.view({1, tokens.numel() / tokens.size(-1), -1}), embedding_,
                   (*positions_)(tokens.size(-1)), mode_);
}

nn::Block& HybridModel::made(const Placement& placement, std::int64_t layer) {
  const auto block = placement[static_cast<std::size_t>(layer)];
  auto form = conversion_.layer(placement, layer);
  auto& known = blocks_[static_cast<std::size_t>(layer)];
  const auto found = std::find_if(known.begin(), known.end(), [&](const Made& one) {
    return one.block == block && one.form == form;
  });
  if (found != known.end()) return *found->computes;
  std::vector<nn::Parameter> own;
  const nn::ParameterScope scope(own, mode_);
  auto computes = std::make_unique<nn::Block>(
      std::vector<Architecture>{with_layer(conversion_.teacher(), layer, form)},
      scope.child("layers." + std::to_string(layer)), layer);
  for (const auto& parameter : own) {
    share(parameter.tensor, weight_of(conversion_, weights_, layer, block, parameter, trained_));
    parameter.tensor.requires_grad_(false);
  }
  return *known.emplace_back(Made{block, std::move(form), std::move(computes)}).computes;
}

torch::Tensor HybridModel::behind(const Placement& placement, std::int64_t layer,
                                  const torch::Tensor& stream, const nn::Pass& pass) {
  const at::NoGradGuard no_grad;
  return made(placement, layer).forward(stream, pass);
}

namespace {

/// The median time of some calls, after one that is not counted.
template <class Call>
double milliseconds(const Call& call) {
  constexpr std::size_t kCalls = 15;
  call();
  std::vector<double> times;
  while (times.size() < kCalls) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    times.push_back(took.count());
  }
  std::nth_element(times.begin(), times.begin() + kCalls / 2, times.end());
  return times[kCalls / 2];
}

}  // namespace

double HybridModel::step_milliseconds(const Placement& placement, std::int64_t layer,
                                      std::int64_t tokens) {
  const at::NoGradGuard no_grad;
  const auto stream = at::ones({1, 1, 1, conversion_.teacher().width});
  std::vector<nn::SharedKeys> shared;
  nn::Pass pass;
  const auto from = conversion_.giver(placement, layer);
  if (from >= 0) {
    pass.shared = &shared;
    auto& gives = made(placement, from);
    const auto kept = gives.start(tokens);
    for (std::int64_t t = 0; t < tokens; ++t) (void)gives.step(stream, pass, kept.get());
  }
  auto& computes = made(placement, layer);
  const auto state = computes.start(tokens);
  const auto step = [&] { (void)computes.step(stream, pass, state.get()); };
  for (std::int64_t t = 0; state && from < 0 && t < tokens; ++t) step();
  return milliseconds(step);
}

double HybridModel::output_milliseconds() const {
  const auto one = at::ones({1, conversion_.teacher().width});
  return milliseconds([&] { (void)logits(one); });
}

torch::Tensor HybridModel::features(const torch::Tensor& stream) const {
  const at::NoGradGuard no_grad;
  return (final_norm_ ? final_norm_->normalised(stream) : stream).flatten(0, 2);
}

torch::Tensor HybridModel::logits(const torch::Tensor& features) const {
  const at::NoGradGuard no_grad;
  return nn::linear(features.unsqueeze(0), output_, {}, mode_).squeeze(0);
}

torch::Tensor HybridModel::nll(const torch::Tensor& features, const torch::Tensor& targets) const {
  return nn::score_tokens(features.unsqueeze(0).contiguous(), output_, targets.unsqueeze(0), mode_)
      .nll.squeeze(0);
}

}  // namespace nas
