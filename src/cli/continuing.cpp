#include "cli/continuing.hpp"

#include <array>
#include <cstdint>
#include <limits>
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
    const auto keys = differences(evaluation, measurement.identity(evaluation.candidate));
    found.insert(keys.begin(), keys.end());
  }
  if (found.empty()) return;
  std::string maker;
  if (const auto sessions = store.sessions(); !sessions.empty()) {
    const auto& environment = sessions.front().at("environment");
    maker = " (attnas " + environment.value("attnas", "of an unknown version") + ", revision " +
            environment.value("revision", "unknown") + ")";
  }
  throw InputError(folder.string() + " holds evaluations that would now be made otherwise:\n  " +
                   join({found.begin(), found.end()}, "\n  ") +
                   "\nwhich they do not answer for: give another folder with --output, or continue "
                   "with the program and the data that made them" +
                   maker);
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
  return "warning: earlier evaluations of this run were made in another environment: " +
         join(changes, "; ") +
         ". Results may differ in the last digits; each evaluation says in which session it was "
         "made";
}

}  // namespace nas
