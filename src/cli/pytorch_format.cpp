#include <algorithm>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <vector>

#include "cli/folder_format.hpp"
#include "cli/page.hpp"
#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/run_program.hpp"
#include "core/stop.hpp"
#include "core/warning.hpp"
#include "data/text.hpp"
#include "genotype/component.hpp"
#include "models/model_folder.hpp"
#include "models/trained_model.hpp"
#include "report/digest.hpp"
#include "report/files.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Puts what is written in its place. A folder that is there stays: it may be a link, a file system of
/// its own, or where a shell is.
void put(const fs::path& written, const fs::path& folder) {
  if (!fs::exists(folder)) {
    fs::rename(written, folder);
    sync_to_disk(folder.parent_path());
    return;
  }
  if (!fs::is_empty(folder)) {  // any more
    throw fs::filesystem_error("cannot be written", folder,
                               std::make_error_code(std::errc::directory_not_empty));
  }
  std::vector<fs::path> files;
  for (const auto& each : fs::directory_iterator(written)) files.push_back(each.path().filename());
  // A folder with a config.json is a model.
  std::partition(files.begin(), files.end(),
                 [](const auto& file) { return file != "config.json"; });
  try {
    for (const auto& file : files) write_durably(folder / file, read_bytes(written / file));
  } catch (...) {
    std::error_code unknown;  // empty again, it is taken by the same command
    for (const auto& file : files) fs::remove(folder / file, unknown);
    throw;
  }
}

/// What the options of a model compute, by "gene option".
Json summaries(const Json& config) {
  auto found = Json::object();
  auto layers = config.at("layers");
  for (const auto& layer : config.at("layers")) {
    for (const auto& part : layer.value("parts", Json::array())) layers.push_back(part);
  }
  for (const auto& layer : layers) {
    for (const auto& [gene, value] : layer.items()) {
      if (!value.is_string()) continue;
      const std::string option = value;
      const auto* component = components().find(gene, option, layer.value("mixer", ""));
      if (component != nullptr) found[gene + ' ' + option] = component->summary;
    }
  }
  return found;
}

/// README.md of a folder with config.json, which Python writes from the record (attnas.card). Warns
/// where it does not.
void write_card(const fs::path& folder, const RunSummary& run, const TrainedModel& trained,
                const Json& config) {
  const auto& evaluation = trained.evaluation();
  write_file(folder / "record.json", [&](std::ostream& out) { write_digest(run, out); });
  write_durably(folder / "card.json",
                Json{{"evaluation", evaluation.id},
                     {"origin", trained.origin()},
                     {"summaries", summaries(config)},
                     {"lacking", options_of_plugins(config)},
                     {"licence", licence_of(evaluation.identity.value("corpus", ""))}}
                    .dump());
  const auto python = find_python("import sys; assert sys.version_info >= (3, 11)", "Python 3.11");
  auto command = module_command(python.value_or("python3"), "attnas.card");
  command.push_back(folder.string());
  const auto done = run_program(std::move(command));
  for (const auto* read : {"record.json", "card.json"}) fs::remove(folder / read);
  if (done.status != 0)
    warn("README.md, the model's card, was not written: " + last_line(done.output));
}

/// Writes beside the folder first: there the training run is continued, too, if it was stopped, and
/// its weights stay until the folder is there.
std::string export_model(const FolderExport& request) {
  const auto run = read_run(request.run);
  const auto candidate = find_mechanism(run, request.mechanism);
  const auto folder = fs::absolute(request.folder / "").lexically_normal().parent_path();
  auto unfinished = folder;
  unfinished += ".unfinished";
  TrainedModel trained(run, {.run = request.run,
                             .candidate = candidate,
                             .folder = unfinished,
                             .overrides = request.overrides});
  const auto corpus = trained.corpus();
  install_stop_handlers();
  const auto model = trained.load();
  const auto config = model_config(trained.architecture(), corpus, trained.experiment().data);
  make_folder(unfinished);
  const auto written = unfinished / "written";
  fs::remove_all(written);  // what a command left that did not come to its end
  write_model_folder(written, config, corpus, model);
  write_card(written, run, trained, config);
  put(written, folder);
  // A folder of this name may hold other files: only what this function made is removed.
  std::error_code unknown;
  for (const auto* made : {"models", "checkpoints", "written"}) {
    fs::remove_all(unfinished / made, unknown);
  }
  fs::remove(unfinished, unknown);
  if (const auto lacking = options_of_plugins(config); !lacking.empty()) {
    std::cerr << "note: PyTorch cannot build this model: model.py lacks " << join(lacking)
              << ", which plug-ins compute; nas-model evaluate scores it with --plugin FILE.so\n";
  }
  const auto to = request.folder.string();
  return run.label(candidate) + ", weights " + trained.origin() + ", written to " + to +
         "; nas-model evaluate " + to + " scores it" +
         (config.at("text").is_null() ? "" : ", nas-model generate " + to + " continues a text");
}

[[maybe_unused]] const bool kRegistered = folder_formats().add(
    {.key = "pytorch",
     .summary =
         "a folder with a trained model as one file of plain PyTorch, its weights and a card",
     .file = __FILE__},
    export_model);

}  // namespace

}  // namespace nas
