// nas-run: one experiment from its configuration to its result.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>

#include <boost/program_options.hpp>
#include <unistd.h>

#include "cli/command_line.hpp"
#include "cli/describe.hpp"
#include "cli/page.hpp"
#include "cli/passive_waiting.hpp"
#include "cli/plan.hpp"
#include "cli/program.hpp"
#include "cli/schema.hpp"
#include "cli/study_display.hpp"
#include "cli/verify.hpp"
#include "core/error.hpp"
#include "core/stop.hpp"
#include "report/digest.hpp"
#include "report/files.hpp"
#include "study/study.hpp"

namespace {

namespace po = boost::program_options;

constexpr const char* kUsage =
    "nas-run: searches attention mechanisms as a configuration file says\n"
    "\n"
    "  nas-run CONFIG [key.path=value ...] [options]   run, or continue, an experiment\n"
    "  nas-run list [algorithms|problems|objectives|components|data]\n"
    "  nas-run describe NAME                           a plug-in, component, section or setting\n"
    "  nas-run schema                                  JSON Schema of configurations, for editors\n"
    "  nas-run verify RUN [--remove]                   checks the records of a run\n"
    "\n"
    "The same command continues a run. It is refused, before anything is trained, where this\n"
    "program would not reproduce the run's records: after a change of the configuration, of the\n"
    "corpus, or of the results version (an attnas whose results differ). Then give another\n"
    "folder with --output, or continue with the attnas that began the run, which the message\n"
    "names. Another LibTorch, BLAS or instruction set causes a warning: last digits may differ.\n"
    "\n";

struct Arguments {
  std::vector<std::string> words;
  bool dry_run = false;
  bool settings = false;
  bool quiet = false;
  bool help = false;
  bool version = false;
  bool force_device = false;
  bool no_report = false;
  bool remove = false;
  std::string output;
  std::string retry;
};

po::options_description options(Arguments& arguments) {
  po::options_description visible("options");
  visible.add_options()  //
      ("dry-run", po::bool_switch(&arguments.dry_run),
       "validate everything and print the plan; write nothing")  //
      ("settings", po::bool_switch(&arguments.settings),
       "with --dry-run: print every setting with its effective value, too")  //
      ("output,o", po::value(&arguments.output),
       "the run's folder (default: runs/NAME)")  //
      ("force-device", po::bool_switch(&arguments.force_device),
       "continue a run on another kind of device than it began on")  //
      ("retry", po::value(&arguments.retry),
       "failed: forget what is recorded as failed or out of memory, and the search from there on, "
       "and train it again")  //
      ("no-report", po::bool_switch(&arguments.no_report),
       "do not write report.html, the run as a page (needs Python with numpy and scipy)")  //
      ("remove", po::bool_switch(&arguments.remove),
       "verify: remove damaged records, which the command of the run then makes again")  //
      ("quiet,q", po::bool_switch(&arguments.quiet), "print the result only")            //
      ("help,h", po::bool_switch(&arguments.help), "print this text")                    //
      ("version", po::bool_switch(&arguments.version), "print versions");
  return visible;
}

/// A mistyped command is taken for a file.
void require_file(const std::string& word) {
  if (std::filesystem::exists(word)) return;
  const auto guess = nas::nearest(word, {"list", "describe", "schema", "verify"});
  if (guess.empty()) return;  // its reader says what is wrong with it
  throw nas::InputError("command line: " + word +
                        " is neither a command nor a file; did you mean " + guess + "?");
}

/// Writes a result for programs.
void write_results(const std::filesystem::path& folder, const nas::RunSummary& run) {
  nas::write_file(folder / "results.json", nas::digest_text(nas::results_json(run)));
  nas::write_file(folder / "evaluations.csv", nas::evaluations_csv(run));
}

/// What is there of a run that was stopped.
void write_results(const std::filesystem::path& folder) {
  const auto file = folder / "store.sqlite";
  if (!std::filesystem::exists(file)) return;
  auto store = std::make_unique<nas::Store>(file);  // as its writer: a reader would leave journals
  const nas::RunSummary run(*store);
  store.reset();  // the result is to be newer than the store
  write_results(folder, run);
}

/// Writes the files of a result and prints its closing table.
void present(const nas::Study& study, const nas::RunSummary& run) {
  const auto& folder = study.folder();
  write_results(folder, run);
  std::cout << '\n'
            << nas::closing_table(run) << "\nwritten to " << folder.string()
            << ": results.json, evaluations.csv, store.sqlite\n";
}

/// @param kept  receives the folder that keeps what is finished.
int run(int argc, char** argv, std::string& kept) {
  Arguments arguments;
  const auto visible = options(arguments);
  nas::parse_command_line(argc, argv, "nas-run", visible, arguments.words);
  if (nas::answers(arguments.help, arguments.version, kUsage, visible)) return nas::kDone;
  if (arguments.words.empty()) {
    throw nas::InputError("command line: no configuration given\n\n" + std::string(kUsage) +
                          "for example: nas-run configs/quickstart.yaml");
  }
  if (arguments.settings && !arguments.dry_run) {
    throw nas::InputError("command line: --settings belongs to --dry-run");
  }
  if (!arguments.retry.empty() && arguments.retry != "failed") {
    throw nas::InputError("command line: --retry " + arguments.retry + ", must be failed");
  }
  const auto& words = arguments.words;
  if (words.front() == "schema") {
    if (words.size() > 1) throw nas::InputError("nas-run schema: takes no further word");
    std::cout << nas::schema_json().dump(2) << '\n';
    return nas::kDone;
  }
  if (words.front() == "list" || words.front() == "describe") {
    const bool list = words.front() == "list";
    if (words.size() > 2 || (!list && words.size() != 2)) {
      throw nas::InputError(list ? "nas-run list: at most one kind may be given"
                                 : "nas-run describe: exactly one name must be given");
    }
    std::cout << (list ? nas::list_text(words.size() > 1 ? words[1] : "")
                       : nas::describe_text(words[1]));
    return nas::kDone;
  }
  if (words.front() == "verify") {
    if (words.size() != 2) {
      throw nas::InputError("nas-run verify: exactly one run must be given");
    }
    return nas::verify_run(words[1], arguments.remove, std::cout) ? nas::kDone : nas::kBadInput;
  }
  if (arguments.remove) throw nas::InputError("command line: --remove belongs to nas-run verify");
  require_file(words.front());
  const nas::Study study(words.front(), {words.begin() + 1, words.end()}, arguments.output);
  const auto& experiment = study.experiment();
  for (const auto& note : experiment.notes) std::cerr << "note: " << note << '\n';
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  nas::StudyDisplay display(std::cout, terminal && !arguments.quiet, arguments.quiet);
  if (arguments.dry_run) {
    std::cerr << "planning " << experiment.name
              << "; where it trains, a few steps are timed, which takes seconds\n";
    const auto plan = study.plan(/*calibrate=*/true, display);
    std::cout << nas::plan_text(study, plan, arguments.settings);
    return nas::kDone;
  }
  nas::wait_passively(experiment.evaluation.get<std::int64_t>("threads"), argv);
  nas::install_stop_handlers();
  kept = study.folder().string();
  try {
    const nas::Study::RunSettings settings{.force_device = arguments.force_device,
                                           .retry_failed = !arguments.retry.empty()};
    present(study, study.run(display, settings));
  } catch (const nas::StopRequested&) {
    write_results(study.folder());
    std::cout << "\nStopped. Everything finished is kept in " << kept
              << "; the same command continues.\n";
    return nas::kStopped;
  }
  if (!arguments.no_report) nas::write_page(nas::page_of_run(study.folder()));
  return nas::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  std::string kept;
  return nas::run_main(
      "nas-run", [&] { return run(argc, argv, kept); }, kept);
}
