#include "training/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numbers>
#include <tuple>

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>
#include <torch/serialize.h>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/seed.hpp"
#include "core/stop.hpp"
#include "core/thread_clock.hpp"
#include "nn/device_copy.hpp"
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

/// A checkpoint that cannot be read has been removed: the trainings have to start again.
class UnreadableCheckpoint : public std::exception {};

/// Writes to a temporary file and renames: a killed process leaves the old file or the new one,
/// whole.
void write_archive(torch::serialize::OutputArchive& archive, const fs::path& file) {
  fs::create_directories(file.parent_path());
  const fs::path temporary = file.string() + ".tmp";
  archive.save_to(temporary.string());
  fs::rename(temporary, file);
}

/// Empty: none is written.
fs::path checkpoint_file(const TrainingJob& job, const TrainingContext& context) {
  if (context.checkpoint_folder.empty() || job.checkpoint_name.empty()) return {};
  return context.checkpoint_folder /
         (job.checkpoint_name + "_" + std::to_string(job.replicate) + ".pt");
}

/// Whether an error of LibTorch says that memory lacks. It has a type for it only since 2.0, and
/// the CPU allocator says it in words in every version.
bool is_memory_error(const std::string& text) {
  return text.find("out of memory") != std::string::npos ||
         text.find("not enough memory") != std::string::npos;
}

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

/// Where one job of an array stands.
struct Member {
  const TrainingJob* job;
  std::size_t result;  ///< whose it is
  TrainingOrder order;
  std::int64_t step = 0;        ///< steps done
  std::int64_t loss_steps = 0;  ///< since the last curve point
  std::vector<CurvePoint> curve{};
  double seconds = 0.0;
  double cpu_seconds = 0.0;

  [[nodiscard]] bool validation_is_due() const {
    const auto& due = job->settings.checkpoints;
    return std::binary_search(due.begin(), due.end(), step) &&
           (curve.empty() || curve.back().step != step);
  }
  [[nodiscard]] bool loss_is_checked() const {
    return loss_steps > 0 && step % kLossCheckInterval == 0;
  }
  [[nodiscard]] bool has_ended() const { return step == job->settings.steps; }
  [[nodiscard]] bool is_finite() const {
    return curve.empty() ||
           (std::isfinite(curve.back().train_nll) && std::isfinite(curve.back().valid.nll));
  }

  /// @return why the curve point of this step ends the training early; empty: it does not.
  [[nodiscard]] std::string hopeless() const {
    const auto limit = job->stop_above.find(step);
    if (limit == job->stop_above.end() || has_ended()) return {};
    if (curve.empty() || curve.back().step != step) return {};
    const auto& valid = curve.back().valid;
    const double nll = valid.nll / static_cast<double>(valid.tokens);
    if (nll <= limit->second) return {};
    return "validation nll " + shortest(nll) + " at step " + std::to_string(step) +
           " is above the limit " + shortest(limit->second);
  }
};

/// The trainings of an array in progress: models, optimiser, and where each stands.
class ArrayTraining {
 public:
  ArrayTraining(std::span<const TrainingJob> jobs, const Corpus& corpus,
                const TrainingContext& context, std::vector<TrainingResult>& results)
      : corpus_(corpus),
        context_(context),
        common_(jobs.front().settings),
        valid_(evenly_spaced(corpus.valid, common_.validation_windows)),
        results_(results) {
    for (const auto& job : jobs) {
      members_.push_back({.job = &job,
                          .result = members_.size(),
                          .order = TrainingOrder(corpus.train, job.settings.batch_size,
                                                 job.run_seed, job.replicate)});
    }
    build();
  }

  /// Trains all to their ends, from wherever they stand.
  void run() {
    restore();
    mark_time();
    last_saved_ = Clock::now();
    try {
      while (finish_who_is_done(), !members_.empty()) {
        if (stop_requested()) throw StopRequested();
        step();
        const auto since = seconds_since(last_saved_);
        if (since > 60.0 * common_.checkpoint_minutes) save();
      }
    } catch (const StopRequested&) {
      // The step that was interrupted is done again: checkpoints hold whole steps only.
      save();
      throw;
    }
  }

