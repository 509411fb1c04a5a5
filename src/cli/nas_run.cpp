// nas-run: one experiment from its configuration to its result.

#include <iostream>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "cli/command_line.hpp"
#include "cli/describe.hpp"
#include "cli/program.hpp"
#include "cli/programs.hpp"
#include "cli/schema.hpp"
#include "cli/status.hpp"
#include "cli/study_program.hpp"
#include "cli/verify.hpp"
#include "core/error.hpp"
#include "core/installed.hpp"
#include "study/study.hpp"

namespace {

namespace po = boost::program_options;

constexpr const char* kUsage =
    "nas-run: searches attention mechanisms as a configuration says\n"
    "\n"
    "Usage: nas-run CONFIG [KEY.PATH=VALUE ...] [OPTIONS]\n"
    "   or: nas-run RUN --status\n"
    "   or: nas-run COMMAND\n"
    "\n"
    "Runs, or continues, an experiment. CONFIG is a YAML file, or the name of one that comes with\n"
    "attnas: nas-run list configurations.\n"
    "\n"
    "The same command continues a run. It is refused, before anything is trained, where this\n"
    "program would not reproduce the run's records: after a change of the configuration, of the\n"
    "corpus, or of the results version (an attnas whose results differ). Then give another\n"
    "folder with --output, or continue with the attnas that began the run, which the message\n"
    "names. Another LibTorch, BLAS or instruction set causes a warning: last digits may differ.\n"
    "\n"
    "Commands:\n"
    "  list [KIND]            algorithms, problems, objectives, components, data, sections,\n"
    "                         engines, configurations; without KIND all of them\n"
    "  describe NAME          a plug-in, component, section, engine or setting\n"
    "  schema                 JSON Schema of configurations, for editors\n"
    "  verify RUN [--remove]  checks the records of a run\n"
    "\n"
    "Examples:\n"
    "  $ nas-run quickstart                     # a search in minutes, into runs/quickstart\n"
    "  $ nas-run own.yaml --dry-run             # what it would do, and how long that takes\n"
    "  $ nas-run own.yaml training.steps=500    # with another setting\n"
    "  $ nas-run own.yaml retest.replicates=5   # with a re-test, also of a finished search\n"
    "  $ nas-run runs/own --status              # who works on what, and since when\n"
    "\n";

struct Arguments {
  nas::StudyArguments study;
  std::vector<std::string> words;
  bool remove = false;
  bool status = false;
};

po::options_description options(Arguments& arguments) {
  auto visible = nas::study_options(arguments.study, "runs/NAME");
  visible.add_options()("remove", po::bool_switch(&arguments.remove),
                        "verify: remove damaged records, which the command of the run then makes "
                        "again")  //
      ("status", po::bool_switch(&arguments.status),
       "who works on what in the run of this folder, and since when; reads alone");
  return visible;
}

/// A mistyped command is taken for a configuration.
void require_configuration(const std::string& word) {
  if (!nas::located_configuration(word).empty()) return;
  const auto guess = nas::nearest(word, {"list", "describe", "schema", "verify"});
  if (guess.empty()) return;  // its reader says where it was looked for
  throw nas::InputError("command line: " + word +
                        " is neither a command nor a configuration; did you mean " + guess + "?");
}

/// @param kept  receives the folder that keeps what is finished.
int run(int argc, char** argv, std::string& kept) {
  Arguments arguments;
  const auto visible = options(arguments);
  nas::parse_command_line(argc, argv, "nas-run", visible, arguments.words);
  const auto& asked = arguments.study;
  if (nas::answers(asked.help, asked.version, kUsage, visible)) return nas::kDone;
  if (arguments.words.empty()) {
    throw nas::InputError("command line: no configuration given\n\n" + std::string(kUsage) +
                          "for example: nas-run quickstart");
  }
  nas::begin_study_program(asked);
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
  if (arguments.status) {
    if (words.size() != 1) {
      throw nas::InputError("nas-run --status: exactly one run must be given");
    }
    std::cout << nas::status_text(words.front());
    return nas::kDone;
  }
  if (arguments.remove) throw nas::InputError("command line: --remove belongs to nas-run verify");
  require_configuration(words.front());
  const nas::Study study(words.front(), {words.begin() + 1, words.end()}, arguments.study.output);
  return nas::run_study(study, arguments.study, argv, kept);
}

}  // namespace

int nas::nas_run(int argc, char** argv) {
  std::string kept;
  return nas::run_main(
      "nas-run", [&] { return run(argc, argv, kept); }, kept);
}
