#include "study/reader/engines.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>

#include "core/error.hpp"
#include "core/installed.hpp"

namespace nas {

namespace fs = std::filesystem;

namespace {

/// What a file of Python says of itself at its beginning.
std::string docstring(const fs::path& file) {
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const std::string quotes = "\"\"\"";
  const auto begin = text.find(quotes);
  const auto end = begin == std::string::npos ? begin : text.find(quotes, begin + quotes.size());
  if (end == std::string::npos) return {};
  return text.substr(begin + quotes.size(), end - begin - quotes.size());
}

Engine read_engine(const fs::path& file) {
  const auto text = docstring(file);
  const auto line = std::min(text.find('\n'), text.size());
  Engine engine{
      .key = file.stem().string(), .summary = text.substr(0, line), .text = {}, .file = file};
  const auto rest = text.find_first_not_of('\n', line);
  if (rest != std::string::npos) engine.text = text.substr(rest);
  if (engine.summary.ends_with('.')) engine.summary.pop_back();
  return engine;
}

}  // namespace

std::vector<Engine> engines() {
  std::vector<Engine> found;
  for (const auto& folder : shared_folders()) {
    std::error_code unknown;
    for (const auto& entry : fs::directory_iterator(folder / "python/attnas/engines", unknown)) {
      const auto name = entry.path().filename().string();
      if (entry.path().extension() != ".py" || name.starts_with('_')) continue;
      found.push_back(read_engine(fs::absolute(entry.path())));
    }
    if (!found.empty()) break;
  }
  std::sort(found.begin(), found.end(),
            [](const Engine& a, const Engine& b) { return a.key < b.key; });
  return found;
}

Engine find_engine(const std::string& key) {
  std::vector<std::string> known;
  for (auto& engine : engines()) {
    if (engine.key == key) return engine;
    known.push_back(engine.key);
  }
  throw InputError("unknown engine '" + key + "'" + known_text(key, known));
}

bool has_cluster(const Experiment& experiment) {
  const auto& cluster = experiment.cluster;
  return !cluster.get<std::string>("engine").empty() ||
         !cluster.get<std::vector<std::string>>("command").empty();
}

std::string how_to_start_workers(const Experiment& experiment, const fs::path& folder) {
  if (experiment.cluster.get<std::string>("engine") != "dask") return {};
  std::string program = "scripts/workers";
  for (const auto& shared : shared_folders()) {
    std::error_code unknown;
    if (!fs::exists(shared / program, unknown)) continue;
    program = (shared / program).lexically_normal().string();
    break;
  }
  return "start workers, on any machine that sees this folder: " + program + " " +
         fs::absolute(folder).lexically_normal().string() + " --slots N";
}

std::vector<std::string> engine_command(const Experiment& experiment) {
  const auto& command = experiment.cluster.get<std::vector<std::string>>("command");
  if (!command.empty()) return command;
  const char* python = std::getenv("NAS_PYTHON");
  // -B: nothing is left beside the file.
  return {python != nullptr && *python != '\0' ? python : "python3", "-B",
          find_engine(experiment.cluster.get<std::string>("engine")).file.string()};
}

}  // namespace nas