  void step() {
    nn::Pass pass{.training = true, .seeds = {}};
    std::vector<ModelStep> steps;
    std::vector<torch::Tensor> inputs;
    std::vector<torch::Tensor> targets;
    for (auto& member : members_) {
      const auto& job = *member.job;
      pass.seeds.push_back(derive_seed(job.run_seed, job.replicate, "dropout", member.step));
      const Batch batch = member.order.batch(member.step);
      inputs.push_back(batch.input);
      targets.push_back(batch.target);
      ++member.step;
      ++member.loss_steps;
      steps.push_back({.step = member.step,
                       .learning_rate = job.settings.rate(member.step),
                       .weight_decay = job.settings.weight_decay,
                       .clip_norm = job.settings.clip_norm});
    }
    const torch::Device device(context_.device);
    const auto losses = models_->loss(nn::sent(torch::stack(inputs), device),
                                      nn::sent(torch::stack(targets), device), pass);
    losses.sum().backward();
    optimizer_->step(steps);
    loss_sums_ += losses.detach();
  }

  std::vector<Scores> score(const Windows& windows) {
    return validate(*models_, windows, corpus_.special, common_.evaluation_batch_size,
                    context_.device);
  }

 private:
  /// Makes the models of the present members, at their starts.
  void build() {
    std::vector<Architecture> architectures;
    std::vector<nn::StartSeed> seeds;
    for (const auto& member : members_) {
      architectures.push_back(member.job->architecture);
      seeds.push_back({member.job->run_seed, member.job->replicate});
    }
    const torch::Device device(context_.device);
    models_.emplace(architectures, context_.numerical_mode, device);
    models_->initialise(seeds);
    models_->to(device);
    const auto& models = *models_;
    optimizer_.emplace(
        models.parameters(), models.num_models(),
        [&models](const nn::Parameter& parameter) { return models.decays(parameter); });
    loss_sums_ = torch::zeros({models.num_models()},
                              torch::TensorOptions(torch::kFloat64).device(context_.device));
  }

  /// Goes on with some of the members only.
  void keep(const std::vector<std::size_t>& kept) {
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

  /// Scores the members whose validation is due, and lets those go that are done.
  void finish_who_is_done() {
    const auto any = [this](auto holds) {
      return std::any_of(members_.begin(), members_.end(), holds);
    };
    const bool due = any([](const Member& member) { return member.validation_is_due(); });
    // Who had ended before a stop is here, too.
    const bool ended = any([](const Member& member) {
      return member.loss_is_checked() || member.has_ended() || !member.hopeless().empty();
    });
    if (!due && !ended) return;
    const auto sums = loss_sums_.cpu();
    const auto scores = due ? score(valid_) : std::vector<Scores>(members_.size());
    share_time();
    std::vector<std::optional<TrainingResult>> endings;
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const auto model = static_cast<std::int64_t>(i);
      const bool scored = members_[i].validation_is_due();
      endings.push_back(ending(members_[i], sums[model].item<double>(), scores[i]));
      if (scored) loss_sums_[model].zero_();
      if (!endings.back()) kept.push_back(i);
    }
    if (kept.size() == members_.size()) return;
    finish(endings);
    keep(kept);
  }

