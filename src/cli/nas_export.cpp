// nas-export: the record of a run in other forms, and its models.

#include <filesystem>
#include <functional>
#include <iostream>
#include <string_view>

#include <boost/program_options.hpp>

#include "cli/command_line.hpp"
#include "cli/corpus_info.hpp"
#include "cli/folder_format.hpp"
#include "cli/program.hpp"
#include "cli/programs.hpp"
#include "core/error.hpp"
#include "core/stop.hpp"
#include "report/digest.hpp"
#include "report/files.hpp"
#include "store/store_copy.hpp"
#include "table/named.hpp"

namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr const char* kUsage =
    "nas-export: the record of a run in other forms, and its models\n"
    "\n"
    "Usage: nas-export RUN --format FORMAT [--output PATH]\n";
/// Of formats that are folders.
constexpr const char* kFolderUsage =
    "   or: nas-export RUN --format pytorch --output FOLDER [--mechanism NAME] "
    "[KEY.PATH=VALUE ...]\n";
constexpr const char* kWords =
    "\n"
    "RUN is a run's folder, or its store.sqlite.\n"
    "\n";
/// Where the forms of other programs are.
constexpr const char* kElsewhere = "analysis/export.py writes csv, latex, huggingface";
constexpr const char* kFolderWords =
    "NAME is best, baseline, or the name or label of a mechanism that the run has trained; best "
    "is\n"
    "what the search returns, of several objectives the point of the front that is best by the\n"
    "first. Weights that the run has kept (evaluation.keep_models) are taken; else the training\n"
    "run is made again. What is different on this machine is given as overrides, such as\n"
    "evaluation.device=cpu.\n"
    "\n";
constexpr const char* kExamples =
    "Examples:\n"
    "  $ nas-export runs/quickstart --canonical | sha256sum\n"
    "  $ nas-export runs/quickstart --format evaluations --output evaluations.csv\n";
constexpr const char* kFolderExamples =
    "  $ nas-export runs/quickstart --format pytorch --output best\n";

struct Options {
  std::vector<std::string> words{};  ///< the run, and overrides
  std::vector<std::string> plugins{};
  std::string format{};
  std::string output{};
  std::string mechanism{};
  bool canonical = false;
  bool force = false;
  bool help = false;
  bool version = false;
};

/// A form in which a run can be had.
struct Format {
  const char* name;
  const char* help;
  std::function<void(const nas::RunSummary&, std::ostream&)> write;
};

const std::vector<Format>& formats() {
  static const std::vector<Format> kFormats{
      {.name = "canonical",
       .help = "JSON Lines of all that does not depend on clock, process or machine",
       .write = nas::write_canonical},
      {.name = "json", .help = "the complete digest, as results.json", .write = nas::write_digest},
      {.name = "evaluations",
       .help = "CSV, a line per evaluation, as evaluations.csv",
       .write = nas::write_evaluations}};
  return kFormats;
}

/// A text, with what belongs to formats that are folders, if there are such.
std::string with(const char* text, const char* of_folders) {
  return std::string(text) + (nas::folder_formats().keys().empty() ? "" : of_folders);
}

std::string usage() { return with(kUsage, kFolderUsage) + with(kWords, kFolderWords); }

std::string formats_text() {
  std::string text = "Formats:\n";
  const auto add = [&text](const std::string& name, const std::string& help) {
    text += "  " + name + std::string(13 - name.size(), ' ') + help + '\n';
  };
  for (const auto& format : formats()) add(format.name, format.help);
  for (const auto& name : nas::folder_formats().keys()) {
    add(name, nas::folder_formats().at(name).description.summary);
  }
  return text + kElsewhere + '\n';
}

const Format& format_named(const std::string& name) {
  std::vector<std::string> known;
  for (const auto& format : formats()) {
    if (format.name == name) return format;
    known.emplace_back(format.name);
  }
  for (const auto& folder : nas::folder_formats().keys()) known.push_back(folder);
  throw nas::InputError("command line: --format " + name + ", must be one of " + nas::join(known) +
                        "; " + kElsewhere);
}

