// The paper's search problem: a genotype names an attention mechanism, and measuring it trains a
// language model.

#include <algorithm>
#include <array>
#include <filesystem>
#include <future>

#include <sched.h>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/host.hpp"
#include "core/warning.hpp"
#include "data/corpus.hpp"
#include "data/corpus_facts.hpp"
#include "data/count_models.hpp"
#include "evaluation/device_pool.hpp"
#include "evaluation/endings.hpp"
#include "evaluation/frame.hpp"
#include "evaluation/model_selection.hpp"
#include "evaluation/settings.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/costs.hpp"
#include "genotype/mechanism_name.hpp"
#include "genotype/shorthand.hpp"
#include "instruments/environment.hpp"
#include "nn/transformer.hpp"
#include "ops/model_failure.hpp"
#include "search/problem.hpp"
#include "training/batches.hpp"
#include "training/checkpoint.hpp"
#include "training/memory_need.hpp"
#include "training/task.hpp"
#include "training/trainer.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

/// Raised by hand with a commit that changes results, so that old records never answer for new
/// code.
constexpr int kResultsVersion = 6;

/// Wider arrays than this are not tried out.
constexpr std::int64_t kWidestArray = 256;

int available_cores() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof(cores), &cores) != 0 ? 1 : std::max(1, CPU_COUNT(&cores));
}

class AttentionSearch final : public Problem {
 public:
  explicit AttentionSearch(const ProblemInputs& inputs)
      : objectives_(inputs.objectives),
        semantics_(inputs.semantics),
        seed_(inputs.seed),
        training_parameters_(inputs.training),
        training_(inputs.training),
        folder_(inputs.folder),
        paused_(inputs.checkpoint_space),
        keep_models_(inputs.evaluation.get<std::int64_t>("keep_models")),
        baseline_(inputs.baseline),
        threads_(static_cast<int>(inputs.evaluation.get<std::int64_t>("threads"))),
        numerical_mode_(parse_numerical_mode(inputs.evaluation.get<std::string>("numerical_mode"))),
        workers_(inputs.evaluation.get<std::string>("workers")),
        array_(inputs.evaluation.get<std::string>("array")),
        devices_(std::make_shared<DevicePool>(
            resolve_devices(inputs.evaluation.get<std::string>("device")))),
        memory_limit_(static_cast<std::int64_t>(inputs.evaluation.get<double>("memory_limit") *
                                                1024.0 * 1024.0 * 1024.0)),
        time_limit_(inputs.evaluation.get<double>("time_limit")),
        endings_(folder_, time_limit_, inputs.evaluation.get<std::int64_t>("retry_crashed")) {
    nn::require_numerical_mode(numerical_mode_, device());
    if (inputs.evaluation.get<std::string>("determinism") == "bitwise") {
      nn::require_determinism(numerical_mode_, device());
      // Products add in another order for another number of models.
      if (device() != "cpu") array_ = "1";
    }
    const auto& causality = inputs.evaluation.get<std::string>("causality");
    gate_ =
        causality == "require" || (causality == "auto" && inputs.semantics == Semantics::corrected);
    architecture_ = frame_of(inputs.model, semantics_, inputs.match_parameters, inputs.section);
    // The corpus may be too large as well.
    require_memory(architecture_, "");
    auto corpus = corpora()
                      .at(inputs.corpus)
                      .make(inputs.data, architecture_.context, default_data_location());
    for (const auto& [windows, bytes] : {std::pair(&corpus.valid, &corpus.bytes_per_token),
                                         {&corpus.test, &corpus.test_bytes_per_token}}) {
      // The bytes of a part are known where each token has one.
      const auto scored = training_.validation_windows;
      if (scored > 0 && scored < windows->size() && *bytes != 1.0) *bytes = 0.0;
    }
    corpus_ = std::make_shared<const Corpus>(std::move(corpus));
    architecture_.vocabulary = corpus_->vocabulary;
    require_memory(architecture_, "");
    task_ = task_of(*corpus_);
    if (corpus_->train.size() == 0 || corpus_->valid.size() == 0) {
      throw InputError("data.corpus = " + inputs.corpus + ": no window of " +
                       std::to_string(architecture_.context) +
                       " tokens in its training or validation split, must be at least one in each");
    }
    take_training(inputs.training);
  }

