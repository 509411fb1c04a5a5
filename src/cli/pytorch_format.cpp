#include <algorithm>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <vector>

#include "cli/folder_format.hpp"
#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/stop.hpp"
#include "models/model_card.hpp"
#include "models/model_folder.hpp"
#include "models/trained_model.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

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
  const auto card = model_card(run, trained.evaluation(), config, trained.origin());
  make_folder(unfinished);
  const auto written = unfinished / "written";
  fs::remove_all(written);  // what a command left that did not come to its end
  write_model_folder(written, config, corpus, model, card);
  put(written, folder);
  // A folder of this name may hold other files: only what this function made is removed.
  std::error_code unknown;
  for (const auto* made : {"models", "checkpoints", "written"}) {
    fs::remove_all(unfinished / made, unknown);
  }
  fs::remove(unfinished, unknown);
  if (const auto lacking = options_of_plugins(config); !lacking.empty()) {
    std::cerr << "note: PyTorch cannot build this model: model.py lacks " << join(lacking)
              << ", which plug-ins compute; nas-model uses it with --plugin FILE.so\n";
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
