#include "training/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numbers>

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>
#include <torch/serialize.h>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/seed.hpp"
#include "core/stop.hpp"
#include "core/thread_clock.hpp"
#include "nn/memory.hpp"
#include "training/batches.hpp"
#include "training/optimizer.hpp"
#include "training/validation.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// A diverging loss is noticed at the latest after this many steps; reading it more often would
/// make a GPU wait.
constexpr std::int64_t kLossCheckInterval = 100;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A checkpoint that cannot be read has been removed: the training has to start again.
class UnreadableCheckpoint : public std::exception {};

/// One training in progress: model, optimiser, and where it stands.
class Training {
 public:
  Training(const Architecture& architecture, const Corpus& corpus, const TrainingSettings& settings,
           std::uint64_t run_seed, std::int64_t replicate, const TrainingContext& context)
      : corpus_(corpus),
        settings_(settings),
        context_(context),
        run_seed_(run_seed),
        replicate_(replicate),
        model_(architecture, context.numerical_mode),
        order_(corpus.train, settings.batch_size, run_seed, replicate),
        valid_(evenly_spaced(corpus.valid, settings.validation_windows)) {
    model_.initialise(run_seed, replicate);
    model_.to(torch::Device(context.device));
    optimizer_ = std::make_unique<Optimizer>(
        model_, OptimizerSettings{.learning_rate = settings.learning_rate,
                                  .weight_decay = settings.weight_decay,
                                  .clip_norm = settings.clip_norm});
    loss_sum_ = torch::zeros({}, torch::TensorOptions(torch::kFloat64).device(context.device));
  }

  TrainingResult run() {
    restore();
    started_ = Clock::now();
    cpu_started_ = thread_cpu_seconds();
    last_saved_ = started_;
    TrainingResult result;
    try {
      result.status = steps(result.reason);
      if (settings_.score_test && result.status == Status::ok) {
        result.test = score(evenly_spaced(corpus_.test, settings_.validation_windows));
      }
    } catch (const StopRequested&) {
      // The step that was interrupted is done again: the checkpoint holds whole steps only.
      save();
      throw;
    }
    result.curve = curve_;
    result.seconds = seconds();
    result.cpu_seconds = cpu_seconds();
    return result;
  }

  void step() {
    optimizer_->set_learning_rate(settings_.rate(step_ + 1));
    const Batch batch = order_.batch(step_);
    const nn::Pass pass{.training = true,
                        .seed = derive_seed(run_seed_, replicate_, "dropout", step_)};
    const auto loss =
        model_.loss(batch.input.to(context_.device), batch.target.to(context_.device), pass);
    loss.backward();
    optimizer_->step();
    loss_sum_ += loss.detach();
    ++loss_steps_;
    ++step_;
  }

  nn::Transformer& model() { return model_; }

  Scores score(const Windows& windows) {
    return validate(model_, windows, corpus_.special, settings_.evaluation_batch_size,
                    context_.device);
  }

  void save_weights(const fs::path& file) const {
    torch::serialize::OutputArchive archive;
    for (const auto& [name, tensor] : model_.parameters()) archive.write(name, tensor.cpu());
    write_archive(archive, file);
  }

  void remove_checkpoint() const {
    if (!checkpoint_file().empty()) fs::remove(checkpoint_file());
  }

 private:
  /// Trains to the end, from wherever the training stands. @return ok, diverged or stopped_early.
  Status steps(std::string& reason) {
    while (true) {
      if (validation_is_due()) {
        if (!add_curve_point(reason)) return Status::diverged;
        if (is_hopeless(reason)) return Status::stopped_early;
      }
      if (step_ == settings_.steps) return Status::ok;
      if (stop_requested()) throw StopRequested();
      step();
      if (step_ % kLossCheckInterval == 0 && !std::isfinite(loss_sum_.item<double>())) {
        reason = "training loss is not finite by step " + std::to_string(step_);
        return Status::diverged;
      }
      if (seconds_since(last_saved_) > 60.0 * settings_.checkpoint_minutes) save();
    }
  }

  [[nodiscard]] bool validation_is_due() const {
    const auto& due = settings_.checkpoints;
    return std::binary_search(due.begin(), due.end(), step_) &&
           (curve_.empty() || curve_.back().step != step_);
  }

  bool add_curve_point(std::string& reason) {
    CurvePoint point;
    point.step = step_;
    point.train_nll = loss_sum_.item<double>() / static_cast<double>(loss_steps_);
    point.valid = score(valid_);
    point.seconds = seconds();
    loss_sum_.zero_();
    loss_steps_ = 0;
    curve_.push_back(point);
    if (std::isfinite(point.train_nll) && std::isfinite(point.valid.nll)) return true;
    reason = std::string(std::isfinite(point.train_nll) ? "validation" : "training") +
             " loss is not finite at step " + std::to_string(step_);
    return false;
  }