  [[nodiscard]] std::shared_ptr<Problem> with_training(const Parameters& training) const override {
    auto other = std::make_shared<AttentionSearch>(*this);
    other->take_training(training);
    other->keep_models_ = 0;  // those of the search are kept
    return other;
  }

  [[nodiscard]] Candidate canonical(const Genotype& genotype) const override {
    return built(nas::architecture_of(genotype, architecture_));
  }

  [[nodiscard]] Candidate parse(const std::string& name) const override {
    return built(parse_unchecked(name, architecture_));
  }

  [[nodiscard]] std::vector<std::string> active(const Genotype& genotype) const override {
    return nas::active(genotype, architecture_);
  }

  [[nodiscard]] std::string label(const std::string& candidate) const override {
    return nas::label(parse_unchecked(candidate, architecture_));
  }

  [[nodiscard]] std::string label_beside(const std::string& candidate,
                                         const std::string& baseline) const override {
    if (baseline.empty()) return label(candidate);
    const auto whole = label(candidate);
    const auto shorthand =
        shorthand_of(function_named(candidate), function_named(baseline)).value_or(whole);
    return shorthand.size() < whole.size() ? shorthand : whole;
  }

  [[nodiscard]] std::string differences_from_baseline(const std::string& candidate,
                                                      const std::string& baseline) const override {
    // Shorthand says all.
    if (baseline.empty() || label_beside(candidate, baseline) != label(candidate)) return {};
    return join(unsaid_differences(function_named(candidate), function_named(baseline)));
  }

  [[nodiscard]] nlohmann::json identity() const override {
    nlohmann::json identity = {
        {"problem", "attention_search"},
        {"results_version", kResultsVersion},
        {"semantics", to_string(semantics_)},
        {"model",
         {{"layers", architecture_.layers},
          {"width", architecture_.width},
          {"heads", architecture_.heads},
          {"context", architecture_.context},
          {"vocabulary", architecture_.vocabulary},
          {"feed_forward", architecture_.feed_forward},
          {"dropout", architecture_.dropout}}},
        {"corpus", corpus_->name},
        {"corpus_hash", corpus_->hash},
        {"training", identity_training_},
        {"numerical_mode", to_string(numerical_mode_)},
        {"threads", threads_},
        {"causality_gate", gate_},
        {"memory_limit", memory_limit_},
        {"run_seed", seed_},
    };
    // Only where it is on, as identities were before there was such a setting.
    if (corpus_->task != "next_token") identity["task"] = corpus_->task;
    if (architecture_.match_parameters) identity["model"]["match_parameters"] = true;
    if (time_limit_ > 0.0) identity["time_limit"] = time_limit_;
    for (const auto& constraint : objectives_->constraints)
      identity["constraints"].push_back(constraint.text());
    if (!stop_above_.empty()) {
      auto& limits = identity["stop_above_nll"] = nlohmann::json::object();
      for (const auto& [step, nll] : stop_above_) limits[std::to_string(step)] = nll;
    }
    return identity;
  }

  [[nodiscard]] std::vector<std::int64_t> rungs() const override { return training_.checkpoints; }

  void end_at(Evaluation& evaluation, std::int64_t rung) const override {
    pause_at(evaluation, rung, corpus_->bytes_per_token);
    if (evaluation.status != Status::paused) return;
    set_task_values(evaluation, *task_, {});
    objectives_->record_trained(evaluation);
  }

  [[nodiscard]] double expected_cost(const Candidate& candidate) const override {
    return forward_flops(architecture_of(candidate));
  }

  void begin_batch(std::span<const Evaluation* const> earlier) override {
    for (; remembered_ < earlier.size(); ++remembered_) remember(*earlier[remembered_]);
    stop_above_.clear();
    const auto after = training_parameters_.get<std::int64_t>("early_stop_after");
    if (after == 0) return;
    const auto factor = training_parameters_.get<double>("early_stop_factor");
    for (const auto* evaluation : earlier) {
      if (evaluation->status != Status::ok) continue;
      for (const auto& point : evaluation->curve) {
        if (point.step < after) continue;
        const double limit = factor * point.valid.nll / static_cast<double>(point.valid.tokens);
        const auto [known, fresh] = stop_above_.try_emplace(point.step, limit);
        if (!fresh) known->second = std::min(known->second, limit);
      }
    }
  }

