#include "genotype/architecture_name.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/words.hpp"
#include "genotype/costs.hpp"
#include "genotype/field_words.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/mechanism_name.hpp"
#include "genotype/slots.hpp"

namespace nas {

namespace {

using Words = std::vector<std::string>;

/// Where a word that is no mixer belongs: "; sparsemax is an option of normalization: ..."; empty: nowhere.
std::string place_of_option(std::string_view word) {
  for (const auto* slot : layer_slots()) {
    const bool named =
        slot->is_component()
            ? components().contains(slot->name, word)
            : slot->is_word() && std::count(slot->choices.begin(), slot->choices.end(), word);
    const std::string option(word);
    if (slot->name == "mixer" || !named || !is_built(*slot, option)) continue;
    return "; " + option + " is an option of " + slot->name + ": " +
           (slot->name == "ffn" ? "attn+" + option : "attn{" + slot->written + "=" + option + "}");
  }
  return "";
}

/// "; did you mean sparsemax+mqa?" of a text in which blanks or commas stand between parts; empty: it is none.
std::string with_plus(std::string_view text) {
  std::string joined;
  if (text.find_first_of(", ") == std::string_view::npos ||
      text.find_first_of("{|/*") != std::string_view::npos) {
    return {};
  }
  for (const char c : text) {
    const bool between = c == ' ' || c == ',' || c == '+';
    if (!between || (!joined.empty() && joined.back() != '+')) joined += between ? '+' : c;
  }
  return "; did you mean " + joined + "?";
}

bool is_head(const Slot& slot) {
  return slot.name == "mixer" || slot.name == "ffn" || slot.name == "ratio" || is_text(slot);
}

/// Whether a model has a name of six fields, whatever its number of layers.
bool has_six_fields(const Architecture& architecture) {
  auto genes = architecture.genes;
  genes.set("bias", "bias");
  if (genes != ModelGenes{} || architecture.stack.size() != 1) return false;
  const auto& layer = architecture.stack.front();
  if (layer.word("bias") != "bias" && layer.word("bias") != "no_bias") return false;
  Mechanism six;
  for (const auto* slot : paper_slots()) {
    if (slot->is_component() && !has_option("attn", *slot, text(*slot, layer))) return false;
    copy(*slot, layer, six);
  }
  return layer == six;
}

/// The shortest stack that repeats to the same layers.
void shorten(Architecture& architecture) {
  std::vector<Mechanism> layers;
  for (std::int64_t i = 0; i < architecture.layers; ++i) {
    layers.push_back(architecture.layer(i));
    if (layers.size() == architecture.stack.size()) break;
  }
  for (std::size_t period = 1; period <= layers.size(); ++period) {
    const bool repeats = [&] {
      for (std::int64_t i = 0; i < architecture.layers; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (layers[at % layers.size()] != layers[at % period]) return false;
        // Beyond both periods nothing new follows.
        if (at >= layers.size() * period) break;
      }
      return true;
    }();
    if (!repeats) continue;
    layers.resize(period);
    break;
  }
  architecture.stack = std::move(layers);
}

/// Genes that a layer has and that are not as the mixer's default, in their order.
std::vector<Written> genes_of(const Mechanism& layer, const Architecture& architecture) {
  const auto standard = default_layer(architecture, layer.word("mixer"));
  std::vector<Written> genes;
  for (const auto* slot : layer_slots()) {
    if (is_head(*slot) || !has_gene(layer.word("mixer"), *slot)) continue;
    const auto chosen = text(*slot, layer);
    if (chosen != text(*slot, standard)) genes.emplace_back(slot->written, chosen);
  }
  return genes;
}

/// "(a|b)" of a layer of mixer pair.
std::string halves_text(const Mechanism& layer, bool for_people) {
  std::string text;
  for (const auto* half : {"first", "second"}) {
    const auto& written = layer.word(half);
    text += text.empty() ? "(" : "|";
    text += for_people ? layer_text(parse_unchecked(written, {}).stack.front(), {}, true) : written;
  }
  return text + ")";
}

std::string layered_text(const Architecture& architecture, bool for_people) {
  std::vector<Written> model;
  for (const auto* slot : model_slots()) {
    const auto chosen = text(*slot, architecture.genes);
    if (chosen != text(*slot, ModelGenes{})) model.emplace_back(slot->written, chosen);
  }
  if (architecture.genes.word("bias") != ModelGenes{}.word("bias")) {
    model.emplace_back("bias", architecture.genes.word("bias"));
  }
  std::string name = model.empty() ? "" : "model" + braces(model) + "/";
  for (std::int64_t i = 0; i < architecture.layers;) {
    auto end = i + 1;
    while (end < architecture.layers && architecture.layer(end) == architecture.layer(i)) ++end;
    if (i > 0) name += "/";
    if (end - i > 1) name += std::to_string(end - i) + "*";
    name += layer_text(architecture.layer(i), architecture, for_people);
    i = end;
  }
  return name;
}

/// What a full name begins with, unless it has six fields.
constexpr std::string_view kHead = "model{";
bool is_headed(std::string_view name) { return name.starts_with(kHead); }

/// Reads the grammar of layered names from left to right.
class NameReader {
 public:
  /// @param base  what layers leave out comes from, but of a name with a head; nullptr: the paper's model.
  NameReader(std::string_view name, Architecture frame, const Architecture* base)
      : name_(name), rest_(name), architecture_(std::move(frame)), base_(base) {
    if (is_headed(name)) base_ = nullptr;
    architecture_.genes = base_ != nullptr ? base_->genes : ModelGenes{};
    architecture_.stack.clear();
  }

