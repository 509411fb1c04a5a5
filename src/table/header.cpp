#include "table/header.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "core/error.hpp"
#include "store/evaluation.hpp"
#include "store/record_json.hpp"
#include "table/format.hpp"

namespace nas {

namespace {

using nlohmann::json;

/// More cells than any table has: looking at all of them takes seconds.
constexpr std::size_t kMostCells = 10'000'000;

/// A value of a header for a message, the beginning of a long one.
std::string shown(const json& value) {
  constexpr std::size_t kMostShown = 60;
  auto text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kMostShown) text = text.substr(0, kMostShown) + "...";
  return text;
}

[[noreturn]] void refuse(const std::string& key, const json& value, const std::string& allowed) {
  throw InputError("header: " + key + " = " + shown(value) + ", must be " + allowed);
}

/// What a value may be, and the words for it.
struct Kind {
  std::string words;
  std::function<bool(const json&)> holds;
};

Kind integer_in(std::int64_t least, std::int64_t most) {
  return {"an integer in [" + std::to_string(least) + ", " + std::to_string(most) + "]",
          [=](const json& value) {
            if (value.is_number_unsigned()) {
              const auto number = value.get<std::uint64_t>();
              return number <= static_cast<std::uint64_t>(most) &&
                     (least <= 0 || number >= static_cast<std::uint64_t>(least));
            }
            return value.is_number_integer() && value.get<std::int64_t>() >= least &&
                   value.get<std::int64_t>() <= most;
          }};
}

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 16;

const Kind& text() {
  static const Kind kKind{"a text", [](const json& value) { return value.is_string(); }};
  return kKind;
}
const Kind& number() {
  static const Kind kKind{"a number, at least 0", [](const json& value) {
                            return value.is_number() && value.get<double>() >= 0.0;
                          }};
  return kKind;
}
const Kind& object() {
  static const Kind kKind{"an object", [](const json& value) { return value.is_object(); }};
  return kKind;
}
const Kind& list() {
  static const Kind kKind{"a list", [](const json& value) { return value.is_array(); }};
  return kKind;
}

/// @param path  what stands before the key in messages; no std::string, since g++ 13 and later take
/// a temporary one for what the result refers to.
const json& required(const json& parent, std::string_view path, const char* key, const Kind& kind) {
  const auto found = parent.find(key);
  const auto whole = std::string(path) + key;
  if (found == parent.end()) throw InputError("header: " + whole + " is missing");
  if (!kind.holds(*found)) refuse(whole, *found, kind.words);
  return *found;
}

void optional(const json& parent, std::string_view path, const char* key, const Kind& kind) {
  if (parent.contains(key)) (void)required(parent, path, key, kind);
}

/// A list of values of one kind, each greater than the one before it where `ascending`.
template <class Value>
std::vector<Value> values_of(const json& header, const char* key, const Kind& kind,
                             bool ascending) {
  std::vector<Value> values;
  for (const auto& value : required(header, "", key, list())) {
    if (!kind.holds(value)) refuse(std::string("an entry of ") + key, value, kind.words);
    values.push_back(value.get<Value>());
    if (ascending && values.size() > 1 && !(values[values.size() - 2] < values.back())) {
      refuse(std::string("an entry of ") + key, value, "greater than the one before it");
    }
  }
  return values;
}

/// What is known of every cell, by the keys that readers interpret.
void check_facts(const json& facts) {
  (void)required(facts, "", "semantics", text());
  const auto& model = required(facts, "", "model", object());
  for (const auto* key : {"layers", "width", "heads", "context", "vocabulary", "feed_forward"}) {
    (void)required(model, "model.", key, integer_in(1, 1 << 30));
  }
  (void)required(model, "model.", "dropout", number());
  for (const auto* key : {"corpus", "corpus_description", "corpus_hash", "device"}) {
    optional(facts, "", key, text());
  }
  for (const auto* key :
       {"bytes_per_token", "test_bytes_per_token", "unigram_perplexity", "vocabulary", "context",
        "train_windows", "valid_windows", "valid_targets", "valid_unknown_targets",
        "vanilla_parameters", "vanilla_flops", "epochs"}) {
    optional(facts, "", key, number());
  }
  if (!facts.contains("chance")) return;
  const auto& chance = required(facts, "", "chance", object());
  (void)required(chance, "chance.", "by", text());
  (void)required(chance, "chance.", "nll", number());
  (void)required(chance, "chance.", "accuracy", number());
}

json parse(std::string_view bytes) {
  json given;
  try {
    given = parse_record(bytes);
  } catch (const InputError& error) {
    throw InputError(std::string("header: ") + error.what());
  }
  if (!given.is_object()) throw InputError("header: is not JSON of an object");
  return given;
}

std::vector<json> measured_of(const json& header, std::size_t num_mechanisms) {
  auto measured = values_of<json>(header, "measured", object(), false);
  if (measured.size() != num_mechanisms) {
    throw InputError("header: measured has " + std::to_string(measured.size()) +
                     " entries, must have one for each of the " + std::to_string(num_mechanisms) +
                     " mechanisms");
  }
  static const Kind kMeasurement{"an object with a number \"value\"", [](const json& value) {
                                   return table_format::is_measured_objective(value) &&
                                          value.at("value").is_number();
                                 }};
  for (const auto& objectives : measured) {
    for (const auto& [name, value] : objectives.items()) {
      if (!kMeasurement.holds(value)) refuse("measured." + name, value, kMeasurement.words);
    }
  }
  return measured;
}

/// Checks one column after the other against the file, then that none is missing.
class Columns {
 public:
  Columns(const TableHeader& header, std::size_t num_words)
      : num_cells_(header.num_cells()), num_steps_(header.steps.size()), num_words_(num_words) {}

