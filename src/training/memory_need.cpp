#include "training/memory_need.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/host.hpp"
#include "core/process_memory.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/costs.hpp"
#include "genotype/layer_rules.hpp"
#include "nn/block.hpp"
#include "ops/cpu_products.hpp"
#include "ops/logit_rows.hpp"
#include "ops/memory.hpp"
#include "ops/model_failure.hpp"
#include "training/update_rule.hpp"

namespace nas {

namespace {

constexpr double kFloat = sizeof(float);
constexpr auto kTable = "embedding.weight";

/// Bytes by the number of sequences, as measured: straight lines between numbers, and beyond the last.
struct Bytes {
  std::vector<std::pair<std::int64_t, double>> measured{};

  [[nodiscard]] double of(std::int64_t sequences) const {
    if (measured.size() == 1) return measured.front().second;
    std::size_t i = 1;
    while (i + 1 < measured.size() && measured[i].first < sequences) ++i;
    const auto& [few, least] = measured[i - 1];
    const auto& [more, most] = measured[i];
    const auto share = static_cast<double>(sequences - few) / static_cast<double>(more - few);
    return least + (most - least) * share;
  }
};

/// What one layer takes beside the stream that it reads, of each number of sequences.
struct LayerNeed {
  double weights = 0.0;
  double optimizer = 0.0;
  Bytes result{};    ///< the stream behind it, and keys that others share
  Bytes forward{};   ///< at most, without gradients; the result included
  Bytes kept{};      ///< for gradients, the result included
  Bytes backward{};  ///< at most for gradients, kept and those of weights included
};

double bytes_of(const torch::Tensor& x) {
  return x.defined() ? static_cast<double>(x.numel()) * static_cast<double>(x.element_size()) : 0.0;
}

double state_bytes(const UpdateRule* rule, const nn::Parameter& parameter, bool decays) {
  if (rule == nullptr || !rule->takes(parameter, decays)) return 2.0 * bytes_of(parameter.tensor);
  double bytes = 0.0;
  for (const auto& [name, state] : rule->states(parameter.tensor.detach()))
    bytes += bytes_of(state);
  return bytes;
}

/// Of each byte of a small square matrix; no other sizes have less.
double state_share(const UpdateRule* rule, const char* name, bool decays) {
  const nn::Parameter parameter{.name = name,
                                .tensor = at::empty({1, 4, 4}, at::TensorOptions(at::kFloat)),
                                .models = {0},
                                .start = nn::Start::normal(),
                                .decay = nn::Decay::no};
  return state_bytes(rule, parameter, decays) / bytes_of(parameter.tensor);
}

bool has_shared_keys(const Mechanism& layer) { return layer.word("keys") == "shared"; }

/// A layer by itself, with one whose keys it reads.
class MeasuredLayer {
 public:
  MeasuredLayer(const Architecture& architecture, std::int64_t index, NumericalMode mode,
                const UpdateRule* rule)
      : architecture_(architecture),
        scope_(parameters_, mode, nn::first_models(1)),
        shares_(
            std::any_of(architecture.stack.begin(), architecture.stack.end(), has_shared_keys)) {
    const auto make = [&](std::int64_t i) {
      const auto scope = scope_.child("layers." + std::to_string(i));
      return std::make_unique<nn::Block>(std::vector{architecture}, scope, i);
    };
    layer_ = make(index);
    for (const auto& parameter : parameters_) {
      need_.weights += bytes_of(parameter.tensor);
      const bool decays =
          architecture.semantics == Semantics::published || parameter.decay == nn::Decay::yes;
      need_.optimizer += state_bytes(rule, parameter, decays);
    }
    if (has_shared_keys(architecture.layer(index))) giver_ = make(giver(architecture, index));
    nn::initialise(parameters_, {{1, 0}});
  }

