#include "study/continuing.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <set>

#include "core/error.hpp"

namespace nas {

namespace {

/// What of an evaluation's identity is not as this program would make it, "key: old -> new" each.
/// The settings of training may differ: what follows a search tries others.
std::vector<std::string> differences(const Evaluation& evaluation, const nlohmann::json& now) {
  std::vector<std::string> found;
  for (const auto& [key, value] : now.items()) {
    const auto recorded = evaluation.identity.value(key, nlohmann::json());
    if (key != "training" && recorded != value) {
      found.push_back(key + ": " + recorded.dump() + " -> " + value.dump());
    }
  }
  return found;
}

void check_identities(const Store& store, const Measurement& measurement,
                      const std::filesystem::path& folder) {
  std::set<std::string> found;
  // Where evaluations are cheap there are many, and one tells of all.
  const auto most = measurement.expensive() ? std::numeric_limits<std::int64_t>::max() : 1;
  for (const auto& evaluation : store.evaluations(most)) {
    const auto keys = differences(evaluation, measurement.identity());
    found.insert(keys.begin(), keys.end());
  }
  if (found.empty()) return;
  std::string maker;
  if (const auto sessions = store.sessions(); !sessions.empty()) {
    const auto& environment = sessions.front().at("environment");
    maker = " (attnas " + environment.value("attnas", "of an unknown version") + ", revision " +
            environment.value("revision", "unknown") + ")";
  }
  throw InputError(
      folder.string() + " holds evaluations that would now be made otherwise:\n  " +
      join({found.begin(), found.end()}, "\n  ") +
      "\nso that they cannot be reused: give another folder with --output, or continue "
      "with the program and the data that made them" +
      maker);
}

/// Refuses a search whose asks were answered under other rules, where that makes a difference: its
/// algorithm would ask for other candidates than the recorded ones.
void check_answering(const Store& store, const std::filesystem::path& folder) {
  if (store.meta("answering").value_or(1) == kAnswering) return;
  std::map<std::string, Status> statuses;
  for (const auto& evaluation : store.evaluations()) statuses[evaluation.id] = evaluation.status;
  for (const auto& ask : store.asks()) {
    const auto& ids = ask.evaluations;
    const auto count = [&](const auto& is) {
      return std::count_if(ids.begin(), ids.end(),
                           [&](const auto& id) { return is(statuses.at(id)); });
    };
    const auto used = count([](Status status) { return is_usable(status); });
    std::string why;
    if (count([](Status status) { return status == Status::rejected; }) > 0) {
      why = "charged the budget for candidates that constraints reject";
    } else if (count([](Status status) { return status == Status::stopped_early; }) > 0) {
      why = "treated candidates that were stopped early like fully trained ones";
    } else if (used > 0 && used < std::ssize(ids)) {
      why = "ranked candidates by their successful replicates alone";
    }
    if (why.empty()) continue;
    throw InputError(
        folder.string() + " holds a search of an earlier version, which " + why +
        ": it cannot be continued as it was begun. Its results can be read as they are "
        "(nas-export, report.py); to search on, give another folder with --output");
  }
}

}  // namespace

void check_continuation(const Store& store, const Experiment& experiment,
                        const Measurement& measurement, const std::filesystem::path& folder,
                        const nlohmann::json& environment, bool force_device) {
  if (const auto recorded = store.meta("config")) {
    const auto keys = differing_keys(*recorded, experiment.resolved);
    if (!keys.empty()) {
      throw InputError(folder.string() + " holds a run of another configuration:\n  " +
                       join(keys, "\n  ") +
                       "\nundo the change, or give another folder with --output");
    }
  }
  const auto device = environment.value("device", "");
  const auto sessions = store.sessions();
  if (!sessions.empty() && !force_device) {
    const auto before = sessions.back().at("environment").value("device", device);
    if (before != device) {
      throw InputError(folder.string() + " was begun on " + before + ", this would continue on " +
                       device + ", which rounds differently; --force-device does so all the same");
    }
  }
  check_answering(store, folder);
  check_identities(store, measurement, folder);
}

std::string environment_warning(const Store& store, const nlohmann::json& environment) {
  constexpr std::array<std::pair<const char*, const char*>, 3> kParts{
      {{"torch", "LibTorch"}, {"blas", "BLAS"}, {"instruction_set", "instruction set"}}};
  std::vector<std::string> changes;
  for (const auto& [key, name] : kParts) {
    std::set<std::string> before;
    for (const auto& other : store.environments()) {
      if (other.contains(key) && other.at(key) != environment.at(key)) {
        before.insert(other.at(key).get<std::string>());
      }
    }
    if (before.empty()) continue;
    changes.push_back(std::string(name) + " " + join({before.begin(), before.end()}) + " -> " +
                      environment.at(key).get<std::string>());
  }
  if (changes.empty()) return {};
  return "earlier evaluations of this run were made in another environment: " +
         join(changes, "; ") +
         ". Results may differ in the last digits; each evaluation says in which session it was "
         "made";
}

}  // namespace nas
