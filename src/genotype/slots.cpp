#include "genotype/slots.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/words.hpp"
#include "genotype/component.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/mixer_kind.hpp"

namespace nas {

namespace {

using Words = std::vector<std::string>;
using Kind = Slot::Kind;

constexpr double kUnbounded = 9007199254740992.0;  // 2^53: integers are exact below
// Of sizes that memory and time grow with: beyond what any model has, so that a typo is refused by name.
constexpr double kLargestSize = 65536.0;
constexpr double kLargestRatio = 64.0;
// In small models: any size will do, or the mixer chooses it (MixerKind::shrink).
constexpr std::int64_t kAny = 0;
constexpr std::int64_t kByMixer = 0;

bool is_even(std::int64_t number) { return number % 2 == 0; }
bool is_number_of_buckets(std::int64_t number) { return number == 1 || is_even(number); }
bool is_number_of_taps(std::int64_t number) { return number != 1; }

/// A gene of the paper that components fill.
Slot paper_component(const std::string& name, std::string summary, std::string Mechanism::*member,
                     Words keys) {
  const auto& labels = paper_labels(name);
  return {.name = name,
          .summary = std::move(summary),
          .kind = Kind::component,
          .member = member,
          .words = std::move(keys),
          .searched = {.name = name, .options = labels},
          .vanilla = labels.front(),
          .written = name,
          .paper = true};
}

/// A choice among words or components, of which the first is the default.
Slot choice(Kind kind, const std::string& name, std::string summary, Slot::Member member,
            Words words) {
  Slot slot{.name = name,
            .summary = std::move(summary),
            .kind = kind,
            .member = member,
            .words = std::move(words),
            .written = name};
  slot.vanilla = slot.words.front();
  slot.searched = {.name = name, .options = {slot.words.front()}};
  return slot;
}

Slot model_gene(Kind kind, const std::string& name, std::string summary,
                std::string ModelGenes::*member, Words words) {
  auto slot = choice(kind, name, std::move(summary), member, std::move(words));
  slot.model = true;
  return slot;
}

Slot integer(const std::string& name, std::string summary, std::int64_t Mechanism::*member,
             double lower, std::int64_t small, double largest = kUnbounded - 1.0) {
  const auto standard = std::to_string(Mechanism{}.*member);
  return {.name = name,
          .summary = std::move(summary),
          .kind = Kind::integer,
          .member = member,
          .lower = lower,
          .upper = largest + 1.0,
          .small = small,
          .searched = {.name = name, .options = {standard}},
          .vanilla = standard,
          .written = name};
}

Slot real(const std::string& name, std::string summary, double Mechanism::*member, double lower,
          double upper) {
  const double standard = Mechanism{}.*member;
  return {.name = name,
          .summary = std::move(summary),
          .kind = Kind::real,
          .member = member,
          .lower = lower,
          .upper = upper,
          .searched = {.name = name, .min = standard, .max = standard},
          .vanilla = standard,
          .written = name};
}

/// A size that has an effect beside some options of another gene alone.
Slot owned(Slot slot, std::string owner, Words options) {
  slot.owner = std::move(owner);
  slot.owner_options = std::move(options);
  return slot;
}

Slot allowing(Slot slot, bool (*allows)(std::int64_t), std::string allowed) {
  slot.allows = allows;
  slot.allowed = std::move(allowed);
  return slot;
}

Slot without_modules(Slot slot, Words words) {
  slot.unbuilt = std::move(words);
  return slot;
}

std::vector<Slot> make_paper_slots() {
  return {
      paper_component("similarity", "how a query and a key make a score", &Mechanism::similarity,
                      {"dot", "silu_dot", "additive", "cosine", "bilinear", "l2"}),
      paper_component("normalization", "how a query's scores become weights",
                      &Mechanism::normalization,
                      {"softmax", "softmax1", "sink", "sigmoid_attn", "sigmoid_norm", "relu_norm",
                       "relu_n", "sparsemax", "entmax15", "top_k", "stick_breaking"}),
      paper_component("gating", "what scales attention's input or output", &Mechanism::gating,
                      {"none", "input_gate", "output_gate", "highway", "elementwise_gate",
                       "headwise_gate", "swish_gate", "sigmoid_gate"}),
      paper_component("temperature", "what scores are divided by", &Mechanism::temperature,
                      {"fixed", "learned", "per_query", "log_length"}),
      {.name = "bias",
       .summary = "whether the q, k and v projections have biases; none: nor has the output's",
       .kind = Kind::word,
       .member = &Mechanism::bias,
       .words = {"bias", "no_bias", "none"},
       .searched = {.name = "bias", .options = {"bias", "no_bias"}},
       .vanilla = "bias",
       .written = "bias",
       .paper = true},
      {.name = "attention_dropout",
       .summary = "dropout of the attention weights",
       .kind = Kind::real,
       .member = &Mechanism::attention_dropout,
       .upper = 1.0,
       .searched = {.name = "attention_dropout", .min = 0.0, .max = 0.3, .decimals = 2},
       .vanilla = 0.1,
       .written = "dropout",
       .paper = true},
  };
}

std::vector<Slot> make_model_slots() {
  return {
      model_gene(Kind::word, "position_embedding", "what is added to the token embedding",
                 &ModelGenes::position_embedding, {"learned", "sinusoidal", "none"}),
      model_gene(Kind::component, "norm", "norms of the residual stream", &ModelGenes::norm,
                 {"layer", "rms"}),
      model_gene(Kind::word, "norm_place", "where they stand: before a part, behind it or both",
                 &ModelGenes::norm_place, {"pre", "post", "sandwich"}),
      model_gene(Kind::word, "block", "how mixer and feed-forward layer follow", &ModelGenes::block,
                 {"sequential", "parallel"}),
      model_gene(Kind::word, "tied", "1: the output matrix is the embedding", &ModelGenes::tied,
                 {"1", "0"}),
  };
}

/// The genes of a layer besides the paper's, in the order of names.
std::vector<Slot> make_layer_slots() {
  return {
      choice(Kind::component, "mixer", "what mixes positions", &Mechanism::mixer,
             {"attn", "recurrent", "conv", "none"}),
      integer("heads", "heads of the layer", &Mechanism::heads, 1, kByMixer),
      integer("kv_heads", "heads of keys and values; 0: as many as heads", &Mechanism::kv_heads, 0,
              kByMixer),
      integer("kv_rank", "width of a latent that keys and values come from; 0: none",
              &Mechanism::kv_rank, 0, 4, kLargestSize),
      choice(Kind::component, "qk_norm", "norm of queries and keys", &Mechanism::qk_norm,
             {"none", "rms"}),
      owned(integer("gate_rank", "rank of the gate's matrix; 0: full", &Mechanism::gate_rank, 0, 3,
                    kLargestSize),
            "gating", {"sigmoid_gate"}),
      choice(Kind::component, "pattern", "which keys a query sees", &Mechanism::pattern,
             {"full", "window", "strided", "bigbird", "lsh"}),
      owned(integer("window", "newest keys that a query sees, its own included", &Mechanism::window,
                    1, 5),
            "pattern", {"window"}),
      owned(integer("globals", "first keys or blocks that it sees besides", &Mechanism::globals, 0,
                    2, kLargestSize),
            "pattern", {"window", "bigbird"}),
      owned(integer("stride", "of pattern strided", &Mechanism::stride, 1, 3), "pattern",
            {"strided"}),
      [&] {
        // Under the name "block" spaces choose how the parts of a model's blocks follow.
        auto slot =
            integer("pattern_block", "tokens of a block", &Mechanism::block, 1, 3, kLargestSize);
        slot.written = "block";
        return owned(std::move(slot), "pattern", {"bigbird", "lsh"});
      }(),
      owned(integer("random", "random blocks", &Mechanism::random, 0, 1, kLargestSize), "pattern",
            {"bigbird"}),
      owned(
          allowing(integer("buckets", "values of a hash", &Mechanism::buckets, 1, 4, kLargestSize),
                   is_number_of_buckets, "1 or an even number <= 65536"),
          "pattern", {"lsh"}),
      owned(integer("rounds", "hashes of a key", &Mechanism::rounds, 1, 2, kLargestSize), "pattern",
            {"lsh"}),
      choice(Kind::component, "position", "how scores know of distance", &Mechanism::position,
             {"none", "rope", "alibi", "t5", "cope", "path"}),
      owned(real("rope_base", "base of the wavelengths", &Mechanism::rope_base, 1.0, kUnbounded),
            "position", {"rope"}),
      owned(real("rope_fraction", "share of a head's entries that are rotated",
                 &Mechanism::rope_fraction, 0.0, std::nextafter(1.0, 2.0)),
            "position", {"rope"}),
      owned(allowing(integer("t5_buckets", "classes of distances", &Mechanism::t5_buckets, 2, 8,
                             kLargestSize),
                     is_even, "an even number in [2, 65536]"),
            "position", {"t5"}),
      owned(integer("t5_distance", "from which all are in the last class", &Mechanism::t5_distance,
                    1, 16),
            "position", {"t5"}),
      owned(integer("cope_positions", "positions with a vector", &Mechanism::cope_positions, 1, 4,
                    kLargestSize),
            "position", {"cope"}),
      choice(Kind::component, "decay", "what is forgotten", &Mechanism::decay,
             {"none", "scalar", "fixed", "channel"}),
      owned(integer("decay_rank", "rank of the map that makes decays", &Mechanism::decay_rank, 1, 3,
                    kLargestSize),
            "decay", {"channel"}),
      owned(real("decay_tau", "divisor of the logarithms of decays", &Mechanism::decay_tau, 1.0,
                 kUnbounded),
            "decay", {"channel"}),
      owned(choice(Kind::word, "decay_form", "how decays of channels follow from logits",
                   &Mechanism::decay_form, {"gla", "softplus"}),
            "decay", {"channel"}),
      without_modules(choice(Kind::word, "maps", "maps of weights in a head", &Mechanism::maps,
                             {"single", "difference"}),
                      {"difference"}),
      allowing(
          integer("conv", "taps of a short convolution; 0: none", &Mechanism::conv, 0, kAny, 8.0),
          is_number_of_taps, "0 or an integer in [2, 8]"),
      choice(Kind::component, "head_norm", "norm of each head's output", &Mechanism::head_norm,
             {"none", "rms"}),
      integer("value_exclusion", "1: a head's output loses its part along the query's own value",
              &Mechanism::value_exclusion, 0, kAny, 1.0),
      integer("soft_cap", "size that no score exceeds, c tanh(s / c); 0: none",
              &Mechanism::soft_cap, 0, kAny, kLargestSize),
      integer("smear", "1: the mixer's input has a learned share of the token before",
              &Mechanism::smear, 0, kAny, 1.0),
      integer("value_embedding",
              "1: values have a learned share of the token's row in a table of the model",
              &Mechanism::value_embedding, 0, kAny, 1.0),
      choice(Kind::word, "update", "how a state takes up a key and its value", &Mechanism::update,
             {"add", "delta", "delta2"}),
      choice(Kind::component, "feature", "map of queries and keys of a recurrent layer",
             &Mechanism::feature, {"identity", "elu1", "relu", "favor", "taylor2", "hedgehog"}),
      owned(integer("favor_features", "random features; 0: twice the key width",
                    &Mechanism::favor_features, 0, 6, kLargestSize),
            "feature", {"favor"}),
      integer("key_width", "width of a head's keys; 0: that of its values", &Mechanism::key_width,
              0, 4, kLargestSize),
      integer("neg_eigen", "1: a state may be reflected", &Mechanism::neg_eigen, 0, kAny, 1.0),
      choice(Kind::component, "ffn", "feed-forward layer", &Mechanism::ffn,
             {"gelu", "relu2", "swiglu", "none"}),
      integer("ratio", "hidden width of the feed-forward layer / D", &Mechanism::ratio, 1, kAny,
              kLargestRatio),
  };
}

[[noreturn]] void refuse(const Slot& slot, std::string_view text, const std::string& allowed,
                         const Words& words = {}) {
  throw InputError(slot.name + " = " + std::string(text) + ", must be " + allowed +
                   did_you_mean(text, words));
}

/// The words that a choice may be, of a component also the keys that are registered.
Words known(const Slot& slot) {
  auto words = slot.words;
  if (!slot.is_component()) return words;
  for (const auto& key : components().keys(slot.name)) {
    if (!holds(words, key)) words.push_back(key);
  }
  return words;
}

std::string checked_word(const Slot& slot, std::string_view text) {
  if (holds(known(slot), text)) return std::string(text);
  refuse(slot, text, "one of " + join(options(slot)), options(slot));
}

std::int64_t checked_integer(const Slot& slot, std::string_view text) {
  std::int64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  const auto value = static_cast<double>(number);
  if (result.ec != std::errc() || result.ptr != end || !(value >= slot.lower) ||
      !(value < slot.upper) || (slot.allows != nullptr && !slot.allows(number))) {
    refuse(slot, text,
           !slot.allowed.empty() ? slot.allowed
           : slot.upper < kUnbounded
               ? "an integer in [" + shortest(slot.lower) + ", " + shortest(slot.upper - 1.0) + "]"
               : "an integer >= " + shortest(slot.lower));
  }
  return number;
}

std::string range(const Slot& slot) {
  if (slot.upper >= kUnbounded) return "a number >= " + shortest(slot.lower);
  // What lies just above 1 is the bound of numbers up to 1.
  if (slot.upper > 1.0 && slot.upper < 1.1) return "a number in (" + shortest(slot.lower) + ", 1]";
  return "a number in [" + shortest(slot.lower) + ", " + shortest(slot.upper) + ")";
}

double checked_real(const Slot& slot, std::string_view text) {
  const auto number = number_in(text);
  if (!number || !(*number >= slot.lower && *number < slot.upper)) refuse(slot, text, range(slot));
  return *number;
}

/// A whole number without exponent, so that names read "500000"; else the shortest decimal.
std::string real_text(const Slot& slot, double number) {
  if (slot.paper || number != std::floor(number)) return shortest(number);
  return std::to_string(static_cast<std::int64_t>(number));
}

std::string Mechanism::*const* word_member(const Slot& slot) {
  return std::get_if<std::string Mechanism::*>(&slot.member);
}

std::string ModelGenes::*model_member(const Slot& slot) {
  const auto* member = std::get_if<std::string ModelGenes::*>(&slot.member);
  if (member == nullptr) throw std::logic_error(slot.name + " is no gene of the whole model");
  return *member;
}

void require_layer_gene(const Slot& slot) {
  if (slot.model) throw std::logic_error(slot.name + " is a gene of the whole model");
}

}  // namespace

const std::vector<Slot>& paper_slots() {
  static const auto kSlots = make_paper_slots();
  return kSlots;
}

const std::vector<Slot>& slots() {
  static const auto kSlots = [] {
    auto all = paper_slots();
    for (auto& slot : make_model_slots()) all.push_back(std::move(slot));
    for (auto& slot : make_layer_slots()) all.push_back(std::move(slot));
    return all;
  }();
  return kSlots;
}

const Slot& slot(std::string_view name) {
  // The paper's are looked up while the others are made.
  for (const auto& slot : paper_slots()) {
    if (slot.name == name) return slot;
  }
  for (const auto& slot : slots()) {
    if (slot.name == name) return slot;
  }
  throw std::logic_error("no slot is called " + std::string(name));
}

const std::vector<std::string>& component_genes() {
  static const auto kNames = [] {
    std::vector<std::string> names;
    for (const auto& slot : paper_slots()) {
      if (slot.is_component()) names.push_back(slot.name);
    }
    return names;
  }();
  return kNames;
}

const std::vector<const Slot*>& layer_slots() {
  static const auto kSlots = [] {
    // The paper's six stand where the table of genes has them, among the others.
    const std::map<std::string, Words> behind{
        {"kv_rank", {"similarity"}},
        {"qk_norm", {"normalization", "temperature", "gating", "bias", "attention_dropout"}}};
    std::vector<const Slot*> ordered;
    for (const auto& slot : slots()) {
      if (slot.paper || slot.model) continue;
      ordered.push_back(&slot);
      const auto found = behind.find(slot.name);
      if (found == behind.end()) continue;
      for (const auto& name : found->second) ordered.push_back(&nas::slot(name));
    }
    return ordered;
  }();
  return kSlots;
}

const std::vector<const Slot*>& model_slots() {
  static const auto kSlots = [] {
    std::vector<const Slot*> ordered;
    for (const auto& slot : slots()) {
      if (slot.model) ordered.push_back(&slot);
    }
    return ordered;
  }();
  return kSlots;
}

std::vector<std::pair<std::string, std::vector<std::string>>> mixers_of(const Slot& slot) {
  std::vector<std::pair<std::string, std::vector<std::string>>> mixers;
  for (const auto& mixer : mixer_kinds().keys()) {
    if (const auto* options = options_of(mixer, slot)) mixers.emplace_back(mixer, *options);
  }
  return mixers;
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
  auto options = slot.searched.options;
  for (const auto& key : components().keys(slot.name)) {
    if (!holds(options, key)) options.push_back(key);
  }
  for (const auto& word : slot.words) {  // what another mixer than attention computes
    const bool built = is_built(slot, word) && !components().at(slot.name, word).mixer.empty();
    if (built && !holds(options, word)) options.push_back(word);
  }
  return options;
}

bool is_built(const Slot& slot, const std::string& option) {
  if (!slot.is_component()) return !holds(slot.unbuilt, option);
  if (components().contains(slot.name, option)) return true;
  // What is left out needs no module, and the models of the paper need no description of theirs.
  return !slot.paper && (option == "none" || option == slot.words.front());
}

bool has_effect(const Slot& slot) {
  if (!slot.is_number() && !slot.is_integer()) return true;
  if (!slot.owner.empty()) {
    return std::any_of(
        slot.owner_options.begin(), slot.owner_options.end(),
        [&slot](const auto& option) { return is_built(nas::slot(slot.owner), option); });
  }
  const auto mixers = mixers_of(slot);
  return mixers.empty() || std::any_of(mixers.begin(), mixers.end(), [](const auto& mixer) {
           return is_built(nas::slot("mixer"), mixer.first);
         });
}

nlohmann::json option_json(const Slot& slot, const std::string& option) {
  if (slot.is_flag() && option != slot.words.back()) return option == slot.words.front();
  if (slot.is_integer() || slot.is_number()) return nlohmann::json::parse(option);
  return option;
}

std::string option_text(const Slot& slot, const nlohmann::json& option) {
  if (slot.is_flag() && option.is_boolean()) return slot.words[option.get<bool>() ? 0 : 1];
  if (slot.is_number() && option.is_number()) return real_text(slot, option.get<double>());
  return option.is_string() ? option.get<std::string>() : option.dump();
}

std::string text(const Slot& slot, const Mechanism& mechanism) {
  require_layer_gene(slot);
  if (const auto* word = word_member(slot)) return mechanism.*(*word);
  if (const auto* number = std::get_if<std::int64_t Mechanism::*>(&slot.member)) {
    return std::to_string(mechanism.*(*number));
  }
  return real_text(slot, mechanism.*std::get<double Mechanism::*>(slot.member));
}

void choose(const Slot& slot, std::string_view text, Semantics semantics, Mechanism& mechanism) {
  require_layer_gene(slot);
  if (slot.paper && slot.is_component()) {
    const auto key = component_key(semantics, slot.name, text);
    // A key that is known already may have no module.
    mechanism.*(*word_member(slot)) =
        holds(slot.words, key) ? key : components().at(slot.name, key).key;
  } else if (const auto* word = word_member(slot)) {
    mechanism.*(*word) = checked_word(slot, text);
  } else if (const auto* number = std::get_if<std::int64_t Mechanism::*>(&slot.member)) {
    mechanism.*(*number) = checked_integer(slot, text);
  } else {
    mechanism.*std::get<double Mechanism::*>(slot.member) = checked_real(slot, text);
  }
}

std::string text(const Slot& slot, const ModelGenes& genes) { return genes.*model_member(slot); }

void choose(const Slot& slot, std::string_view text, ModelGenes& genes) {
  genes.*model_member(slot) = checked_word(slot, text);
}

void assign(const Slot& slot, const GeneValue& value, ModelGenes& genes) {
  genes.*model_member(slot) = std::get<std::string>(value);
}

void assign(const Slot& slot, const GeneValue& value, Semantics semantics, Mechanism& mechanism) {
  require_layer_gene(slot);
  const auto* option = std::get_if<std::string>(&value);
  if (const auto* word = word_member(slot)) {
    mechanism.*(*word) = slot.paper && slot.is_component()
                             ? component_key(semantics, slot.name, std::get<std::string>(value))
                             : std::get<std::string>(value);
    return;
  }
  const double number = option != nullptr ? std::stod(*option) : std::get<double>(value);
  if (const auto* integer = std::get_if<std::int64_t Mechanism::*>(&slot.member)) {
    mechanism.*(*integer) = std::llround(number);
  } else {
    mechanism.*std::get<double Mechanism::*>(slot.member) = number;
  }
}

namespace {

bool voids(const Slot& gene, const std::string& key, const Slot& slot) {
  if (slot.owner == gene.name && !holds(slot.owner_options, key)) return true;
  return holds(components().at(gene.name, key).voids, slot.name);
}

}  // namespace

bool is_active(const Slot& slot, const Mechanism& mechanism) {
  if (slot.model) return true;
  bool active = true;
  auto voided = mechanism;
  Architecture long_context;  // in which every pattern leaves something out
  long_context.context = std::numeric_limits<std::int64_t>::max();
  apply_layer_rules(long_context, voided,
                    [&](const Slot& other) { active &= other.name != slot.name; });
  return active;
}

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
  for (const auto& slot : paper_slots()) genes.push_back(slot.searched);
  return SearchSpace(std::move(genes));
}

Mechanism mechanism_of(const Genotype& genotype, Semantics semantics) {
  Mechanism mechanism;
  for (const auto& [name, value] : genotype.values()) {
    assign(slot(name), value, semantics, mechanism);
  }
  return mechanism;
}

GeneValue value_of(const Slot& slot, const Mechanism& mechanism) {
  if (slot.is_number()) return mechanism.*std::get<double Mechanism::*>(slot.member);
  return text(slot, mechanism);
}

Genotype genotype_of(const Mechanism& mechanism) {
  std::vector<std::pair<std::string, GeneValue>> values;
  for (const auto& slot : paper_slots()) values.emplace_back(slot.name, value_of(slot, mechanism));
  return Genotype(std::move(values));
}

Candidate candidate_of(const Mechanism& mechanism, Semantics semantics) {
  const auto function = canonical(mechanism, semantics);
  return {.name = to_string(function), .genotype = genotype_of(function)};
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
