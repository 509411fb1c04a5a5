#include "instruments/attention_analysis.hpp"

#include <stdexcept>
#include <utility>

#include "genotype/mixer_kind.hpp"
#include "instruments/attention_statistics.hpp"
#include "instruments/state_statistics.hpp"
#include "nn/attention_record.hpp"

namespace nas::nn {

namespace {

constexpr std::int64_t kSequencesAtOnce = 8;

/// (rows, N) as numbers.
std::vector<std::vector<double>> numbers(const torch::Tensor& rows) {
  const auto read = rows.to(at::kDouble).contiguous();
  std::vector<std::vector<double>> found;
  for (std::int64_t r = 0; r < read.size(0); ++r) {
    const auto* first = read.data_ptr<double>() + r * read.size(1);
    found.emplace_back(first, first + read.size(1));
  }
  return found;
}

/// What is added up of one layer, batch by batch.
struct LayerSums {
  std::int64_t layer = 0;
  std::map<std::string, std::vector<torch::Tensor>> statistics{};  ///< each (B, H)
  std::vector<torch::Tensor> profiles{};                           ///< each (B, H, T)
  std::map<std::string, std::vector<torch::Tensor>> gate{};        ///< each (B, H)
  torch::Tensor gate_counts{};                                     ///< (H, bins)
  torch::Tensor example{};                                         ///< (H, T, T)
};

void add(const Statistics& found, std::map<std::string, std::vector<torch::Tensor>>& to) {
  for (const auto& [name, values] : found) to[name].push_back(values);
}

HeadValues joined(const std::map<std::string, std::vector<torch::Tensor>>& parts) {
  HeadValues values;
  for (const auto& [name, tensors] : parts) values[name] = numbers(at::cat(tensors).t());
  return values;
}

/// (B, T, C) as (B, H, T, C / H): the channels of each head.
torch::Tensor by_head(const torch::Tensor& channels, std::int64_t heads) {
  return channels.view({channels.size(0), channels.size(1), heads, -1}).transpose(1, 2);
}

/// How many gates of each head lie in each bin.
/// @param gates  (B, H, T, C).   @return (H, bins).
torch::Tensor bin_counts(const torch::Tensor& gates) {
  std::vector<torch::Tensor> counts;
  for (const auto& head : gates.slice(2, kFirstQuery).unbind(1)) {
    counts.push_back(at::histc(head.to(at::kDouble), kGateBins, 0.0, 1.0));
  }
  return at::stack(counts);
}

void add_gate(const LayerRecord& record, LayerSums& sums) {
  if (!record.gate.defined()) return;
  const auto heads = record.weights.size(1);
  const auto gates = by_head(record.gate, heads);
  auto found = gate_statistics(gates);
  found["gate_output"] = gate_output_correlation(gates, by_head(record.gated, heads));
  add(found, sums.gate);
  const auto counts = bin_counts(gates);
  sums.gate_counts = sums.gate_counts.defined() ? sums.gate_counts + counts : counts;
}

void add_text(const LayerRecord& record, LayerSums& sums) {
  add(map_statistics(record.weights, record.visible), sums.statistics);
  if (record.scores.defined()) {
    add(score_statistics(record.scores, record.visible), sums.statistics);
  }
  if (record.log_forget.defined()) add(memory_statistics(record.log_forget), sums.statistics);
  sums.profiles.push_back(distance_profile(record.weights));
  add_gate(record, sums);
  if (!sums.example.defined()) {
    sums.example = record.weights[0].slice(1, 0, kExampleTokens).slice(2, 0, kExampleTokens);
  }
}

void add_state(const StateRecord& record, LayerSums& sums) {
  add(state_statistics(record.state), sums.statistics);
  if (record.log_decays.defined()) add(decay_statistics(record.log_decays), sums.statistics);
  for (const auto& [name, gates] : record.gates) {
    add(update_statistics(name, gates), sums.statistics);
  }
}

/// (H, T, T) without what lies ahead of a query.
HeadMaps maps_of(const torch::Tensor& weights) {
  HeadMaps maps;
  for (const auto& head : weights.unbind(0)) {
    auto rows = numbers(head);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].resize(i + 1);
    maps.push_back(std::move(rows));
  }
  return maps;
}

LayerAnalysis analysis_of(const LayerSums& sums) {
  LayerAnalysis found{.layer = sums.layer,
                      .statistics = joined(sums.statistics),
                      .profile = numbers(at::cat(sums.profiles).nanmean(0)),
                      .example = maps_of(sums.example)};
  if (!sums.gate.empty()) {
    found.gate = GateAnalysis{
        .statistics = joined(sums.gate),
        .histogram = numbers(sums.gate_counts / sums.gate_counts.sum(-1, /*keepdim=*/true))};
  }
  return found;
}

/// The layers that have maps, in a forward pass.
AttentionRecord recorded(Transformer& model, const torch::Tensor& tokens) {
  AttentionRecord record;
  Pass pass;
  pass.record = &record;
  (void)model.features(tokens, pass);
  return record;
}

/// Of the token after each, (B, T) nats; 0 where nothing is asked.
torch::Tensor nll_of(Transformer& model, const torch::Tensor& tokens,
                     const torch::Tensor& targets) {
  return model.scores(tokens, targets).nll.view_as(tokens);
}

std::vector<std::int64_t> layers_with_maps(const Architecture& architecture) {
  std::vector<std::int64_t> layers;
  for (std::int64_t i = 0; i < architecture.layers; ++i) {
    if (mixer_kinds().at(architecture.layer(i).mixer).has_maps) layers.push_back(i);
  }
  return layers;
}

torch::Tensor next_tokens(const torch::Tensor& tokens) {
  const auto nothing = at::full_like(tokens.narrow(1, 0, 1), -1);
  return at::cat({tokens.slice(1, 1), nothing}, 1);
}

std::vector<double> list(const std::vector<torch::Tensor>& parts) {
  return numbers(at::cat(parts).unsqueeze(0)).front();
}

}  // namespace

