#include "cli/study_program.hpp"

#include <algorithm>
#include <iostream>

#include <unistd.h>

#include "cli/page.hpp"
#include "cli/passive_waiting.hpp"
#include "cli/plan.hpp"
#include "cli/program.hpp"
#include "cli/progress_display.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/stop.hpp"
#include "core/terminal.hpp"
#include "data/corpus_facts.hpp"
#include "evaluation/outcomes.hpp"
#include "report/files.hpp"
#include "report/text.hpp"
#include "study/reader/engines.hpp"

namespace nas {

namespace {

/// Writes the files of a result and prints its closing table.
/// @return whether anything was found that could be re-tested, or nothing should be.
bool present(const Study& study, const RunSummary& run) {
  const auto& folder = study.folder();
  write_results(folder, run);
  auto unknown = unknown_text(run.facts.value("unknown_shares", UnknownShares{}));
  if (!unknown.empty()) unknown = '\n' + wrapped(unknown + '\n', line_width());
  std::cout << '\n'
            << printable(closing_table(run, line_width())) << unknown << "\nwritten to "
            << folder.string() << ": results.json, evaluations.csv, store.sqlite\n";
  const auto& all = run.evaluations;
  const bool found = run.listed() ? std::any_of(all.begin(), all.end(),
                                                [](const auto& one) { return is_usable(one); })
                                  : !run.ranking.empty();
  return found || study.experiment().retest.get<std::int64_t>("replicates") == 0;
}

/// What a study would do, or a pilot in its place.
void print_plan(const Study& study, const StudyArguments& arguments, StudyDisplay& display,
                const Study::RunSettings& settings, const Pilot* pilot) {
  const auto& experiment = study.experiment();
  std::cerr << "planning " << experiment.name
            << "; where it trains, a few steps are timed, which takes seconds\n";
  auto plan = study.plan(/*calibrate=*/true, display, settings);
  if (pilot != nullptr) {
    plan.pilot = pilot->text;
    plan.seconds = plan.preparation.seconds +
                   plan.training_seconds * static_cast<double>(pilot->trainings) / plan.workers;
  }
  std::cout << wrapped(plan_text(study, plan, arguments.settings), line_width());
}

/// Says that a signal has ended it.
int stopped(const std::string& kept) {
  std::cout << "\nStopped.";
  if (has_store(kept)) {
    std::cout << " Everything finished is kept in " << kept << "; the same command continues.";
  }
  std::cout << '\n';
  return kStopped;
}

}  // namespace

boost::program_options::options_description study_options(StudyArguments& arguments,
                                                          const std::string& folder) {
  namespace po = boost::program_options;
  po::options_description visible("Options");
  visible.add_options()  //
      ("dry-run", po::bool_switch(&arguments.dry_run),
       "validate everything and print the plan; write nothing")  //
      ("settings", po::bool_switch(&arguments.settings),
       "with --dry-run: print every setting with its effective value, too")  //
      ("output,o", po::value(&arguments.output),
       ("the run's folder (default: " + folder + ")").c_str())  //
      ("plugin", po::value(&arguments.plugins), kPluginHelp)    //
      ("force-device", po::bool_switch(&arguments.force_device),
       "continue a run on another kind of device than it began on")  //
      ("retry", po::value(&arguments.retry),
       "failed: forget what is recorded as failed, out of memory, timed out or crashed, and the "
       "search from there on, and train it again")  //
      ("reuse", po::value(&arguments.reuse),
       "folder of another run, say before a change of the algorithm, or a table that is to grow: "
       "what it has trained is not trained again; the result is that of a run without it")  //
      ("no-report", po::bool_switch(&arguments.no_report),
       "do not write report.html, the run as a page (needs Python with numpy and scipy)")  //
      ("quiet,q", po::bool_switch(&arguments.quiet), "print the result only")              //
      ("help,h", po::bool_switch(&arguments.help), "print this text")                      //
      ("version", po::bool_switch(&arguments.version), "print versions");
  return visible;
}

void begin_study_program(const StudyArguments& arguments) {
  if (arguments.settings && !arguments.dry_run) {
    throw InputError("command line: --settings belongs to --dry-run");
  }
  if (!arguments.retry.empty() && arguments.retry != "failed") {
    throw InputError("command line: --retry " + arguments.retry + ", must be failed");
  }
  load_plugins(arguments.plugins);
}

int run_study(const Study& study, const StudyArguments& arguments, char** argv, std::string& kept,
              const Pilot* pilot) {
  const auto& experiment = study.experiment();
  const bool shown = pilot == nullptr;
  for (const auto& note : experiment.notes) {
    if (shown) std::cerr << "note: " << printable(note) << '\n';
  }
  StudyDisplay display(std::cout, is_terminal(STDOUT_FILENO) && !arguments.quiet, arguments.quiet);
  const Study::RunSettings settings{.force_device = arguments.force_device,
                                    .retry_failed = !arguments.retry.empty(),
                                    .reuse = shown ? arguments.reuse : std::string(),
                                    .pilot = shown ? Stage() : pilot->train};
  if (arguments.dry_run) {
    print_plan(study, arguments, display, settings, pilot);
    return kDone;
  }
  wait_passively(experiment.evaluation.get<std::int64_t>("threads"), argv);
  // An engine ends within the time that its workers have for checkpoints.
  constexpr double kSeconds = 4.5;
  const bool elsewhere = has_cluster(experiment);
  install_stop_handlers(kSeconds + (elsewhere ? experiment.cluster.get<double>("grace") : 0.0));
  if (elsewhere && !arguments.quiet) {
    const auto text = how_to_start_workers(experiment, study.folder());
    if (!text.empty()) std::cout << text << '\n' << std::flush;
  }
  kept = study.folder().string();
  bool complete = true;
  try {
    const auto run = study.run(display, settings);
    if (!shown) return kDone;
    complete = present(study, run);
  } catch (const StopRequested&) {
    if (shown) write_results(study.folder());
    return stopped(kept);
  } catch (const TooManyFailures&) {
    write_results(study.folder());
    if (!arguments.no_report) write_page(page_of_run(study.folder()));
    throw;
  }
  if (!arguments.no_report) write_page(page_of_run(study.folder()));
  return complete ? kDone : kNotPassed;
}

}  // namespace nas