  bool is_hopeless(std::string& reason) const {
    const auto limit = context_.stop_above.find(step_);
    if (limit == context_.stop_above.end() || step_ == settings_.steps) return false;
    const auto& valid = curve_.back().valid;
    const double nll = valid.nll / static_cast<double>(valid.tokens);
    if (nll <= limit->second) return false;
    reason = "validation nll " + shortest(nll) + " at step " + std::to_string(step_) +
             " is above the limit " + shortest(limit->second);
    return true;
  }

  [[nodiscard]] double seconds() const { return earlier_seconds_ + seconds_since(started_); }
  [[nodiscard]] double cpu_seconds() const {
    return earlier_cpu_seconds_ + thread_cpu_seconds() - cpu_started_;
  }

  [[nodiscard]] fs::path checkpoint_file() const {
    if (context_.checkpoint_folder.empty()) return {};
    return context_.checkpoint_folder /
           (context_.checkpoint_name + "_" + std::to_string(replicate_) + ".pt");
  }

  /// Writes to a temporary file and renames: a killed process leaves the old file or the new one,
  /// whole.
  static void write_archive(torch::serialize::OutputArchive& archive, const fs::path& file) {
    fs::create_directories(file.parent_path());
    const fs::path temporary = file.string() + ".tmp";
    archive.save_to(temporary.string());
    fs::rename(temporary, file);
  }

  void save() {
    last_saved_ = Clock::now();
    const auto file = checkpoint_file();
    if (file.empty() || step_ == 0) return;
    torch::serialize::OutputArchive archive;
    for (const auto& [name, tensor] : model_.parameters()) archive.write(name, tensor);
    torch::serialize::OutputArchive optimizer;
    optimizer_->save(optimizer);
    archive.write("optimizer", optimizer);
    archive.write("loss_sum", loss_sum_);
    // NaN and infinity have no JSON: a training that diverged never gets here.
    const nlohmann::json state = {{"step", step_},
                                  {"loss_steps", loss_steps_},
                                  {"curve", curve_},
                                  {"seconds", seconds()},
                                  {"cpu_seconds", cpu_seconds()}};
    archive.write("state", torch::IValue(state.dump()));
    write_archive(archive, file);
  }

  /// @throws UnreadableCheckpoint if the file is there but not whole (a power cut, say); this
  /// object is then spoilt.
  void restore() {
    const auto file = checkpoint_file();
    if (file.empty() || !fs::exists(file)) return;
    try {
      read(file);
    } catch (const std::exception&) {
      fs::remove(file);
      throw UnreadableCheckpoint();
    }
  }

  void read(const fs::path& file) {
    torch::serialize::InputArchive archive;
    archive.load_from(file.string(), torch::Device(context_.device));
    const torch::NoGradGuard no_grad;
    for (auto& [name, tensor] : model_.parameters()) {
      torch::Tensor saved;
      archive.read(name, saved);
      tensor.copy_(saved);
    }
    torch::serialize::InputArchive optimizer;
    archive.read("optimizer", optimizer);
    optimizer_->load(optimizer);
    archive.read("loss_sum", loss_sum_);
    torch::IValue state_text;
    archive.read("state", state_text);
    const auto state = nlohmann::json::parse(state_text.toStringRef());
    step_ = state.at("step");
    loss_steps_ = state.at("loss_steps");
    curve_ = state.at("curve").get<std::vector<CurvePoint>>();
    earlier_seconds_ = state.at("seconds");
    earlier_cpu_seconds_ = state.value("cpu_seconds", 0.0);
  }

  const Corpus& corpus_;
  const TrainingSettings& settings_;
  const TrainingContext& context_;
  std::uint64_t run_seed_;
  std::int64_t replicate_;
  nn::Transformer model_;
  TrainingOrder order_;
  Windows valid_;
  std::unique_ptr<Optimizer> optimizer_;

  std::int64_t step_ = 0;        ///< steps done
  torch::Tensor loss_sum_;       ///< of the steps since the last curve point, on the device
  std::int64_t loss_steps_ = 0;  ///< their number
  std::vector<CurvePoint> curve_;
  double earlier_seconds_ = 0.0;  ///< of the processes before this one
  double earlier_cpu_seconds_ = 0.0;
  Clock::time_point started_ = Clock::now();
  double cpu_started_ = thread_cpu_seconds();
  Clock::time_point last_saved_ = started_;
};

