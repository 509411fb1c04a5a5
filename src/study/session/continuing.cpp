#include "study/session/continuing.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "core/error.hpp"
#include "core/field_differences.hpp"
#include "core/format.hpp"
#include "core/plugin.hpp"
#include "report/summary.hpp"

namespace nas {

namespace {

void check_identities(const Store& store, const Measurement& measurement,
                      const std::filesystem::path& folder) {
  std::set<std::string> found;
  // Where evaluations are cheap there are many, and one tells of all.
  const auto most = measurement.expensive() ? std::numeric_limits<std::int64_t>::max() : 1;
  for (const auto& evaluation : store.evaluations(most)) {
    auto identity = measurement.identity();
    identity.erase("training");  // what follows a search tries other settings
    const auto keys = identity_differences(evaluation, identity);
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

/// Refuses a search whose asks were answered by other rules: its algorithm would ask for other
/// candidates than the recorded ones.
void check_answering(const Store& store, const std::filesystem::path& folder) {
  if (store.meta("answering").value_or(0) == kAnswering || store.asks().empty()) return;
  throw InputError(
      folder.string() +
      " holds a search of an earlier version, whose asks were answered by other rules: it cannot "
      "be continued as it was begun. Its results can be read as they are (nas-export, report.py); "
      "to search on, give another folder with --output");
}

/// Steps of the training runs that a search has begun.
double steps_of(const RunSummary& run) {
  std::set<std::string> asked;
  for (const auto* asks : {&run.asks, &run.rung_asks}) {
    for (const auto& ask : *asks) asked.insert(ask.evaluations.begin(), ask.evaluations.end());
  }
  double steps = 0.0;
  for (const auto& id : asked) {
    const auto& curve = run.by_id.at(id)->curve;
    if (!curve.empty()) steps += static_cast<double>(curve.back().step);
  }
  return steps;
}

/// Refuses a budget that is smaller than before, and than what the search has taken: what it asked
/// for later would be of no search at all.
void check_budget(const Store& store, const nlohmann::json& recorded, const Experiment& experiment,
                  const std::filesystem::path& folder) {
  const auto before = recorded.value("budget", nlohmann::json::object());
  const auto budget = experiment.resolved.value("budget", nlohmann::json::object());
  const auto seconds = [](const RunSummary& run) { return run.search.train_seconds; };
  const std::map<std::string, std::function<double(const RunSummary&)>> limits{
      {"asks", [](const RunSummary& run) { return static_cast<double>(run.num_asked()); }},
      {"evaluations",
       [](const RunSummary& run) { return static_cast<double>(run.search.evaluations); }},
      {"train_steps", steps_of},
      {"train_seconds", seconds},
      {"gpu_seconds", seconds},
      {"seconds", [&store](const RunSummary& /*run*/) {
         return store.meta("elapsed_seconds").value_or(0.0).get<double>();
       }}};
  std::optional<RunSummary> run;
  for (const auto& [name, spent] : limits) {
    const auto now = budget.value(name, 0.0);
    const auto then = before.value(name, 0.0);
    if (now == 0.0 || (then > 0.0 && now >= then)) continue;
    if (!run) run.emplace(store);
    if (spent(*run) <= now) continue;
    throw InputError(folder.string() + ": budget." + name + " = " + shortest(now) +
                     ", must be at least the " + shortest(spent(*run)) +
                     " that its search has taken; a shorter search is another run: give another "
                     "folder with --output, and this one with --reuse");
  }
}

/// The plug-ins that this process has loaded, by what they register.
std::map<std::string, PluginFile> plugins_by_key() {
  std::map<std::string, PluginFile> plugins;
  for (const auto& plugin : loaded_plugins()) {
    for (const auto& what : plugin.registers) plugins[what] = plugin;
  }
  return plugins;
}

std::vector<PluginFile> recorded_plugins(const std::vector<nlohmann::json>& environments) {
  std::vector<PluginFile> plugins;
  for (const auto& environment : environments) {
    for (const auto& plugin : environment.value("plugins", nlohmann::json::array())) {
      plugins.push_back({plugin.at("file"), plugin.at("sha256"), plugin.at("registers")});
    }
  }
  return plugins;
}

/// Plug-ins of other bytes than here, "FILE, SHA-256 0123456789ab -> ba9876543210" each.
/// @param chosen  those that the command line has given, too.
std::vector<std::string> other_builds(const std::vector<nlohmann::json>& environments,
                                      bool chosen) {
  std::set<std::string> builds;
  const auto here = plugins_by_key();
  for (const auto& plugin : recorded_plugins(environments)) {
    for (const auto& what : plugin.registers) {
      const auto now = here.find(what);
      if (now == here.end() || now->second.sha256 == plugin.sha256) continue;
      if (!chosen && now->second.source == PluginSource::command_line) continue;
      builds.insert(now->second.file + ", SHA-256 " + plugin.sha256.substr(0, 12) + " -> " +
                    now->second.sha256.substr(0, 12));
    }
  }
  return {builds.begin(), builds.end()};
}

/// Refuses a record of plug-ins with other bytes that the command line does not give.
void check_builds(const std::vector<nlohmann::json>& environments,
                  const std::filesystem::path& folder) {
  const auto builds = other_builds(environments, false);
  if (builds.empty()) return;
  throw InputError(folder.string() + " was made with other builds of plug-ins:\n  " +
                   join(builds, "\n  ") +
                   "\ntheir results may differ: give --plugin FILE.so to take both for the same, "
                   "or another folder with --output");
}

}  // namespace

std::vector<std::string> identity_differences(const Evaluation& evaluation,
                                              const nlohmann::json& now) {
  const auto is_own = [](const std::string& path, const auto* /*recorded*/, const auto* given) {
    return given == nullptr && path.find('.') == std::string::npos;
  };
  return differences(evaluation.identity, now, {.ignores = is_own});
}

nlohmann::json plugins_record() {
  auto record = nlohmann::json::array();
  for (const auto& plugin : loaded_plugins()) {
    record.push_back(
        {{"file", plugin.file}, {"sha256", plugin.sha256}, {"registers", plugin.registers}});
  }
  return record;
}

std::string missing_plugins(const std::vector<nlohmann::json>& environments,
                            const std::filesystem::path& folder) {
  std::set<std::string> missing;
  const auto here = plugins_by_key();
  for (const auto& plugin : recorded_plugins(environments)) {
    const bool there = std::all_of(plugin.registers.begin(), plugin.registers.end(),
                                   [&](const auto& what) { return here.contains(what); });
    if (!there) missing.insert(plugin.file + " (" + join(plugin.registers) + ")");
  }
  if (missing.empty()) return {};
  return folder.string() + " was made with plug-ins that are not loaded:\n  " +
         join({missing.begin(), missing.end()}, "\n  ") +
         "\ngive --plugin FILE.so, or, where a configuration is given, name them there (plugins: "
         "[FILE.so])";
}

void check_plugins(const std::vector<nlohmann::json>& environments,
                   const std::filesystem::path& folder) {
  if (const auto missing = missing_plugins(environments, folder); !missing.empty()) {
    throw InputError(missing);
  }
  check_builds(environments, folder);
}

void check_same_results(const Store& store, const std::filesystem::path& folder,
                        const nlohmann::json& environment, bool force_device) {
  check_builds(store.environments(), folder);
  const auto device = environment.value("device", "");
  const auto sessions = store.sessions();
  if (sessions.empty() || force_device) return;
  const auto before = sessions.back().at("environment").value("device", device);
  if (before == device) return;
  throw InputError(folder.string() + " was begun on " + before + ", this would continue on " +
                   device + ", which rounds differently; --force-device does so all the same");
}

void check_continuation(const Store& store, const Experiment& experiment,
                        const Measurement& measurement, const std::filesystem::path& folder,
                        const nlohmann::json& environment, bool force_device) {
  check_plugins(store.environments(), folder);
  if (const auto recorded = store.meta("config")) {
    if (const bool lists = recorded->contains("mechanisms");
        lists != experiment.resolved.contains("mechanisms")) {
      throw InputError(folder.string() +
                       (lists ? " holds a run of listed mechanisms, not a search"
                              : " holds a search, not a run of listed mechanisms") +
                       ": give another folder with --output");
    }
    const auto keys = differing_keys(*recorded, experiment.resolved);
    if (!keys.empty()) {
      throw InputError(folder.string() + " holds a run of another configuration:\n  " +
                       join(keys, "\n  ") +
                       "\nundo the change, or give another folder with --output");
    }
    check_budget(store, *recorded, experiment, folder);
  }
  check_same_results(store, folder, environment, force_device);
  check_answering(store, folder);
  check_identities(store, measurement, folder);
}

std::vector<std::string> environment_changes(const nlohmann::json& before,
                                             const nlohmann::json& now) {
  constexpr std::array<std::pair<const char*, const char*>, 9> kParts{
      {{"torch", "LibTorch"},
       {"torch_capability", "LibTorch's instruction set"},
       {"blas", "BLAS"},
       {"blas_kernels", "BLAS kernels"},
       {"libc", "libc"},
       {"instruction_set", "instruction set"},
       {"exact_products", "products of mode exact by"},
       {"tf32_products", "products of mode tf32 by"},
       {"fast_products", "products of mode fast by"}}};
  std::vector<std::string> changes;
  const auto compare = [&changes](const std::string& what, const std::string& there,
                                  const std::string& here) {
    if (there != here) changes.push_back(what + " " + there + " -> " + here);
  };
  for (const auto& [key, name] : kParts) {
    if (before.contains(key) && now.contains(key)) compare(name, before.at(key), now.at(key));
  }
  if (!tells_environment(before)) return changes;
  const auto variables = [](const nlohmann::json& environment) {
    return environment.value("variables", nlohmann::json::object());
  };
  auto names = variables(before);
  names.update(variables(now));
  for (const auto& [name, value] : names.items()) {
    compare(name, variables(before).value(name, "not set"), variables(now).value(name, "not set"));
  }
  return changes;
}

bool tells_environment(const nlohmann::json& environment) {
  return environment.is_object() && environment.contains("torch_capability") &&
         environment.contains("variables");
}

std::string environment_warning(const Store& store, const nlohmann::json& environment) {
  std::vector<std::string> changes;
  for (const auto& other : store.environments()) {
    for (const auto& change : environment_changes(other, environment)) {
      if (std::find(changes.begin(), changes.end(), change) == changes.end()) {
        changes.push_back(change);
      }
    }
  }
  std::vector<std::string> warnings;
  if (!changes.empty()) {
    warnings.push_back(
        "earlier evaluations of this run were made in another environment: " + join(changes, "; ") +
        ". Results may differ in the last digits; each evaluation says in which session it was "
        "made");
  }
  if (const auto builds = other_builds(store.environments(), true); !builds.empty()) {
    warnings.push_back("earlier evaluations of this run were made with other builds of plug-ins: " +
                       join(builds, "; ") + ". They are taken for the same, as --plugin says");
  }
  return join(warnings, "\n");
}

}  // namespace nas
