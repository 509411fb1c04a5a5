#include "evaluation/settings.hpp"

#include "core/optimizers.hpp"
#include "core/setting_forms.hpp"
#include "genotype/architecture.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/mechanism_name.hpp"
#include "genotype/slots.hpp"
#include "store/evaluation.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;
using Integers = std::vector<std::int64_t>;
using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

using setting::any;
using setting::at_least;
using setting::at_most;
using setting::below;
using setting::choice;
using setting::integer;
using setting::number;
using setting::positive;
using setting::text;

/// The baseline of a configuration that names none.
std::string vanilla() {
  return label(vanilla_mechanism(Semantics::corrected), Semantics::corrected);
}

Setting with(Effect effect, Setting setting) {
  setting.effect = effect;
  return setting;
}

Setting needing(std::string other, Setting setting) {
  setting.needs = {.setting = std::move(other)};
  return setting;
}

Setting search(Setting setting) { return with(Effect::search, std::move(setting)); }

Setting execution(Setting setting) { return with(Effect::execution, std::move(setting)); }

}  // namespace

std::vector<Setting> with_effect(Effect effect, std::vector<Setting> settings) {
  for (auto& setting : settings) setting.effect = effect;
  return settings;
}

Setting plugins_setting() {
  return any("plugins", Texts{},
             "shared libraries of plug-ins (docs/how-to/plug-in.md), loaded before anything "
             "else is read");
}

std::vector<Setting> experiment_settings() {
  return {
      with(Effect::none,
           text("name", "", "name of the run and of its folder; empty: that of the file")),
      integer("seed", 42, 0, "seed of the run, from which all others are derived"),
      choice(
          "semantics", "corrected", {"corrected", "published"},
          "what the paper's labels compute: what they say (corrected), or what the published code "
          "does, defects included (published)"),
      with(Effect::search,
           any("mechanisms", Texts{},
               "mechanisms that are trained in place of a search, on retest.replicates seeds each, "
               "and compared with the baseline; empty: a search")),
      with(Effect::further,
           any("controls", true,
               "whether the baseline is also trained without any mixer of positions and with "
               "windows of 2, 4 and 8 tokens, on its seeds: what is better than it says something "
               "of attention only where it is better than these, too; not where nothing is "
               "trained")),
      with(Effect::further,
           any("rates", Texts{},
               "learning rates that are known, e.g. [baseline 0.004, window 4 0.008]: of the "
               "baseline, controls (`no mixer`, `window 2`) and mechanisms, as nas-data gates "
               "prints them; a re-test finds those of others")),
      plugins_setting(),
  };
}

std::vector<Setting> baseline_settings() {
  return {text("mechanism", vanilla(), "mechanism that is trained beside the search")};
}

std::vector<Setting> population_settings() {
  return with_effect(
      Effect::search,
      {
          integer("population", 0, 0, 1e6,
                  "individuals of the initial population and of every generation; 0 = "
                  "what suits the algorithm"),
          any("informed", Texts{},
              "known-good mechanisms of the space, by name, for the initial population"),
          number("informed_share", 0.0, 0, 1,
                 "share of the initial population that is taken from `informed`: each once at "
                 "most, one at least"),
          choice("decomposition", "none", {"none", "weighted", "tchebycheff", "bi"},
                 "how several objectives, scaled by their ranges, become one for an algorithm that "
                 "takes one: weighted sum, Tchebycheff or boundary intersection (bi)"),
          at_least(0, any("weights", Numbers{},
                          "weights of the objectives under decomposition, scaled to a sum of 1; "
                          "empty: equal")),
      });
}

std::vector<Setting> model_settings() {
  return {
      integer("layers", 2, 1, kMostLayers, "transformer blocks"),
      integer("width", 128, 1, "width D of the residual stream; a multiple of heads"),
      integer("heads", 4, 1, "attention heads"),
      integer("context", 128, 2, "longest sequence, tokens"),
      integer("feed_forward", 4, 1,
              "hidden width of the feed-forward layer, as a multiple of width"),
      below(1.0, number("dropout", 0.1, 0.0,
                        "dropout after the embedding, GELU and the second feed-forward layer")),
  };
}

