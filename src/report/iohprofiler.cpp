#include <algorithm>
#include <cctype>
#include <set>

#include "core/error.hpp"
#include "core/format.hpp"
#include "report/exports.hpp"
#include "report/recorded_asks.hpp"

namespace nas {

namespace {

using Json = nlohmann::ordered_json;

/// What a version of IOHexperimenter is to write: readers recognise the format by it.
constexpr const char* kVersion = "0.3.17";

/// Letters, digits, '-' and '_' of a text, that it can be a file's name.
std::string file_name(std::string text) {
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-') c = '_';
  }
  return text;
}

/// Runs of one algorithm with equal settings.
struct Group {
  std::string name;  ///< of the algorithm, unlike the names of the other groups
  nlohmann::json algorithm;
  std::vector<const RunSummary*> runs;
};

std::vector<Group> groups_of(std::span<const RunSummary> runs) {
  std::vector<Group> groups;
  std::set<std::string> names;
  for (const auto& run : runs) {
    const auto algorithm = run.config.value("algorithm", nlohmann::json::object());
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& other) { return other.algorithm == algorithm; });
    if (group == groups.end()) {
      const auto key = file_name(algorithm.value("name", "algorithm"));
      auto name = key;
      for (int n = 2; !names.insert(name).second; ++n) name = key + "-" + std::to_string(n);
      group = groups.insert(groups.end(), {.name = name, .algorithm = algorithm, .runs = {}});
    }
    group->runs.push_back(&run);
  }
  return groups;
}

std::string settings_text(const nlohmann::json& algorithm) {
  std::vector<std::string> settings;
  for (const auto& [name, value] : algorithm.items()) {
    if (name != "name") settings.push_back(name + "=" + value.dump());
  }
  return join(settings, " ");
}

std::vector<std::string> columns_of(const RunSummary& run) {
  std::vector<std::string> columns{"evaluations", "raw_y"};
  if (!run.several()) columns.emplace_back("raw_y_best");
  for (std::size_t i = 1; i < run.objectives.size(); ++i) {
    columns.push_back("F" + std::to_string(i + 1));
  }
  columns.insert(columns.end(), {"trained", "seconds"});
  return columns;
}

/// The lines of one run, and what the meta file says of it.
struct RunFiles {
  std::string data;
  Json meta;
};

RunFiles run_files(const RunSummary& run) {
  const auto& first = run.objectives.front();
  auto asks = recorded_asks(run);
  if (asks.empty()) throw InputError(run_title(run) + ": nothing was asked for");
  const auto budget = asks.size();
  std::erase_if(asks, [](const RecordedAsk& record) { return record.status == Status::rejected; });
  if (asks.empty()) throw InputError(run_title(run) + ": constraints rejected all of its asks");
  const auto value_of = [&run](const RecordedAsk& record) {
    return run.several() ? record.ask->fitness.front() : record.fitness.front();
  };
  const bool maximise = first.maximise && !run.several();
  std::string data = join(columns_of(run), " ") + '\n';
  const RecordedAsk* best = nullptr;
  for (const auto& record : asks) {
    const double value = value_of(record);
    if (best == nullptr || (maximise ? value > value_of(*best) : value < value_of(*best))) {
      best = &record;
    }
    std::vector<std::string> row{std::to_string(record.ask->number + 1), shortest(value)};
    if (!run.several()) row.push_back(shortest(value_of(*best)));
    for (std::size_t i = 1; i < run.objectives.size(); ++i) {
      row.push_back(shortest(record.ask->fitness[i]));
    }
    row.push_back(std::to_string(record.trained));
    row.push_back(shortest(record.seconds));
    data += join(row, " ") + '\n';
  }
  auto position = Json::array();
  const auto genes = recorded_genes(run);
  for (std::size_t i = 0; i < genes.size(); ++i) {
    position.push_back(gene_number(genes[i], best->genes[i]));
  }
  return {.data = data,
          .meta = {
              {"instance", 1},
              {"evals", budget},
              {"best", {{"evals", best->ask->number + 1}, {"y", value_of(*best)}, {"x", position}}},
              {"seed", run.config.value("seed", std::uint64_t{0})}}};
}

}  // namespace

std::map<std::filesystem::path, std::string> ioh_files(std::span<const RunSummary> runs) {
  std::map<std::filesystem::path, std::string> files;
  for (const auto& group : groups_of(runs)) {
    const auto& run = *group.runs.front();
    const auto function = file_name(function_title(run));
    const auto dimension = recorded_genes(run).size();
    const auto path =
        "data_f1_" + function + "/IOHprofiler_f1_DIM" + std::to_string(dimension) + ".dat";
    std::string data;
    auto metas = Json::array();
    for (const auto* member : group.runs) {
      auto [lines, meta] = run_files(*member);
      data += lines;
      metas.push_back(std::move(meta));
    }
    const Json meta{{"version", kVersion},
                    {"suite", "attnas"},
                    {"function_id", 1},
                    {"function_name", function},
                    {"maximization", run.objectives.front().maximise && !run.several()},
                    {"algorithm", {{"name", group.name}, {"info", settings_text(group.algorithm)}}},
                    {"run_attributes", {"seed"}},
                    {"attributes", columns_of(run)},
                    {"scenarios", {{{"dimension", dimension}, {"path", path}, {"runs", metas}}}}};
    const std::filesystem::path folder = group.name;
    files[folder / ("IOHprofiler_f1_" + function + ".json")] = meta.dump(2) + '\n';
    files[folder / path] = data;
  }
  return files;
}

}  // namespace nas
