#include "convert/stage_two.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>

#include <torch/serialize.h>

#include "convert/low_rank.hpp"
#include "core/durable_file.hpp"
#include "core/hash.hpp"
#include "core/stop.hpp"
#include "genotype/mixer_kind.hpp"
#include "models/safetensors.hpp"
#include "ops/divergence_loss.hpp"
#include "training/checkpoint.hpp"

namespace nas {

namespace {

constexpr double kSecondBeta = 0.95, kWarmUp = 0.05, kLast = 0.1;
constexpr double kKeptTensors =
    40.0;  // of (T, D) in float32 that a layer keeps for its gradients, about
constexpr const char* kStageTwo = "stage2";  // of a checkpoint, whose folder says the rest

/// Whether a parameter is of a layer's mixer.
bool is_of_mixer(const Architecture& model, const std::string& name) {
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const auto& mixer = model.layer(i).word("mixer");
    const auto& scope = mixer_kinds().at(mixer).scope;
    if (name.starts_with("layers." + std::to_string(i) + "." + (scope.empty() ? mixer : scope) +
                         "."))
      return true;
  }
  return false;
}

/// What makes logits of the teacher's features, (1, V, D).
torch::Tensor output_of(const Conversion& conversion, const Weights& teacher) {
  const bool tied = conversion.teacher().genes.word("tied") == "1";
  return teacher.at(tied ? "embedding.weight" : "head.weight").unsqueeze(0);
}

/// Names the files of a placement.
std::string key_of(const Conversion& conversion, const Placement& placement) {
  return sha256(conversion.name(placement)).substr(0, 16);
}

/// A teacher that shares its weights.
nn::TransformerArray teacher_of(const Conversion& conversion, const Weights& weights,
                                NumericalMode mode) {
  nn::TransformerArray teacher({conversion.teacher()}, mode);
  for (const auto& parameter : teacher.parameters())
    share(parameter.tensor, weights.at(parameter.name));
  return teacher;
}

/// The six numbers of an assessment, and back.
torch::Tensor numbers_of(const Assessment& of) {
  return at::tensor({of.kl, of.text_nll, of.text_loss, of.agreement, of.recall, of.recall_margin},
                    at::TensorOptions(at::kDouble));
}

Assessment assessment_of(const torch::Tensor& numbers) {
  const auto* n = numbers.data_ptr<double>();
  return {n[0], n[1], n[2], n[3], n[4], n[5]};
}

/// A hybrid that learns.
class Learner {
 public:
  Learner(const Architecture& architecture, const Weights& start, const Distillation& plan,
          NumericalMode mode)
      : model_({architecture}, mode) {
    const at::NoGradGuard no_grad;
    std::vector<nn::Parameter> learning;
    for (const auto& parameter : model_.parameters()) {
      auto tensor = parameter.tensor;
      tensor.copy_(start.at(parameter.name).unsqueeze(0));
      const bool mixes = is_of_mixer(architecture, parameter.name);
      const bool by_rank = !mixes && plan.rank > 0;
      const bool learns =
          mixes || (plan.other_rate > 0.0 && (!by_rank || parameter.tensor.dim() == 3));
      tensor.requires_grad_(learns);
      if (!learns) continue;
      if (!by_rank) {
        learning.push_back(parameter);
        continue;
      }
      for (const auto& factor : low_ranks_.emplace_back(parameter, plan.rank).factors())
        learning.push_back(factor);
    }
    optimizer_ = std::make_unique<Optimizer>(
        learning, 1, [](const auto&) { return false; }, kSecondBeta, nullptr,
        [&](const nn::Parameter& parameter) {
          return is_of_mixer(architecture, parameter.name) ? plan.mixer_rate : plan.other_rate;
        });
    learns_ = !learning.empty();
  }

  [[nodiscard]] nn::TransformerArray& model() { return model_; }

  /// @param tokens  (B, T).   @param told  (1, B T, D) of the teacher, and what makes logits of them.
  /// @param at_once  sequences.   @return L2.
  double step(std::int64_t number, double factor, const torch::Tensor& tokens,
              const nn::OutputLayer& told, std::int64_t at_once) {
    double loss = 0.0;
    for (std::int64_t first = 0; first < tokens.size(0); first += at_once) {
      const auto rows = std::min(at_once, tokens.size(0) - first);
      const auto length = tokens.size(1);
      const auto hidden = model_.hidden(tokens.narrow(0, first, rows).unsqueeze(0), nn::Pass{});
      const auto part = nn::linear_divergence(
          hidden.features, hidden.output,
          {told.features.narrow(1, first * length, rows * length), told.embedding}, hidden.mode,
          tokens.numel());
      if (learns_) part.sum().backward();
      loss += part.item<double>();
    }
    for (auto& one : low_ranks_) one.take_gradient();
    const ModelStep update{.step = number, .learning_rate = factor, .weight_decay = 0.0};
    optimizer_->step({&update, 1});
    for (auto& one : low_ranks_) one.merge();
    return loss;
  }