std::vector<Setting> training_settings() {
  return {
      integer("steps", 5000, 1, "training steps"),
      integer("batch_size", 32, 1, "sequences a step"),
      integer(
          "micro_batch", 0, 0,
          "sequences of a step that are computed at once, for less memory: gradients of a batch "
          "are summed over such parts of it; 0 = the whole batch"),
      choice("recompute", "none", {"none", "layers"},
             "what gradients compute again in place of keeping it: nothing, or each layer from its "
             "input, for less memory and the same bits in about a third more time (activation "
             "checkpointing); on a GPU the host then starts each operation"),
      choice("optimizer", "adamw", optimizers().keys(),
             "what changes weights by their gradients; muon and soap take matrices of layers"),
      positive(number("learning_rate", 3e-4, 0.0, "peak learning rate")),
      choice("schedule", "constant", {"constant", "cosine", "linear", "wsd"},
             "learning rate after the warm-up; wsd: constant, falling in the last fifth"),
      integer("warmup_steps", 0, 0, "steps over which the learning rate grows linearly from 0"),
      number("weight_decay", 0.01, 0.0, "decoupled weight decay"),
      number("clip_norm", 1.0, 0.0, "largest total norm of the gradient; 0 = any"),
      at_least(1, any("checkpoints", Integers{},
                      "steps at which the validation split is scored; the last step always is")),
      integer("evaluation_batch_size", 64, 1, "sequences a validation batch"),
      integer("validation_windows", 0, 0,
              "windows of a split that are scored, evenly spaced over it; 0 = all"),
      any("score_test", false,
          "also score the test split, once, at the end: for records, no objective sees it"),
      execution(positive(
          number("checkpoint_minutes", 5.0, 0.0,
                 "minutes between the checkpoints from which a killed training continues"))),
      search(integer(
          "early_stop_after", 0, 0,
          "first validation step at which a bad candidate may be stopped; 0 = never stop. A "
          "stopped one has the value of that step, marked, and is never the best")),
      search(
          needing("early_stop_after",
                  positive(number(
                      "early_stop_factor", 2.0, 0.0,
                      "stop when the validation nll exceeds this multiple of the best one known at "
                      "that step")))),
  };
}

Parameters with_genes(Parameters training, const ModelGenes& genes) {
  constexpr std::string_view kTraining = "training.";
  for (const auto* slot : model_slots()) {
    const auto& value = genes.at(*slot);
    if (!slot->name.starts_with(kTraining) || value == slot->default_value) continue;
    const auto name = slot->name.substr(kTraining.size());
    std::visit([&](const auto& one) { training.set(name, one); }, value);
  }
  return training;
}

ModelGenes genes_of(const Parameters& training, bool rates) {
  ModelGenes genes;
  genes.set("training.optimizer", training.get<std::string>("optimizer"));
  if (rates) genes.set("training.learning_rate", training.get<double>("learning_rate"));
  return genes;
}