  void add(const json& given) {
    if (!given.is_object()) refuse("an entry of columns", given, "an object");
    TableColumn column;
    column.name = required(given, "columns.", "name", text()).get<std::string>();
    const auto path = "columns." + column.name + ".";
    const auto& type = required(given, path, "type", text()).get_ref<const std::string&>();
    if (type != "i64" && type != "f64") refuse(path + "type", type, "i64 or f64");
    column.real = type == "f64";
    column.per = per(path, required(given, path, "per", text()));
    column.size = size_of(column.per);
    column.offset = required(given, path, "offset", integer_in(0, kMost)).get<std::size_t>();
    if (column.offset + column.size > num_words_) {
      throw InputError("header: " + path + "offset = " + std::to_string(column.offset) + ", its " +
                       std::to_string(column.size) + " words must end within the file's " +
                       std::to_string(num_words_));
    }
    if (!names_.insert(column.name).second) {
      throw InputError("header: there are two columns " + column.name);
    }
    columns_.push_back(std::move(column));
  }

  std::vector<TableColumn> close() {
    for (const auto* name : {"status", "reason", "points"}) require(name, /*real=*/false);
    table_format::visit_measured(
        [this](const char* name, const char* /*unit*/) { require(name, /*real=*/true); });
    if (num_steps_ > 0) {
      CurvePoint point;
      table_format::visit_numbers(point,
                                  [this](const char* name, const char* /*unit*/, auto& number) {
                                    require(name, std::is_same_v<decltype(number), double&>);
                                  });
    }
    for (const auto& column : columns_) {
      if (column.name.starts_with(table_format::kValuePrefix)) require(column.name, true);
    }
    require_tiling();
    return std::move(columns_);
  }

 private:
  using Per = TableColumn::Per;

  static Per per(const std::string& path, const json& value) {
    if (value == "table") return Per::table;
    if (value == "cell") return Per::cell;
    if (value == "point") return Per::point;
    refuse(path + "per", value, "table, cell or point");
  }

  [[nodiscard]] std::size_t size_of(Per per) const {
    if (per == Per::table) return 1;
    return per == Per::cell ? num_cells_ : num_cells_ * num_steps_;
  }

  void require(const std::string& name, bool real) const {
    const auto found = std::find_if(columns_.begin(), columns_.end(),
                                    [&name](const auto& column) { return column.name == name; });
    if (found == columns_.end()) throw InputError("header: column " + name + " is missing");
    if (found->real != real) {
      throw InputError("header: column " + name + " has type " + (real ? "i64" : "f64") +
                       ", must have type " + (real ? "f64" : "i64"));
    }
  }

  /// One column after the other fills the file: counts that do not belong to it cannot.
  void require_tiling() const {
    std::map<std::size_t, const TableColumn*> by_offset;
    for (const auto& column : columns_) {
      if (column.size > 0) by_offset[column.offset] = &column;
    }
    std::size_t end = 0;
    for (const auto& [offset, column] : by_offset) {
      if (offset != end) {
        throw InputError("header: columns." + column->name + ".offset = " + std::to_string(offset) +
                         ", must be " + std::to_string(end) + ", where the column before it ends");
      }
      end += column->size;
    }
    if (end != num_words_) {
      throw InputError("header: the columns have " + std::to_string(end) +
                       " words, must have the file's " + std::to_string(num_words_));
    }
  }

  std::size_t num_cells_;
  std::size_t num_steps_;
  std::size_t num_words_;
  std::vector<TableColumn> columns_{};
  std::set<std::string> names_{};
};

}  // namespace

TableHeader read_table_header(std::string_view bytes, std::size_t num_words) {
  const auto given = parse(bytes);
  TableHeader header;
  header.name = required(given, "", "name", text()).get<std::string>();
  header.identity = required(given, "", "identity", object());
  header.facts = required(given, "", "facts", object());
  header.sources = required(given, "", "sources", list());
  for (const auto& source : header.sources) {
    if (!source.is_object()) refuse("an entry of sources", source, "an object");
  }
  auto facts = header.facts;
  facts.update(header.identity);
  check_facts(facts);

  header.mechanisms = values_of<std::string>(given, "mechanisms", text(), true);
  if (header.mechanisms.empty()) refuse("mechanisms", given.at("mechanisms"), "at least one");
  header.replicates = required(given, "", "replicates", integer_in(1, kFirstHeldOutReplicate - 1))
                          .get<std::int64_t>();
  if (header.num_cells() > kMostCells) {
    refuse("replicates", given.at("replicates"),
           "so few that there are at most " + std::to_string(kMostCells) + " cells, with " +
               std::to_string(header.mechanisms.size()) + " mechanisms");
  }
  header.steps = values_of<std::int64_t>(given, "steps", integer_in(0, kMost), true);
  header.reasons = values_of<std::string>(given, "reasons", text(), false);
  if (header.reasons.empty()) refuse("reasons", given.at("reasons"), "at least one");
  header.measured = measured_of(given, header.mechanisms.size());
  Columns columns(header, num_words);
  for (const auto& column : required(given, "", "columns", list())) columns.add(column);
  header.columns = columns.close();
  return header;
}

}  // namespace nas
