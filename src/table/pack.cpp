#include "table/pack.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/field_differences.hpp"
#include "core/hash.hpp"
#include "store/store.hpp"
#include "table/format.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

constexpr std::string_view kProblem = "attention_search";
const FieldRules kEachElement{.elements = true};

/// Whether a mechanism has a name of six fields, which ends with attention dropout 0.
bool without_dropout(const std::string& candidate) { return candidate.ends_with("|0"); }

/// Name of a run for people: its folder's, or its file's.
std::string run_name(const fs::path& given) {
  const auto file = fs::absolute(store_file(given));
  return (file.filename() == "store.sqlite" ? file.parent_path() : file).filename().string();
}

/// What determines a training run, beyond candidate and replicate.
nlohmann::json common_identity(const Evaluation& evaluation) {
  auto identity = evaluation.identity;
  identity.erase("candidate");
  identity.erase("replicate");
  return identity;
}

/// Whether an evaluation was made by the search of a run: not on the held-out seeds of its re-test,
/// nor under the settings that its tuning tried.
bool of_the_search(const Evaluation& evaluation, const nlohmann::json& training) {
  if (evaluation.replicate >= kFirstHeldOutReplicate) return false;
  const auto used = evaluation.identity.find("training");
  if (used == evaluation.identity.end()) return true;
  return std::all_of(used->items().begin(), used->items().end(), [&training](const auto& setting) {
    return !training.contains(setting.key()) || training.at(setting.key()) == setting.value();
  });
}

std::vector<Evaluation> of_the_search(const Store& store) {
  const auto config = store.meta("config").value_or(nlohmann::json::object());
  const auto training = config.value("training", nlohmann::json::object());
  auto evaluations = store.evaluations();
  std::erase_if(evaluations, [&training](const Evaluation& evaluation) {
    return !of_the_search(evaluation, training);
  });
  return evaluations;
}

/// Takes one store after the other.
class Packer {
 public:
  explicit Packer(const std::string& name) { packed_.content.name = name; }

  void take(const fs::path& given) {
    const Store store(store_file(given), Store::Mode::read_only);
    const auto searched = of_the_search(store);
    num_further_ += store.num_evaluations() - std::ssize(searched);
    const auto evaluations = cells_of(searched);
    if (evaluations.empty()) return;
    require_agreement(given, store, evaluations);
    if (schema_.is_null()) schema_ = store.meta("schema").value_or(nullptr);
    Sha256 hash;
    for (const auto& evaluation : evaluations) {
      hash.update(canonical_json(evaluation).dump() + "\n");
      add(given, evaluation);
    }
    packed_.content.sources.push_back({{"name", run_name(given)},
                                       {"sha256", hash.hex()},
                                       {"cells", evaluations.size()},
                                       {"environments", store.environments()}});
    if (store.meta("ended_by").value_or(nullptr).is_null())
      packed_.unfinished.push_back(given.string());
  }

  /// Replaces what was measured of the mechanisms without training them.
  void take_measured(const fs::path& given) {
    if (cells_.empty()) return;  // close() refuses
    const Store store(store_file(given), Store::Mode::read_only);
    std::map<std::string, nlohmann::json> measured;  // by mechanism, then by objective
    std::set<std::string> names;
    for (const auto& evaluation : store.evaluations()) {
      for (const auto* key : {"model", "semantics"}) {
        require_equal(given, key, evaluation);
      }
      for (const auto& [name, value] : evaluation.measured.items()) {
        if (!table_format::is_measured_objective(value)) continue;
        measured[evaluation.candidate].emplace(name, value);
        names.insert(name);
      }
    }
    if (names.empty()) {
      throw InputError(given.string() + ": nothing was measured there, such as latency");
    }
    for (auto& [key, cell] : cells_) {
      // All or none: values of two machines cannot be ranked together.
      for (const auto& name : names) {
        const auto& values = measured[key.first];
        if (!values.contains(name)) {
          throw InputError(given.string() + ": " + name + " of " + key.first +
                           " was not measured there, must be measured of every mechanism");
        }
        cell.evaluation.measured[name] = values.at(name);
      }
    }
    packed_.content.sources.push_back(
        {{"name", run_name(given)}, {"measured", names}, {"environments", store.environments()}});
  }