std::vector<Setting> evaluation_settings() {
  return {
      execution(text("device", "auto",
                     "auto, cpu, cuda or cuda:N, or several of one kind that the workers share: "
                     "cuda:0,cuda:1")),
      execution(text(
          "workers", "auto",
          "arrays of trainings at once: a number, or auto (one per core, one per listed GPU)")),
      execution(text(
          "array", "auto",
          "most trainings in an array, which a worker advances together: a number, or auto (timed "
          "on a GPU before the first array, by the first worker of a cluster; 1 on a CPU and under "
          "memory_limit)")),
      integer("threads", 1, 1, 9999.0,
              "threads of one training; part of the identity: the kernels sum alike for "
              "any number, which nobody promises of a BLAS"),
      choice("numerical_mode", "exact", {"reference", "exact", "tf32", "fast"},
             "reference: one LibTorch operation after the other; exact: fused kernels, float32; "
             "tf32: also TensorFloat-32 products, on a CPU with tiles (AMX) of two bfloat16 parts; "
             "fast: also bfloat16 products; part of the result"),
      choice(
          "determinism", "relaxed", {"relaxed", "bitwise"},
          "bitwise: a training run is to have the same bits on a GPU whatever trains beside it, "
          "however many workers there are and however often the process ends; each is trained by "
          "itself, so that arrays gain nothing, cuBLAS has a workspace for each stream, and "
          "numerical_mode reference is refused. On the CPU all is bitwise in any case"),
      search(choice(
          "repeated", "reuse", {"reuse", "retrain", "replicate"},
          "a candidate asked for again: reuse its evaluations, retrain it with fresh seeds, or "
          "answer the mean over all replicates so far")),
      search(integer("replicates", 1, 1, kMostReplicates,
                     "evaluations of a candidate, each with its own seeds; objectives and "
                     "constraints are about their mean, and one that fails fails the candidate "
                     "unless divergence_rate is an objective or constrained")),
      search(integer("racing_replicates", 0, 0, kMostReplicates,
                     "most evaluations of a candidate in the races that give further ones to "
                     "those that may be the best; 0 = no racing")),
      search(needing(
          "racing_replicates",
          integer(
              "racing_elites", 3, 1,
              "how many best candidates a race looks for where there is one objective; several: "
              "the non-dominated ones"))),
      search(needing("racing_replicates",
                     below(1.0, positive(number(
                                    "racing_confidence", 0.95, 0.0,
                                    "of each paired t-test by which a race leaves a candidate"))))),
      number("memory_limit", 0.0, 0.0, "largest memory of one training, GiB; 0 = no limit"),
      number("time_limit", 0.0, 0.0,
             "longest time of one training, seconds (its share of an array's), after which it is "
             "timed_out; 0 = no limit. What takes twice as long within a step ends the process, "
             "which can be continued"),
      execution(integer(
          "retry_failed", 0, 0,
          "how often a training run that has failed is tried again before that is its record")),
      execution(integer(
          "retry_out_of_memory", 0, 0,
          "the same of one that is out of memory alone: in an array, or beside others, it is "
          "tried in smaller ones and alone in any case")),
      execution(
          integer("retry_timed_out", 0, 0, "the same of one that took longer than time_limit")),
      execution(integer(
          "retry_crashed", 1, 1,
          "how often one that was at work when its process ended by itself, or hung, is tried "
          "again, alone, by the next process; at least once, since only alone is it certain "
          "what ended it")),
      execution(integer("retry_lost", 2, 0, 1e6,
                        "how often one is ordered again that a cluster's worker had begun when "
                        "it died")),
      execution(integer(
          "failure_window", 50, 0,
          "the run ends, and can be continued, where more than half of so many distinct "
          "candidates have failed, the latest that were trained; what constraints reject did "
          "not fail; 0 = never")),
      with(Effect::further,
           integer("keep_models", 1, 0,
                   "number of best models whose weights are saved when their training ends: by the "
                   "objective, of several the whole front before all others, each by what its own "
                   "training scored; the best model of the baseline comes in addition; 0 = none")),
      choice("causality", "auto", {"auto", "require", "ignore"},
             "refuse mechanisms that see later tokens; auto: require under corrected semantics"),
  };
}

std::vector<Setting> budget_settings() {
  return with_effect(
      Effect::limit,
      {
          integer("asks", 0, 0,
                  "candidates that the search may ask for, known ones too; 0 = no limit"),
          integer("evaluations", 0, 0,
                  "trainings that the search may cause; what constraints reject before training is "
                  "free; 0 = no limit"),
          number("seconds", 0.0, 0.0,
                 "wall-clock seconds of measuring for the search, over all processes, without "
                 "those in which they were stopped; 0 = no limit"),
          number("train_seconds", 0.0, 0.0,
                 "seconds of training (of a table: the recorded ones), summed, after which none "
                 "begins; 0 = no limit"),
          integer("train_steps", 0, 0,
                  "steps of training, summed over the trainings that the search may cause, each "
                  "counted until its end or its failure; 0 = no limit"),
          number("gpu_seconds", 0.0, 0.0,
                 "the same, refused where training is not on a GPU; 0 = no limit"),
          integer(
              "stagnation", 0, 0,
              "asks without a better hypervolume (one objective: a better value) after which the "
              "search ends, looked at after each batch; 0 = never"),
          text(
              "target", "",
              "value of the only objective at which the search ends, looked at after each batch (a "
              "generation, or an answer of an algorithm that asks one by one); empty = none"),
      });
}