  Architecture read() {
    if (architecture_.semantics == Semantics::published) {
      fail("semantics published knows names of six fields alone, similarity|normalization|...");
    }
    if (is_headed(rest_)) {
      rest_.remove_prefix(kHead.size() - 1);
      read_model_genes();
      if (!take('/')) fail_at("'/' and the layers must follow the genes of the model");
    }
    do {
      read_item();
    } while (take('/'));
    if (!rest_.empty()) fail_at("a layer must end here, or go on with '{', '+' or '/'");
    architecture_.layers = static_cast<std::int64_t>(architecture_.stack.size());
    shorten(architecture_);
    return std::move(architecture_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError("model '" + std::string(name_) + "': " + what);
  }
  [[noreturn]] void fail_at(const std::string& what) const {
    fail("character " + std::to_string(name_.size() - rest_.size() + 1) + ": " + what);
  }
  /// The same at a word that was just taken.
  [[noreturn]] void fail_at(std::string_view word, const std::string& what) {
    rest_ = name_.substr(static_cast<std::size_t>(word.data() - name_.data()));
    fail_at(what);
  }
  [[noreturn]] void fail_unknown(std::string_view word, const std::string& kind,
                                 const Words& known) {
    fail_at(word, "unknown " + kind + " '" + std::string(word) + "'" + lead(word, known));
  }

  [[noreturn]] void fail_unknown_mixer(std::string_view word) {
    Words known;
    for (const auto& mixer : mixer_kinds().keys()) {
      if (is_built(slot("mixer"), mixer)) known.push_back(mixer);
    }
    for (const auto& alias : aliases()) {
      if (is_built(alias)) known.push_back(alias.name);
    }
    auto place = with_plus(name_);
    if (place.empty()) place = place_of_option(word);
    if (place.empty()) place = lead(word, known);
    fail_at(word, "unknown mixer '" + std::string(word) + "'" + place);
  }

  bool take(char character) {
    if (rest_.empty() || rest_.front() != character) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view take_until(std::string_view ends) {
    const auto word = rest_.substr(0, rest_.find_first_of(ends));
    rest_.remove_prefix(word.size());
    return word;
  }

  /// Reads "{gene=value,...}", if it is there; braces may be empty.
  template <class Choose>
  void read_genes(Choose choose) {
    if (!take('{') || take('}')) return;
    std::set<std::string_view> given;
    do {
      const auto gene = take_until("=,{}/+");
      if (!take('=')) fail_at("a gene must be written gene=value");
      if (!given.insert(gene).second) {
        fail_at(gene, "gene '" + std::string(gene) + "' is given twice");
      }
      const auto value = take_until(",{}/+");
      try {
        choose(gene, value);
      } catch (const InputError& error) {
        // What is unknown says itself where it stands.
        const std::string text = error.what();
        if (text.rfind("model '", 0) == 0) throw;
        fail_at(gene, text);
      }
    } while (take(','));
    if (!take('}')) fail_at("',' or '}' must follow a gene");
  }

  void read_model_genes() {
    read_genes([&](std::string_view gene, std::string_view value) {
      for (const auto* slot : model_slots()) {
        if (slot->written == gene)
          return choose(*slot, value, architecture_.semantics, architecture_.genes);
      }
      if (gene == "bias") {
        return choose(slot("bias"), value, architecture_.semantics, architecture_.genes);
      }
      Words known;
      for (const auto* slot : model_slots()) known.push_back(slot->written);
      known.emplace_back("bias");
      fail_unknown(gene, "gene of the model", known);
    });
  }

  void choose_layer_gene(std::string_view gene, std::string_view value, Mechanism& layer) {
    Words known;
    for (const auto* slot : layer_slots()) {
      if (is_head(*slot) || !has_gene(layer.word("mixer"), *slot)) continue;
      if (slot->written == gene) return choose(*slot, value, architecture_.semantics, layer);
      known.push_back(slot->written);
    }
    if (known.empty()) fail_at(gene, "mixer " + layer.word("mixer") + " has no genes");
    fail_unknown(gene, "gene of mixer " + layer.word("mixer"), known);
  }

  void read_item() {
    std::int64_t count = 1;
    if (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') count = read_count();
    if (std::ssize(architecture_.stack) + count > kMostLayers) {
      fail_at("more than " + std::to_string(kMostLayers) + " layers");
    }
    const auto text = rest_;
    for (std::int64_t i = 0; i < count; ++i) {  // each beside another layer of the base
      rest_ = text;
      architecture_.stack.push_back(read_layer());
    }
  }

  std::int64_t read_count() {
    const auto word = take_until("*/{+");
    std::int64_t count = 0;
    const auto result = std::from_chars(word.data(), word.data() + word.size(), count);
    if (result.ec != std::errc() || result.ptr != word.data() + word.size() || count < 1 ||
        count > std::int64_t{1'000'000} || !take('*')) {
      fail_at(word, "'" + std::string(word) + "' must be a number of layers >= 1 and '*'");
    }
    return count;
  }

  Mechanism read_layer() {
    const auto begin = rest_;
    auto layer = take('=') ? layer_of_base(begin) : named_layer(take_until("{+/,}*=(|"));
    if (layer.word("mixer") == "pair" && take('(')) read_halves(layer);
    read_genes([&](std::string_view gene, std::string_view value) {
      choose_layer_gene(gene, value, layer);
    });
    if (take('+')) read_feed_forward(layer);
    return layer;
  }

  Mechanism layer_of_base(std::string_view begin) {
    if (base_ != nullptr) return base_->layer(std::ssize(architecture_.stack));
    fail_at(begin, "'=' is the baseline's layer, must be written out in a full name");
  }

  /// Reads "a|b)" of "pair(a|b)".
  void read_halves(Mechanism& layer) {
    for (const auto& [half, end] : {std::pair("first", '|'), std::pair("second", ')')}) {
      const auto text = take_until("|)");
      if (!take(end)) fail_at("'" + std::string(1, end) + "' must follow: pair(LAYER|LAYER)");
      try {
        choose(slot(half), text, architecture_.semantics, layer);
      } catch (const InputError& error) {
        fail_at(text, error.what());
      }
    }
  }

  Mechanism named_layer(std::string_view word) {
    const auto* alias = alias_named(word);
    if (alias == nullptr && !mixer_kinds().contains(word)) fail_unknown_mixer(word);
    const auto mixer = alias != nullptr ? alias->mixer : std::string(word);
    const auto below = base_ != nullptr ? base_->layer(std::ssize(architecture_.stack))
                                        : default_layer(architecture_, mixer);
    return changed_layer(base_ != nullptr ? *base_ : architecture_, below, word);
  }

  void read_feed_forward(Mechanism& layer) {
    const auto word = take_until("{+/,}*=");
    const auto& ffn = slot("ffn");
    try {
      choose(ffn, word, architecture_.semantics, layer);
    } catch (const InputError& error) {
      fail_at(word, error.what());
    }
    read_genes([&](std::string_view gene, std::string_view value) {
      if (gene != "ratio") fail_unknown(gene, "gene of a feed-forward layer", {"ratio"});
      choose(slot("ratio"), value, architecture_.semantics, layer);
    });
  }

  std::string_view name_, rest_;
  Architecture architecture_;
  const Architecture* base_;
};

/// The bias that most layers of attention and recurrent ones have: what the model's default means.
std::string commonest_bias(const Architecture& architecture) {
  std::map<std::string, std::int64_t> layers;
  for (std::int64_t i = 0; i < architecture.layers; ++i) {
    const auto& layer = architecture.layer(i);
    if (has_gene(layer.word("mixer"), slot("bias"))) ++layers[layer.word("bias")];
  }
  const auto& words = slot("bias").choices;
  return *std::max_element(words.begin(), words.end(), [&](const auto& one, const auto& other) {
    return layers[one] < layers[other];  // of equals the earlier word
  });
}

/// Applies the rules of the canonical form.
/// @param voided  called with the place in the stack, or -1 for the model, and the slot.
template <class Voided>
void apply_rules(Architecture& architecture, Voided voided) {
  architecture.genes.set("bias", commonest_bias(architecture));
  for (std::size_t i = 0; i < architecture.stack.size(); ++i) {
    apply_layer_rules(architecture, architecture.stack[i],
                      [&](const Slot& slot) { voided(static_cast<std::int64_t>(i), slot); });
  }
  if (architecture.genes.word("block") != "sequential") {
    architecture.genes.set("norm_place", ModelGenes{}.word("norm_place"));
    voided(std::int64_t{-1}, slot("norm_place"));
  }
}

/// What the rules of the canonical form leave, whether or not there is such a model.
Architecture reduced(Architecture architecture) {
  require_valid(architecture);
  auto& genes = architecture.genes;
  for (const auto* slot : model_slots()) {
    if (genes.at(*slot) == architecture.section.at(*slot)) genes.set(*slot, slot->default_value);
  }
  apply_rules(architecture, [](std::int64_t, const Slot&) {});
  shorten(architecture);
  if (architecture.semantics == Semantics::published && !has_six_fields(architecture)) {
    throw InputError("semantics = published knows the paper's six genes only, not " +
                     layered_text(architecture, false));
  }
  return architecture;
}

/// What is reduced, fitted(). @throws InputError if there is no such model.
Architecture checked(Architecture architecture) {
  for (std::size_t i = 0; i < architecture.stack.size(); ++i) {
    try {
      require_valid_layer(architecture, architecture.stack[i]);
      require_giver(architecture, static_cast<std::int64_t>(i));
    } catch (const InputError& error) {
      if (architecture.stack.size() == 1) throw;
      throw InputError("layer " + std::to_string(i) + ": " + error.what());
    }
  }
  return fitted(std::move(architecture));
}

/// Whether a name is written layer by layer, not in six fields.
bool is_layered(std::string_view name) {
  return name.find('|') == std::string_view::npos || name.find("pair(") != std::string_view::npos;
}

Architecture read_name(std::string_view name, const Architecture& frame, const Architecture* base) {
  if (is_layered(name)) return NameReader(trimmed(name), frame, base).read();
  auto architecture = frame;
  architecture.genes = {};
  architecture.stack = {parse_mechanism(name, frame.semantics)};
  architecture.genes.set("bias", architecture.stack.front().word("bias"));
  return architecture;
}

/// "slot3.position" -> 3, "position"; "position" -> -1, "position".
std::pair<std::int64_t, std::string> place_of(const std::string& gene) {
  constexpr std::string_view kPrefix = "slot";
  const auto dot = gene.find('.');
  if (gene.rfind(kPrefix, 0) != 0 || dot == std::string::npos) return {-1, gene};
  std::int64_t place = 0;
  const auto* end = gene.data() + dot;
  const auto result = std::from_chars(gene.data() + kPrefix.size(), end, place);
  if (result.ec != std::errc() || result.ptr != end || place < 0) return {-1, gene};
  return {place, gene.substr(dot + 1)};
}

/// A layer with what 0 stands for written out, as spaces may offer it.
Mechanism written_out(const Mechanism& layer, const Architecture& architecture) {
  auto full = layer;
  if (full.integer("heads") == 0) full.set("heads", architecture.heads);
  if (full.integer("kv_heads") == 0) full.set("kv_heads", full.integer("heads"));
  if (full.integer("key_width") == 0)
    full.set("key_width", architecture.width / full.integer("heads"));
  if (full.integer("ratio") == 0) full.set("ratio", architecture.feed_forward);
  return full;
}

}  // namespace

std::string layer_text(const Mechanism& layer, const Architecture& architecture, bool for_people) {
  auto genes = genes_of(layer, architecture);
  std::string word = layer.word("mixer");
  if (word == "pair") word += halves_text(layer, for_people);
  if (for_people) {
    const Alias* found = nullptr;
    for (const auto& alias : aliases()) {
      const bool fits = alias.mixer == layer.word("mixer") &&
                        std::all_of(alias.genes.begin(), alias.genes.end(), [&](const auto& gene) {
                          return std::find(genes.begin(), genes.end(), gene) != genes.end();
                        });
      if (fits && (found == nullptr || alias.genes.size() > found->genes.size())) found = &alias;
    }
    if (found != nullptr) {
      word = found->name;
      for (const auto& gene : found->genes) {
        genes.erase(std::find(genes.begin(), genes.end(), gene));
      }
    }
  }
  auto text = word + braces(genes);
  if (layer.word("ffn") != Mechanism{}.word("ffn") || layer.integer("ratio") != 0) {
    text += "+" + layer.word("ffn");
    if (layer.integer("ratio") != 0)
      text += "{ratio=" + std::to_string(layer.integer("ratio")) + "}";
  }
  return text;
}

std::string to_string(const Architecture& architecture) {
  auto shortened = architecture;
  shorten(shortened);
  return has_six_fields(shortened) ? to_string(shortened.stack.front())
                                   : layered_text(shortened, false);
}

std::string label(const Architecture& architecture) {
  auto shortened = architecture;
  shorten(shortened);
  return has_six_fields(shortened) ? to_string(shortened.stack.front())
                                   : layered_text(shortened, true);
}

Architecture parse_model(std::string_view name, const Architecture& frame,
                         const Architecture* base) {
  auto architecture = read_name(name, frame, base);
  if (!is_layered(name) && !frame.match_parameters) return architecture;
  try {
    architecture.hidden = canonical(architecture).hidden;  // refuses what cannot be
  } catch (const InputError& error) {
    throw InputError("model '" + std::string(name) + "': " + error.what());
  }
  return architecture;
}

Architecture parse_unchecked(std::string_view name, const Architecture& frame) {
  return read_name(name, frame, nullptr);
}

std::string full_name(std::string name) {
  return is_layered(name) && !is_headed(name) ? std::string(kHead) + "}/" + name : name;
}

Architecture canonical(Architecture architecture) {
  return checked(reduced(std::move(architecture)));
}

Architecture vanilla_architecture(const Architecture& frame) {
  const auto paper = vanilla_mechanism(frame.semantics);
  auto vanilla = frame;
  for (auto& layer : vanilla.stack) {
    for (const auto* slot : paper_slots()) copy(*slot, paper, layer);
    layer.set("bias", frame.genes.word("bias"));
  }
  return fitted(std::move(vanilla));
}

Architecture architecture_of(const Genotype& genotype, const Architecture& frame) {
  auto architecture = frame;
  std::size_t slots_needed = 0;
  for (const auto& [gene, value] : genotype.values()) {
    slots_needed = std::max(slots_needed, static_cast<std::size_t>(place_of(gene).first + 1));
  }
  for (auto i = architecture.stack.size(); i < slots_needed; ++i) {
    architecture.stack.push_back(frame.stack[i % frame.stack.size()]);
  }
  for (const auto& [gene, value] : genotype.values()) {
    const auto [place, name] = place_of(gene);
    const auto& slot = nas::slot(name);
    if (slot.model) {
      assign(slot, value, architecture.semantics, architecture.genes);
      continue;
    }
    for (std::size_t i = 0; i < architecture.stack.size(); ++i) {
      if (place >= 0 && i != static_cast<std::size_t>(place)) continue;
      assign(slot, value, architecture.semantics, architecture.stack[i]);
    }
  }
  return architecture;
}

Genotype genotype_of(const Architecture& architecture) {
  auto shortened = architecture;
  shorten(shortened);
  if (has_six_fields(shortened)) return genotype_of(shortened.stack.front());
  std::vector<std::pair<std::string, GeneValue>> values;
  for (const auto* slot : model_slots()) {
    const auto chosen = value_of(*slot, shortened.genes);
    if (chosen != value_of(*slot, ModelGenes{})) values.emplace_back(slot->name, chosen);
  }
  const auto& stack = shortened.stack;
  const auto vanilla = vanilla_mechanism(architecture.semantics);
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const auto prefix = stack.size() == 1 ? "" : "slot" + std::to_string(i) + ".";
    for (const auto* slot : layer_slots()) {
      const auto value = value_of(*slot, stack[i]);
      const bool told =
          slot->paper ? has_gene(stack[i].word("mixer"), *slot) : value != value_of(*slot, vanilla);
      if (told) values.emplace_back(prefix + slot->name, value);
    }
  }
  return Genotype(std::move(values));
}

Candidate candidate_of(const Architecture& architecture) {
  auto function = reduced(architecture);
  Candidate candidate{.name = to_string(function), .genotype = genotype_of(function)};
  try {
    function = checked(function);
  } catch (const InputError& error) {
    candidate.refusal = error.what();
  }
  candidate.architecture = std::make_shared<const Architecture>(std::move(function));
  return candidate;
}

std::optional<Architecture> largest_candidate(
    const SearchSpace& space, const Architecture& frame,
    const std::function<double(const Architecture&)>& bytes_of,
    const std::function<bool(const Architecture&)>& counts) {
  std::vector<std::pair<std::string, GeneValue>> values;
  for (const auto& gene : space.genes()) {
    values.emplace_back(gene.name,
                        gene.categorical() ? GeneValue(gene.options.front()) : GeneValue(gene.min));
  }
  std::optional<Architecture> largest;
  double most = 0.0;
  const auto grows = [&] {
    try {
      auto candidate = canonical(architecture_of(Genotype(values), frame));
      const double bytes = bytes_of(candidate);
      if (bytes <= most || !counts(candidate)) return false;
      most = bytes;
      largest = std::move(candidate);
      return true;
    } catch (const InputError&) {
      return false;  // there is no such model
    }
  };
  grows();
  for (bool grew = true; grew;) {
    grew = false;
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (const auto& option : space.genes()[i].options) {
        const auto before = std::exchange(values[i].second, GeneValue(option));
        const bool larger = grows();
        if (!larger) values[i].second = before;
        grew |= larger;
      }
    }
  }
  return largest;
}

std::vector<std::string> active(const std::vector<std::string>& genes, Architecture architecture) {
  std::set<std::pair<std::int64_t, std::string>> voided;
  apply_rules(architecture,
              [&](std::int64_t place, const Slot& slot) { voided.emplace(place, slot.name); });
  const auto period = std::ssize(architecture.stack);
  std::vector<std::string> names;
  for (const auto& gene : genes) {
    const auto [place, name] = place_of(gene);
    bool acts = false;
    if (nas::slot(name).model || place >= 0) {
      acts = !voided.contains({place < 0 ? place : place % period, name});
    } else {
      for (std::int64_t i = 0; i < period && !acts; ++i) acts = !voided.contains({i, name});
    }
    if (acts) names.push_back(gene);
  }
  return names;
}

std::vector<std::string> active(const Genotype& genotype, const Architecture& frame) {
  std::vector<std::string> genes;
  for (const auto& [gene, value] : genotype.values()) genes.push_back(gene);
  return active(genes, architecture_of(genotype, frame));
}

void require_built(const Architecture& architecture) {
  const auto require = [](const Slot& slot, const std::string& option) {
    if (!is_built(slot, option)) {
      throw InputError(slot.written + " = " + option + ": no module computes it");
    }
  };
  for (const auto* slot : model_slots()) require(*slot, text(*slot, architecture.genes));
  std::vector<Mechanism> layers;
  for (const auto& layer : architecture.stack) {
    require(slot("mixer"), layer.word("mixer"));
    for (auto& part : parts_of(layer)) layers.push_back(std::move(part));
  }
  for (const auto& layer : layers) {
    for (const auto* slot : layer_slots()) {
      if (!slot->is_component() && !slot->is_word()) continue;
      if (has_gene(layer.word("mixer"), *slot)) require(*slot, text(*slot, layer));
    }
    if (layer.integer("kv_rank") > 0 && layer.word("position") == "path") {
      throw InputError("kv_rank beside position = path: no module computes it, since keys change");
    }
  }
}

std::optional<GeneValue> offered(const Gene& gene, const Architecture& architecture) {
  const auto [place, name] = place_of(gene.name);
  const auto& slot = nas::slot(name);
  auto named = gene;
  named.name = name;
  if (slot.model) {
    auto genes = architecture.genes;
    auto value = offered(named, genes, architecture.semantics);
    // What the section says may be said in two ways.
    const auto &said = genes.at(slot), &own = architecture.section.at(slot);
    if (value || (said != own && said != slot.default_value)) return value;
    genes.set(slot, SlotValue(said == own ? slot.default_value : own));
    return offered(named, genes, architecture.semantics);
  }
  const auto& layer = architecture.layer(std::max<std::int64_t>(place, 0));
  if (auto value = offered(named, layer, architecture.semantics)) return value;
  if (const auto value = offered(named, written_out(layer, architecture), architecture.semantics)) {
    return value;
  }
  // Without effect, one is as good as another. The paper's genes are asked for as they are.
  if (slot.paper || is_active(slot, layer)) return std::nullopt;
  if (gene.categorical()) return gene.options.front();
  return gene.min;
}

}  // namespace nas