  void screen(const Task& task, Evaluation& evaluation) override {
    const auto& architecture = architecture_of(task.candidate);
    evaluation.values["parameters"] = static_cast<double>(num_parameters(architecture));
    evaluation.values["flops"] = forward_flops(architecture);
    if (endings_.decide(evaluation)) return;
    const auto mark = endings_.mark(std::array{Assignment{task, evaluation}});
    if (gate_) {
      const auto report = nn::of_model([&] { return nn::check_causality(architecture); });
      if (!report.causal) {
        evaluation.status = Status::rejected;
        evaluation.reason =
            "sees later tokens: an earlier logit changed by " + shortest(report.largest_change);
        return;
      }
    }
    std::function<nlohmann::json(const std::string&)> measure;
    if (instrument_) {
      measure = [&](const std::string& objective) { return instrument_(task, objective); };
    }
    objectives_->screen(*subject(task.candidate),
                        measured_[function_of(task.candidate.name, &architecture)], evaluation,
                        measure);
    remember(evaluation);
  }

  void measure_by(Instrument instrument) override { instrument_ = std::move(instrument); }

  void do_without_checkpoints() override { does_without_checkpoints_ = true; }

  void measure(const Task& task, Evaluation& evaluation) override {
    measure_array(std::array{Assignment{task, evaluation}});
  }

  [[nodiscard]] std::vector<std::vector<std::size_t>> alike(
      std::span<const Assignment> tasks) const override {
    return endings_.apart(fitting_groups(jobs_of(tasks)), tasks);
  }

  void measure_array(std::span<const Assignment> array) override {
    // On a worker: what has ended processes since its run was screened.
    if (array.size() == 1 && endings_.decide(array[0].evaluation)) return;
    endings_.require_alone(array);
    const auto mark = endings_.mark(array);
    const auto jobs = jobs_of(array);
    const auto device = devices_->borrow();
    auto where = context(*device);
    where.on_step = [this, array](std::int64_t step, std::int64_t steps, double loss) {
      tell(array, {.step = step, .steps = steps, .loss = loss});
    };
    const auto results = train(jobs, *corpus_, where);
    for (std::size_t i = 0; i < array.size(); ++i) {
      array[i].evaluation.measured["device"] = *device;
      record(results[i], array[i].evaluation);
      // Its checkpoint may have been further.
      if (results[i].status == Status::paused) end_at(array[i].evaluation, array[i].task.until);
    }
  }

  /// The checkpoint of a finished training run holds its weights until they are saved, that of a
  /// paused one is what it goes on from.
  void recorded(const Evaluation& evaluation) override {
    remember(evaluation);  // an earlier process may have looked at it, not this one
    if (folder_.empty()) return;
    const auto checkpoint = checkpoint_file(checkpoints(), evaluation.id, evaluation.replicate);
    if (evaluation.status == Status::paused) return keep_most_promising(evaluation, checkpoint);
    paused_.forget(evaluation.id);
    if (!fs::exists(checkpoint)) return;
    if (evaluation.status == Status::ok) keep_best_models(evaluation, checkpoint);
    remove_file(checkpoint);
    remove_unfinished(checkpoint);
  }

  std::int64_t array_width() override {
    // A limit is for one training run; which of several exceeds it is unknown.
    if (memory_limit_ > 0) return 1;
    if (array_ != "auto") return std::stoll(array_);
    if (objectives_->needs_lone_trainings() != nullptr) return 1;
    if (device() == "cpu") return 1;  // which is busy with one training run
    if (!best_array_) {
      const TrainingJob job{.architecture = vanilla_architecture(architecture_),
                            .settings = training_,
                            .run_seed = seed_};
      // On a thread of its own, as workers are: it sets its thread's number of OpenMP threads.
      const auto time = [&] { return best_array(job, *corpus_, context(device()), kWidestArray); };
      best_array_ = std::async(std::launch::async, time).get();
    }
    return *best_array_;
  }

  [[nodiscard]] std::optional<Subject> subject(const Candidate& candidate) const override {
    return subject_of(architecture_of(candidate));
  }

  Preparation calibrate_preparation(std::int64_t /*replicates*/) override {
    if (device() != "cpu") return {};
    const auto model = largest_.value_or(vanilla_architecture(architecture_));
    const auto need = require_fit(model, settings_of(model, identity_training_), context("cpu"));
    return {.peaks = {{"the largest training run (" + need.text() + ")", need.total()}}};
  }

