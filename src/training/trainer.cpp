#include "training/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <tuple>

#include <ATen/Parallel.h>

#include "core/error.hpp"
#include "core/fault.hpp"
#include "ops/memory.hpp"
#include "ops/model_failure.hpp"
#include "training/array_training.hpp"
#include "training/validation.hpp"

namespace nas {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kDecaying = 0.2;  // the share of steps after the stable ones

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// @return how memory_limit was exceeded; empty: it was not.
std::string train_array(std::span<const TrainingJob> jobs, const Corpus& corpus,
                        const TrainingContext& context, std::vector<TrainingResult>& results) {
  try {
    while (true) {
      ArrayTraining training(jobs, corpus, context, results);
      try {
        training.run();
        return {};
      } catch (const CheckpointDiscarded&) {  // it is gone now
      }
    }
  } catch (const MemoryLimitExceeded& error) {
    return error.what();
  } catch (const c10::Error&) {
    // What models throw has another type by now: this comes from files or the device.
    try {
      nn::rethrow_as_failure();
    } catch (const CandidateFailure& error) {
      throw MachineError(error.what());
    }
  }
}

/// Released on every path: the next mechanism has other sizes.
struct CachedMemory {
  CachedMemory() = default;
  ~CachedMemory() { nn::release_cached_memory(); }
  CachedMemory(const CachedMemory&) = delete;
  CachedMemory& operator=(const CachedMemory&) = delete;
};

}  // namespace

TrainingSettings::TrainingSettings(const Parameters& parameters)
    : steps(parameters.get<std::int64_t>("steps")),
      batch_size(parameters.get<std::int64_t>("batch_size")),
      micro_batch(parameters.get<std::int64_t>("micro_batch")),
      recompute_layers(parameters.get<std::string>("recompute") == "layers"),
      optimizer(parameters.get<std::string>("optimizer")),
      learning_rate(parameters.get<double>("learning_rate")),
      schedule(parameters.get<std::string>("schedule")),
      warmup_steps(parameters.get<std::int64_t>("warmup_steps")),
      weight_decay(parameters.get<double>("weight_decay")),
      clip_norm(parameters.get<double>("clip_norm") > 0.0
                    ? parameters.get<double>("clip_norm")
                    : std::numeric_limits<double>::infinity()),
      checkpoints(parameters.get<std::vector<std::int64_t>>("checkpoints")),
      evaluation_batch_size(parameters.get<std::int64_t>("evaluation_batch_size")),
      validation_windows(parameters.get<std::int64_t>("validation_windows")),
      score_test(parameters.get<bool>("score_test")),
      checkpoint_minutes(parameters.get<double>("checkpoint_minutes")) {
  checkpoints.push_back(steps);
  std::sort(checkpoints.begin(), checkpoints.end());
  checkpoints.erase(std::unique(checkpoints.begin(), checkpoints.end()), checkpoints.end());
}

std::int64_t TrainingSettings::sequences_at_once() const {
  return micro_batch == 0 ? batch_size : std::min(micro_batch, batch_size);
}

double TrainingSettings::rate(std::int64_t step) const {
  const auto s = static_cast<double>(step);
  const auto warmup = static_cast<double>(warmup_steps);
  if (step <= warmup_steps) return learning_rate * s / warmup;
  const double progress = (s - 1.0 - warmup) / (static_cast<double>(steps) - warmup);
  if (schedule == "cosine")
    return learning_rate * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  if (schedule == "linear") return learning_rate * (1.0 - progress);
  if (schedule == "wsd") return learning_rate * std::min(1.0, (1.0 - progress) / kDecaying);
  return learning_rate;
}

bool fit_together(const TrainingJob& a, const TrainingJob& b) {
  const auto sizes = [](const TrainingSettings& settings) {
    return std::tuple(settings.batch_size, settings.micro_batch, settings.recompute_layers,
                      settings.evaluation_batch_size, settings.validation_windows,
                      settings.score_test, settings.optimizer);
  };
  return nn::alike(a.architecture, b.architecture) && sizes(a.settings) == sizes(b.settings);
}