  LayerNeed need(std::int64_t most) {
    measure(1);  // leaves what is kept of any number of sequences
    // Gradients of tokens take more than those of weights from about as many tokens as the width on.
    const auto many = (architecture_.width - 1) / architecture_.context + 1;
    const std::array fields{&LayerNeed::result, &LayerNeed::forward, &LayerNeed::kept,
                            &LayerNeed::backward};
    for (const auto n : std::set{std::int64_t{1}, std::min(many, most), std::min(2 * many, most)}) {
      const auto bytes = measure(n);
      for (std::size_t i = 0; i < fields.size(); ++i)
        (need_.*fields[i]).measured.emplace_back(n, bytes[i]);
    }
    return need_;
  }

 private:
  std::array<double, 4> measure(std::int64_t sequences) {
    const auto drawn = [&] {
      return at::randn({1, sequences, architecture_.context, architecture_.width},
                       at::TensorOptions(at::kFloat))
          .requires_grad_();
    };
    nn::Pass pass{.training = true, .seeds = {1}};
    std::vector<nn::SharedKeys> given;
    if (shares_) pass.shared = &given;
    const auto stream = drawn();
    if (layer_->reads_values()) pass.value_rows = drawn();
    if (giver_) {
      const at::NoGradGuard no_grad;
      giver_->forward(stream, pass);
      for (auto* x : {&given.front().keys, &given.front().values}) *x = x->detach();
    }
    const auto without = given;
    double forward = 0.0;
    {
      const at::NoGradGuard no_grad;
      const nn::MemoryScope memory;
      layer_->forward(stream, pass);
      forward = static_cast<double>(memory.peak_bytes());
    }
    given = without;
    for (auto& keys : given) keys.keys.requires_grad_(), keys.values.requires_grad_();
    const nn::MemoryScope memory;
    auto out = layer_->forward(stream, pass);
    auto result = bytes_of(out);
    if (given.size() > without.size())
      result += bytes_of(given.front().keys) + bytes_of(given.front().values);
    const auto kept = static_cast<double>(memory.current_bytes());
    const auto by_out = at::ones_like(out);
    given.clear();
    out.backward(by_out);
    const auto backward = static_cast<double>(memory.peak_bytes());
    for (auto& parameter : parameters_) parameter.tensor.mutable_grad() = torch::Tensor();
    return {result, forward, kept, backward};
  }

  Architecture architecture_;
  std::vector<nn::Parameter> parameters_;
  nn::ParameterScope scope_;
  bool shares_;  ///< any layer reads another's keys
  std::unique_ptr<nn::Block> layer_, giver_;
  LayerNeed need_;
};

/// What a model's training takes, as far as it depends on no number of sequences.
class ModelNeed {
 public:
  ModelNeed(const Architecture& architecture, const TrainingSettings& settings,
            const TrainingContext& context)
      : architecture_(architecture), mode_(context.numerical_mode) {
    const auto rule = optimizers().at(settings.optimizer).make();
    const auto most = std::max(settings.sequences_at_once(), settings.evaluation_batch_size);
    // Layers that are alike, and read the keys of such, take the same.
    const auto alike = [&](std::int64_t i, std::int64_t j) {
      const auto &a = architecture.layer(i), &b = architecture.layer(j);
      return a == b && (!has_shared_keys(a) || architecture.layer(giver(architecture, i)) ==
                                                   architecture.layer(giver(architecture, j)));
    };
    for (std::int64_t i = 0; i < architecture.layers; ++i) {
      std::int64_t j = 0;
      while (j < i && !alike(i, j)) ++j;
      layers_.push_back(j < i ? layers_[static_cast<std::size_t>(j)]
                              : MeasuredLayer(architecture, i, mode_, rule.get()).need(most));
    }
    weights_ = kFloat * static_cast<double>(num_parameters(architecture));
    table_ = kFloat * static_cast<double>(architecture.vocabulary * architecture.width);
    auto others = weights_;
    for (const auto& layer : layers_) {
      others -= layer.weights;
      optimizer_ += layer.optimizer;
    }
    // What is no layer's is alike for rules of its own, whatever its size.
    optimizer_ += others * state_share(rule.get(), kTable, false);
  }

