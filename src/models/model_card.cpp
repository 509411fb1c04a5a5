#include "models/model_card.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/plugin.hpp"
#include "data/data_set.hpp"
#include "genotype/component.hpp"
#include "models/model_folder.hpp"
#include "report/text.hpp"
#include "report/verdict.hpp"
#include "store/evaluation.hpp"

namespace nas {

namespace {

using Json = nlohmann::ordered_json;

/// What a model is for: text, labels (of pictures, say), or tokens that are no text.
enum class Kind { language, classifier, sequences };

Kind kind_of(const RunSummary& run, const Json& config) {
  const auto task = run.facts.find("task");
  if (task != run.facts.end() && task->is_object() && task->at("name") == "classification") {
    return Kind::classifier;
  }
  return config.at("text").is_null() ? Kind::sequences : Kind::language;
}

/// What the mechanism is in its run.
std::string place_of(const RunSummary& run, const std::string& candidate) {
  const bool baseline = run.baseline && run.baseline->candidate == candidate;
  if (run.listed()) {
    return baseline ? "the baseline, which others are compared with" : "compared with the baseline";
  }
  const auto* found = run.ranked(candidate);
  const auto& first = run.objectives.front().name;
  const auto usable = grouped(std::ssize(run.ranking)) + " usable ones";
  if (found == nullptr) {
    return baseline ? "the baseline, which nothing selected" : "one that was trained beside it";
  }
  const auto front = std::to_string(run.front.size()) + " on the non-dominated front";
  if (found == run.ranking.data()) {
    return run.several() ? "the best by " + first + " of the " + front
                         : "what it returns, believed the best by " + first + " of " + usable;
  }
  if (run.several() && found->on_front) return "one of the " + front;
  return "number " + std::to_string(found - run.ranking.data() + 1) + " of " + usable + ", by " +
         first;
}

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Layers that are alike together: their genes, with what the options compute.
void describe_layers(const Json& layers, std::ostream& text) {
  std::vector<std::pair<Json, std::string>> distinct;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto number = std::to_string(i);
    auto known = std::find_if(distinct.begin(), distinct.end(),
                              [&](const auto& entry) { return entry.first == layers[i]; });
    if (known == distinct.end()) {
      distinct.emplace_back(layers[i], number);
    } else {
      known->second += ", " + number;
    }
  }
  for (const auto& [layer, numbers] : distinct) {
    if (distinct.size() > 1) text << "\nLayers " << numbers << ":\n";
    text << '\n';
    for (const auto& [gene, value] : layer.items()) {
      const auto option = value_text(value);
      text << "- " << gene << " `" << option << '`';
      if (value.is_string() && components().contains(gene, option)) {
        text << ": " << components().at(gene, option).summary;
      }
      text << '\n';
    }
  }
}

void describe_model(const Json& config, const Evaluation& evaluation, std::ostream& text) {
  const auto& model = config.at("model");
  text << "\n## Model\n\n`" << config.at("candidate").get<std::string>() << "`, semantics "
       << config.at("semantics").get<std::string>() << ": "
       << counted(std::ssize(config.at("layers")), "layer") << ", "
       << grouped(static_cast<std::int64_t>(evaluation.values.at("parameters"))) << " parameters";
  for (const auto& [name, value] : model.items()) text << ", " << name << ' ' << value_text(value);
  text << ".\n";
  describe_layers(config.at("layers"), text);
}

void add_row(const RunSummary& run, const std::string& name, const RankedCandidate& candidate,
             std::ostream& text) {
  text << "| " << name << " | " << candidate.n;
  for (std::size_t i = 0; i < run.objectives.size(); ++i) {
    text << " | " << number_text(candidate.values[i]);
    if (const auto error = candidate.standard_errors[i]) text << " ± " << number_text(*error);
  }
  text << " |\n";
}

/// Scores of the test split with seeds that selected nothing: those of a re-test, or in a run of
/// listed mechanisms all that it has trained.
void describe_retest(const RunSummary& run, const std::string& candidate, std::ostream& text) {
  const bool listed = run.listed();
  const auto candidates =
      run.retest.is_null() ? nlohmann::json::array() : run.retest.at("candidates");
  bool trained_again = false;
  for (const auto& retested : candidates) {
    const auto& test = retested.at("test");
    if (retested.at("candidate") != candidate || !test.at("mean").is_number()) continue;
    trained_again = true;
    text << (listed ? "\nTrained on " : "\nTrained again on ")
         << counted(test.at("n"), listed ? "seed" : "fresh seed") << ": "
         << title(measure_of(run.retest)) << ' ' << number_text(test.at("mean"));
    if (test.at("low").is_number()) {
      text << " (" << shortest(100.0 * run.retest.at("confidence").get<double>()) << " % interval "
           << number_text(test.at("low")) << " to " << number_text(test.at("high")) << ')';
    }
    text << ".\n";
  }
  if (!trained_again && !listed) {
    text << "\nThe mechanism was not trained again on fresh seeds. What a search selects looks "
            "better than it is.\n";
  }
  if (run.retest.is_null()) return;
  const auto verdict = run.retest.at("verdict").get<std::string>();
  if (verdict.empty()) return;
  text << (listed ? "\nVerdict: " : "\nVerdict of the re-test: ") << verdict << '\n';
}

void describe_scores(const RunSummary& run, const Evaluation& evaluation, const Json& config,
                     const std::string& origin, std::ostream& text) {
  text << "\n## Scores\n\nOf the validation split"
       << (run.listed() ? "" : ", as the search believes them")
       << ": means over n training runs, ± standard error.\n\n| | n";
  for (const auto& objective : run.objectives) text << " | " << objective.title();
  text << " |\n|---|---";
  for (std::size_t i = 0; i < run.objectives.size(); ++i) text << "|---";
  text << "|\n";
  if (const auto* found = run.ranked(evaluation.candidate)) add_row(run, "this one", *found, text);
  if (run.baseline) add_row(run, "the baseline", *run.baseline, text);

  text << "\nThese weights, " << origin << ", are of one training run ("
       << seed_text(evaluation.replicate) << "), which is recorded with";
  const char* separator = " ";
  const bool classifies = kind_of(run, config) == Kind::classifier;
  for (const auto* name : {"perplexity", "accuracy", "test_perplexity"}) {
    if (classifies && std::string_view(name) != "accuracy") continue;
    const auto found = evaluation.values.find(name);
    if (found == evaluation.values.end()) continue;
    text << separator << name << ' ' << number_text(found->second);
    separator = ", ";
  }
  text << ".\n";
  const auto chance = run.facts.find("chance");
  if (chance != run.facts.end() && chance->is_object()) {
    text << "\nFor comparison, " << chance->at("by").get<std::string>() << " has accuracy "
         << number_text(chance->at("accuracy")) << ".\n";
  }
  for (const auto& warning : warnings(run)) text << '\n' << warning << '\n';
  describe_retest(run, evaluation.candidate, text);
}

void describe_training(const RunSummary& run, const Evaluation& evaluation,
                       const std::string& origin, std::ostream& text) {
  const auto& identity = evaluation.identity;
  text << "\n## Data and training\n\n- corpus: "
       << without_folders(
              run.facts.value("corpus_description", identity.at("corpus").get<std::string>()),
              run.config.value("data", nlohmann::json::object()))
       << "; SHA-256 " << identity.at("corpus_hash").get<std::string>() << '\n';
  if (const auto* data = find_known_data_set(identity.at("corpus").get<std::string>())) {
    text << "- licence of the corpus: " << data->licence << '\n';
  }
  for (const auto& [setting, value] : identity.at("training").items()) {
    text << "- " << setting << ": " << value_text(value) << '\n';
  }
  text << "- run seed " << identity.at("run_seed") << ", replicate " << evaluation.replicate
       << ", numerical mode " << identity.at("numerical_mode").get<std::string>() << '\n'
       << "- weights: " << origin << " (evaluation " << evaluation.id << ")\n";
}

/// The first layer of attention, untrained, as Python makes it.
std::string attention_call(const Json& config) {
  const auto& model = config.at("model");
  for (const auto& layer : config.at("layers")) {
    if (layer.at("mixer") != "attn") continue;
    auto call =
        "Attention(width=" + model.at("width").dump() + ", context=" + model.at("context").dump();
    for (const auto& [gene, value] : layer.items()) {
      if (gene != "mixer" && gene != "ffn" && gene != "hidden") {
        call += ", " + gene + '=' + value.dump();
      }
    }
    return call + ')';
  }
  return {};
}

void describe_use(const Json& config, std::ostream& text) {
  text << "\n## Use\n\n";
  if (const auto lacking = options_of_plugins(config); !lacking.empty()) {
    text << "PyTorch cannot build this model: `model.py` lacks " << join(lacking)
         << ", which plug-ins of attnas compute, until it is added there. `nas-model evaluate` "
            "and `nas-model generate` use the model, given the plug-in by `--plugin FILE.so`.\n";
    return;
  }
  text << "Python 3.9 and torch 1.13, or later ones, are all that it needs.\n\n"
          "```python\nfrom model import Attention, load\n\n"
          "model = load(\".\")  # logits (B, T, V) of tokens (B, T)\n";
  const auto call = attention_call(config);
  if (!call.empty()) {
    text << "# The mechanism, untrained, for another transformer: (B, T, width) to (B, T, width), "
            "causal.\nattention = "
         << call << '\n';
  }
  text << "```\n";
  if (config.at("text").is_null()) return;
  text << "\n```sh\npython3 model.py . --text FILE                        # perplexity\n"
          "python3 model.py . --generate \"a prompt\" --tokens 20  # the likeliest words behind a "
          "prompt\n```\n\nWith attnas `nas-model evaluate` and `nas-model generate` do the same.\n";
}

}  // namespace