std::vector<std::vector<std::size_t>> fitting_groups(std::span<const TrainingJob> jobs) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& known) {
      return fit_together(jobs[known.front()], jobs[i]);
    });
    if (group != groups.end()) {
      group->push_back(i);
    } else {
      groups.push_back({i});
    }
  }
  return groups;
}

namespace {

/// What needs less memory for the same gradients; empty where nothing does.
std::string smaller_parts(const TrainingSettings& settings) {
  const auto now = settings.sequences_at_once();
  return (now == 1 ? std::string()
                   : "; training.micro_batch = " + std::to_string((now + 1) / 2) +
                         " computes the gradients of a batch in smaller parts") +
         (settings.recompute_layers ? ""
                                    : "; training.recompute = layers keeps less of each layer");
}

/// @param jobs  fit together.
std::vector<TrainingResult> train_together(std::span<const TrainingJob> jobs, const Corpus& corpus,
                                           const TrainingContext& context) {
  const auto count = static_cast<std::int64_t>(jobs.size());
  std::vector<TrainingResult> results(jobs.size());
  const CachedMemory released_at_the_end;
  const nn::MemoryScope memory(context.memory_limit * count);
  const nn::DeviceMemoryScope device_memory(context.device);
  const auto lack = train_array(jobs, corpus, context, results);
  const auto peak =
      torch::Device(context.device).is_cpu() ? memory.peak_bytes() : device_memory.peak_bytes();
  for (auto& result : results) {
    if (!lack.empty() && result.status == Status::failed) {
      result = {.status = Status::out_of_memory,
                .reason = lack + smaller_parts(jobs.front().settings)};
    }
    result.peak_bytes = peak / count;
  }
  return results;
}

}  // namespace

std::vector<TrainingResult> train(std::span<const TrainingJob> jobs, const Corpus& corpus,
                                  const TrainingContext& context) {
  at::set_num_threads(context.threads);
  std::vector<TrainingResult> results(jobs.size());
  for (const auto& places : fitting_groups(jobs)) {
    std::vector<TrainingJob> array;
    for (const auto i : places) array.push_back(jobs[i]);
    auto trained = train_together(array, corpus, context);
    for (std::size_t i = 0; i < places.size(); ++i) results[places[i]] = std::move(trained[i]);
  }
  return results;
}

namespace {

/// Seconds of a step of `models` copies of a job, timed for about `enough` seconds.
double step_seconds(ArrayTraining& training, double enough) {
  training.try_steps(training.warm_up());
  const auto start = Clock::now();
  std::int64_t steps = 0;
  while (steps < 3 || seconds_since(start) < enough) steps += training.try_steps(1);
  return seconds_since(start) / static_cast<double>(steps);
}

}  // namespace

double expected_seconds(const TrainingJob& job, const Corpus& corpus,
                        const TrainingContext& context) {
  at::set_num_threads(context.threads);
  TrainingContext scratch = context;
  scratch.checkpoint_folder.clear();
  std::vector<TrainingResult> results(1);
  auto timed = job;
  const auto& settings = job.settings;
  std::optional<ArrayTraining> training;
  const auto seconds_of = [&](std::int64_t sequences) {
    timed.settings.batch_size = sequences;
    training.emplace(std::span(&timed, 1), corpus, scratch, results);
    return step_seconds(*training, 0.5);
  };
  const auto at_once = settings.sequences_at_once();
  const auto two = std::min(2 * at_once, settings.batch_size);
  double of_a_step = seconds_of(at_once);
  // Of a batch in parts, of which there may be many, two are timed: the optimiser takes one step for all.
  if (two > at_once)
    of_a_step += (seconds_of(two) - of_a_step) / static_cast<double>(two - at_once) *
                 static_cast<double>(settings.batch_size - at_once);
  const auto scored = evenly_spaced(corpus.valid.size(), settings.validation_windows);
  std::vector<std::int64_t> few;
  for (const auto i : evenly_spaced(std::ssize(scored), settings.evaluation_batch_size))
    few.push_back(scored[static_cast<std::size_t>(i)]);
  const auto start = Clock::now();
  training->score(corpus.valid, few);
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
    } catch (const std::bad_alloc&) {  // of the host or the device
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
