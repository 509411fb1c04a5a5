#include "models/trained_model.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/hash.hpp"
#include "core/warning.hpp"
#include "evaluation/kept_model.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/mechanism_name.hpp"
#include "genotype/shorthand.hpp"
#include "ops/memory.hpp"
#include "report/recorded_genes.hpp"
#include "store/record_json.hpp"
#include "study/reproduction.hpp"
#include "study/session/continuing.hpp"
#include "study/session/session.hpp"
#include "table/named.hpp"
#include "training/checkpoint.hpp"
#include "training/trainer.hpp"

namespace nas {

namespace fs = std::filesystem;
using Json = nlohmann::json;

fs::path folder_of_run(const fs::path& run) {
  return fs::is_directory(run) ? run : run.parent_path();
}

RunSummary read_run(const fs::path& run) {
  return RunSummary(Store(store_named(run), Store::Mode::read_only));
}

namespace {

std::vector<std::string> labels_of(const RunSummary& run) {
  std::vector<std::string> labels;
  for (const auto& evaluation : run.evaluations) {
    auto label = run.label(evaluation.candidate);
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) {
      labels.push_back(std::move(label));
    }
  }
  return labels;
}

/// So many as a person reads.
std::vector<std::string> shortened(std::vector<std::string> names) {
  constexpr std::size_t kMost = 20;
  if (names.size() <= kMost) return names;
  const auto left_out = names.size() - kMost;
  names.resize(kMost);
  names.push_back("and " + std::to_string(left_out) + " more");
  return names;
}

/// Also of a run that was stopped before it recorded it. Empty: the problem has none.
std::string baseline_of(const RunSummary& run) {
  return run.baseline ? run.baseline->candidate
                      : run.config.value("/baseline/mechanism"_json_pointer, std::string());
}

/// The canonical name of what may be written otherwise, as nas-train takes it; empty of what is no
/// model's name. Of a run without baseline names are read in full.
std::string canonical_name(const RunSummary& run, const std::string& given) {
  try {
    const auto base = recorded_architecture(run, baseline_of(run));
    if (base) return candidate_of(named_model(given, *base, *base)).name;
    const auto architecture = recorded_architecture(run, given);
    return architecture ? candidate_of(*architecture).name : "";
  } catch (const InputError&) {
    return "";
  }
}

/// The baseline, or why there is none to return.
std::string trained_baseline(const RunSummary& run) {
  const auto name = canonical_name(run, baseline_of(run));
  std::string why = "the run has none";
  for (const auto& evaluation : run.evaluations) {
    if (evaluation.candidate != name) continue;
    if (is_usable(evaluation)) return name;
    why = "that of the run, " + run.label(name) + ", is " +
          std::string(to_string(evaluation.status)) +
          (evaluation.reason.empty() ? "" : ": " + evaluation.reason);
  }
  throw InputError("mechanism = baseline, but " + why);
}

}  // namespace

std::string find_mechanism(const RunSummary& run, const std::string& given) {
  if (given == "best") {
    if (run.ranking.empty())
      throw InputError("mechanism = best, but the run has found none; give baseline or one of " +
                       join(shortened(labels_of(run))));
    return run.ranking.front().candidate;
  }
  if (given == "baseline") return run.baseline ? run.baseline->candidate : trained_baseline(run);
  for (const auto& evaluation : run.evaluations) {
    const auto& candidate = evaluation.candidate;
    if (candidate == given || run.label(candidate) == given ||
        short_label(run, candidate) == given) {
      return candidate;
    }
  }
  const auto canonical = canonical_name(run, given);
  for (const auto& evaluation : run.evaluations) {
    if (evaluation.candidate == canonical) return canonical;
  }
  const auto known = labels_of(run);
  throw InputError("mechanism = " + given +
                   ", must be best, baseline or one that the run has trained: " +
                   join(shortened(known)) + did_you_mean(given, known));
}