std::vector<Setting> fidelity_settings() {
  return {
      search(at_least(1, any("rungs", Integers{},
                             "validation steps at which training runs pause, before the last one; "
                             "empty: by min"))),
      search(integer(
          "min", 0, 0,
          "in place of rungs: the first is the first validation step that is no less, each next "
          "one the first that is no less than eta times (0: 3 times) the one before")),
      search(number("eta", 0.0, 0,
                    "of so many candidates at a rung one goes on, more than 1; 0 = the ratio of "
                    "the next rung's steps and the rung's")),
      search(choice(
          "promote", "asha", {"asha", "pasha", "successive_halving", "hyperband"},
          "asha: whenever a candidate may be out, one that is to go on, else a new one; pasha: "
          "the same, to a further rung only once the order at the two highest ones differs; "
          "successive_halving: the best of each batch once all of it is at a rung; hyperband: "
          "the same, where batches in turn are halved from each rung on")),
      search(at_least(
          0,
          any("epsilon", Numbers{},
              "of pasha: by how much two candidates must differ at a rung to be ordered there, of "
              "each objective in its own unit: the noise between seeds in a difference of two "
              "(analysis/components.py shows it); empty = 0"))),
      search(choice(
          "spread", "crowding", {"crowding", "epsilon_net"},
          "which candidates of one front go on first, of several objectives: by their crowding "
          "distance, or each time the one that is farthest from those before")),
      execution(positive(
          number("checkpoint_space", 20.0, 0.0,
                 "GiB that checkpoints of paused training runs may take; the least promising "
                 "go first, and without its own a training run begins again"))),
  };
}

std::vector<Setting> cluster_settings() {
  return with_effect(
      Effect::execution,
      {
          text("engine", "",
               "what places training runs on workers: one of nas-run list engines; empty: the "
               "workers are threads of this process"),
          any("command", Texts{},
              "words of a program of yours that is the engine, in place of a named one"),
          text("scheduler", "auto",
               "auto: the engine starts one and writes its address and certificate to cluster.json "
               "in the run's folder; or the address of a running one: tls://host:port"),
          text("listen", "auto",
               "address on which Dask's scheduler listens; auto: that of the default route"),
          text(
              "device", "auto",
              "model of device that all workers must have, since each rounds in its own way; auto: "
              "that of the run's first result; mixed: any, and results depend on who measured "
              "what"),
          positive(number("silence", 60.0, 0.0,
                          "seconds after which a silent worker counts as dead, and one that stands "
                          "still gives up what it works on")),
          positive(number("grace", 25.0, 0.0,
                          "seconds that workers have for checkpoints when they are stopped")),
      });
}

std::vector<Setting> retest_settings() {
  return with_effect(
      Effect::further,
      {
          integer("replicates", 5, 0, kMostReplicates,
                  "fresh seeds on which each candidate is trained again, or each of listed "
                  "`mechanisms`; where a run has more of them, these stay; 0 = no re-test, as "
                  "without this section: one that a run has stays while the search finds the same"),
          integer("top", 3, 1, 1e6,
                  "number of best mechanisms that are re-tested under one objective; under "
                  "several the front is"),
          below(1.0, positive(number("confidence", 0.95, 0,
                                     "confidence level of the intervals and of the verdict"))),
          below(100,
                number(
                    "until", 0.0, 0,
                    "percent of test perplexity: seeds come to listed `mechanisms`, at most "
                    "`replicates`, until each is shown to be better or worse than the baseline, or "
                    "within so much of it; 0 = `replicates` seeds for all")),
          integer("first_seed", 0, 0, 900'000,
                  "fresh seeds that are left out, since something was chosen by them"),
          any("anyway", false,
              "whether listed `mechanisms` are trained where a control is better than the "
              "baseline, so that nothing is said of attention"),
          any("tune", true,
              "whether each mechanism has a learning rate of its own, the best of three or "
              "more by two seeds that do not judge, unless `rates` gives it; false: "
              "training.learning_rate for all"),
      });
}

std::vector<SettingSection> setting_sections() {
  return {{"", experiment_settings()},           {"baseline", baseline_settings()},
          {"model", model_settings()},           {"training", training_settings()},
          {"evaluation", evaluation_settings()}, {"algorithm", population_settings()},
          {"budget", budget_settings()},         {"fidelity", fidelity_settings()},
          {"retest", retest_settings()},         {"cluster", cluster_settings()}};
}

std::vector<std::string> names_of(const std::vector<Setting>& settings) {
  std::vector<std::string> names;
  for (const auto& setting : settings) names.push_back(setting.name);
  return names;
}

std::vector<std::string> names_of(std::vector<Setting> settings, Effect effect) {
  std::erase_if(settings, [effect](const Setting& one) { return one.effect != effect; });
  return names_of(settings);
}

}  // namespace nas
