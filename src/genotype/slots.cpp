#include "genotype/slots.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/optimizers.hpp"
#include "core/words.hpp"
#include "genotype/component.hpp"
#include "genotype/field_words.hpp"
#include "genotype/mixer_kind.hpp"

namespace nas {

namespace {

using Words = std::vector<std::string>;

constexpr double kLargestRatio = 64.0;
constexpr double kLeastEpsilon = 1e-15;

bool is_number_of_taps(std::int64_t number) { return number != 1; }

/// A gene of the paper that components fill.
Slot paper_component(const std::string& name, std::string help, Words keys) {
  return {.name = name,
          .default_value = paper_labels(name).front(),
          .help = std::move(help),
          .choices = std::move(keys),
          .component = true,
          .paper = true};
}

/// Choices among components, of which the first is the default.
Slot components_of(std::string name, std::string help, Words keys) {
  const SlotValue first = keys.front();
  return {.name = std::move(name),
          .default_value = first,
          .help = std::move(help),
          .choices = std::move(keys),
          .component = true};
}

Slot words_of(std::string name, std::string help, Words words) {
  auto slot = components_of(std::move(name), std::move(help), std::move(words));
  slot.component = false;
  return slot;
}

/// An integer that is 0 unless something is said.
Slot count(std::string name, std::string help, double largest = kUnbounded) {
  return {.name = std::move(name),
          .default_value = std::int64_t{0},
          .help = std::move(help),
          .max = largest};
}

std::vector<Slot> paper_genes() {
  return {
      paper_component("similarity", "how a query and a key make a score",
                      {"dot", "silu_dot", "additive", "cosine", "bilinear", "l2"}),
      paper_component("normalization", "how a query's scores become weights",
                      {"softmax", "softmax1", "sink", "sigmoid_attn", "sigmoid_norm", "relu_norm",
                       "relu_n", "sparsemax", "entmax15", "top_k", "stick_breaking"}),
      paper_component(
          "gating", "what scales attention's input or output",
          {"none", "input_gate", "output_gate", "highway", "elementwise_gate", "headwise_gate"}),
      paper_component("temperature", "what scores are divided by",
                      {"fixed", "learned", "per_query", "log_length"}),
      {.name = "bias",
       .default_value = "bias",
       .help = "whether the q, k and v projections have biases; none: nor has the output's; qkv: "
               "these three alone",
       .choices = {"bias", "no_bias", "none", "qkv"},
       .paper = true},
      {.name = "attention_dropout",
       .default_value = 0.1,
       .help = "dropout of the attention weights",
       .max = 1.0,
       .max_exclusive = true,
       .written = "dropout",
       .paper = true},
  };
}

std::vector<Slot> model_genes() {
  std::vector<Slot> genes{
      words_of("position_embedding", "what is added to the token embedding",
               {"learned", "sinusoidal", "none"}),
      components_of("norm", "norms of the residual stream", {"layer", "rms"}),
      {.name = "norm_eps",
       .default_value = 1e-5,
       .help = "what they add to the variance, or mean square",
       .min = kLeastEpsilon,
       .max = 1.0},
      words_of("norm_place", "where they stand: before a part, behind it or both",
               {"pre", "post", "sandwich"}),
      words_of("block", "how mixer and feed-forward layer follow",
               {"sequential", "parallel", "parallel_norms"}),
      words_of("tied", "1: the output matrix is the embedding", {"1", "0"}),
      // Settings of the section `training` that a candidate has for itself (with_genes).
      {.name = "training.learning_rate",
       .default_value = 0.0,
       .help = "peak learning rate; 0: that of section training",
       .max = 1e3,
       .written = "learning_rate"},
      words_of("training.optimizer", "what changes weights; section: what training.optimizer says",
               {"section"}),
  };
  genes.back().written = "optimizer";
  for (auto& gene : genes) gene.model = true;
  return genes;
}

/// The genes of a layer besides the paper's, but for the sizes of single mixers and components.
std::vector<Slot> layer_genes() {
  auto heads = count("heads", "heads of the layer");
  heads.min = 1;
  auto conv = count("conv", "taps of a short convolution; 0: none", 8.0);
  conv.allows = is_number_of_taps;
  conv.allowed = "0 or an integer in [2, 8]";
  auto ratio = count("ratio", "hidden width of the feed-forward layer / D", kLargestRatio);
  ratio.min = 1;
  return {
      components_of("mixer", "what mixes positions", {"attn", "recurrent", "conv", "pair", "none"}),
      heads,
      count("kv_heads", "heads of keys and values; 0: as many as heads"),
      words_of("keys",
               "keys and values that are read: the layer's own, or those of the nearest earlier "
               "layer of attention that has its own",
               {"own", "shared"}),
      components_of("qk_norm", "norm of queries and keys", {"none", "rms"}),
      components_of("pattern", "which keys a query sees",
                    {"full", "window", "strided", "bigbird", "lsh", "indexed"}),
      components_of("position", "how scores know of distance",
                    {"none", "rope", "alibi", "t5", "cope", "path"}),
      components_of("decay", "what is forgotten", {"none"}),
      components_of("maps", "maps of weights in a head", {"single", "difference"}),
      conv,
      components_of("head_norm", "norm of each head's output", {"none", "rms"}),
      count("smear", "1: the mixer's input has a learned share of the token before", 1.0),
      count("value_embedding",
            "1: values have a learned share of the token's row in a table of the model", 1.0),
      components_of("update", "how a state takes up a key and its value", {"add"}),
      components_of("feature", "map of queries and keys of a recurrent layer",
                    {"identity", "elu1", "relu", "favor", "taylor2", "hedgehog"}),
      components_of("ffn", "feed-forward layer",
                    {"gelu", "gelu_tanh", "relu2", "swiglu", "swiglu_bias", "none"}),
      ratio,
  };
}

bool declare_genes() {
  for (auto* genes : {paper_genes, model_genes, layer_genes}) {
    for (auto& slot : genes()) note_mistake(declare(std::move(slot)));
  }
  return true;
}

[[maybe_unused]] const bool kDeclared = declare_genes();

[[noreturn]] void refuse(const Slot& slot, std::string_view text, const std::string& allowed,
                         const Words& words = {}) {
  throw InputError(slot.name + " = " + std::string(text) + ", must be " + allowed +
                   lead(text, words, /*listed=*/true));
}

/// The words that a choice may be, of a component, or an optimiser, also the keys that are registered.
Words known(const Slot& slot) {
  auto words = slot.choices;
  if (slot.name == "training.optimizer")
    for (auto& key : optimizers().keys()) words.push_back(std::move(key));
  for (const auto* component : components().of(slot.name))
    if (!holds(words, component->key)) words.push_back(component->key);
  return words;
}

std::string checked_word(const Slot& slot, std::string_view text) {
  if (is_text(slot)) return read_text(slot, text);
  if (holds(known(slot), text)) return std::string(text);
  refuse(slot, text, "one of " + join(options(slot)), options(slot));
}

bool is_in_range(const Slot& slot, double value) {
  return value >= slot.min && value < kUnbounded &&
         (slot.max_exclusive ? value < slot.max : value <= slot.max);
}

std::int64_t checked_integer(const Slot& slot, std::string_view text) {
  std::int64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end ||
      !is_in_range(slot, static_cast<double>(number)) ||
      (slot.allows != nullptr && !slot.allows(number))) {
    refuse(slot, text,
           !slot.allowed.empty() ? slot.allowed
           : slot.max < kUnbounded
               ? "an integer in [" + shortest(slot.min) + ", " + shortest(slot.max) + "]"
               : "an integer >= " + shortest(slot.min));
  }
  return number;
}

std::string range(const Slot& slot) {
  if (slot.max >= kUnbounded) return "a number >= " + shortest(slot.min);
  if (slot.max_exclusive)
    return "a number in [" + shortest(slot.min) + ", " + shortest(slot.max) + ")";
  return "a number in (" + shortest(slot.min) + ", " + shortest(slot.max) + "]";
}

double checked_real(const Slot& slot, std::string_view text) {
  const auto number = number_in(text);
  if (!number || !is_in_range(slot, *number)) refuse(slot, text, range(slot));
  return *number;
}

/// A whole number without exponent, so that names read "500000"; else the shortest decimal.
std::string real_text(const Slot& slot, double number) {
  if (slot.paper || number != std::floor(number)) return shortest(number);
  return std::to_string(static_cast<std::int64_t>(number));
}

}  // namespace