  /// Enters the curve point that is due. @return how a member ends here; nothing: it goes on.
  static std::optional<TrainingResult> ending(Member& member, double loss_sum,
                                              const Scores& valid) {
    const auto step = std::to_string(member.step);
    if (member.validation_is_due()) {
      const double train_nll = loss_sum / static_cast<double>(member.loss_steps);
      member.curve.push_back(
          {.step = member.step, .train_nll = train_nll, .valid = valid, .seconds = member.seconds});
      member.loss_steps = 0;
      if (!member.is_finite()) {
        return TrainingResult{
            .status = Status::diverged,
            .reason = std::string(std::isfinite(train_nll) ? "validation" : "training") +
                      " loss is not finite at step " + step,
            .curve = {}};
      }
    } else if (member.loss_is_checked() && !std::isfinite(loss_sum)) {
      return TrainingResult{.status = Status::diverged,
                            .reason = "training loss is not finite by step " + step,
                            .curve = {}};
    }
    if (const auto reason = member.hopeless(); !reason.empty()) {
      return TrainingResult{.status = Status::stopped_early, .reason = reason, .curve = {}};
    }
    if (!member.has_ended()) return std::nullopt;
    return TrainingResult{.status = Status::ok, .reason = "", .curve = {}};
  }

  /// Fills the results of the members that end.
  void finish(std::vector<std::optional<TrainingResult>>& endings) {
    const bool tested =
        common_.score_test && std::any_of(endings.begin(), endings.end(), [](const auto& ending) {
          return ending && ending->status == Status::ok;
        });
    const auto test = tested ? score(evenly_spaced(corpus_.test, common_.validation_windows))
                             : std::vector<Scores>(members_.size());
    share_time();
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (!endings[i]) continue;
      const auto& member = members_[i];
      auto& result = *endings[i];
      if (result.status == Status::ok) {
        result.test = test[i];
        save_weights(static_cast<std::int64_t>(i), member.job->weights_file);
      }
      result.curve = member.curve;
      result.seconds = member.seconds;
      result.cpu_seconds = member.cpu_seconds;
      results_[member.result] = std::move(result);
      // The others go on, and a stop may come before anybody knows the result.
      save(member, i);
    }
  }

  void save_weights(std::int64_t model, const fs::path& file) const {
    if (file.empty()) return;
    torch::serialize::OutputArchive archive;
    for (const auto& [name, tensor] : parameters_of(*models_, model)) {
      archive.write(name, tensor.cpu().clone());
    }
    write_archive(archive, file);
  }

  /// Charges the time since the last call to the members, in equal parts.
  void share_time() {
    const double share = 1.0 / static_cast<double>(members_.size());
    const auto since = time_;
    const double cpu_since = cpu_time_;
    mark_time();
    for (auto& member : members_) {
      member.seconds += share * std::chrono::duration<double>(time_ - since).count();
      member.cpu_seconds += share * (cpu_time_ - cpu_since);
    }
  }
  void mark_time() {
    time_ = Clock::now();
    cpu_time_ = thread_cpu_seconds();
  }

  void save() {
    last_saved_ = Clock::now();
    if (members_.empty()) return;
    share_time();
    for (std::size_t i = 0; i < members_.size(); ++i) save(members_[i], i);
  }

  void save(const Member& member, std::size_t index) const {
    const auto file = checkpoint_file(*member.job, context_);
    // NaN and infinity have no JSON: whoever diverged does so again.
    if (file.empty() || member.step == 0 || !member.is_finite()) return;
    const auto model = static_cast<std::int64_t>(index);
    torch::serialize::OutputArchive archive;
    for (const auto& [name, tensor] : parameters_of(*models_, model)) {
      archive.write(name, tensor.clone());
    }
    torch::serialize::OutputArchive optimizer;
    optimizer_->save(optimizer, model);
    archive.write("optimizer", optimizer);
    archive.write("loss_sum", loss_sums_[model].clone());
    const nlohmann::json state = {{"step", member.step},
                                  {"loss_steps", member.loss_steps},
                                  {"curve", member.curve},
                                  {"seconds", member.seconds},
                                  {"cpu_seconds", member.cpu_seconds}};
    archive.write("state", torch::IValue(state.dump()));
    write_archive(archive, file);
  }

  /// @throws UnreadableCheckpoint if a file is there but not whole (a power cut, say); this object
  /// is then spoilt.
  void restore() {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const auto file = checkpoint_file(*members_[i].job, context_);
      if (file.empty() || !fs::exists(file)) continue;
      try {
        read(file, members_[i], static_cast<std::int64_t>(i));
      } catch (const MemoryLimitExceeded&) {  // says nothing of the file
        throw;
      } catch (const std::bad_alloc&) {
        throw;
      } catch (const std::exception& error) {
        const std::string text = error.what();
        if (is_memory_error(text) || text.find("CUDA error") != std::string::npos) throw;
        fs::remove(file);
        throw UnreadableCheckpoint();
      }
    }
  }

  void read(const fs::path& file, Member& member, std::int64_t model) {
    torch::serialize::InputArchive archive;
    archive.load_from(file.string(), torch::kCPU);
    const torch::NoGradGuard no_grad;
    for (auto& [name, tensor] : parameters_of(*models_, model)) {
      torch::Tensor saved;
      archive.read(name, saved);
      tensor.copy_(saved);
    }
    torch::serialize::InputArchive optimizer;
    archive.read("optimizer", optimizer);
    optimizer_->load(optimizer, model);
    torch::Tensor loss_sum;
    archive.read("loss_sum", loss_sum);
    loss_sums_[model].copy_(loss_sum);
    torch::IValue state_text;
    archive.read("state", state_text);
    const auto state = nlohmann::json::parse(state_text.toStringRef());
    member.step = state.at("step");
    member.loss_steps = state.at("loss_steps");
    member.curve = state.at("curve").get<std::vector<CurvePoint>>();
    member.seconds = state.at("seconds");
    member.cpu_seconds = state.at("cpu_seconds");
  }

  const Corpus& corpus_;
  const TrainingContext& context_;
  const TrainingSettings& common_;  ///< what of the settings is alike in the array
  Windows valid_;
  std::vector<TrainingResult>& results_;
  std::vector<Member> members_;
  std::optional<nn::TransformerArray> models_;
  std::optional<Optimizer> optimizer_;
  torch::Tensor loss_sums_;  ///< (R), of the steps since the last curve points, on the device
  Clock::time_point time_ = Clock::now();  ///< up to which time is charged to the members
  double cpu_time_ = thread_cpu_seconds();
  Clock::time_point last_saved_ = time_;
};