  void require_memory(const SearchSpace& space) const override {
    const auto largest = largest_candidate(
        space, architecture_,
        [&](const Architecture& candidate) {
          return least_bytes(candidate, settings_of(candidate, identity_training_),
                             training_.sequences_at_once());
        },
        [&](const Architecture& candidate) {
          return objectives_ == nullptr ||
                 objectives_->violation_by_formula(subject_of(candidate)).empty();
        });
    if (largest) require_memory(*largest, ", space: " + to_string(*largest));
  }

  void require_memory(const Candidate& candidate) const override {
    require_memory(architecture_of(candidate), ", mechanism: " + candidate.name);
  }

  [[nodiscard]] nlohmann::json facts() const override {
    const auto vanilla = vanilla_architecture(architecture_);
    nlohmann::json facts{
        {"corpus", corpus_->name},
        {"corpus_description", corpus_->description},
        {"corpus_hash", corpus_->hash},
        {"vocabulary", corpus_->vocabulary},
        {"train_windows", corpus_->train.size()},
        {"valid_windows", corpus_->valid.size()},
        {"valid_targets", corpus_->valid.num_scored()},
        {"valid_unknown_targets", count_targets(corpus_->valid, corpus_->special.unknown)},
        {"unknown_shares", unknown_shares(*corpus_)},
        {"unigram_perplexity", corpus_->unigram_perplexity},
        {"bytes_per_token", corpus_->bytes_per_token},
        {"test_bytes_per_token", corpus_->test_bytes_per_token},
        {"context", architecture_.context},
        {"vanilla_parameters", num_parameters(vanilla)},
        {"vanilla_flops", forward_flops(vanilla)},
        {"device", device().substr(0, device().find(':'))},
        {"epochs", static_cast<double>(training_.steps * training_.batch_size) /
                       static_cast<double>(corpus_->train.size())},
    };
    facts.update(task_facts(*corpus_, *task_));
    if (corpus_->chance) {
      facts["chance"] = {{"by", corpus_->chance->by},
                         {"nll", corpus_->chance->nll},
                         {"accuracy", corpus_->chance->accuracy}};
    }
    if (corpus_->least_nll > 0.0) facts["least_nll"] = corpus_->least_nll;
    if (device() != "cpu") {
      facts["device_model"] = nn::device_model(device());
      facts["float32_products"] =
          numerical_mode_ == NumericalMode::tf32 ? "TensorFloat-32" : "float32";
    }
    return facts;
  }

  [[nodiscard]] nlohmann::json counts() const override {
    TrainingOrder order(corpus_->train, training_.batch_size, seed_, /*replicate=*/0);
    const auto size = corpus_->train.size();
    std::vector<DrawnWindow> read;
    for (std::int64_t i = 0; i < training_.steps * training_.batch_size; ++i) {
      const auto& epoch = order.epoch(i / size);
      read.push_back({epoch.permutation[static_cast<std::size_t>(i % size)], epoch.offset});
    }
    auto counts = nlohmann::json::array();
    for (const auto& model : count_models(*corpus_, read)) {
      auto& one =
          counts.emplace_back(nlohmann::json{{"order", model.order}, {"tokens", model.tokens}});
      for (const auto& [split, scores] :
           {std::pair{"valid", &model.valid}, {"test", &model.test}}) {
        if (scores->tokens == 0) continue;
        one[split + std::string("_nll")] = scores->mean_nll();
        one[split + std::string("_accuracy")] = scores->accuracy();
      }
    }
    return counts;
  }

  [[nodiscard]] int num_workers() const override {
    if (workers_ != "auto") return std::stoi(workers_);
    return device() == "cpu" ? std::max(1, available_cores() / threads_)
                             : static_cast<int>(devices_->devices().size());
  }

  double calibrate_seconds(const Candidate& candidate) override {
    const auto& model = architecture_of(candidate);
    const auto settings = settings_of(model, identity_training_);
    return expected_seconds({.architecture = model, .settings = settings}, *corpus_,
                            context(device()));
  }