std::string folder_name(const std::string& mechanism) {
  constexpr std::size_t kLongest = 100;
  constexpr std::size_t kDigits = 8;
  std::string name;
  for (const char c : mechanism) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_';
    if (plain || name.empty() || name.back() != '-') name += plain ? c : '-';
  }
  if (name.size() > 1 && name.back() == '-') name.pop_back();
  if (name.size() <= kLongest) return name;
  return name.substr(0, kLongest - kDigits - 1) + "-" + sha256(mechanism).substr(0, kDigits);
}

namespace {

std::vector<std::string> with_models(std::vector<std::string> overrides) {
  // However many replicates of a mechanism are asked for, none displaces another.
  overrides.emplace_back("evaluation.keep_models=1000000");
  return overrides;
}

/// The run's configuration, where its plug-ins are loaded.
Experiment experiment_of(const RunSummary& run, const ModelRequest& request) {
  std::vector<Json> environments;
  for (const auto& session : run.sessions) environments.push_back(session.at("environment"));
  check_plugins(environments, folder_of_run(request.run));
  auto experiment = recorded_experiment(run.config, with_models(request.overrides));
  if (!request.overrides.empty())
    require_same_results(run.config, experiment, request.run.string());
  return experiment;
}

/// A problem that trains, as the run's configuration says.
std::shared_ptr<Problem> training_problem(const Experiment& experiment, const fs::path& folder) {
  nn::install_cpu_allocator();  // before the first tensor
  auto problem = make_problem(experiment, experiment.objectives, folder);
  if (problem->with_training(experiment.training) == nullptr) {
    throw InputError("problem = " + experiment.problem + " trains no models to look into");
  }
  return problem;
}

bool has_ended(const Evaluation& evaluation, const std::string& candidate) {
  return evaluation.candidate == candidate && evaluation.status == Status::ok;
}

/// The evaluations of a mechanism that have a trained model, by replicate: those of the search or list,
/// not of a re-test or those that found learning rates, unless there are no others.
std::vector<const Evaluation*> trained(const RunSummary& run, const std::string& candidate,
                                       const Problem& problem) {
  std::vector<const Evaluation*> found;
  std::vector<const Evaluation*> others;
  const auto identity = problem.identity();
  for (const auto& evaluation : run.evaluations) {
    // Another program (AskAndTell) measures without a curve, and trains no model of ours.
    if (!has_ended(evaluation, candidate) || evaluation.curve.empty()) continue;
    const bool of_search =
        run.listed() ? evaluation.replicate >= kFirstHeldOutReplicate
                     : evaluation.identity.value("training", Json()) == identity.at("training");
    (of_search ? found : others).push_back(&evaluation);
  }
  if (found.empty()) found = std::move(others);
  std::sort(found.begin(), found.end(),
            [](const auto* a, const auto* b) { return a->replicate < b->replicate; });
  return found;
}

fs::path weights_file(const fs::path& folder, const Evaluation& evaluation) {
  return folder / "models" / (evaluation.id + ".pt");
}

/// What stands beside weights that were trained again: what they score.
fs::path scores_file(const fs::path& folder, const Evaluation& evaluation) {
  return folder / "models" / (evaluation.id + ".again.json");
}

/// The mean nll of the validation split that such a file holds; nothing where there is none, as
/// earlier versions left it.
std::optional<double> nll_in(const fs::path& file) {
  if (!fs::exists(file)) return std::nullopt;
  try {
    const auto scores = parse_record(read_bytes(file));
    const auto nll = scores.is_object() ? scores.value("validation_nll", Json()) : Json();
    if (nll.is_number()) return nll.get<double>();
  } catch (const InputError&) {  // NOLINT(bugprone-empty-catch): then it is made again
  }
  return std::nullopt;
}

/// The same at the end of a training run.
double final_nll(const Evaluation& evaluation) {
  const auto& valid = evaluation.curve.back().valid;
  return valid.nll / static_cast<double>(valid.tokens);
}

/// The training run whose model is wanted.
const Evaluation& choose(const RunSummary& run, const ModelRequest& request,
                         const Problem& problem) {
  const auto found = trained(run, request.candidate, problem);
  if (found.empty()) {
    const bool elsewhere =
        std::any_of(run.evaluations.begin(), run.evaluations.end(),
                    [&](const auto& one) { return has_ended(one, request.candidate); });
    throw InputError("mechanism = " + run.label(request.candidate) +
                     (elsewhere ? ": its training runs were measured by another program, which "
                                  "recorded no learning curve, so that there is no model"
                                : ": none of its training runs came to an end"));
  }
  if (request.replicate) {
    const auto wanted = std::find_if(found.begin(), found.end(), [&](const auto* evaluation) {
      return evaluation->replicate == *request.replicate;
    });
    if (wanted != found.end()) return **wanted;
    std::vector<std::string> known;
    for (const auto* evaluation : found) known.push_back(std::to_string(evaluation->replicate));
    throw InputError("--replicate = " + std::to_string(*request.replicate) +
                     ", must be one of the trained replicates " + join(known));
  }
  const auto kept = std::find_if(found.begin(), found.end(), [&](const auto* evaluation) {
    return fs::exists(weights_file(folder_of_run(request.run), *evaluation)) ||
           fs::exists(weights_file(request.folder, *evaluation));
  });
  return kept != found.end() ? **kept : *found.front();
}

}  // namespace