/// @return why memory did not suffice; empty: it did.
std::string train_array(std::span<const TrainingJob> jobs, const Corpus& corpus,
                        const TrainingContext& context, std::vector<TrainingResult>& results) {
  try {
    while (true) {
      ArrayTraining training(jobs, corpus, context, results);
      try {
        training.run();
        return {};
      } catch (const UnreadableCheckpoint&) {  // it is gone now
      }
    }
  } catch (const MemoryLimitExceeded& error) {
    return error.what();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    if (!is_memory_error(text)) throw std::runtime_error(text);
    return text;
  }
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

bool fit_together(const TrainingJob& a, const TrainingJob& b) {
  const auto sizes = [](const TrainingSettings& settings) {
    return std::tuple(settings.batch_size, settings.evaluation_batch_size,
                      settings.validation_windows, settings.score_test);
  };
  return nn::alike(a.architecture, b.architecture) && sizes(a.settings) == sizes(b.settings);
}

namespace {

/// @param jobs  fit together.
std::vector<TrainingResult> train_together(std::span<const TrainingJob> jobs, const Corpus& corpus,
                                           const TrainingContext& context) {
  const auto count = static_cast<std::int64_t>(jobs.size());
  std::vector<TrainingResult> results(jobs.size());
  const nn::MemoryScope memory(context.memory_limit * count);
  const nn::DeviceMemoryScope device_memory(context.device);
  const auto lack = train_array(jobs, corpus, context, results);
  const auto peak =
      torch::Device(context.device).is_cpu() ? memory.peak_bytes() : device_memory.peak_bytes();
  for (auto& result : results) {
    if (!lack.empty() && result.status == Status::failed) {
      result = {.status = Status::out_of_memory, .reason = lack, .curve = {}};
    }
    result.peak_bytes = peak / count;
  }
  nn::release_cached_memory();  // the next mechanism has other sizes
  return results;
}

}  // namespace

std::vector<TrainingResult> train(std::span<const TrainingJob> jobs, const Corpus& corpus,
                                  const TrainingContext& context) {
  at::set_num_threads(context.threads);
  std::vector<TrainingResult> results(jobs.size());
  std::vector<bool> done(jobs.size(), false);
  for (std::size_t first = 0; first < jobs.size(); ++first) {
    if (done[first]) continue;
    std::vector<TrainingJob> array;
    std::vector<std::size_t> places;
    for (std::size_t i = first; i < jobs.size(); ++i) {
      if (done[i] || !fit_together(jobs[first], jobs[i])) continue;
      array.push_back(jobs[i]);
      places.push_back(i);
      done[i] = true;
    }
    auto trained = train_together(array, corpus, context);
    for (std::size_t i = 0; i < places.size(); ++i) results[places[i]] = std::move(trained[i]);
  }
  // Where memory did not suffice for several, smaller arrays go on from the checkpoints.
  const bool tried_again =
      jobs.size() > 1 && std::any_of(results.begin(), results.end(), [](const auto& result) {
        return result.status == Status::out_of_memory;
      });
  for (const auto& job : jobs) {
    const auto file = checkpoint_file(job, context);
    if (!tried_again && !file.empty()) fs::remove(file);
  }
  return results;
}

namespace {

/// Seconds of a step of `models` copies of a job, timed for about `enough` seconds.
double step_seconds(ArrayTraining& training, double enough) {
  training.step();
  const auto start = Clock::now();
  std::int64_t steps = 0;
  while (steps < 3 || seconds_since(start) < enough) {
    training.step();
    ++steps;
  }
  return seconds_since(start) / static_cast<double>(steps);
}

}  // namespace

double expected_seconds(const TrainingJob& job, const Corpus& corpus,
                        const TrainingContext& context) {
  at::set_num_threads(context.threads);
  TrainingContext scratch = context;
  scratch.checkpoint_folder.clear();
  std::vector<TrainingResult> results(1);
  ArrayTraining training({&job, 1}, corpus, scratch, results);
  const auto& settings = job.settings;
  const double of_a_step = step_seconds(training, 0.5);
  const Windows scored = evenly_spaced(corpus.valid, settings.validation_windows);
  const Windows few = evenly_spaced(scored, settings.evaluation_batch_size);
  const auto start = Clock::now();
  training.score(few);
  const double of_a_window = seconds_since(start) / static_cast<double>(few.size());
  return of_a_step * static_cast<double>(settings.steps) +
         of_a_window * static_cast<double>(scored.size()) *
             static_cast<double>(settings.checkpoints.size());
}

std::int64_t best_array(const TrainingJob& job, const Corpus& corpus,
                        const TrainingContext& context, std::int64_t most) {
  constexpr double kWorthwhile = 0.97;
  at::set_num_threads(context.threads);
  TrainingContext scratch = context;
  scratch.checkpoint_folder.clear();
  const auto seconds_a_model = [&](std::int64_t models) {
    const std::vector<TrainingJob> jobs(static_cast<std::size_t>(models), job);
    std::vector<TrainingResult> results(jobs.size());
    try {
      ArrayTraining training(jobs, corpus, scratch, results);
      return step_seconds(training, 0.2) / static_cast<double>(models);
    } catch (const std::bad_alloc&) {
    } catch (const c10::Error& error) {
      if (!is_memory_error(error.what_without_backtrace())) throw;
    }
    return std::numeric_limits<double>::infinity();
  };
  std::int64_t best = 1;
  for (double seconds = seconds_a_model(1); 2 * best <= most; best *= 2) {
    const double wider = seconds_a_model(2 * best);
    if (std::isinf(wider) || wider > kWorthwhile * seconds) break;
    seconds = wider;
  }
  nn::release_cached_memory();
  return best;
}

}  // namespace nas
