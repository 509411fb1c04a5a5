#include "genotype/shorthand.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/plugin.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/layer_alias.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/mixer_kind.hpp"
#include "genotype/slots.hpp"

namespace nas {

namespace {

using Words = std::vector<std::string>;

bool is_file(std::string_view word) { return word.ends_with(".so"); }

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const auto end = text.find('+');
    words.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return words;
    text.remove_prefix(end + 1);
  }
}

bool holds(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

const LayerAlias* alias_named(std::string_view word) {
  static const auto kAliases = layer_aliases();
  const auto found = std::find_if(kAliases.begin(), kAliases.end(),
                                  [&](const auto& alias) { return alias.name == word; });
  return found == kAliases.end() ? nullptr : &*found;
}

/// What names and labels of a choice can be built.
Words options_by_name(const Slot& slot) {
  auto words = options(slot);
  for (const auto& word : slot.words) {
    if (is_built(slot, word) && !holds(words, word)) words.push_back(word);
  }
  return words;
}

/// A gene with values 0 and 1, which its name alone switches on.
bool is_switch(const Slot& slot) {
  return slot.is_integer() && slot.lower == 0.0 && slot.upper == 2.0;
}

/// What a word can mean: an option of a gene, or an alias of a layer.
struct Meaning {
  const Slot* slot = nullptr;  ///< nullptr: an alias
  std::string value{};         ///< empty: a gene that needs a number

  [[nodiscard]] std::string text() const {
    if (slot == nullptr) return "mixer=" + value;
    return slot->name + "=" + (value.empty() ? "NUMBER" : value);
  }
};

std::vector<Meaning> meanings(std::string_view word) {
  // A layer's word is that layer's.
  if (const auto* alias = alias_named(word); alias != nullptr && alias->built) {
    return {{nullptr, std::string(word)}};
  }
  std::vector<Meaning> found;
  for (const auto& slot : slots()) {
    if (slot.is_component() || slot.is_word()) {
      const bool is_digit = word == "0" || word == "1";
      if (!is_digit && holds(options_by_name(slot), word)) {
        found.push_back({&slot, std::string(word)});
      }
    } else if (slot.name == word || slot.written == word) {
      // A size is meant by the option that has it: window, of pattern window.
      if (holds(slot.owner_options, word)) continue;
      found.push_back({&slot, is_switch(slot) ? "1" : ""});
    }
  }
  return found;
}

/// All words that mean something in one mechanism or another, for what is mistyped.
Words known_words() {
  std::set<std::string> words;
  for (const auto& slot : slots()) {
    for (auto& word : options_by_name(slot)) {
      if (meanings(word).size() == 1) words.insert(std::move(word));
    }
    if (is_switch(slot)) words.insert(slot.name);
  }
  for (const auto& alias : layer_aliases()) {
    if (alias.built) words.insert(alias.name);
  }
  return {words.begin(), words.end()};
}

void copy(const Slot& slot, const Mechanism& from, Mechanism& to) {
  std::visit(
      [&](auto member) {
        if constexpr (!std::is_same_v<decltype(member), std::string ModelGenes::*>) {
          to.*member = from.*member;
        }
      },
      slot.member);
}

/// A layer of another mixer that says what the layer says of genes and options that both have.
Mechanism with_mixer(const Architecture& model, const Mechanism& layer, const std::string& mixer) {
  if (layer.mixer == mixer) return layer;
  auto changed = default_layer(model, mixer);
  const auto standard = default_layer(model, layer.mixer);
  for (const auto* slot : layer_slots()) {
    const auto value = text(*slot, layer);
    if (slot->name == "mixer" || value == text(*slot, standard)) continue;
    const bool chosen = slot->is_component() || slot->is_word();
    if (chosen ? has_option(mixer, *slot, value) : has_gene(mixer, *slot)) {
      copy(*slot, layer, changed);
    }
  }
  return changed;
}

/// Reads shorthand from left to right, and then changes mixers before their genes.
class ShorthandReader {
 public:
  ShorthandReader(std::string_view text, Architecture base)
      : text_(text), model_(std::move(base)) {}

  Architecture read() {
    std::set<std::string> given;
    for (const auto word : split(text_)) {
      auto meaning = meaning_of(word);
      const auto gene = meaning.slot == nullptr ? "mixer" : meaning.slot->name;
      if (!given.insert(gene).second) fail(word, "gene " + gene + " is given twice");
      changes_.emplace_back(word, std::move(meaning));
    }
    const auto base = model_;
    auto whole = changed(base, [](const Change&) { return true; });
    require_effects(base, whole);
    return whole;
  }

 private:
  using Change = std::pair<std::string_view, Meaning>;

  static bool is_mixer(const Meaning& meaning) {
    return meaning.slot == nullptr || meaning.slot->name == "mixer";
  }

  /// The base with those changes that are chosen, mixers first.
  template <class Chosen>
  Architecture changed(const Architecture& base, const Chosen& chosen) {
    model_ = base;
    for (const bool mixers : {true, false}) {
      for (const auto& change : changes_) {
        if (is_mixer(change.second) == mixers && chosen(change)) apply(change.first, change.second);
      }
    }
    return model_;
  }

  /// Refuses a part that the canonical form drops beside the others.
  void require_effects(const Architecture& base, const Architecture& whole) {
    const auto kept = canonical(whole);
    for (const auto& change : changes_) {
      const auto* slot = change.second.slot;
      if (changes_.size() == 1 || is_mixer(change.second) || slot->model) continue;
      bool stands = false;
      for (std::int64_t i = 0; i < std::ssize(whole.stack); ++i) {
        const auto& layer = kept.layer(i);  // of a stack that may be shorter
        stands |= has_gene(layer.mixer, *slot) &&
                  nas::text(*slot, whole.layer(i)) == nas::text(*slot, layer);
      }
      if (stands) continue;
      const auto others =
          changed(base, [&](const Change& one) { return one.first.data() != change.first.data(); });
      if (to_string(canonical(others)) == to_string(kept)) {
        fail(change.first, "has no effect beside the other parts, must be left out");
      }
    }
  }

  [[noreturn]] void fail(std::string_view word, const std::string& what) const {
    throw InputError("model '" + std::string(text_) + "': character " +
                     std::to_string(word.data() - text_.data() + 1) + ": " + what);
  }

  [[nodiscard]] Meaning meaning_of(std::string_view word) const {
    if (word.empty()) fail(word, "a part is empty, must be a name between each two '+'");
    if (is_file(word)) return meaning_of_file(word);
    if (word.find('=') != std::string_view::npos) return meaning_of_setting(word);
    const auto found = meanings(word);
    const std::string name(word);
    if (found.empty()) {
      const auto known = known_words();
      fail(word, "nothing is called '" + name + "', known: " + join(known) +
                     ", gene=value, a name of six fields, one layer by layer, and FILE.so" +
                     did_you_mean(word, known));
    }
    Words texts;
    for (const auto& meaning : found) texts.push_back(meaning.text());
    if (found.size() > 1) {
      fail(word, "'" + name + "' may mean several things, write one of " + join(texts));
    }
    if (found.front().value.empty()) {
      fail(word, "gene " + found.front().slot->name + " needs a number: " + texts.front());
    }
    return found.front();
  }

  [[nodiscard]] Meaning meaning_of_setting(std::string_view word) const {
    const auto equals = word.find('=');
    const auto gene = word.substr(0, equals);
    const std::string value(word.substr(equals + 1));
    const Slot* found = nullptr;
    for (const auto& slot : slots()) {
      if (slot.name == gene) found = &slot;
      if (slot.written == gene && found == nullptr) found = &slot;
    }
    if (found == nullptr) {
      Words known;
      for (const auto& slot : slots()) known.push_back(slot.name);
      fail(word, "unknown gene '" + std::string(gene) + "', known: " + join(known) +
                     did_you_mean(gene, known));
    }
    if (found->name == "mixer" && !mixer_kinds().contains(value)) {
      const auto* alias = alias_named(value);
      if (alias != nullptr && alias->built) return {nullptr, value};
    }
    return {found, value};
  }

  /// The option that the plug-ins of a loaded file register.
  [[nodiscard]] Meaning meaning_of_file(std::string_view word) const {
    const auto name = std::filesystem::path(word).filename();
    const auto files = loaded_plugins();
    const auto file = std::find_if(files.rbegin(), files.rend(), [&](const PluginFile& loaded) {
      return std::filesystem::path(loaded.file).filename() == name;
    });
    if (file == files.rend()) {
      fail(word, "'" + std::string(word) + "' is not loaded, must be among `plugins`");
    }
    std::vector<Meaning> found;
    for (const auto& registered : file->registers) {
      const auto blank = registered.find(' ');
      for (const auto& slot : slots()) {
        if (!slot.is_component() || registered.substr(0, blank) != slot.name) continue;
        auto key = registered.substr(blank + 1);
        if (components().contains(slot.name, key)) found.push_back({&slot, std::move(key)});
      }
    }
    if (found.size() == 1) return found.front();
    fail(word, "'" + std::string(word) + "' must register one option of a gene, registers " +
                   join(file->registers));
  }

  void apply(std::string_view word, const Meaning& meaning) {
    try {
      if (meaning.slot == nullptr) return apply_alias(meaning.value);
      const auto& slot = *meaning.slot;
      if (slot.model) return choose(slot, meaning.value, model_.genes);
      if (slot.name == "mixer") {
        (void)mixer_kinds().at(meaning.value);
        for (auto& layer : model_.stack) layer = with_mixer(model_, layer, meaning.value);
        return;
      }
      apply_to_layers(slot, meaning.value);
    } catch (const InputError& error) {
      fail(word, error.what());
    }
  }

  void apply_alias(const std::string& name) {
    const auto found = std::find_if(aliases().begin(), aliases().end(),
                                    [&](const Alias& alias) { return alias.name == name; });
    for (auto& layer : model_.stack) {
      layer = with_mixer(model_, layer, found->mixer);
      for (const auto& [gene, value] : found->genes) {
        for (const auto* slot : layer_slots()) {
          if (slot->written == gene) choose(*slot, value, model_.semantics, layer);
        }
      }
    }
  }

  void apply_to_layers(const Slot& slot, const std::string& value) {
    const bool chosen = slot.is_component() || slot.is_word();
    bool changed = false;
    for (auto& layer : model_.stack) {
      auto other = layer;
      choose(slot, value, model_.semantics, other);
      const bool has =
          chosen ? has_option(layer.mixer, slot, text(slot, other)) : has_gene(layer.mixer, slot);
      if (has) layer = std::move(other);
      changed |= has;
    }
    if (changed) return;
    Words mixers;
    for (const auto& mixer : mixer_kinds().keys()) {
      if (chosen ? has_option(mixer, slot, value) : has_gene(mixer, slot)) mixers.push_back(mixer);
    }
    throw InputError(slot.name + " = " + value + ", must be one of a layer's mixer, which is " +
                     model_.stack.front().mixer + "; it belongs to mixer " + join(mixers));
  }

  std::string_view text_;
  Architecture model_;
  std::vector<Change> changes_;
};

/// The genes in which all layers of a model, or its own genes, say something else than the base.
Words parts_of(const Architecture& model, const Architecture& base) {
  Words parts;
  const auto& layer = model.stack.front();
  for (const auto* slot : model_slots()) {
    const auto value = text(*slot, model.genes);
    if (value != text(*slot, base.genes)) parts.push_back(shorthand_part(*slot, value));
  }
  for (const auto* slot : layer_slots()) {
    const auto value = text(*slot, layer);
    if (value != text(*slot, base.stack.front())) parts.push_back(shorthand_part(*slot, value));
  }
  return parts;
}

/// Whether a text is read as a model of that name.
bool means(const Words& parts, const std::string& name, const Architecture& base) {
  try {
    return to_string(canonical(named_model(join(parts, "+"), base, base))) == name;
  } catch (const InputError&) {
    return false;
  }
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

bool is_shorthand(std::string_view text, const Architecture& frame) {
  const auto words = split(trimmed(text));
  if (words.front().empty()) return false;
  for (const auto word : words) {
    if (!is_file(word) && word.find_first_of("|{}*/(, ") != std::string_view::npos) return false;
  }
  const bool is_layer = mixer_kinds().contains(words.front()) || alias_named(words.front());
  const bool is_name =
      words.size() == 1 || (words.size() == 2 && holds(slot("ffn").words, words.back()));
  return frame.layers != 1 || !is_layer || !is_name;
}

Architecture named_model(std::string_view text, const Architecture& frame,
                         const Architecture& base) {
  if (!is_shorthand(text, frame)) return parse_model(text, frame);
  return ShorthandReader(trimmed(text), base).read();
}

Architecture named_model(std::string_view text, const Architecture& frame) {
  if (!is_shorthand(text, frame)) return parse_model(text, frame);
  return named_model(text, frame, vanilla_architecture(frame));
}

std::string shorthand_part(const Slot& slot, const std::string& value) {
  for (const auto& word : {value, slot.name}) {
    const auto found = meanings(word);
    if (found.size() == 1 && found[0].slot != nullptr && found[0].slot->name == slot.name &&
        found[0].value == value) {
      return word;
    }
  }
  return (slot.written.empty() ? slot.name : slot.written) + "=" + value;
}

std::optional<std::string> shorthand_of(const Architecture& model, const Architecture& base) {
  const auto name = to_string(model);
  if (name == to_string(base)) return std::nullopt;
  for (const auto& alias : layer_aliases()) {
    if (alias.built && means({alias.name}, name, base)) return alias.name;
  }
  auto parts = parts_of(model, base);
  // What is void beside other parts is refused there: it is left out where that means the same.
  for (std::size_t i = parts.size(); parts.size() > 1 && i-- > 0;) {
    auto fewer = parts;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (means(fewer, name, base)) parts = std::move(fewer);
  }
  if (!means(parts, name, base)) return std::nullopt;
  return join(parts, "+");
}

void require_layers(std::string_view name, const Architecture& model, std::int64_t layers) {
  if (model.layers == layers) return;
  const auto wanted = std::to_string(layers);
  const std::string given(name);
  const bool one = model.layers == 1;
  const bool bare = one && name.find_first_of("/*") == std::string_view::npos;
  throw InputError("'" + given + "' has " + std::to_string(model.layers) +
                   (one ? " layer" : " layers") + ", must have model.layers = " + wanted +
                   (bare ? "; did you mean " + wanted + "*" + given + "?" : ""));
}

}  // namespace nas
