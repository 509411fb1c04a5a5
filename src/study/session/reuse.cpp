#include "study/session/reuse.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/warning.hpp"
#include "search/objective.hpp"
#include "store/store.hpp"
#include "study/session/continuing.hpp"
#include "table/table.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

/// The objectives of a resolved configuration that add to what an evaluation records: all but those
/// that are read off any finished training run.
std::set<nlohmann::json> recorded_objectives(const nlohmann::json& config) {
  std::set<nlohmann::json> recorded;
  for (const auto& item : config.value("objectives", nlohmann::json::array())) {
    const auto name = item.at("name").get<std::string>();
    if (objectives().contains(name)) {
      const auto& entry = objectives().at(name);
      const auto objective = entry.make(Parameters(entry.description.settings));
      if (objective.trained && !objective.alone) continue;
    }
    recorded.insert(item);
  }
  return recorded;
}

/// An evaluation that is taken from elsewhere. What failed there may succeed here.
std::optional<Evaluation> reused(std::optional<Evaluation> found, const std::string& from) {
  if (found && may_be_retried(found->status)) found.reset();
  if (found) found->measured["reused_from"] = from;
  return found;
}

/// In what the identities of evaluations differ, by the one that differs least; empty where one does
/// not.
std::vector<std::string> least_differences(const std::vector<Evaluation>& evaluations,
                                           const nlohmann::json& identity) {
  std::vector<std::string> differences;
  for (const auto& evaluation : evaluations) {
    auto found = identity_differences(evaluation, identity);
    if (found.empty()) return {};
    if (differences.empty() || found.size() < differences.size()) differences = std::move(found);
  }
  return differences;
}

/// Says so where nothing can be taken from elsewhere: all evaluations there are of other identities.
void warn_of(const std::vector<std::string>& differences, const fs::path& place) {
  if (differences.empty()) return;
  warn(place.string() + " has no evaluation that can be reused, since all differ, in " +
       join(differences));
}

/// What a table holds of an evaluation.
/// @throws InputError where its training runs are of another kind of device or of plug-ins that are
/// missing, or where the experiment records more than any training run tells.
Recall recall_of_table(const fs::path& file, const Experiment& experiment,
                       const nlohmann::json& identity, const nlohmann::json& environment,
                       bool force_device) {
  const Table table(file);
  std::vector<nlohmann::json> environments;
  for (const auto& source : table.facts().value("sources", nlohmann::json::array())) {
    for (const auto& made_by : source.value("environments", nlohmann::json::array())) {
      environments.push_back(made_by);
    }
  }
  check_plugins(environments, file);
  const auto device = environment.value("device", "");
  const auto recorded = table.facts().value("device", device);
  if (recorded != device && !force_device) {
    throw InputError(file.string() + " was trained on " + recorded + ", this would train on " +
                     device + ", which rounds differently; --force-device does so all the same");
  }
  if (const auto more = recorded_objectives(experiment.resolved); !more.empty()) {
    throw InputError(file.string() + " has no " + more.begin()->at("name").get<std::string>() +
                     " of its training runs, must be reused for objectives that any training run "
                     "tells, such as perplexity");
  }
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> cells;  // by id
  for (std::int64_t mechanism = 0; mechanism < table.num_mechanisms(); ++mechanism) {
    for (std::int64_t replicate = 0; replicate < table.most_replicates(); ++replicate) {
      if (!table.has(mechanism, replicate)) continue;
      cells.emplace(table.evaluation(mechanism, replicate).id, std::pair(mechanism, replicate));
    }
  }
  if (!cells.empty()) {
    const auto [mechanism, replicate] = cells.begin()->second;
    warn_of(least_differences({table.evaluation(mechanism, replicate)}, identity), file);
  }
  return [table, cells, from = file.string()](const std::string& id) -> std::optional<Evaluation> {
    const auto cell = cells.find(id);
    if (cell == cells.end()) return std::nullopt;
    return reused(table.evaluation(cell->second.first, cell->second.second), from);
  };
}

}  // namespace

Recall recall_from(const fs::path& place, const Experiment& experiment,
                   const nlohmann::json& identity, const nlohmann::json& environment,
                   bool force_device) {
  if (place.empty()) return {};
  if (fs::is_regular_file(place)) {
    return recall_of_table(place, experiment, identity, environment, force_device);
  }
  const auto other = std::make_shared<const Store>(place / "store.sqlite", Store::Mode::read_only);
  check_same_results(*other, place, environment, force_device);
  const auto config = other->meta("config").value_or(nlohmann::json::object());
  if (recorded_objectives(config) != recorded_objectives(experiment.resolved)) {
    throw InputError(place.string() +
                     " has evaluations of other objectives, which must be the same to be reused, "
                     "those aside that any training run tells, such as perplexity");
  }
  // Nearly always one tells of all, of which there may be millions.
  if (!least_differences(other->evaluations(1), identity).empty()) {
    warn_of(least_differences(other->evaluations(), identity), place);
  }
  return [other, from = place.string()](const std::string& id) {
    return reused(other->find(id), from);
  };
}

}  // namespace nas
