#include <filesystem>
#include <iostream>
#include <system_error>

#include "cli/folder_format.hpp"
#include "cli/model_card.hpp"
#include "cli/trained_model.hpp"
#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/stop.hpp"
#include "model_export/model_folder.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

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
  fs::rename(written, folder);
  sync_to_disk(folder.parent_path());
  std::error_code unknown;
  fs::remove_all(unfinished, unknown);
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
