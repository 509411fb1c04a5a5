#include "cli/program.hpp"
#include "cli/study_program.hpp"
#include "core/error.hpp"

namespace nas {

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

}  // namespace nas