TrainingResult train_one(const Architecture& architecture, const Corpus& corpus,
                         const TrainingSettings& settings, std::uint64_t run_seed,
                         std::int64_t replicate, const TrainingContext& context) {
  const nn::MemoryScope memory(context.memory_limit);
  TrainingResult result;
  try {
    std::optional<Training> training;
    for (bool done = false; !done;) {
      training.emplace(architecture, corpus, settings, run_seed, replicate, context);
      try {
        result = training->run();
        done = true;
      } catch (const UnreadableCheckpoint&) {  // it is gone now
      }
    }
    if (result.status == Status::ok && !context.weights_file.empty()) {
      training->save_weights(context.weights_file);
    }
    training->remove_checkpoint();
  } catch (const MemoryLimitExceeded& error) {
    result = {.status = Status::out_of_memory, .reason = error.what(), .curve = {}};
  } catch (const c10::Error& error) {
    // LibTorch has a type for it only since 2.0, and the CPU allocator says it in words in every
    // version.
    const std::string text = error.what_without_backtrace();
    const bool memory_error = text.find("out of memory") != std::string::npos ||
                              text.find("not enough memory") != std::string::npos;
    if (!memory_error) throw std::runtime_error(text);
    result = {.status = Status::out_of_memory, .reason = text, .curve = {}};
  }
  result.peak_bytes = memory.peak_bytes();
  nn::release_cached_memory();  // the next mechanism has other sizes
  return result;
}

}  // namespace

TrainingSettings::TrainingSettings(const Parameters& parameters)
    : steps(parameters.get<std::int64_t>("steps")),
      batch_size(parameters.get<std::int64_t>("batch_size")),
      learning_rate(parameters.get<double>("learning_rate")),
      cosine(parameters.get<std::string>("schedule") == "cosine"),
      warmup_steps(parameters.get<std::int64_t>("warmup_steps")),
      weight_decay(parameters.get<double>("weight_decay")),
      clip_norm(parameters.get<double>("clip_norm")),
      checkpoints(parameters.get<std::vector<std::int64_t>>("checkpoints")),
      evaluation_batch_size(parameters.get<std::int64_t>("evaluation_batch_size")),
      validation_windows(parameters.get<std::int64_t>("validation_windows")),
      score_test(parameters.get<bool>("score_test")),
      checkpoint_minutes(parameters.get<double>("checkpoint_minutes")) {
  checkpoints.push_back(steps);
  std::sort(checkpoints.begin(), checkpoints.end());
  checkpoints.erase(std::unique(checkpoints.begin(), checkpoints.end()), checkpoints.end());
}

double TrainingSettings::rate(std::int64_t step) const {
  const auto s = static_cast<double>(step);
  const auto warmup = static_cast<double>(warmup_steps);
  if (step <= warmup_steps) return learning_rate * s / warmup;
  if (!cosine) return learning_rate;
  const double progress = (s - warmup) / (static_cast<double>(steps) - warmup);
  return learning_rate * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

std::vector<TrainingResult> train(const Architecture& architecture, const Corpus& corpus,
                                  const TrainingSettings& settings, std::uint64_t run_seed,
                                  std::span<const std::int64_t> replicates,
                                  const TrainingContext& context) {
  at::set_num_threads(context.threads);
  std::vector<TrainingResult> results;
  for (const auto replicate : replicates) {
    results.push_back(train_one(architecture, corpus, settings, run_seed, replicate, context));
  }
  return results;
}

double expected_seconds(const Architecture& architecture, const Corpus& corpus,
                        const TrainingSettings& settings, const TrainingContext& context) {
  at::set_num_threads(context.threads);
  TrainingContext scratch = context;
  scratch.checkpoint_folder.clear();
  Training training(architecture, corpus, settings, 0, 0, scratch);
  training.step();
  auto start = Clock::now();
  constexpr double kEnough = 0.5;
  std::int64_t steps = 0;
  while (steps < 3 || (seconds_since(start) < kEnough && steps < settings.steps)) {
    training.step();
    ++steps;
  }
  const double step_seconds = seconds_since(start) / static_cast<double>(steps);
  const Windows scored = evenly_spaced(corpus.valid, settings.validation_windows);
  const Windows few = evenly_spaced(scored, settings.evaluation_batch_size);
  start = Clock::now();
  validate(training.model(), few, corpus.special, settings.evaluation_batch_size, context.device);
  const double window_seconds = seconds_since(start) / static_cast<double>(few.size());
  return step_seconds * static_cast<double>(settings.steps) +
         window_seconds * static_cast<double>(scored.size()) *
             static_cast<double>(settings.checkpoints.size());
}

}  // namespace nas