std::vector<std::string> options_of_plugins(const Json& config) {
  std::set<std::string> registered;
  for (const auto& plugin : loaded_plugins()) {
    registered.insert(plugin.registers.begin(), plugin.registers.end());
  }
  std::set<std::string> found;
  const auto look_into = [&](const Json& genes) {
    for (const auto& [gene, value] : genes.items()) {
      const auto option = gene + ' ' + value_text(value);
      if (registered.contains(option)) found.insert(option);
    }
  };
  look_into(config.at("model"));
  for (const auto& layer : config.at("layers")) look_into(layer);
  return {found.begin(), found.end()};
}

std::string model_card(const RunSummary& run, const Evaluation& evaluation, const Json& config,
                       const std::string& origin) {
  std::ostringstream text;
  static const std::map<Kind, std::pair<const char*, const char*>> kWords{
      {Kind::language, {"Language model", "A transformer language model"}},
      {Kind::classifier, {"Classifier", "A transformer that gives a sequence one of some labels"}},
      {Kind::sequences, {"Sequence model", "A transformer that continues sequences of tokens"}}};
  const auto& [title, what] = kWords.at(kind_of(run, config));
  text << "# " << title << " `" << config.at("mechanism").get<std::string>() << "`\n\n"
       << what << " in plain PyTorch, trained by attnas. In the "
       << (run.listed() ? "run" : "search") << " `" << run.config.at("name").get<std::string>()
       << "` its mechanism is " << place_of(run, evaluation.candidate) << ".\n";
  describe_model(config, evaluation, text);
  describe_scores(run, evaluation, config, origin, text);
  describe_training(run, evaluation, origin, text);
  describe_use(config, text);
  return text.str();
}

}  // namespace nas