  Packed close() {
    if (!differences_.empty()) {
      throw InputError("these runs are no one table, they differ in\n  " +
                       join({differences_.begin(), differences_.end()}, "\n  "));
    }
    if (cells_.empty()) {
      throw InputError(
          "no run holds a training of a mechanism that a table can have, of the paper's six genes "
          "and with attention_dropout 0: nothing to pack" +
          (left_out_.empty() ? std::string() : "; they have " + *left_out_.begin()) +
          (num_further_ == 0 ? std::string()
                             : "; and " + std::to_string(num_further_) +
                                   " that no search made, by the seeds of nas-train or a re-test"));
    }
    list_missing();
    packed_.left_out = {left_out_.begin(), left_out_.end()};
    if (!schema_.is_null()) packed_.content.facts["schema"] = std::move(schema_);
    for (auto& [key, cell] : cells_) packed_.content.cells.push_back(std::move(cell.evaluation));
    return std::move(packed_);
  }

 private:
  struct Cell {
    Evaluation evaluation;
    std::string source;
  };

  /// Sets aside what has attention dropout.
  std::vector<Evaluation> cells_of(std::vector<Evaluation> evaluations) {
    std::erase_if(evaluations, [this](const Evaluation& evaluation) {
      if (without_dropout(evaluation.candidate)) return false;
      left_out_.insert(evaluation.candidate);
      return true;
    });
    return evaluations;
  }

  void require_agreement(const fs::path& given, const Store& store,
                         const std::vector<Evaluation>& evaluations) {
    auto facts = store.meta("facts").value_or(nlohmann::json::object());
    for (const auto& evaluation : evaluations) {
      auto identity = common_identity(evaluation);
      if (identity.value("problem", "") != kProblem) {
        throw InputError(given.string() + ": a run of the problem " +
                         identity.value("problem", "(unknown)") + ", must be of " +
                         std::string(kProblem));
      }
      if (cells_.empty() && packed_.content.identity.is_null()) {
        packed_.content.identity = identity;
        packed_.content.facts = facts;
      }
      if (identity == packed_.content.identity) continue;
      for (auto& key : differences(packed_.content.identity, identity, kEachElement)) {
        differences_.insert(std::move(key));
      }
    }
    // A fact that one of the runs does not know contradicts nothing.
    auto& known = packed_.content.facts;
    for (const auto& [name, value] : facts.items()) {
      if (!known.contains(name)) known[name] = value;
      const nlohmann::json before{{name, known.at(name)}};
      for (auto& key : differences(before, {{name, value}}, kEachElement)) {
        differences_.insert(std::move(key));
      }
    }
  }

  void require_equal(const fs::path& given, const char* key, const Evaluation& evaluation) const {
    const auto& ours = packed_.content.identity.at(key);
    const auto theirs = evaluation.identity.value(key, nlohmann::json());
    if (ours == theirs) return;
    throw InputError(given.string() + ": " + key + " is " + theirs.dump() +
                     ", must be that of the " + "table: " + ours.dump());
  }

  void add(const fs::path& given, const Evaluation& evaluation) {
    const auto key = std::make_pair(evaluation.candidate, evaluation.replicate);
    const auto [known, fresh] = cells_.try_emplace(key, Cell{evaluation, given.string()});
    if (fresh || !differences_.empty()) return;
    const auto keys = differences(canonical_json(known->second.evaluation),
                                  canonical_json(evaluation), kEachElement);
    if (!keys.empty()) {
      throw InputError(known->second.source + " and " + given.string() + " differ in " +
                       table_format::name_of(evaluation) + ":\n  " + join(keys, "\n  "));
    }
    // What one of the two alone measured is known, whichever comes first.
    for (const auto& [name, value] : evaluation.measured.items()) {
      if (!table_format::is_measured_objective(value)) continue;
      known->second.evaluation.measured.emplace(name, value);
    }
  }