po::options_description visible_options(Options& options) {
  po::options_description visible("Options");
  visible.add_options()                                                         //
      ("format", po::value(&options.format), "what to write, see below")        //
      ("canonical", po::bool_switch(&options.canonical), "--format canonical")  //
      ("output,o", po::value(&options.output),
       "write to PATH instead of standard output; of pytorch a folder")           //
      ("mechanism", po::value(&options.mechanism), "of pytorch (default: best)")  //
      ("plugin", po::value(&options.plugins), nas::kPluginHelp)                   //
      ("force", po::bool_switch(&options.force), "replace what is at PATH")       //
      ("help,h", po::bool_switch(&options.help), "print this text")               //
      ("version", po::bool_switch(&options.version), "print the version");
  return visible;
}

[[noreturn]] void refuse(const std::string& message) {
  throw nas::InputError("command line: " + message);
}

/// @throws InputError where something is at PATH that must stay.
void check_output(const Options& options) {
  nas::require_replaceable(options.output, "command line: --output ");
  if (!options.force && fs::exists(options.output)) {
    refuse(options.output + " exists already; --force replaces it");
  }
}

/// @throws InputError if options are missing or do not go together.
const Format& check(const Options& options) {
  const auto& format = format_named(options.canonical ? "canonical" : options.format);
  const std::string name = format.name;
  if (!options.mechanism.empty()) refuse("--mechanism belongs to --format pytorch, not to " + name);
  if (!options.output.empty()) check_output(options);
  return format;
}

/// The same of a format that is a folder.
void check_folder(const Options& options) {
  if (options.output.empty()) refuse("--format " + options.format + " needs --output FOLDER");
  if (options.force)
    refuse("--force is not for --format " + options.format + ", which replaces no folder");
  if (fs::exists(fs::symlink_status(options.output)) &&
      !(fs::is_directory(options.output) && fs::is_empty(options.output))) {
    refuse(options.output + " exists already and is no empty folder");
  }
}

/// A run as it stands, with what is in progress while it is running. Nothing of it is touched.
nas::RunSummary summary_of(const fs::path& file) {
  const nas::StoreCopy copy(file);
  return copy.read([&] {
    const bool runs = copy.is_written();
    const nas::Store store(copy.file(), nas::Store::Mode::read_only);
    nas::RunSummary summary(store);
    if (runs) {
      summary.asking = store.meta("asking").value_or(nullptr);
      summary.at_work = store.meta("at_work").value_or(nullptr);
    }
    return summary;
  });
}

/// @param kept  receives the folder that keeps what is finished.
int run(int argc, char** argv, std::string& kept) {
  Options options;
  const auto visible = visible_options(options);
  nas::parse_command_line(argc, argv, "nas-export", visible, options.words);
  if (options.help) {
    std::cout << nas::help_text(usage() + with(kExamples, kFolderExamples) + '\n', visible,
                                '\n' + formats_text() + nas::help_end());
    return 0;
  }
  if (options.version) {
    std::cout << nas::version_line();
    return 0;
  }
  nas::load_plugins(options.plugins);
  const bool to_folder = nas::folder_formats().contains(options.format);
  if (options.words.empty() || (options.words.size() > 1 && !to_folder) ||
      options.canonical != options.format.empty()) {
    refuse("give one run and one format\n\n" + usage() + formats_text());
  }
  if (to_folder) {
    check_folder(options);
    kept = options.words.front();
    const auto written =
        nas::folder_formats()
            .at(options.format)
            .make({.run = options.words.front(),
                   .mechanism = options.mechanism.empty() ? "best" : options.mechanism,
                   .overrides = {options.words.begin() + 1, options.words.end()},
                   .folder = options.output});
    std::cout << written << '\n';
    return 0;
  }
  const auto& format = check(options);
  const auto summary = summary_of(nas::store_named(options.words.front()));
  if (options.output.empty()) {
    format.write(summary, std::cout);
  } else {
    nas::write_file(options.output, [&](std::ostream& out) { format.write(summary, out); });
  }
  return 0;
}

}  // namespace

int nas::nas_export(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "corpus") {  // for nas-data
    install_stop_handlers();
    return run_main("nas-data", [&] { return corpus_info({argv + 2, argv + argc}); });
  }
  std::string kept;
  return nas::run_main(
      "nas-export", [&] { return run(argc, argv, kept); }, kept);
}
