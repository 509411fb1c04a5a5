#include "training/array_training.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <stdexcept>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>
#include <torch/serialize.h>

#include "core/awake_clock.hpp"
#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/format.hpp"
#include "core/hash.hpp"
#include "core/stop.hpp"
#include "core/thread_clock.hpp"
#include "core/warning.hpp"
#include "ops/model_failure.hpp"
#include "training/checkpoint.hpp"
#include "training/validation.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// A diverging loss is noticed at the latest after this many steps; reading it more often would
/// make a GPU wait.
constexpr std::int64_t kLossCheckInterval = 100;

/// One model's part of the parameters, by name.
std::map<std::string, torch::Tensor> parameters_of(const nn::TransformerArray& models,
                                                   std::int64_t model) {
  std::map<std::string, torch::Tensor> parameters;
  for (const auto& parameter : models.parameters()) {
    const auto& owners = parameter.models;
    const auto found = std::lower_bound(owners.begin(), owners.end(), model);
    if (found == owners.end() || *found != model) continue;
    parameters[parameter.name] = parameter.tensor.detach()[found - owners.begin()];
  }
  return parameters;
}

/// What a checkpoint is of.
std::string name_of(const std::string& name, std::int64_t replicate) {
  return name + "_" + std::to_string(replicate);
}

std::string name_of(const TrainingJob& job) { return name_of(job.checkpoint_name, job.replicate); }

fs::path file_of(const TrainingJob& job, const TrainingContext& context) {
  if (context.checkpoint_folder.empty() || job.checkpoint_name.empty()) return {};
  return checkpoint_file(context.checkpoint_folder, job.checkpoint_name, job.replicate);
}

/// copy_() that does not stretch what is too small.
void copy_exactly(torch::Tensor& to, const torch::Tensor& from, const std::string& name) {
  TORCH_CHECK(to.sizes() == from.sizes(), name, " has sizes ", from.sizes(), ", must have ",
              to.sizes());
  to.copy_(from);
}

/// What a checkpoint holds beside the weights.
constexpr std::array<const char*, 3> kBesideWeights{"optimizer", "loss_sum", "state"};

}  // namespace

fs::path checkpoint_file(const fs::path& folder, const std::string& name, std::int64_t replicate) {
  return folder / (name_of(name, replicate) + ".pt");
}

std::string save_weights(const fs::path& checkpoint, const std::string& name,
                         std::int64_t replicate, const fs::path& file) {
  auto archive = read_checkpoint(checkpoint, name_of(name, replicate));
  torch::serialize::OutputArchive weights;
  for (const auto& key : archive.keys()) {
    if (std::find(kBesideWeights.begin(), kBesideWeights.end(), key) != kBesideWeights.end())
      continue;
    torch::Tensor tensor;
    archive.read(key, tensor);
    weights.write(key, tensor);
  }
  const auto bytes = bytes_of(weights);
  write_durably(file, bytes);
  return sha256(bytes);
}

void load_weights(const fs::path& file, nn::Transformer& model, const std::string& digest) {
  const auto bytes = read_bytes(file);
  if (const auto found = sha256(bytes); !digest.empty() && found != digest) {
    throw UnreadableCheckpoint("its SHA-256 is " + found + ", must be " + digest +
                               ": it is damaged, or of another training run");
  }
  try {
    nn::of_model([&] {
      auto archive = read_archive(bytes);
      const torch::NoGradGuard no_grad;
      for (const auto& [name, parameter] : model.parameters()) {
        torch::Tensor weights;
        archive.read(name, weights);
        auto own = parameter[0];
        copy_exactly(own, weights, name);
      }
    });
  } catch (const CandidateFailure& error) {
    throw UnreadableCheckpoint(error.what());
  }
}

bool ArrayTraining::Member::validation_is_due() const {
  const auto& due = job->settings.checkpoints;
  return std::binary_search(due.begin(), due.end(), step()) &&
         (curve.empty() || curve.back().step != step());
}

bool ArrayTraining::Member::loss_is_checked() const {
  return loss_steps > 0 && step() % kLossCheckInterval == 0;
}

bool ArrayTraining::Member::is_finite() const {
  return curve.empty() ||
         (std::isfinite(curve.back().train_nll) && std::isfinite(curve.back().valid.nll));
}

void ArrayTraining::Member::read_loss(double sum) {
  if (loss_steps == read_steps) return;
  loss = (sum - read_sum) / static_cast<double>(loss_steps - read_steps);
  read_sum = sum;
  read_steps = loss_steps;
}

