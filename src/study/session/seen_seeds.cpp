#include "study/session/seen_seeds.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/warning.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;
using Integer = std::int64_t;

/// The seeds of a re-test that another run on the same task has trained, [first, end).
using Seeds = std::pair<Integer, Integer>;

std::optional<Seeds> seeds_of(const fs::path& file, const nlohmann::json& own) {
  const Store other(file, Store::Mode::read_only);
  const auto config = other.meta("config").value_or(nullptr);
  const auto retest = other.meta("retest").value_or(nullptr);
  if (!config.is_object() || !retest.is_object()) return std::nullopt;
  for (const auto* key : {"seed", "data"}) {
    if (config.value(key, nlohmann::json()) != own.value(key, nlohmann::json()))
      return std::nullopt;
  }
  const auto first = config.at("retest").value("first_seed", Integer{0});
  return Seeds{first, first + retest.at("replicates").get<Integer>()};
}

}  // namespace

void note_seen_seeds(const fs::path& folder, const Experiment& experiment, Store& store) {
  const auto most = experiment.retest.get<Integer>("replicates");
  if (most == 0 || store.meta("seen_before") ||
      store.meta("retest").value_or(nullptr).is_object()) {
    return;
  }
  const auto first = experiment.retest.get<Integer>("first_seed");
  std::vector<std::string> runs;
  Integer end = first;
  std::error_code missing;
  for (const auto& beside : fs::directory_iterator(fs::absolute(folder).parent_path(), missing)) {
    const auto file = beside.path() / "store.sqlite";
    if (!fs::is_regular_file(file, missing) || fs::equivalent(beside.path(), folder, missing)) {
      continue;
    }
    std::optional<Seeds> seeds;
    try {
      seeds = seeds_of(file, experiment.resolved);
    } catch (const InputError&) {
      continue;  // no store of a run, or of another version
    } catch (const nlohmann::json::exception&) {
      continue;
    }
    if (!seeds || seeds->first >= first + most || seeds->second <= first) continue;
    runs.push_back(beside.path().filename().string());
    end = std::max(end, seeds->second);
  }
  if (runs.empty()) return;
  std::sort(runs.begin(), runs.end());
  const auto text = "Of its seeds the first " + std::to_string(std::min(most, end - first)) +
                    " were seen before, by " + join(runs) +
                    "; retest.first_seed=" + std::to_string(end) + " takes others.";
  store.set_meta("seen_before", text);
  warn(text);
}

}  // namespace nas
