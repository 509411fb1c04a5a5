#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "data/corpus.hpp"
#include "nn/transformer.hpp"
#include "ops/device_stream.hpp"
#include "training/array_steps.hpp"
#include "training/optimizer.hpp"
#include "training/task.hpp"
#include "training/trainer.hpp"

namespace nas {

/// Training runs have to start again: one of their checkpoints was unusable and has been removed.
class CheckpointDiscarded : public std::exception {};

/// The training runs of an array in progress: models, optimiser, and where each stands.
class ArrayTraining {
 public:
  /// @param jobs     fit together (fit_together); they, corpus, context and results outlive this.
  /// @param results  of the jobs: filled as they end.
  ArrayTraining(std::span<const TrainingJob> jobs, const Corpus& corpus,
                const TrainingContext& context, std::vector<TrainingResult>& results);

  /// Trains all to their ends, from wherever they stand.
  ///
  /// @throws StopRequested after writing checkpoints, CheckpointDiscarded (this object is then
  /// spoilt), what nn::rethrow_as_failure() says of the models, and MachineError.
  void run();

  /// Takes at least `count` steps, however many the jobs ask for, and waits for their end.
  /// @return how many it took.
  std::int64_t try_steps(std::int64_t count);
  /// After how many steps their times are steady.
  [[nodiscard]] std::int64_t warm_up() const { return steps_->warm_up(); }
  /// @return what each model scores on some windows.
  std::vector<Scores> score(const Windows& windows, std::span<const std::int64_t> scored);

 private:
  /// Where one job of the array stands.
  struct Member {
    const TrainingJob* job;
    std::size_t result;  ///< whose it is
    Course course;
    std::int64_t loss_steps = 0;                             ///< since the last curve point
    double loss = std::numeric_limits<double>::quiet_NaN();  ///< mean between the last two readings
    double read_sum = 0.0;                                   ///< of the losses at the last reading
    std::int64_t read_steps = 0;                             ///< of loss_steps, then
    std::vector<CurvePoint> curve{};
    double seconds = 0.0;
    double cpu_seconds = 0.0;

    [[nodiscard]] std::int64_t step() const { return course.done; }
    [[nodiscard]] bool validation_is_due() const;
    [[nodiscard]] bool loss_is_checked() const;
    [[nodiscard]] bool has_ended() const { return step() == job->settings.steps; }
    [[nodiscard]] bool is_paused() const { return job->until > 0 && step() >= job->until; }
    [[nodiscard]] bool is_finite() const;
    /// Takes the sum of the losses since the last curve point.
    void read_loss(double sum);
    /// @return why the curve point of this step ends the training early; empty: it does not.
    [[nodiscard]] std::string hopeless() const;
    /// Steps until the loss is looked at.
    [[nodiscard]] std::int64_t steps_ahead() const;
  };

  /// Makes the models of the present members, with their initial values.
  void build();
  void build_models();
  /// Goes on with some of the members only.
  void keep(const std::vector<std::size_t>& kept);
  std::int64_t take(std::int64_t most);

  /// Scores the members whose validation is due, and removes those that are done.
  void finish_who_is_done();
  /// Enters the curve point that is due. @return how a member ends here; nothing: it goes on.
  std::optional<TrainingResult> ending(Member& member, double loss_sum, const Scores& valid) const;
  /// Fills the results of the members that end.
  void finish(std::vector<std::optional<TrainingResult>>& endings);

  /// Tells the context's listener how far the array is, at most once per second unless `now`.
  void tell(bool now);

  /// Charges the time since the last call to the members, in equal parts.
  void share_time();
  void mark_time();

  void save();
  void save(const Member& member, std::size_t index) const;
  /// @throws CheckpointDiscarded if one is there but cannot be continued from, which it reports.
  void restore();
  void read(const std::filesystem::path& file, Member& member, std::int64_t model);

  const Corpus& corpus_;
  const TrainingContext& context_;
  const std::shared_ptr<const LearningTask> task_;
  const TrainingSettings& common_;  ///< what of the settings is alike in the array
  nn::OwnStream stream_;
  std::vector<std::int64_t> valid_;  ///< windows of the validation split that are scored
  std::vector<TrainingResult>& results_;
  std::vector<Member> members_;
  std::optional<nn::TransformerArray> models_;
  std::optional<Optimizer> optimizer_;
  torch::Tensor loss_sums_;  ///< (R), of the steps since the last curve points, on the device
  std::unique_ptr<ArraySteps> steps_;
  std::chrono::steady_clock::time_point time_{};  ///< up to which time is charged to the members
  double cpu_time_ = 0.0;
  std::chrono::steady_clock::time_point last_saved_{};
  std::chrono::steady_clock::time_point last_told_{};
};

}  // namespace nas