std::string ArrayTraining::Member::hopeless() const {
  const auto limit = job->stop_above.find(step());
  if (limit == job->stop_above.end() || has_ended()) return {};
  if (curve.empty() || curve.back().step != step()) return {};
  const auto& valid = curve.back().valid;
  const double nll = valid.nll / static_cast<double>(valid.tokens);
  if (nll <= limit->second) return {};
  return "validation nll " + shortest(nll) + " at step " + std::to_string(step()) +
         " is above the limit " + shortest(limit->second);
}

std::int64_t ArrayTraining::Member::steps_ahead() const {
  const auto& due = job->settings.checkpoints;  // the last one is the end
  const auto validation = std::upper_bound(due.begin(), due.end(), step());
  const auto check = kLossCheckInterval - step() % kLossCheckInterval;
  return validation == due.end() ? check : std::min(check, *validation - step());
}

ArrayTraining::ArrayTraining(std::span<const TrainingJob> jobs, const Corpus& corpus,
                             const TrainingContext& context, std::vector<TrainingResult>& results)
    : corpus_(corpus),
      context_(context),
      task_(task_of(corpus)),
      common_(jobs.front().settings),
      stream_(torch::Device(context.device)),
      valid_(evenly_spaced(corpus.valid.size(), common_.validation_windows)),
      results_(results) {
  for (const auto& job : jobs) {
    const auto& due = job.settings.checkpoints;
    if (job.until > 0 && !std::binary_search(due.begin(), due.end(), job.until)) {
      throw std::logic_error("training until step " + std::to_string(job.until) +
                             ", which is no validation step");
    }
    const auto update = [&settings = job.settings](std::int64_t step) {
      return ModelStep{.step = step,
                       .learning_rate = settings.rate(step),
                       .weight_decay = settings.weight_decay,
                       .clip_norm = settings.clip_norm};
    };
    members_.push_back({.job = &job,
                        .result = members_.size(),
                        .course = {.order = TrainingOrder(corpus.train, job.settings.batch_size,
                                                          job.run_seed, job.replicate),
                                   .run_seed = job.run_seed,
                                   .replicate = job.replicate,
                                   .update = update}});
  }
  build();
}

void ArrayTraining::run() {
  restore();
  mark_time();
  last_saved_ = Clock::now();
  try {
    while (finish_who_is_done(), !members_.empty()) {
      if (stop_requested()) throw StopRequested();
      const auto nearest = std::min_element(
          members_.begin(), members_.end(),
          [](const Member& a, const Member& b) { return a.steps_ahead() < b.steps_ahead(); });
      take(nearest->steps_ahead());
      tell(/*now=*/false);
      const std::chrono::duration<double> since = Clock::now() - last_saved_;
      if (since.count() > 60.0 * common_.checkpoint_minutes) save();
    }
  } catch (const StopRequested&) {
    // The step that was interrupted is done again: checkpoints hold whole steps only.
    save();
    throw;
  }
}

std::int64_t ArrayTraining::take(std::int64_t most) {
  std::vector<Course*> courses;
  for (auto& member : members_) courses.push_back(&member.course);
  const auto taken = nn::of_model([&] { return steps_->take(courses, most); });
  for (auto& member : members_) member.loss_steps += taken;
  return taken;
}

std::int64_t ArrayTraining::try_steps(std::int64_t count) {
  std::int64_t taken = 0;
  while (taken < count) taken += take(kLossCheckInterval);
  nn::of_model([this] { (void)loss_sums_.cpu(); });
  return taken;
}

std::vector<Scores> ArrayTraining::score(const Windows& windows,
                                         std::span<const std::int64_t> scored) {
  return nn::of_model([&] {
    return validate(*models_, windows, scored, corpus_.special, common_.evaluation_batch_size,
                    context_.device, *task_);
  });
}

void ArrayTraining::build() {
  nn::of_model([this] { build_models(); });
}

void ArrayTraining::build_models() {
  steps_.reset();  // it refers to what is made anew
  std::vector<Architecture> architectures;
  std::vector<nn::StartSeed> seeds;
  for (const auto& member : members_) {
    architectures.push_back(member.job->architecture);
    seeds.push_back({member.job->run_seed, member.job->replicate});
  }
  const torch::Device device(context_.device);
  models_.emplace(architectures, context_.numerical_mode, device);
  models_->initialise(seeds);
  models_->recompute_layers(common_.recompute_layers);
  const auto& models = *models_;
  optimizer_.emplace(
      models.parameters(), models.num_models(),
      [&models](const nn::Parameter& parameter) { return models.decays(parameter); }, 0.999,
      optimizers().at(common_.optimizer).make());
  loss_sums_ = torch::zeros({models.num_models()},
                            torch::TensorOptions(torch::kFloat64).device(context_.device));
  steps_ = array_steps(*models_, *optimizer_, corpus_.train,
                       {.batch = common_.batch_size, .micro = common_.micro_batch, .task = task_},
                       loss_sums_);
}