const std::vector<std::string>& component_genes() {
  static const auto kNames = [] {
    std::vector<std::string> names;
    for (const auto* slot : paper_slots()) {
      if (slot->is_component()) names.push_back(slot->name);
    }
    return names;
  }();
  return kNames;
}

Gene searched(const Slot& slot) {
  if (slot.name == "bias") return {.name = slot.name, .options = {"bias", "no_bias"}};
  if (slot.name == "attention_dropout")
    return {.name = slot.name, .min = 0.0, .max = 0.3, .decimals = 2};
  if (slot.paper) return {.name = slot.name, .options = paper_labels(slot.name)};
  if (const auto* number = std::get_if<double>(&slot.default_value)) {
    return {.name = slot.name, .min = *number, .max = *number};
  }
  return {.name = slot.name, .options = {text(slot, Mechanism{})}};
}

std::vector<std::string> options(const Slot& slot) {
  if (slot.is_number() || slot.is_integer()) return {};
  if (!slot.is_component() || !slot.paper) {
    std::vector<std::string> options;
    for (const auto& key : known(slot)) {
      if (is_built(slot, key)) options.push_back(key);
    }
    return options;
  }
  auto options = searched(slot).options;
  for (const auto* component : components().of(slot.name)) {
    if (!holds(options, component->key)) options.push_back(component->key);
  }
  return options;
}