AttentionAnalysis analyse_attention(Transformer& model, const torch::Tensor& tokens,
                                    const torch::Tensor& targets, std::uint64_t token_seed) {
  const at::NoGradGuard no_grad;
  const auto architecture = model.array().architectures().front();
  std::vector<LayerSums> layers;
  for (const auto layer : layers_with_maps(architecture)) layers.push_back({.layer = layer});
  const auto repeated =
      repeated_tokens(tokens.size(0), tokens.size(1), architecture.vocabulary, token_seed);
  std::vector<torch::Tensor> nll;
  std::vector<torch::Tensor> in_context;
  std::vector<torch::Tensor> sinks;
  for (std::int64_t first = 0; first < tokens.size(0); first += kSequencesAtOnce) {
    const auto part = [first](const torch::Tensor& all) {
      return all.slice(0, first, first + kSequencesAtOnce);
    };
    const auto text = part(tokens);
    const auto asked = part(targets);
    const auto again = part(repeated.tokens);
    const auto of_text = recorded(model, text);
    const auto of_repeated = recorded(model, again);
    if (of_text.layers.size() != layers.size()) {
      throw std::logic_error(std::to_string(of_text.layers.size()) +
                             " layers with maps recorded, not " + std::to_string(layers.size()));
    }
    for (const auto& [i, state] : of_text.states) add_state(state, layers.at(i));
    std::vector<torch::Tensor> masses;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const auto& own = of_text.layers[i];
      add_text(own, layers[i]);
      // Weights of states have no scale of their own, where a norm follows.
      if (own.scores.defined()) masses.push_back(layers[i].statistics.at("sink_mass").back());
      add(head_scores(of_repeated.layers[i].weights, again), layers[i].statistics);
    }
    if (!masses.empty()) sinks.push_back(sink_rate(at::cat(masses, 1)));
    const auto sums = nll_of(model, text, asked).sum(1);
    nll.push_back(sums / (asked >= 0).sum(1).to(at::kDouble));
    in_context.push_back(
        in_context_score(nll_of(model, again, next_tokens(again)), part(repeated.periods)));
  }
  AttentionAnalysis found{.layers = {},
                          .model = {{"nll", list(nll)}, {"in_context_score", list(in_context)}}};
  if (!sinks.empty()) found.model["sink_rate"] = list(sinks);
  for (const auto& layer : layers) found.layers.push_back(analysis_of(layer));
  return found;
}

std::vector<LayerMaps> attention_maps(Transformer& model, const std::vector<std::int64_t>& ids) {
  const at::NoGradGuard no_grad;
  const auto layers = layers_with_maps(model.array().architectures().front());
  const auto records = recorded(model, at::tensor(ids).unsqueeze(0));
  std::vector<LayerMaps> maps;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    maps.push_back({layers[i], maps_of(records.layers.at(i).weights[0])});
  }
  return maps;
}

}  // namespace nas::nn
