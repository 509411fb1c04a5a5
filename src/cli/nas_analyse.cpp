// nas-analyse: what the attention of a trained model does.

#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "cli/command_line.hpp"
#include "cli/page.hpp"
#include "cli/program.hpp"
#include "cli/programs.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/stop.hpp"
#include "models/analyse.hpp"

namespace {

namespace po = boost::program_options;

constexpr const char* kUsage =
    "nas-analyse: looks into the attention of a model that a run has trained\n"
    "\n"
    "Usage: nas-analyse RUN MECHANISM [KEY.PATH=VALUE ...] [OPTIONS]\n"
    "\n"
    "RUN is a run's folder. MECHANISM is best, baseline, or the name or label of one that the run\n"
    "has trained; of several objectives, best is the first of the front. Weights that the run has\n"
    "kept (evaluation.keep_models) are taken; else the training run is made again. What is\n"
    "different on this machine is given as overrides, such as evaluation.device=cpu.\n"
    "\n"
    "Writes attention.json, with statistics of every head on held-out sequences, and a page with\n"
    "pictures of it. analysis/attention.py A B compares two such folders.\n"
    "\n"
    "Examples:\n"
    "  $ nas-analyse runs/quickstart best\n"
    "  $ nas-analyse runs/quickstart best --sequences 256\n"
    "\n";

struct Arguments {
  std::vector<std::string> words;
  std::vector<std::string> plugins;
  std::string output;
  std::int64_t sequences = 64;
  std::int64_t replicate = -1;
  bool no_report = false;
  bool help = false;
  bool version = false;
};

void require_sequences(std::int64_t sequences) {
  if (sequences >= 2) return;
  throw nas::InputError("command line: --sequences = " + std::to_string(sequences) +
                        ", must be at least 2");
}

void require_replicate(std::int64_t replicate) {
  if (replicate >= 0) return;
  throw nas::InputError("command line: --replicate = " + std::to_string(replicate) +
                        ", must be at least 0");
}

po::options_description options(Arguments& arguments) {
  po::options_description visible("Options");
  visible.add_options()  //
      ("output,o", po::value(&arguments.output),
       "folder of the analysis (default: RUN/attention/MECHANISM)")  //
      ("sequences", po::value(&arguments.sequences)->notifier(require_sequences),
       "held-out sequences (default: 64)")  //
      ("replicate", po::value(&arguments.replicate)->notifier(require_replicate),
       "number of the training run (default: one whose weights are kept, else the first)")  //
      ("plugin", po::value(&arguments.plugins), nas::kPluginHelp)                           //
      ("no-report", po::bool_switch(&arguments.no_report),
       "do not write attention.html, the page with pictures (needs Python with numpy and "
       "scipy)")                                                       //
      ("help,h", po::bool_switch(&arguments.help), "print this text")  //
      ("version", po::bool_switch(&arguments.version), "print versions");
  return visible;
}

/// @param kept  receives the folder that keeps what is finished.
int run(int argc, char** argv, std::string& kept) {
  Arguments arguments;
  const auto visible = options(arguments);
  nas::parse_command_line(argc, argv, "nas-analyse", visible, arguments.words);
  if (nas::answers(arguments.help, arguments.version, kUsage, visible)) {
    return nas::kDone;
  }
  if (arguments.words.size() < 2) {
    throw nas::InputError("command line: give a run and a mechanism\n\n" + std::string(kUsage) +
                          "for example: nas-analyse runs/quickstart best");
  }
  nas::load_plugins(arguments.plugins);
  nas::AnalysisRequest request{
      .run = arguments.words[0],
      .mechanism = arguments.words[1],
      .folder = arguments.output,
      .replicate = arguments.replicate < 0 ? std::nullopt : std::optional(arguments.replicate),
      .sequences = arguments.sequences,
      .overrides = {arguments.words.begin() + 2, arguments.words.end()}};
  nas::install_stop_handlers();
  kept = arguments.words[0];
  const auto result = nas::analyse_run(request);
  std::cout << nas::printable(nas::analysis_table(result)) << "\nwritten to "
            << (result.folder / "attention.json").string() << '\n';
  if (!arguments.no_report) nas::write_page(nas::page_of_attention(result.folder));
  return nas::kDone;
}

}  // namespace

int nas::nas_analyse(int argc, char** argv) {
  std::string kept;
  return nas::run_main(
      "nas-analyse", [&] { return run(argc, argv, kept); }, kept);
}