bool is_built(const Slot& slot, const std::string& option) {
  if (!slot.is_component()) return !holds(slot.unbuilt, option);
  if (components().contains(slot.name, option)) return true;
  // What is left out needs no module, and the models of the paper need no description of theirs.
  return !slot.paper && (option == "none" || option == slot.choices.front());
}

nlohmann::json option_json(const Slot& slot, const std::string& option) {
  if (slot.is_flag() && (option == slot.choices[0] || option == slot.choices[1])) {
    return option == slot.choices.front();
  }
  if (slot.is_integer() || slot.is_number()) return nlohmann::json::parse(option);
  return option;
}

std::string option_text(const Slot& slot, const nlohmann::json& option) {
  if (slot.is_flag() && option.is_boolean()) return slot.choices[option.get<bool>() ? 0 : 1];
  if (slot.is_number() && option.is_number()) return real_text(slot, option.get<double>());
  return option.is_string() ? option.get<std::string>() : option.dump();
}

std::string text(const Slot& slot, const Mechanism& mechanism) {
  const auto& value = mechanism.at(slot);
  if (const auto* word = std::get_if<std::string>(&value)) return *word;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  return real_text(slot, std::get<double>(value));
}

GeneValue value_of(const Slot& slot, const Mechanism& mechanism) {
  if (slot.is_number()) return std::get<double>(mechanism.at(slot));
  return text(slot, mechanism);
}

void choose(const Slot& slot, std::string_view text, Semantics semantics, Mechanism& mechanism) {
  if (slot.paper && slot.is_component()) {
    const auto key = component_key(semantics, slot.name, text);
    // A key that is known already may have no module.
    mechanism.set(slot, holds(slot.choices, key) ? key : components().at(slot.name, key).key);
  } else if (slot.is_integer()) {
    mechanism.set(slot, checked_integer(slot, text));
  } else if (slot.is_number()) {
    mechanism.set(slot, checked_real(slot, text));
  } else {
    mechanism.set(slot, checked_word(slot, text));
  }
}

void assign(const Slot& slot, const GeneValue& value, Semantics semantics, Mechanism& mechanism) {
  const auto* option = std::get_if<std::string>(&value);
  if (!slot.is_integer() && !slot.is_number()) {
    const auto& word = std::get<std::string>(value);
    mechanism.set(
        slot, slot.paper && slot.is_component() ? component_key(semantics, slot.name, word) : word);
    return;
  }
  const double number = option != nullptr ? std::stod(*option) : std::get<double>(value);
  mechanism.set(slot, slot.is_integer() ? SlotValue(std::int64_t{std::llround(number)}) : number);
}

void copy(const Slot& slot, const Mechanism& from, Mechanism& to) { to.set(slot, from.at(slot)); }

Mechanism vanilla_mechanism(Semantics semantics) {
  Mechanism mechanism;  // other genes begin as their default
  for (const auto* slot : paper_slots()) {
    if (slot->is_component()) assign(*slot, paper_labels(slot->name).front(), semantics, mechanism);
  }
  return mechanism;
}

namespace {

bool voids(const Slot& gene, const std::string& key, const Slot& slot) {
  if (slot.owner == gene.name && !holds(slot.owner_options, key)) return true;
  return holds(components().at(gene.name, key).voids, slot.name);
}

}  // namespace

std::map<std::string, std::vector<std::string>> voided_by(const Slot& slot) {
  std::map<std::string, std::vector<std::string>> voiding;
  for (const auto& gene : slots()) {
    if (!gene.is_component() || gene.model) continue;
    for (const auto& key : components().keys(gene.name)) {
      if (voids(gene, key, slot)) voiding[gene.name].push_back(key);
    }
  }
  return voiding;
}

SearchSpace paper_space() {
  std::vector<Gene> genes;
  for (const auto* slot : paper_slots()) genes.push_back(searched(*slot));
  return SearchSpace(std::move(genes));
}

Mechanism mechanism_of(const Genotype& genotype, Semantics semantics) {
  Mechanism mechanism;
  mechanism.set("attention_dropout", 0.0);
  for (const auto& [name, value] : genotype.values()) {
    assign(slot(name), value, semantics, mechanism);
  }
  return mechanism;
}

std::optional<GeneValue> offered(const Gene& gene, const Mechanism& mechanism,
                                 Semantics semantics) {
  const auto& slot = nas::slot(gene.name);
  if (slot.is_number() || (slot.is_integer() && !gene.categorical())) {
    const double number = std::stod(text(slot, mechanism));
    if (!gene.categorical()) {
      if (number < gene.min || number > gene.max) return std::nullopt;
      return number;
    }
  }
  const auto chosen = text(slot, mechanism);
  for (const auto& option : gene.options) {
    // The space's options are as the user wrote them: the one that means this component.
    if ((slot.is_component() ? component_key(semantics, gene.name, option) : option) == chosen) {
      return option;
    }
  }
  return std::nullopt;
}

}  // namespace nas