  [[nodiscard]] MemoryNeed of(const TrainingSettings& settings) const {
    const auto micro = settings.sequences_at_once();
    const bool in_parts = micro < settings.batch_size;
    const auto stream = streams(micro);
    // Gradients that are there before those of a part are made.
    const auto before = in_parts ? weights_ : 0.0;
    // Inputs, targets, positions, and what norms and the loss keep of each.
    const auto tokens = 12.0 * sizeof(std::int64_t) *
                        static_cast<double>(settings.batch_size * architecture_.context);
    const auto kept = [&](const LayerNeed& layer) {
      return (settings.recompute_layers ? layer.result : layer.kept).of(micro);
    };
    auto activations = tokens + stream * (embeds_values(architecture_) ? 3.0 : 1.0);
    for (const auto& layer : layers_) activations += kept(layer);
    // The features and their gradient.
    MemoryNeed most =
        at("the loss", before + table_, activations + 2.0 * stream, logits(micro, 3.0, 2.0));
    const auto take = [&most](const MemoryNeed& other) {
      if (other.total() > most.total()) most = other;
    };
    auto gradients = before + table_;
    for (auto i = std::ssize(layers_) - 1; i >= 0; --i) {
      const auto& layer = layers_[static_cast<std::size_t>(i)];
      activations -= kept(layer);
      take(at("gradients of layer " + std::to_string(i), gradients + layer.weights,
              activations + layer.backward.of(micro) - layer.weights, 0.0));
      if (!in_parts) gradients += layer.weights;
    }
    // That of a tied table is the sum of two, which mode `reference` makes beside both.
    const bool sums = architecture_.genes.word("tied") == "1" && mode_ == NumericalMode::reference;
    take(at("the end of a step", weights_ + ((sums ? 2.0 : 0.0) + (in_parts ? 1.0 : 0.0)) * table_,
            tokens, 0.0));
    const auto scored = settings.evaluation_batch_size;
    double widest = 2.0 * streams(scored);
    for (const auto& layer : layers_)
      widest = std::max(widest, streams(scored) + layer.forward.of(scored));
    take(at("validation", 0.0, widest, 0.0));
    take(at("validation", 0.0, 2.0 * streams(scored), logits(scored, 2.0, 1.0)));
    return most;
  }

 private:
  [[nodiscard]] MemoryNeed at(std::string when, double gradients, double activations,
                              double logits) const {
    const auto whole = [](double bytes) { return static_cast<std::int64_t>(bytes); };
    return {.weights = whole(weights_),
            .gradients = whole(gradients),
            .optimizer = whole(optimizer_),
            .activations = whole(activations),
            .logits = whole(logits),
            .when = std::move(when)};
  }

  /// (B, T, D).
  [[nodiscard]] double streams(std::int64_t sequences) const {
    return kFloat * static_cast<double>(sequences * architecture_.context * architecture_.width);
  }

  /// Of as many rows as are computed at once, beside packed factors of their products.
  /// @param whole  matrices of all logits in mode `reference`.   @param packed  tables.
  [[nodiscard]] double logits(std::int64_t sequences, double whole, double packed) const {
    const auto row = kFloat * static_cast<double>(architecture_.vocabulary);
    const auto all = static_cast<double>(sequences * architecture_.context);
    if (mode_ == NumericalMode::reference) return whole * all * row;
    const auto rows =
        std::min(static_cast<double>(nn::logit_rows(architecture_.vocabulary, sizeof(float))), all);
    const auto by = nn::cpu_products(mode_).of(architecture_.vocabulary * architecture_.width);
    const double halves = by == nn::CpuProducts::By::tiles ? nn::pair_form(mode_, by).parts : 2;
    return rows * (row + kFloat * static_cast<double>(architecture_.width)) +
           (mode_ == NumericalMode::fast ? packed - 0.5 : 0.5 * halves * packed) * table_;
  }

