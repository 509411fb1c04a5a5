#include "genotype/shorthand.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/plugin.hpp"
#include "core/words.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/field_words.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/slots.hpp"

namespace nas {

namespace {

using Words = std::vector<std::string>;

bool is_file(std::string_view word) { return word.ends_with(".so"); }

/// What names and labels of a choice can be built.
Words options_by_name(const Slot& slot) {
  auto words = options(slot);
  for (const auto& word : slot.choices) {
    if (is_built(slot, word) && !holds(words, word)) words.push_back(word);
  }
  return words;
}

/// A gene with values 0 and 1, which its name alone switches on.
bool is_switch(const Slot& slot) { return slot.is_integer() && slot.min == 0.0 && slot.max == 1.0; }

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
  if (const auto* alias = alias_named(word); alias != nullptr && is_built(*alias)) {
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
  for (const auto& alias : aliases()) {
    if (is_built(alias)) words.insert(alias.name);
  }
  return {words.begin(), words.end()};
}

/// Of "gdn@1,3" what is changed, "gdn", and "@1,3", in which layers; empty: in all.
std::pair<std::string_view, std::string_view> part_of(std::string_view text) {
  const auto at = std::min(text.rfind('@'), text.size());
  const bool places = text.find_first_not_of("0123456789,", at + 1) == std::string_view::npos;
  return places ? std::pair(text.substr(0, at), text.substr(at))
                : std::pair(text, text.substr(text.size()));
}

/// Reads shorthand from left to right, and then changes mixers before their genes.
class ShorthandReader {
 public:
  ShorthandReader(std::string_view text, const Architecture& base) : text_(text), base_(base) {
    base_.stack.clear();
    for (std::int64_t i = 0; i < base.layers; ++i) base_.stack.push_back(base.layer(i));
  }

  Architecture read() {
    std::set<std::pair<std::string, std::size_t>> given;
    for (const auto text : split(text_, '+')) {
      const auto [word, places] = part_of(text);
      Change change{word, meaning_of(word), layers_of(places)};
      const auto gene = change.slot() == nullptr ? "mixer" : change.slot()->name;
      for (const auto layer : change.layers) {
        if (!given.emplace(gene, layer).second) fail(text, "gene " + gene + " is given twice");
      }
      changes_.push_back(std::move(change));
    }
    auto whole = changed([](const Change&) { return true; });
    require_effects(whole);
    return whole;
  }

 private:
  struct Change {
    std::string_view word;
    Meaning meaning;
    std::vector<std::size_t> layers;  ///< places in the stack

    [[nodiscard]] const Slot* slot() const { return meaning.slot; }
    [[nodiscard]] bool is_mixer() const { return slot() == nullptr || slot()->name == "mixer"; }
  };

  [[nodiscard]] std::vector<std::size_t> layers_of(std::string_view places) const {
    const auto size = base_.stack.size();
    std::vector<std::size_t> layers(places.empty() ? size : 0);
    std::iota(layers.begin(), layers.end(), std::size_t{0});
    if (places.empty()) return layers;
    for (const auto number : split(places.substr(1), ',')) {
      auto layer = size;
      (void)std::from_chars(number.data(), number.data() + number.size(), layer);
      if (layer >= size) {
        fail(number, "layer '" + std::string(number) + "', must be a number from 0 to " +
                         std::to_string(size - 1));
      }
      layers.push_back(layer);
    }
    return layers;
  }

  /// The base with those changes that are chosen, mixers first.
  template <class Chosen>
  Architecture changed(const Chosen& chosen) {
    model_ = base_;
    for (const bool mixers : {true, false}) {
      for (const auto& change : changes_) {
        if (change.is_mixer() == mixers && chosen(change)) apply(change);
      }
    }
    return model_;
  }