void ArrayTraining::keep(const std::vector<std::size_t>& kept) {
  std::vector<Member> members;
  for (const auto i : kept) members.push_back(std::move(members_[i]));
  members_ = std::move(members);
  if (members_.empty()) return;
  const auto before = std::move(*models_);
  const auto optimizer = std::move(*optimizer_);
  const auto sums = loss_sums_;
  build();
  const torch::NoGradGuard no_grad;
  for (std::size_t to = 0; to < kept.size(); ++to) {
    const auto model = static_cast<std::int64_t>(to);
    const auto from = static_cast<std::int64_t>(kept[to]);
    const auto values = parameters_of(before, from);
    for (auto& [name, tensor] : parameters_of(*models_, model)) tensor.copy_(values.at(name));
    optimizer_->take(optimizer, from, model);
    loss_sums_[model].copy_(sums[from]);
  }
}

void ArrayTraining::finish_who_is_done() {
  const auto any = [this](auto holds) {
    return std::any_of(members_.begin(), members_.end(), holds);
  };
  const bool due = any([](const Member& member) { return member.validation_is_due(); });
  // Members that had ended or paused before a stop are here, too.
  const bool ended = any([](const Member& member) {
    return member.loss_is_checked() || member.has_ended() || member.is_paused() ||
           !member.hopeless().empty();
  });
  if (!due && !ended) return;
  const auto sums = loss_sums_.cpu();
  const auto scores = due ? score(corpus_.valid, valid_) : std::vector<Scores>(members_.size());
  share_time();
  std::vector<std::optional<TrainingResult>> endings;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const auto model = static_cast<std::int64_t>(i);
    const bool scored = members_[i].validation_is_due();
    members_[i].read_loss(sums[model].item<double>());
    endings.push_back(ending(members_[i], sums[model].item<double>(), scores[i]));
    if (scored) loss_sums_[model].zero_();
    if (!endings.back()) kept.push_back(i);
  }
  tell(/*now=*/due);
  if (kept.size() == members_.size()) return;
  finish(endings);
  keep(kept);
}

std::optional<TrainingResult> ArrayTraining::ending(Member& member, double loss_sum,
                                                    const Scores& valid) const {
  const auto step = std::to_string(member.step());
  const auto ends = [](Status status, const std::string& reason = "") {
    return TrainingResult{.status = status, .reason = reason};
  };
  if (member.validation_is_due()) {
    const double train_nll = loss_sum / static_cast<double>(member.loss_steps);
    member.curve.push_back(
        {.step = member.step(), .train_nll = train_nll, .valid = valid, .seconds = member.seconds});
    member.loss_steps = member.read_steps = 0;
    member.read_sum = 0.0;
    if (!member.is_finite()) {
      return ends(Status::diverged,
                  std::string(std::isfinite(train_nll) ? "validation" : "training") +
                      " loss is not finite at step " + step);
    }
  } else if (member.loss_is_checked() && !std::isfinite(loss_sum)) {
    return ends(Status::diverged, "training loss is not finite by step " + step);
  }
  if (const auto reason = member.hopeless(); !reason.empty())
    return ends(Status::stopped_early, reason);
  if (member.has_ended()) return ends(Status::ok);
  if (context_.time_limit > 0.0 && member.seconds > context_.time_limit) {
    return ends(Status::timed_out, human_duration(member.seconds) + " at step " + step +
                                       " are more than evaluation.time_limit = " +
                                       shortest(context_.time_limit) + " s");
  }
  if (member.is_paused()) return ends(Status::paused);
  return std::nullopt;
}

void ArrayTraining::finish(std::vector<std::optional<TrainingResult>>& endings) {
  const bool ended = std::any_of(endings.begin(), endings.end(), [](const auto& ending) {
    return ending && ending->status == Status::ok;
  });
  const auto test =
      ended && common_.score_test
          ? score(corpus_.test, evenly_spaced(corpus_.test.size(), common_.validation_windows))
          : std::vector<Scores>(members_.size());
  std::map<std::string, std::vector<Scores>> further;
  if (ended) {
    for (const auto& [name, windows] : corpus_.further)
      further[name] = score(windows, evenly_spaced(windows.size(), 0));
  }
  share_time();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (!endings[i]) continue;
    const auto& member = members_[i];
    auto& result = *endings[i];
    if (result.status == Status::ok) {
      result.test = test[i];
      for (const auto& [name, scores] : further) result.further[name] = scores[i];
      // Records of next tokens have their own names for it.
      if (common_.score_test && corpus_.task != "next_token") result.further["test"] = test[i];
    }
    result.curve = member.curve;
    result.seconds = member.seconds;
    result.cpu_seconds = member.cpu_seconds;
    results_[member.result] = std::move(result);
    // The others go on, and the process may end before the result is known.
    save(member, i);
  }
  mark_time();
}