  const Architecture& architecture_;
  NumericalMode mode_;
  std::vector<LayerNeed> layers_;
  double weights_ = 0.0, optimizer_ = 0.0;
  double table_ = 0.0;  ///< (V, D)
};

}  // namespace

std::string MemoryNeed::text() const {
  std::string text;
  for (const auto& [name, bytes] : {std::pair("weights", weights),
                                    {"gradients", gradients},
                                    {"optimiser", optimizer},
                                    {"activations", activations},
                                    {"logits", logits}}) {
    text += std::string(name) + " " + human_bytes(bytes) + ", ";
  }
  return text + "at " + when;
}

double least_bytes(const Architecture& architecture, const TrainingSettings& settings,
                   std::int64_t sequences) {
  const auto rule = optimizers().at(settings.optimizer).make();
  const auto tables = static_cast<double>(architecture.vocabulary + architecture.context) *
                      static_cast<double>(architecture.width);
  const auto others = least_training_bytes(architecture, 0) / (4.0 * kFloat) - tables;
  // AdamW's two moments are counted.
  const auto states = others * (state_share(rule.get(), "layers.0.weight", true) - 2.0) +
                      tables * (state_share(rule.get(), kTable, false) - 2.0);
  const auto read = settings.recompute_layers
                        ? static_cast<double>(architecture.layers * architecture.context *
                                              architecture.width * sequences)
                        : 0.0;
  return kFloat * (states + read) +
         least_training_bytes(architecture, settings.recompute_layers ? 0 : sequences);
}

MemoryNeed memory_need(const Architecture& architecture, const TrainingSettings& settings,
                       const TrainingContext& context) {
  at::set_num_threads(context.threads);
  return nn::of_model([&] { return ModelNeed(architecture, settings, context).of(settings); });
}

std::string what_fits(const Architecture& architecture, const TrainingSettings& settings,
                      const TrainingContext& context, std::int64_t bytes) {
  at::set_num_threads(context.threads);
  const auto model = nn::of_model([&] { return ModelNeed(architecture, settings, context); });
  auto less = settings;
  auto need = model.of(less);
  for (; need.total() > bytes; need = model.of(less)) {
    auto& sequences = need.when == "validation" ? less.evaluation_batch_size : less.micro_batch;
    const auto now = need.when == "validation" ? sequences : less.sequences_at_once();
    if (now > 1) {
      sequences = (now + 1) / 2;
    } else if (need.when != "validation" && !less.recompute_layers) {
      less.recompute_layers = true;
    } else {
      return "no settings of training make it fit";
    }
  }
  std::vector<std::string> changes;
  const auto changed = [&changes](const std::string& name, std::int64_t from, std::int64_t to) {
    if (from != to) changes.push_back("training." + name + " = " + std::to_string(to));
  };
  changed("micro_batch", settings.micro_batch, less.micro_batch);
  changed("evaluation_batch_size", settings.evaluation_batch_size, less.evaluation_batch_size);
  if (less.recompute_layers != settings.recompute_layers)
    changes.emplace_back("training.recompute = layers");
  return join(changes) + " takes " + human_bytes(need.total());
}

MemoryNeed require_fit(const Architecture& architecture, const TrainingSettings& settings,
                       const TrainingContext& context) {
  auto need = memory_need(architecture, settings, context);
  // A tensor's block is up to an eighth larger.
  const auto most = static_cast<std::int64_t>(
      largest_memory(static_cast<double>(resident_memory()), static_cast<double>(mapped_memory())) *
      8.0 / 9.0);
  // Where there is a limit, more is a candidate's result and no mistake.
  if (need.total() <= most || (context.memory_limit > 0 && context.memory_limit <= most))
    return need;
  throw InputError("training.batch_size = " + std::to_string(settings.batch_size) +
                   ": a training run of " + to_string(architecture) + " takes " +
                   human_bytes(need.total()) + " of memory, must be at most " + human_bytes(most) +
                   " (all that there is beside this process): " + need.text() + "; " +
                   what_fits(architecture, settings, context, most));
}

}  // namespace nas