TrainedModel::TrainedModel(const RunSummary& run, const ModelRequest& request)
    : request_(request),
      experiment_(experiment_of(run, request)),
      problem_(training_problem(experiment_, request.folder)),
      evaluation_(&choose(run, request, *problem_)),
      task_(recorded_task(*evaluation_, *problem_)),
      architecture_(problem_->subject(task_.candidate)->architecture) {}

Corpus TrainedModel::corpus() const {
  return corpora()
      .at(experiment_.corpus)
      .make(experiment_.data, architecture_.context, default_data_location());
}

double TrainedModel::train_again() {
  auto again = unmeasured(task_);
  problem_->measure(task_, again);
  if (again.status != Status::ok) {
    throw InputError("trained again, " + problem_->label(evaluation_->candidate) + " is " +
                     std::string(to_string(again.status)) +
                     ", not ok as recorded: " + again.reason);
  }
  const double nll = final_nll(again);
  // Before the weights, which are then never there without it.
  write_durably(scores_file(request_.folder, *evaluation_),
                Json{{"validation_nll", nll}}.dump() + "\n");
  problem_->recorded(*evaluation_);
  return nll;
}

nn::Transformer TrainedModel::load() {
  const auto run = folder_of_run(request_.run);
  auto file = weights_file(run, *evaluation_);
  origin_ = "kept by the run";
  // What an earlier command has trained again into the run's own folder is not the run's.
  if (!fs::exists(file) || fs::exists(scores_file(run, *evaluation_))) {
    file = weights_file(request_.folder, *evaluation_);
    auto nll = nll_in(scores_file(request_.folder, *evaluation_));
    if (!nll || !fs::exists(file)) {
      make_folder(request_.folder);
      nll = train_again();
    }
    origin_ = "trained again";
    if (const double recorded = final_nll(*evaluation_); *nll != recorded) {
      origin_ +=
          " with validation nll " + shortest(*nll) + ", not " + shortest(recorded) + " as recorded";
      warn("the weights of " + problem_->label(evaluation_->candidate) + " were " + origin_ +
           ": another LibTorch, BLAS, device or instruction set");
    }
  }
  nn::Transformer model(architecture_, NumericalMode::reference);
  const auto digest = kept_digest(file, *evaluation_);
  if (digest.empty()) {
    origin_ += ", by an earlier version, which wrote no digest by which damage would be seen";
    warn(file.string() + ": weights " + origin_);
  }
  try {
    load_weights(file, model, digest);
  } catch (const UnreadableCheckpoint& error) {
    throw InputError(file.string() + ": " + error.what() +
                     "; without the file the training run is made again");
  }
  return model;
}

}  // namespace nas