 private:
  [[nodiscard]] Subject subject_of(Architecture architecture) const {
    return {.architecture = std::move(architecture),
            .device = device(),
            .threads = threads_,
            .numerical_mode = numerical_mode_};
  }

  void take_training(const Parameters& training) {
    training_parameters_ = training;
    training_ = TrainingSettings(training);
    identity_training_ = training;
    for (const auto& setting : training_settings()) {
      if (setting.effect != Effect::result) identity_training_.erase(setting.name);
    }
    // Only where it is on, as identities were before there was such a setting.
    if (training_.micro_batch == 0) identity_training_.erase("micro_batch");
    if (!training_.recompute_layers) identity_training_.erase("recompute");
    if (training_.optimizer == "adamw") identity_training_.erase("optimizer");
  }

  /// The model that a candidate is. @throws InputError if there is no such model.
  [[nodiscard]] static const Architecture& architecture_of(const Candidate& candidate) {
    if (candidate.refusal.empty()) return *candidate.architecture;
    throw InputError("model '" + candidate.name + "': " + candidate.refusal);
  }

  /// What a recorded name means, whether or not there is such a model.
  [[nodiscard]] Architecture function_named(const std::string& name) const {
    return *candidate_of(parse_unchecked(name, architecture_)).architecture;
  }

  /// The name under which measured values of a candidate are remembered: attention dropout does
  /// nothing outside training, nor do genes of training.
  /// @param architecture  of the candidate; nullptr: its name is parsed, the first time.
  const std::string& function_of(const std::string& candidate,
                                 const Architecture* architecture = nullptr) {
    auto& known = functions_[candidate];
    if (known.empty()) {
      auto function =
          architecture != nullptr ? *architecture : parse_unchecked(candidate, architecture_);
      for (auto& mechanism : function.stack) mechanism.set("attention_dropout", 0.0);
      for (const auto* slot : model_slots()) {
        if (slot->name.starts_with("training.")) function.genes.set(*slot, slot->default_value);
      }
      known = candidate_of(function).name;
    }
    return known;
  }

  /// Keeps what was measured before training, for further candidates of the same function.
  void remember(const Evaluation& evaluation) {
    auto& known = measured_[function_of(evaluation.candidate)];
    for (const auto& objective : objectives_->objectives) {
      const auto found = evaluation.measured.find(objective.name);
      if (objective.objective.measured && found != evaluation.measured.end()) {
        known.emplace(objective.name, *found);
      }
    }
  }

  [[nodiscard]] std::vector<TrainingJob> jobs_of(std::span<const Assignment> tasks) const {
    std::vector<TrainingJob> jobs;
    for (const auto& member : tasks) jobs.push_back(job_of(member.task));
    return jobs;
  }

  /// What an identity, maybe of another section `training`, and a model's genes say.
  [[nodiscard]] TrainingSettings settings_of(const Architecture& model,
                                             const nlohmann::json& said) const {
    auto training = training_parameters_;
    training.set("micro_batch", std::int64_t{0});
    training.set("recompute", std::string("none"));
    said.get_to(training);
    return TrainingSettings(with_genes(std::move(training), model.genes));
  }

  [[nodiscard]] TrainingJob job_of(const Task& task) const {
    const auto& model = architecture_of(task.candidate);
    TrainingJob job{.architecture = model,
                    .settings = settings_of(model, task.identity.at("training")),
                    .run_seed = seed_,
                    .replicate = task.replicate,
                    .stop_above = {},
                    .checkpoint_name = task.id,
                    .until = task.until};
    // The limits that were in force when the task's identity was made, not those of a later batch.
    if (const auto limits = task.identity.find("stop_above_nll"); limits != task.identity.end()) {
      for (const auto& [step, nll] : limits->items()) job.stop_above[std::stoll(step)] = nll;
    }
    return job;
  }

  void record(const TrainingResult& result, Evaluation& evaluation) {
    evaluation.status = result.status;
    evaluation.reason = result.reason;
    evaluation.curve = result.curve;
    evaluation.measured["train_seconds"] = result.seconds;
    if (threads_ == 1) evaluation.measured["cpu_seconds"] = result.cpu_seconds;
    evaluation.measured["peak_bytes"] = result.peak_bytes;
    if (is_usable(evaluation)) set_quality_values(evaluation, corpus_->bytes_per_token);
    if (result.test.tokens > 0) set_test_values(evaluation, result.test);
    set_task_values(evaluation, *task_, result.further);
    objectives_->record_trained(evaluation);
  }

