// nas-run: one experiment from its configuration to its result.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <sstream>
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
#include "cli/words.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/installed.hpp"
#include "core/stop.hpp"
#include "report/text.hpp"
#include "study/reproduction.hpp"
#include "study/study.hpp"

namespace {

namespace fs = std::filesystem;
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
    "names. Another LibTorch, BLAS or instruction set, or another value of a variable that they "
    "read,\n"
    "causes a warning: last digits may differ.\n"
    "\n"
    "Commands:\n"
    "  list [KIND]            algorithms, problems, objectives, components, data, sections,\n"
    "                         engines, configurations; without KIND all of them\n"
    "  describe NAME          a plug-in, component, section, engine, gene or setting, also by its\n"
    "                         path: training.steps\n"
    "  schema                 JSON Schema of configurations, for editors\n"
    "  verify RUN [--remove] [--retrain K [KEY.PATH=VALUE ...]]\n"
    "                         checks the records of a run; --retrain trains K of them again: exit\n"
    "                         code 0 if all results are bitwise equal, else 2, also where another\n"
    "                         LibTorch, BLAS, instruction set or device may be why, which is said\n"
    "\n"
    "Examples:\n"
    "  $ nas-run quickstart                     # a search in minutes, into runs/quickstart\n"
    "  $ nas-run own.yaml --dry-run             # what it would do, and how long that takes\n"
    "  $ nas-run own.yaml training.steps=500    # with another setting\n"
    "  $ nas-run own.yaml retest.replicates=5   # with a re-test, also of a finished search\n"
    "  $ nas-run runs/own --status              # who works on what, and since when\n"
    "  $ nas-run verify runs/own --retrain 3    # whether three of its results come again\n"
    "\n";

struct Arguments {
  nas::StudyArguments study;
  std::vector<std::string> words;
  std::int64_t retrain = 0;  ///< evaluations; 0: it is not given
  bool remove = false;
  bool status = false;
};

/// How many evaluations --retrain asks for.
std::int64_t number_to_retrain(const std::string& text) {
  const std::string name = "command line: --retrain";
  const auto number = nas::parse_number<std::int64_t>(name, text);
  if (number >= 1) return number;
  throw nas::InputError(name + " = " + text + ", must be at least 1");
}

po::options_description options(Arguments& arguments) {
  auto visible = nas::study_options(arguments.study, "runs/NAME");
  visible.add_options()("remove", po::bool_switch(&arguments.remove),
                        "verify: remove damaged records, which the command of the run then makes "
                        "again")  //
      ("retrain", po::value<std::string>()->notifier([&arguments](const std::string& text) {
        arguments.retrain = number_to_retrain(text);
      }),
       "verify: train so many evaluations of the record again, from nothing, and compare them with "
       "it; they are drawn by the run's seed, all of them where there are no more, and nothing is "
       "written")  //
      ("status", po::bool_switch(&arguments.status),
       "say what is trained at the moment in the run of this folder, and since when; changes "
       "nothing");
  return visible;
}

/// A mistyped command is taken for a configuration.
void require_configuration(const std::string& word) {
  if (!nas::located_configuration(word).empty()) return;
  const auto hint =
      nas::did_you_mean(word, {"list", "describe", "schema", "verify", "--status", "--help"});
  if (hint.empty()) return;  // its reader says where it was looked for
  throw nas::InputError("command line: " + word + " is neither a command nor a configuration" +
                        hint);
}

/// What came of the evaluation that was made again last, in lines.
std::string made_again(const nas::Reproduction& so_far) {
  constexpr std::size_t kShown = 3;
  const auto& one = so_far.made.back();
  const auto& fields = one.differences;
  std::ostringstream text;
  text << (so_far.trains ? "retrained " : "evaluated ") << one.label << " replicate "
       << one.replicate << (fields.empty() ? ": equal" : ": differs");
  if (so_far.trains) text << " (" << nas::human_duration(one.seconds) << ')';
  text << ", " << so_far.made.size() << " of " << so_far.drawn << '\n';
  for (std::size_t i = 0; i < std::min(kShown, fields.size()); ++i) {
    text << "  " << fields[i] << '\n';
  }
  if (fields.size() > kShown) {
    const auto more = static_cast<std::int64_t>(fields.size() - kShown);
    text << "  and " << nas::counted(more, "further field") << '\n';
  }
  if (!fields.empty() && !one.environment.empty()) {
    text << "  last digits may differ by another environment: " << one.environment << '\n';
  }
  return text.str();
}

/// The closing lines: how many are as recorded, and how far from the record the others are.
std::string judged(const nas::Reproduction& made) {
  const auto different = made.num_different();
  std::ostringstream text;
  text << (made.trains ? "retrained " : "evaluated ") << made.drawn << " of "
       << nas::counted(made.possible, "evaluation");
  if (!made.trains) text << " again, for which the problem " << made.problem << " trains nothing";
  text << ": ";
  if (different == 0) {
    text << "all equal to the record\n";
    return text.str();
  }
  text << different << (different == 1 ? " differs" : " differ") << " from the record\n";
  double largest = 0.0;
  for (const auto& one : made.made) largest = std::max(largest, one.loss_difference.value_or(0.0));
  if (largest > 0.0) {
    text << "largest relative difference of a final validation loss: " << std::scientific
         << std::setprecision(1) << largest << '\n';
  }
  const auto any = [&made](bool known) {
    return std::any_of(made.made.begin(), made.made.end(), [known](const auto& one) {
      return !one.differences.empty() && one.environment.empty() && one.environment_known == known;
    });
  };
  if (any(true)) {
    text << "no other environment is recorded that might be why: the record was altered, or a "
            "machine or a program is at fault\n";
  }
  if (any(false)) {
    text
        << "the record does not tell all that last digits depend on, such as the instructions that "
           "LibTorch computes with: an older attnas has made it, or a worker elsewhere\n";
  }
  return text.str();
}

/// Makes evaluations of a run again, telling of each.
/// @param arguments  whose words are "verify", the run and overrides.
/// @return whether all are as recorded.
bool retrain(const Arguments& arguments) {
  const auto& words = arguments.words;
  nas::install_stop_handlers();
  const auto made = nas::reproduce(words[1],
                                   {.count = arguments.retrain,
                                    .overrides = {words.begin() + 2, words.end()},
                                    .force_device = arguments.study.force_device},
                                   [&](const nas::Reproduction& so_far) {
                                     const bool equal = so_far.made.back().differences.empty();
                                     if (equal && arguments.study.quiet) return;
                                     std::cout << nas::printable(made_again(so_far)) << std::flush;
                                   });
  std::cout << judged(made);
  return made.num_different() == 0;
}

/// @return exit code.
int verify(const Arguments& arguments) {
  const auto& words = arguments.words;
  const bool retrains = arguments.retrain > 0;
  if (words.size() < 2 || (words.size() > 2 && !retrains)) {
    throw nas::InputError("verify: exactly one run must be given");
  }
  if (!nas::verify_run(words[1], arguments.remove, std::cout)) return nas::kBadInput;
  if (retrains && !retrain(arguments)) return nas::kBadInput;
  return nas::kDone;
}

/// @param kept  receives the folder that keeps what is finished.
int run(int argc, char** argv, std::string& kept) {
  Arguments arguments;
  const auto visible = options(arguments);
  const auto given = nas::parse_command_line(argc, argv, "nas-run", visible, arguments.words);
  const auto& asked = arguments.study;
  if (nas::answers(asked.help, asked.version, kUsage, visible)) {
    return nas::kDone;
  }
  if (arguments.words.empty()) {
    throw nas::InputError("command line: no configuration given\n\n" + std::string(kUsage) +
                          "for example: nas-run quickstart");
  }
  nas::begin_study_program(asked);
  const auto& words = arguments.words;
  if (arguments.status) {
    if (words.size() != 1) throw nas::InputError("--status: exactly one run must be given");
    std::cout << nas::status_text(words.front());
    return nas::kDone;
  }
  if (words.front() != "verify") {
    if (arguments.remove) throw nas::InputError("command line: --remove belongs to nas-run verify");
    if (arguments.retrain > 0) {
      throw nas::InputError("command line: --retrain belongs to nas-run verify");
    }
  }
  if (nas::has_word({words.front()}, {"schema", "list", "describe"})) {
    for (const auto& [option, value] : given) {
      if (value.defaulted() || option == "words" || option == "plugin") continue;
      throw nas::InputError("command line: --" + option + " has no effect on nas-run " +
                            words.front() + ", must be left out");
    }
  }
  if (words.front() == "schema") {
    if (words.size() > 1) throw nas::InputError("schema: takes no further word");
    std::cout << nas::schema_json().dump(2) << '\n';
    return nas::kDone;
  }
  if (words.front() == "list" || words.front() == "describe") {
    const bool list = words.front() == "list";
    if (words.size() > 2 || (!list && words.size() != 2)) {
      throw nas::InputError(list ? "list: at most one kind may be given"
                                 : "describe: exactly one name must be given");
    }
    const auto text =
        list ? nas::list_text(words.size() > 1 ? words[1] : "") : nas::describe_text(words[1]);
    std::cout << nas::wrapped(text, nas::line_width());
    return nas::kDone;
  }
  if (words.front() == "verify") return verify(arguments);
  require_configuration(words.front());
  constexpr std::string_view kBaseline = "baseline=";
  for (const auto& word : words) {
    if (word.starts_with(kBaseline)) nas::load_plugins_of_names({word.substr(kBaseline.size())});
  }
  const nas::Study study(words.front(), {words.begin() + 1, words.end()}, arguments.study.output);
  return nas::run_study(study, arguments.study, argv, kept);
}

}  // namespace

int nas::nas_run(int argc, char** argv) {
  std::string kept;
  return nas::run_main(
      "nas-run", [&] { return run(argc, argv, kept); }, kept);
}