void ArrayTraining::tell(bool now) {
  if (!context_.on_step) return;
  const auto time = Clock::now();
  if (!now && time - last_told_ < std::chrono::seconds(1)) return;
  last_told_ = time;
  double loss = 0.0;
  for (const auto& member : members_) loss += member.loss;
  context_.on_step(members_.front().step(), common_.steps,
                   loss / static_cast<double>(members_.size()));
}

void ArrayTraining::share_time() {
  const double share = 1.0 / static_cast<double>(members_.size());
  const auto since = time_;
  const double cpu_since = cpu_time_;
  mark_time();
  for (auto& member : members_) {
    member.seconds += share * std::chrono::duration<double>(time_ - since).count();
    member.cpu_seconds += share * (cpu_time_ - cpu_since);
  }
}

void ArrayTraining::mark_time() {
  time_ = awake_now();
  cpu_time_ = thread_cpu_seconds();
}

void ArrayTraining::save() {
  last_saved_ = Clock::now();
  if (members_.empty()) return;
  share_time();
  for (std::size_t i = 0; i < members_.size(); ++i) save(members_[i], i);
  mark_time();  // a slow disk is no fault of theirs
}

void ArrayTraining::save(const Member& member, std::size_t index) const {
  const auto file = file_of(*member.job, context_);
  // NaN and infinity have no JSON: a member that diverged does so again.
  if (file.empty() || member.step() == 0 || !member.is_finite()) return;
  const auto model = static_cast<std::int64_t>(index);
  const nlohmann::json state = {{"step", member.step()},
                                {"loss_steps", member.loss_steps},
                                {"curve", member.curve},
                                {"seconds", member.seconds},
                                {"cpu_seconds", member.cpu_seconds}};
  torch::serialize::OutputArchive archive;
  archive.write("state", torch::IValue(state.dump()));  // before all tensors
  archive.write("loss_sum", loss_sums_[model].clone());
  torch::serialize::OutputArchive optimizer;
  optimizer_->save(optimizer, model);
  archive.write("optimizer", optimizer);
  for (const auto& [name, tensor] : parameters_of(*models_, model))
    archive.write(name, tensor.clone());
  try {
    write_checkpoint(file, name_of(*member.job), archive);
  } catch (const MachineError& error) {
    if (!context_.does_without_checkpoints) throw;
    warn(std::string(error.what()) + ", so that this training would begin again");
  }
}

void ArrayTraining::restore() {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const auto file = file_of(*members_[i].job, context_);
    if (file.empty() || !fs::exists(file)) continue;
    const auto discard = [&file](const std::exception& why) {
      warn(file.string() + ": " + why.what() + ", so that this training begins again");
      remove_file(file);
      throw CheckpointDiscarded();
    };
    const auto read_it = [&] {
      nn::of_model([&] { read(file, members_[i], static_cast<std::int64_t>(i)); });
    };
    try {
      try {
        read_it();
      } catch (const MachineError&) {
        // Another machine may just have replaced it, or removed it with its result in safety.
        std::this_thread::sleep_for(std::chrono::seconds(1));
        if (fs::exists(file)) read_it();
      }
    } catch (const CandidateFailure& error) {  // what LibTorch or JSON says of what it read
      discard(error);
    }
  }
}

void ArrayTraining::read(const fs::path& file, Member& member, std::int64_t model) {
  auto archive = read_checkpoint(file, name_of(*member.job));
  const torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : parameters_of(*models_, model)) {
    torch::Tensor saved;
    archive.read(name, saved);
    copy_exactly(tensor, saved, name);
  }
  torch::serialize::InputArchive optimizer;
  archive.read("optimizer", optimizer);
  optimizer_->load(optimizer, model);
  torch::Tensor loss_sum;
  archive.read("loss_sum", loss_sum);
  auto own_sum = loss_sums_[model];
  copy_exactly(own_sum, loss_sum, "loss_sum");
  torch::IValue state_text;
  archive.read("state", state_text);
  const auto state = nlohmann::json::parse(state_text.toStringRef());
  member.course.done = state.at("step");
  member.loss_steps = state.at("loss_steps");
  member.curve = state.at("curve").get<std::vector<CurvePoint>>();
  member.seconds = state.at("seconds");
  member.cpu_seconds = state.at("cpu_seconds");
}

}  // namespace nas