  [[nodiscard]] static std::vector<std::string> resolve_devices(const std::string& setting) {
    auto devices = device_list(setting);
    for (auto& device : devices) device = nn::resolve_device(device);
    return devices;
  }

  /// @throws InputError if one training run alone exceeds the machine's memory; on a GPU, if the
  /// model exceeds the host's memory, where it is built. @param also  names a candidate; empty: none.
  void require_memory(const Architecture& architecture, const std::string& also) const {
    auto what = "model.layers = " + std::to_string(architecture.layers) +
                ", model.width = " + std::to_string(architecture.width) +
                ", model.context = " + std::to_string(architecture.context) +
                ", model.feed_forward = " + std::to_string(architecture.feed_forward) +
                ", vocabulary = " + std::to_string(architecture.vocabulary) + also;
    if (device() != "cpu")
      return nas::require_memory(what, least_training_bytes(architecture, 0) / 4.0);
    const auto at_once = training_.sequences_at_once();
    what +=
        at_once < training_.batch_size ? ", training.micro_batch = " : ", training.batch_size = ";
    const auto training = settings_of(architecture, identity_training_);
    const auto bytes = least_bytes(architecture, training, at_once);
    // Where one sequence may fit, the refusal says what does.
    if (least_bytes(architecture, training, 1) > largest_memory())
      nas::require_memory(what + std::to_string(at_once), bytes);
    if (also.empty()) return;  // no candidate
    if (bytes > largest_bytes_) largest_ = architecture, largest_bytes_ = bytes;
    // What may not fit is measured; the rest only where a plan says what it takes.
    if (bytes > largest_memory() / 6.0) (void)require_fit(architecture, training, context("cpu"));
  }

  /// The candidate; with a refusal, too, where its positions are learned and a split has more.
  [[nodiscard]] Candidate built(const Architecture& architecture) const {
    require_built(architecture);
    auto candidate = candidate_of(architecture);
    if (candidate.refusal.empty()) candidate.refusal = unreadable_split(*corpus_, architecture);
    return candidate;
  }

  /// The device of what needs one only.
  [[nodiscard]] const std::string& device() const { return devices_->devices().front(); }

  [[nodiscard]] TrainingContext context(const std::string& device) const {
    TrainingContext context;
    context.device = device;
    context.threads = threads_;
    context.numerical_mode = numerical_mode_;
    context.memory_limit = memory_limit_;
    context.time_limit = time_limit_;
    if (!folder_.empty()) context.checkpoint_folder = checkpoints();
    context.does_without_checkpoints = does_without_checkpoints_;
    return context;
  }

  [[nodiscard]] fs::path checkpoints() const { return folder_ / "checkpoints"; }

  /// What stands beside the weights of a model: what it is, from which seeds it came, how good it
  /// is. @param digest  SHA-256 of the weights.
  [[nodiscard]] nlohmann::json description_of(const Evaluation& evaluation,
                                              const std::string& digest) const {
    auto values = nlohmann::json::object();
    for (const auto& objective : objectives_->objectives) {
      if (!objective.objective.across) values[objective.name] = objective.value(evaluation);
    }
    const auto broken = objectives_->violation_by_training(std::array{&evaluation});
    return {{"mechanism", label(evaluation.candidate)},
            {"candidate", evaluation.candidate},
            {"replicate", evaluation.replicate},
            {"seed", seed_},
            {"values", values},
            {"feasible", broken.empty()},
            {"sha256", digest},
            {"identity", evaluation.identity}};
  }

  /// How good a kept model is, by its description; nothing where that does not say.
  [[nodiscard]] std::optional<ScoredModel> score_of(const nlohmann::json& description) const {
    if (!description.is_object()) return std::nullopt;
    const auto values = description.value("values", nlohmann::json::object());
    const auto feasible = description.value("feasible", nlohmann::json());
    if (!feasible.is_boolean()) return std::nullopt;
    ScoredModel model{
        .feasible = feasible.get<bool>(),
        .baseline = !baseline_.empty() && description.value("candidate", nlohmann::json()) ==
                                              nlohmann::json(parse(baseline_).name)};
    for (const auto& objective : objectives_->objectives) {
      if (objective.objective.across) continue;
      const auto value = values.find(objective.name);
      if (value == values.end() || !value->is_number()) return std::nullopt;
      model.values.push_back(objective.minimised(value->get<double>()));
    }
    return model;
  }

