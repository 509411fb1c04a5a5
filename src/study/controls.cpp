#include "study/controls.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "evaluation/frame.hpp"
#include "genotype/architecture_name.hpp"

namespace nas {

namespace {

Architecture without_mixers(Architecture model) {
  for (auto& layer : model.stack) {
    Mechanism bare;
    bare.mixer = "none";
    bare.ffn = layer.ffn;
    bare.ratio = layer.ratio;
    layer = bare;
  }
  return model;
}

/// Layers that mix otherwise than by attention stay as they are.
Architecture with_window(Architecture model, std::int64_t window) {
  for (auto& layer : model.stack) {
    if (layer.mixer != "attn") continue;
    layer.pattern = "window";
    layer.window = window;
    layer.globals = 0;
  }
  return model;
}

}  // namespace

std::vector<Control> controls_of(const Experiment& experiment, const Problem& problem,
                                 const std::vector<std::int64_t>& windows) {
  if (experiment.baseline.empty() || !problem.expensive()) return {};
  const auto baseline = problem.parse(experiment.baseline);
  const auto model = parse_model(
      baseline.name,
      frame_of(experiment.model, experiment.semantics, experiment.match_parameters));
  std::vector<std::pair<std::string, Architecture>> wanted;
  wanted.emplace_back("no mixer", without_mixers(model));
  for (const auto window : windows) {
    if (window >= model.context) continue;
    wanted.emplace_back("window " + std::to_string(window), with_window(model, window));
  }
  std::vector<Control> controls;
  std::vector<std::string> known{baseline.name};
  for (const auto& [name, architecture] : wanted) {
    const auto canonical = candidate_of(architecture);
    if (!canonical.refusal.empty()) continue;
    if (std::find(known.begin(), known.end(), canonical.name) != known.end()) continue;
    known.push_back(canonical.name);
    controls.push_back({name, problem.parse(canonical.name)});
  }
  return controls;
}

}  // namespace nas