  void save(torch::serialize::OutputArchive& archive) const {
    optimizer_->save(archive, 0);
    for (const auto& parameter : parameters())
      archive.write(parameter.name, parameter.tensor.detach());
  }
  void load(torch::serialize::InputArchive& archive) {
    const at::NoGradGuard no_grad;
    optimizer_->load(archive, 0);
    for (const auto& parameter : parameters()) {
      torch::Tensor saved, own = parameter.tensor;
      archive.read(parameter.name, saved);
      own.copy_(saved);
    }
  }

 private:
  /// Those of the model, and of what is added to them.
  [[nodiscard]] std::vector<nn::Parameter> parameters() const {
    auto all = model_.parameters();
    for (const auto& one : low_ranks_)
      all.insert(all.end(), one.factors().begin(), one.factors().end());
    return all;
  }

  nn::TransformerArray model_;
  std::vector<LowRank> low_ranks_;
  std::unique_ptr<Optimizer> optimizer_;
  bool learns_ = false;
};

/// A checkpoint's step and assessments, the learner as it was; step 0: from the start.
std::int64_t resumed(const std::filesystem::path& file, Learner& learner,
                     std::vector<Assessment>& found) {
  if (file.empty() || !std::filesystem::exists(file)) return 0;
  try {
    auto archive = read_checkpoint(file, kStageTwo);
    torch::Tensor step, assessed;
    archive.read("step", step);
    archive.read("assessed", assessed);
    learner.load(archive);
    for (std::int64_t i = 0; i < assessed.size(0); ++i)
      found.push_back(assessment_of(assessed[i].contiguous()));
    return step.item<std::int64_t>();
  } catch (const UnreadableCheckpoint&) {
    return 0;
  }
}

void keep(const std::filesystem::path& file, const Learner& learner,
          const std::vector<Assessment>& found, std::int64_t step) {
  if (file.empty()) return;
  torch::serialize::OutputArchive archive;
  auto assessed = at::empty({std::ssize(found), 6}, at::TensorOptions(at::kDouble));
  for (std::size_t i = 0; i < found.size(); ++i)
    assessed[static_cast<std::int64_t>(i)].copy_(numbers_of(found[i]));
  archive.write("step", at::scalar_tensor(step, at::TensorOptions(at::kLong)));
  archive.write("assessed", assessed);
  learner.save(archive);
  make_folder(file.parent_path());
  write_checkpoint(file, kStageTwo, archive);
}

}  // namespace

double Distillation::factor(std::int64_t step) const {
  const auto done = static_cast<double>(step), all = static_cast<double>(steps);
  const auto rises = std::max(1.0, std::ceil(kWarmUp * all));
  if (done + 1.0 < rises) return (done + 1.0) / rises;
  const double falls = (done + 1.0 - rises) / std::max(1.0, all - rises);
  return kLast + (1.0 - kLast) * (1.0 + std::cos(std::numbers::pi * falls)) / 2.0;
}

Weights read_learned_hybrid(const Conversion& conversion, const Placement& placement,
                            const std::filesystem::path& folder) {
  const auto file = folder / (key_of(conversion, placement) + ".safetensors");
  Weights weights;
  if (!std::filesystem::exists(file)) return weights;
  SafetensorsFile stored(file);
  for (const auto& [name, tensor] : stored.tensors()) weights[name] = read_tensor(stored, tensor);
  return weights;
}

Distiller::Distiller(const Conversion& conversion, const Weights& teacher, NumericalMode mode,
                     Distillation plan, LearnedBlocks* learned, std::filesystem::path folder,
                     std::filesystem::path kept)
    : conversion_(conversion),
      teacher_(teacher),
      mode_(mode),
      plan_(std::move(plan)),
      learned_(learned),
      folder_(std::move(folder)),
      kept_folder_(std::move(kept)) {}

std::filesystem::path Distiller::file(const Placement& placement, std::int64_t replicate) const {
  if (folder_.empty()) return {};
  return folder_ / std::to_string(replicate) / (key_of(conversion_, placement) + ".pt");
}

void Distiller::forget(const Placement& placement, std::int64_t replicate) const {
  if (!folder_.empty()) std::filesystem::remove(file(placement, replicate));
}

std::int64_t Distiller::at_once(std::int64_t tokens) const {
  const auto& model = conversion_.teacher();
  const double bytes =
      4.0 * kKeptTensors * static_cast<double>(tokens * model.width * model.layers);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(kActivationBytes / bytes));
}