  /// Refuses a part that the canonical form drops beside the others.
  void require_effects(const Architecture& whole) {
    const auto kept = canonical(whole);
    for (const auto& change : changes_) {
      const auto* slot = change.slot();
      if (changes_.size() == 1 || change.is_mixer() || slot->model) continue;
      const bool stands =
          std::any_of(change.layers.begin(), change.layers.end(), [&](std::size_t i) {
            const auto& layer = kept.layer(static_cast<std::int64_t>(i));  // of a shorter stack
            return has_gene(layer.word("mixer"), *slot) &&
                   nas::text(*slot, whole.stack[i]) == nas::text(*slot, layer);
          });
      if (stands) continue;
      const auto others =
          changed([&](const Change& one) { return one.word.data() != change.word.data(); });
      if (to_string(canonical(others)) == to_string(kept)) {
        fail(change.word, "has no effect beside the other parts, must be left out");
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
      auto known = known_words();
      known.insert(known.end(),
                   {"gene=value", "FILE.so", "names of six fields, or layer by layer"});
      fail(word, "nothing is called '" + name + "'" + lead(word, known));
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
      fail(word, "unknown gene '" + std::string(gene) + "'" + lead(gene, known));
    }
    if (found->name == "mixer" && !mixer_kinds().contains(value)) {
      const auto* alias = alias_named(value);
      if (alias != nullptr && is_built(*alias)) return {nullptr, value};
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

  void apply(const Change& change) {
    const auto& value = change.meaning.value;
    const auto* slot = change.slot();
    try {
      if (slot != nullptr && slot->model) {
        if (change.layers.size() < base_.stack.size()) {
          throw InputError(slot->name + " is of the whole model, must be without '@'");
        }
        return choose(*slot, value, model_.semantics, model_.genes);
      }
      if (!change.is_mixer()) return apply_to_layers(*slot, value, change.layers);
      if (slot != nullptr) (void)mixer_kinds().at(value);
      for (const auto i : change.layers) {
        model_.stack[i] = changed_layer(base_, model_.stack[i], value);
      }
    } catch (const InputError& error) {
      fail(change.word, error.what());
    }
  }

  void apply_to_layers(const Slot& slot, const std::string& value,
                       const std::vector<std::size_t>& layers) {
    std::vector<std::size_t> without;
    for (const auto i : layers) {
      auto other = model_.stack[i];
      choose(slot, value, model_.semantics, other);
      if (has_option(other.word("mixer"), slot, text(slot, other))) {
        model_.stack[i] = std::move(other);
      } else {
        without.push_back(i);
      }
    }
    const bool all = layers.size() == base_.stack.size();
    if (without.empty() || (all && without.size() < layers.size())) return;
    Words mixers;
    for (const auto& mixer : mixer_kinds().keys()) {
      if (has_option(mixer, slot, value)) mixers.push_back(mixer);
    }
    throw InputError(slot.name + " = " + value + ", must be one of a layer's mixer, which is " +
                     model_.stack[without.front()].word("mixer") + "; it belongs to mixer " +
                     join(mixers));
  }

  std::string_view text_;
  Architecture model_, base_;
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

}  // namespace

bool is_shorthand(std::string_view text, const Architecture& frame) {
  const auto words = split(text, '+');
  if (words.front().empty()) return false;
  for (const auto part : words) {
    const auto word = part_of(part).first;
    const auto* gene = find_slot(word.substr(0, word.find('=')));
    const auto* other = gene != nullptr && is_text(*gene) ? "|*/( " : "|{}*/(, ";
    if (!is_file(word) && word.find_first_of(other) != std::string_view::npos) return false;
  }
  const bool is_layer = mixer_kinds().contains(words.front()) || alias_named(words.front());
  const bool is_name =
      words.size() == 1 || (words.size() == 2 && holds(slot("ffn").choices, words.back()));
  return frame.layers != 1 || !is_layer || !is_name;
}

Architecture named_model(std::string_view text, const Architecture& frame,
                         const Architecture& base) {
  if (!is_shorthand(text, frame)) return parse_model(text, frame, &base);
  return ShorthandReader(trimmed(text), base).read();
}

Architecture named_model(std::string_view text, const Architecture& frame) {
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
  const auto shown =
      is_text(slot) ? layer_text(parse_unchecked(value, {}).stack.front(), {}, true) : value;
  return slot.written + "=" + shown;
}

std::optional<std::string> shorthand_of(const Architecture& model, const Architecture& base) {
  const auto name = to_string(model);
  if (name == to_string(base)) return std::nullopt;
  for (const auto& alias : aliases()) {
    if (is_built(alias) && means({alias.name}, name, base)) return alias.name;
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

std::vector<std::string> unsaid_differences(const Architecture& model, const Architecture& base) {
  const auto name = to_string(model);
  const bool six = full_name(name) == name && !name.starts_with("model{");
  const bool says_bias = six || model.genes.word("bias") != ModelGenes{}.word("bias");
  Words found;
  for (const auto* slot : model_slots()) {
    const auto own = text(*slot, model.genes);
    const bool said = own != text(*slot, ModelGenes{});
    if (!said && own != text(*slot, base.genes)) found.push_back(slot->written);
  }
  std::vector<Mechanism> below;
  for (std::int64_t i = 0; i < model.layers; ++i) {
    below.push_back(changed_layer(base, base.layer(i), model.layer(i).word("mixer")));
  }
  for (const auto* slot : layer_slots()) {
    const bool in_six = slot->name == "bias" ? says_bias : six && slot->paper;
    for (std::size_t i = 0; !in_six && i < below.size(); ++i) {
      const auto& own = model.layer(static_cast<std::int64_t>(i));
      const auto value = text(*slot, own);
      const bool said = value != text(*slot, default_layer(model, own.word("mixer")));
      if (said || value == text(*slot, below[i]) || !is_active(*slot, own)) continue;
      found.push_back(slot->written);
      break;
    }
  }
  return found;
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
