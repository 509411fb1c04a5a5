#include "table/meta.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "store/record_json.hpp"
#include "table/format.hpp"

namespace nas {

namespace {

using nlohmann::json;

/// What a value may be, and the words for it.
struct Kind {
  const char* words;
  bool (*holds)(const json&);
};

constexpr Kind kText{"a text", [](const json& value) { return value.is_string(); }};
constexpr Kind kObject{"an object", [](const json& value) { return value.is_object(); }};
constexpr Kind kList{"a list of objects", [](const json& value) {
                       return value.is_array() &&
                              std::all_of(value.begin(), value.end(),
                                          [](const json& entry) { return entry.is_object(); });
                     }};
constexpr Kind kTexts{"a list of at least one text", [](const json& value) {
                        return value.is_array() && !value.empty() &&
                               std::all_of(value.begin(), value.end(),
                                           [](const json& entry) { return entry.is_string(); });
                      }};
constexpr Kind kNumber{"a number, at least 0", [](const json& value) {
                         return value.is_number() && value.get<double>() >= 0.0;
                       }};
constexpr Kind kSize{"an integer in [1, 2^30]", [](const json& value) {
                       return value.is_number_integer() && value.get<double>() >= 1.0 &&
                              value.get<double>() <= 1 << 30;
                     }};
constexpr Kind kMeasurement{"an object with a number \"value\"", [](const json& value) {
                              return table_format::is_measured_objective(value) &&
                                     value.at("value").is_number();
                            }};

void require(const std::string& place, const json& value, const Kind& kind) {
  if (kind.holds(value)) return;
  throw InputError(place + " = " + shown(value) + ", must be " + kind.words);
}

/// @param place  what stands before the key in messages.
const json& required(const json& parent, const std::string& place, const char* key,
                     const Kind& kind) {
  const auto found = parent.find(key);
  if (found == parent.end()) throw InputError(place + key + " is missing");
  require(place + key, *found, kind);
  return *found;
}

void optional(const json& parent, const char* key, const Kind& kind,
              const std::string& place = "meta: ") {
  if (parent.contains(key)) (void)required(parent, place, key, kind);
}

/// Of a table whose candidates are choices: its genes and objectives.
void check_choices(const json& facts) {
  for (const auto& gene : required(facts, "meta: ", "space", kList)) {
    (void)required(gene, "meta: space: ", "name", kText);
    (void)required(gene, "meta: space: ", "options", kTexts);
  }
  for (const auto& objective : required(facts, "meta: ", "objectives", kList)) {
    for (const auto* key : {"name", "unit"})
      (void)required(objective, "meta: objectives: ", key, kText);
    (void)required(objective, "meta: objectives: ", "most", kNumber);
  }
}

/// What is known of every cell, by the keys that readers interpret.
void check_facts(const json& facts) {
  if (facts.contains("space")) return check_choices(facts);
  (void)required(facts, "meta: ", "semantics", kText);
  const auto model = required(facts, "meta: ", "model", kObject);
  for (const auto* key : {"layers", "width", "heads", "context", "vocabulary", "feed_forward"}) {
    (void)required(model, "meta: model.", key, kSize);
  }
  (void)required(model, "meta: model.", "dropout", kNumber);
  for (const auto* key : {"corpus", "corpus_description", "corpus_hash", "device"}) {
    optional(facts, key, kText);
  }
  for (const auto* key :
       {"bytes_per_token", "test_bytes_per_token", "unigram_perplexity", "vocabulary", "context",
        "train_windows", "valid_windows", "valid_targets", "valid_unknown_targets",
        "vanilla_parameters", "vanilla_flops", "epochs"}) {
    optional(facts, key, kNumber);
  }
  optional(facts, "unknown_shares", kObject);
  const auto shares = facts.value("unknown_shares", json::object());
  for (const auto& [split, share] : shares.items()) {
    require("meta: unknown_shares." + split, share, kNumber);
  }
  if (!facts.contains("chance")) return;
  const auto chance = required(facts, "meta: ", "chance", kObject);
  (void)required(chance, "meta: chance.", "by", kText);
  (void)required(chance, "meta: chance.", "nll", kNumber);
  (void)required(chance, "meta: chance.", "accuracy", kNumber);
}

}  // namespace

TableMeta read_table_meta(const json& given) {
  const std::string place = "meta: ";
  TableMeta meta;
  meta.identity = required(given, place, "identity", kObject);
  meta.facts = required(given, place, "facts", kObject);
  meta.facts.update(meta.identity);
  check_facts(meta.facts);
  meta.facts["name"] = required(given, place, "name", kText);
  meta.facts["sources"] = required(given, place, "sources", kList);
  return meta;
}

json read_measured(const std::string& mechanism, const std::string& text) {
  const auto place = mechanism + ": measured";
  auto measured = parse_at(place, text);
  require(place, measured, kObject);
  for (const auto& [name, value] : measured.items())
    require(place + "." + name, value, kMeasurement);
  return measured;
}

void check_publication(const json& given) {
  const std::string place = "publication: ";
  for (const auto* key : {"licence", "corpus_licence", "version"}) {
    optional(given, key, kText, place);
  }
  if (given.contains("gates")) {
    const auto gates = required(given, place, "gates", kObject);
    (void)required(gates, place + "gates.", "verdict", kText);
    for (const auto& gate : required(gates, place + "gates.", "gates", kList)) {
      for (const auto* key : {"name", "words"}) {
        (void)required(gate, place + "gates.gates: ", key, kText);
      }
    }
  }
  optional(given, "changelog", kList, place);
  if (!given.contains("changelog")) return;
  for (const auto& change : given.at("changelog")) {
    for (const auto* key : {"version", "date", "text"}) {
      (void)required(change, place + "changelog: ", key, kText);
    }
  }
}

json parse_at(const std::string& place, const std::string& text) {
  try {
    return parse_record(text);
  } catch (const InputError& error) {
    throw InputError(place + ": " + error.what());
  }
}

std::string shown(const json& value) {
  constexpr std::size_t kMostShown = 60;
  auto text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kMostShown) text = text.substr(0, kMostShown) + "...";
  return text;
}

}  // namespace nas