  /// Keeps the checkpoint of a paused training run, see PausedRuns.
  void keep_most_promising(const Evaluation& evaluation, const fs::path& checkpoint) {
    ScoredModel model{.feasible =
                          objectives_->violation_by_training(std::array{&evaluation}).empty()};
    for (const auto& objective : objectives_->objectives) {
      if (objective.objective.across) continue;
      model.values.push_back(objective.minimised(objective.value(evaluation)));
    }
    paused_.keep(evaluation.id, {checkpoint, evaluation.curve.back().step, std::move(model)});
  }

  /// Keeps the weights of the best training runs (see models_to_keep), each by what it scored
  /// itself. What is there is read from the folder, so that a restarted process goes on where the
  /// killed one was.
  void keep_best_models(const Evaluation& evaluation, const fs::path& checkpoint) {
    if (keep_models_ == 0) return;
    const auto folder = folder_ / "models";
    const auto description = folder / (evaluation.id + ".json");
    auto digest = std::string();
    remove_unfinished(folder / (evaluation.id + ".pt"));
    if (fs::exists(description)) remove_file(description);  // it is of earlier weights
    try {
      digest = save_weights(checkpoint, evaluation.id, evaluation.replicate,
                            folder / (evaluation.id + ".pt"));
    } catch (const UnreadableCheckpoint& error) {
      warn(checkpoint.string() + ": " + error.what() + ", so that the weights of " +
           label(evaluation.candidate) + " are not kept");
      return;
    }
    write_durably(description, description_of(evaluation, digest).dump(2));
    std::vector<fs::path> files;
    std::vector<ScoredModel> models;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() != ".json") continue;
      auto model = score_of(nlohmann::json::parse(read_bytes(entry.path()), nullptr, false));
      if (!model) continue;
      files.push_back(entry.path());
      models.push_back(std::move(*model));
    }
    const auto kept = models_to_keep(models, static_cast<std::size_t>(keep_models_));
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (std::find(kept.begin(), kept.end(), i) != kept.end()) continue;
      remove_file(fs::path(files[i]).replace_extension(".pt"));
      remove_file(files[i]);
    }
  }

  const ObjectiveSet* objectives_;
  Semantics semantics_;
  std::uint64_t seed_;
  Parameters training_parameters_;
  TrainingSettings training_;
  fs::path folder_;
  PausedRuns paused_;
  std::int64_t keep_models_;
  std::string baseline_;  ///< as it was given
  int threads_;
  NumericalMode numerical_mode_;
  std::string workers_;
  std::string array_;
  std::optional<std::int64_t> best_array_;  ///< timed here
  std::shared_ptr<DevicePool> devices_;
  std::int64_t memory_limit_;
  double time_limit_;
  Endings endings_;
  bool gate_ = true;
  mutable std::optional<Architecture> largest_;  ///< of those asked about
  mutable double largest_bytes_ = 0.0;           ///< at least, of it
  Architecture architecture_;  ///< the frame: sizes of the model, and genes as the paper has them
  std::shared_ptr<const Corpus> corpus_;
  std::shared_ptr<const LearningTask> task_;
  nlohmann::json identity_training_;
  std::map<std::int64_t, double> stop_above_;
  std::map<std::string, std::string> functions_;    ///< by candidate
  std::map<std::string, nlohmann::json> measured_;  ///< by function, then by objective
  std::size_t remembered_ = 0;                      ///< evaluations of this run entered there
  Instrument instrument_;                           ///< empty: this process
  bool does_without_checkpoints_ = false;
};

NAS_REGISTER_PROBLEM({.key = "attention_search",
                      .summary = "train a transformer language model with each attention mechanism "
                                 "and score it on the validation split",
                      .settings = {},
                      .file = __FILE__},
                     [] {
                       return ProblemKind{
                           .sections = {"semantics", "space", "baseline", "model", "data",
                                        "training"},
                           .make = [](const ProblemInputs& inputs) -> std::shared_ptr<Problem> {
                             return std::make_shared<AttentionSearch>(inputs);
                           }};
                     });

}  // namespace

}  // namespace nas