torch::Tensor Distiller::told(nn::TransformerArray& teacher, std::int64_t replicate,
                              std::int64_t step, const torch::Tensor& tokens) {
  const auto place = static_cast<std::size_t>(step);
  {
    const std::lock_guard lock(keeping_);
    const auto own = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const Kept& one) { return one.replicate == replicate; });
    if (own == kept_.end())
      kept_.push_front({replicate, {}});
    else
      kept_.splice(kept_.begin(), kept_, own);
    auto& known = kept_.front().features;
    if (known.empty()) known.resize(static_cast<std::size_t>(plan_.steps));
    if (known[place].defined()) return known[place];
  }
  const at::NoGradGuard no_grad;
  // As the hybrid is computed, so that a hybrid that is the teacher says exactly what it says.
  std::vector<torch::Tensor> parts;
  for (const auto& part : tokens.split(at_once(tokens.size(1))))
    parts.push_back(teacher.features(part.unsqueeze(0), nn::Pass{}).flatten(1, 2));
  const auto features = parts.size() == 1 ? parts.front() : at::cat(parts, 1);
  const std::lock_guard lock(keeping_);
  const auto bytes = static_cast<double>(features.nbytes());
  const auto own = std::find_if(kept_.begin(), kept_.end(),
                                [&](const Kept& one) { return one.replicate == replicate; });
  if (own == kept_.end() || own->features[place].defined()) return features;
  while (kept_bytes_ + bytes > plan_.room && kept_.back().replicate != replicate) {
    for (const auto& other : kept_.back().features)
      kept_bytes_ -= other.defined() ? static_cast<double>(other.nbytes()) : 0.0;
    kept_.pop_back();
  }
  if (kept_bytes_ + bytes > plan_.room) return features;  // later steps would only push out earlier
  kept_bytes_ += bytes;
  own->features[place] = features;
  return features;
}

double Distiller::feature_bytes() const {
  return 4.0 *
         static_cast<double>(plan_.steps * plan_.batch(0, 0).numel() * conversion_.teacher().width);
}

double Distiller::seconds(const Placement& placement) {
  const at::AutoGradMode with_gradients(true);
  Learner learner(conversion_.architecture(placement), weights_of(conversion_, teacher_, placement),
                  plan_, mode_);
  const auto all = plan_.batch(0, 0);
  const auto tokens = all.narrow(0, 0, std::min(at_once(all.size(1)), all.size(0)));
  const auto output = output_of(conversion_, teacher_);
  auto teacher = teacher_of(conversion_, teacher_, mode_);
  const auto told = [&] {
    const at::NoGradGuard no_grad;
    return teacher.features(tokens.unsqueeze(0), nn::Pass{}).flatten(1, 2);
  }();
  const auto step = [&](std::int64_t number) {
    const auto begin = std::chrono::steady_clock::now();
    (void)learner.step(number, 0.0, tokens, {told, output}, tokens.size(0));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  (void)step(1);  // makes what is kept
  const auto parts = static_cast<double>(all.size(0)) / static_cast<double>(tokens.size(0));
  return std::min(step(2), step(3)) * parts * static_cast<double>(plan_.steps);
}

std::vector<Assessment> Distiller::train(const Placement& placement, std::int64_t replicate,
                                         std::size_t marks, const Assess& assess) {
  const at::AutoGradMode with_gradients(true);
  const auto architecture = conversion_.architecture(placement);
  Learner learner(architecture,
                  weights_of(conversion_, teacher_, placement,
                             learned_ == nullptr ? TrainedBlocks()
                                                 : learned_->of_seed(learned_->seed(replicate))),
                  plan_, mode_);
  auto teacher = teacher_of(conversion_, teacher_, mode_);
  const auto output = output_of(conversion_, teacher_);
  std::vector<Assessment> found;
  const auto unfinished = file(placement, replicate);
  auto step = resumed(unfinished, learner, found);
  auto kept = std::chrono::steady_clock::now();
  const auto end = plan_.marks[marks - 1];
  bool finite = true;
  while (found.size() < marks) {
    const auto mark = plan_.marks[found.size()];
    for (; step < mark && finite; ++step) {
      const auto now = std::chrono::steady_clock::now();
      const bool stops = stop_requested();
      if (stops || std::chrono::duration<double>(now - kept).count() > plan_.checkpoint_seconds) {
        keep(unfinished, learner, found, step);
        kept = now;
      }
      if (stops) throw StopRequested();
      const auto tokens = plan_.batch(replicate, step);
      finite = std::isfinite(learner.step(step + 1, plan_.factor(step), tokens,
                                          {told(teacher, replicate, step, tokens), output},
                                          at_once(tokens.size(1))));
    }
    const at::NoGradGuard no_grad;
    found.push_back(assess(learner.model()));
  }
  if (end < plan_.steps) keep(unfinished, learner, found, step);
  found.resize(marks);
  if (end == plan_.steps && !kept_folder_.empty()) {
    std::vector<std::pair<std::string, torch::Tensor>> tensors;
    for (const auto& parameter : learner.model().parameters())
      tensors.emplace_back(parameter.name, parameter.tensor.detach().squeeze(0));
    const auto folder = kept_folder_ / std::to_string(replicate);
    make_folder(folder);
    (void)write_safetensors(folder / (key_of(conversion_, placement) + ".safetensors"), tensors);
  }
  return found;
}

}  // namespace nas