  void list_missing() {
    std::set<std::string> mechanisms;
    std::vector<std::pair<std::string, std::int64_t>> places;
    for (const auto& [key, cell] : cells_) {
      mechanisms.insert(key.first);
      places.push_back(key);
    }
    const auto replicates = table_format::common_replicates(places);
    for (const auto& mechanism : mechanisms) {
      for (std::int64_t replicate = 0; replicate < replicates; ++replicate) {
        if (cells_.contains({mechanism, replicate})) continue;
        packed_.missing.push_back(table_format::name_of(mechanism, replicate));
      }
    }
  }

  Packed packed_;
  std::map<std::pair<std::string, std::int64_t>, Cell> cells_;
  std::set<std::string> differences_;
  std::set<std::string> left_out_;
  std::int64_t num_further_ = 0;  ///< evaluations that no search made
  nlohmann::json schema_;         ///< of the first run that has one
};

/// Keys in which a cell differs from the evaluation that it was made from.
Texts differing_keys(const Evaluation& recorded, const Evaluation& cell) {
  auto keys = differences(canonical_json(recorded), canonical_json(cell), kEachElement);
  table_format::visit_measured([&](const char* name) {
    const auto number = [name](const Evaluation& evaluation) {
      return evaluation.measured.contains(name) ? evaluation.measured.at(name).get<double>() : -1.0;
    };
    if (number(recorded) != number(cell)) keys.push_back(std::string("measured.") + name);
  });
  for (std::size_t i = 0; i < std::min(recorded.curve.size(), cell.curve.size()); ++i) {
    if (recorded.curve[i].seconds == cell.curve[i].seconds) continue;
    keys.push_back("curve." + std::to_string(i) + ".seconds");
  }
  return keys;
}

}  // namespace

Packed pack(const std::vector<fs::path>& stores, const std::string& name,
            const fs::path& measured) {
  Packer packer(name);
  for (const auto& store : stores) packer.take(store);
  if (!measured.empty()) packer.take_measured(measured);
  return packer.close();
}

TableCheck check_table(const Table& table, const fs::path& store) {
  TableCheck result;
  for (const auto& recorded : of_the_search(Store(store_file(store), Store::Mode::read_only))) {
    if (!without_dropout(recorded.candidate)) continue;
    ++result.cells;
    const auto mechanism = table.find(recorded.candidate);
    if (!mechanism || recorded.replicate >= table.most_replicates() ||
        !table.has(*mechanism, recorded.replicate)) {
      result.differences.push_back(table_format::name_of(recorded) + ": not in the table");
      continue;
    }
    result.met.emplace(*mechanism, recorded.replicate);
    const auto keys = differing_keys(recorded, table.evaluation(*mechanism, recorded.replicate));
    if (!keys.empty()) {
      result.differences.push_back(table_format::name_of(recorded) + ": " + join(keys, "; "));
    }
  }
  if (result.cells == 0) {
    throw InputError(store.string() +
                     ": holds nothing that a table could have: training runs of a search, of "
                     "mechanisms of the paper's six genes without attention dropout");
  }
  return result;
}

std::vector<std::string> unmet_cells(const Table& table, const std::vector<TableCheck>& checks) {
  Texts unmet;
  for (std::int64_t i = 0; i < table.num_mechanisms(); ++i) {
    for (std::int64_t n = 0; n < table.most_replicates(); ++n) {
      const bool met = std::any_of(checks.begin(), checks.end(), [&](const TableCheck& check) {
        return check.met.contains({i, n});
      });
      if (table.has(i, n) && !met) unmet.push_back(table_format::name_of(table.mechanism(i), n));
    }
  }
  return unmet;
}

}  // namespace nas
