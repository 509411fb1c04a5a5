// nas-train: a few named mechanisms against the baseline, without a search.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <boost/program_options.hpp>
#include <nlohmann/json.hpp>

#include "cli/command_line.hpp"
#include "cli/program.hpp"
#include "cli/programs.hpp"
#include "cli/study_program.hpp"
#include "cli/words.hpp"
#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/installed.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/mechanism_name.hpp"
#include "genotype/shorthand.hpp"
#include "report/text.hpp"
#include "store/store.hpp"
#include "study/session/continuing.hpp"
#include "study/stages/gates.hpp"
#include "study/study.hpp"

namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;
using Words = std::vector<std::string>;

constexpr const char* kUsage =
    "nas-train: is a mechanism better than the baseline?\n"
    "\n"
    "Usage: nas-train MECHANISM... CONFIG [KEY.PATH=VALUE ...] [OPTIONS]\n"
    "   or: nas-train [MECHANISM...] RUN [KEY.PATH=VALUE ...] [OPTIONS]\n"
    "\n"
    "Trains the mechanisms and the configuration's baseline, all on the same seeds, which no "
    "search\n"
    "uses, scores the test split, and says what is better or worse beyond noise: paired t-tests,\n"
    "p by Holm over the mechanisms. A mechanism is the baseline with something changed: "
    "sparsemax,\n"
    "rope+sparsemax, gdn, kv_heads=1, mine.so (options that a plug-in registers); or it has a "
    "name\n"
    "of six fields or one layer by layer. It need not lie in the configuration's space. More\n"
    "mechanisms and more seeds may come to a run; what is trained is not trained again.\n"
    "\n"
    "--gates trains a pilot of the configuration's task in their place (nas-data gates): whether\n"
    "attention is better there than no mixer, than windows of 2 and 4 tokens and than counts, at\n"
    "the best of five learning rates each, judged by 8 other seeds; exit code 3 if not.\n"
    "\n"
    "CONFIG is a YAML file, or the name of one that comes with attnas. RUN is the folder of a run\n"
    "that is continued.\n"
    "\n"
    "Examples:\n"
    "  $ nas-train sparsemax output_gate quickstart --seeds 5\n"
    "  $ nas-train swiglu mqa quickstart --until 3%          # as many seeds as it takes\n"
    "  $ nas-train runs/quickstart-train --seeds 10          # more seeds for the same\n"
    "\n";

struct Arguments {
  nas::StudyArguments study;
  Words words;
  std::string seeds;
  std::string until;
  bool anyway = false;
  bool gates = false;
  std::string record;
};

po::options_description options(Arguments& arguments) {
  auto visible = nas::study_options(arguments.study, "runs/NAME-train");
  visible.add_options()(
      "seeds", po::value(&arguments.seeds),
      "training runs of each mechanism, as retest.replicates=N (default: those of "
      "CONFIG or RUN, else 5)");
  visible.add_options()(
      "until", po::value(&arguments.until),
      "e.g. 3%: seeds are added until each mechanism is shown to be better or worse, or within so "
      "much of the baseline's test perplexity; at most --seeds (default: 20)");
  visible.add_options()(
      "anyway", po::bool_switch(&arguments.anyway),
      "trains all, as retest.anyway=true, also where a control is better than the baseline");
  visible.add_options()("gates", po::bool_switch(&arguments.gates),
                        "a pilot of CONFIG's task, in runs/NAME-gates");
  visible.add_options()("record", po::value(&arguments.record),
                        "with --gates: its record (default: gates.json in the run's folder)");
  return visible;
}

fs::path store_of(const std::string& folder) { return fs::path(folder) / "store.sqlite"; }

/// Whether a word is the folder of a run. A mechanism may be too long for a file's name.
bool is_run(const std::string& word) {
  std::error_code unknown;
  return fs::is_regular_file(store_of(word), unknown);
}

/// Whether a word is a configuration's: a word without a folder may be a mechanism's of which a file has the name.
bool is_configuration(const std::string& word) {
  const auto is_yaml = [](const fs::path& file) {
    return file.extension() == ".yaml" || file.extension() == ".yml";
  };
  const auto found = nas::located_configuration(word);
  if (is_yaml(word) || is_yaml(found)) return true;
  return !found.empty() && !word.ends_with(".so") && word.find('/') != std::string::npos;
}

std::string listing(const Words& mechanisms) {
  return "mechanisms=" + nlohmann::json(mechanisms).dump();
}

/// The mechanisms that a run does not list yet; mistakes are left to the reader of the whole list.
Words not_listed(const Words& mechanisms, const nas::Experiment& recorded) {
  const auto frame = nas::frame_of(recorded);
  const auto is_listed = [&](const std::string& name) {
    try {
      const auto base = nas::parse_model(recorded.baseline, frame);
      const auto canonical = nas::candidate_of(nas::named_model(name, frame, base)).name;
      return std::find(recorded.mechanisms.begin(), recorded.mechanisms.end(), canonical) !=
             recorded.mechanisms.end();
    } catch (const nas::InputError&) {
      return false;
    }
  };
  Words others;
  std::remove_copy_if(mechanisms.begin(), mechanisms.end(), std::back_inserter(others), is_listed);
  return others;
}

/// A run as its folder has recorded it, with further mechanisms.
/// @throws InputError if it is a search.
nas::Experiment continued(const std::string& folder, const Words& mechanisms, Words overrides) {
  const nas::Store store(store_of(folder), nas::Store::Mode::read_only);
  const auto config = store.meta("config").value_or(nlohmann::json::object());
  if (!config.contains("mechanisms")) {
    throw nas::InputError(folder +
                          " holds no run of listed mechanisms; nas-run continues a search");
  }
  nas::check_plugins(store.environments(), folder);
  const auto recorded = nas::recorded_experiment(config);
  Words all;
  for (const auto& name : recorded.mechanisms) all.push_back(nas::full_name(name));
  const auto others = not_listed(mechanisms, recorded);
  all.insert(all.end(), others.begin(), others.end());
  overrides.push_back(listing(all));
  return nas::recorded_experiment(config, overrides);
}

/// Of words that are neither a configuration nor a run the last one was to be one, overrides aside.
[[noreturn]] void refuse_sourceless(Words words) {
  std::erase_if(words, [](const auto& word) { return word.find('=') != std::string::npos; });
  Words known;
  for (const auto& file : nas::installed_configurations()) known.push_back(file.stem().string());
  const auto guess = words.empty() ? "" : nas::nearest(words.back(), known);
  throw nas::InputError("command line: no configuration and no run given" +
                        (words.empty() ? "" : ": " + words.back() + " is neither") +
                        (guess.empty() ? "" : ", did you mean " + guess + "?") +
                        "; nas-train --help shows how");
}

/// "3%" and "3" of --until, as a percentage.
std::string percentage(std::string text) {
  if (text.ends_with('%')) text.pop_back();
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

/// Seeds that --until may come to where nothing says how many.
constexpr const char* kMostSeeds = "20";

/// Whether a run's seeds are already added until something is decided.
bool is_sequence(const std::string& folder) {
  const nas::Store store(store_of(folder), nas::Store::Mode::read_only);
  const auto config = store.meta("config").value_or(nlohmann::json::object());
  return config.value("retest", nlohmann::json::object()).contains("until");
}

/// Adds what --seeds and --until say.
void add_seeds(const Arguments& arguments, const std::string& source, Words& overrides) {
  const auto& seeds = arguments.seeds;
  const auto& until = arguments.until;
  if (!seeds.empty()) nas::add_override(overrides, "--seeds", "retest.replicates", seeds);
  if (arguments.anyway) nas::add_override(overrides, "--anyway", "retest.anyway", "true");
  if (until.empty()) return;
  const bool is_zero = percentage(until).find_first_not_of("0.") == std::string::npos;
  if (is_zero) {
    throw nas::InputError("command line: --until = " + until + ", must be above 0 %");
  }
  nas::add_override(overrides, "--until", "retest.until", percentage(until));
  const bool given = std::any_of(overrides.begin(), overrides.end(), [](const auto& word) {
    return word.starts_with("retest.replicates=");
  });
  if (given || (is_run(source) && is_sequence(source))) return;
  overrides.push_back(std::string("retest.replicates=") + kMostSeeds);
}

/// What the command line asks for. @throws InputError with all mistakes.
nas::Study study_of(const Arguments& arguments) {
  const auto& words = arguments.words;
  const auto source = std::find_if(words.begin(), words.end(), [](const auto& word) {
    return is_configuration(word) || is_run(word);
  });
  if (source == words.end()) refuse_sourceless(words);
  const Words mechanisms(words.begin(), source);
  for (const auto& word : mechanisms) {
    if (nas::is_utf8(word)) continue;
    throw nas::InputError("command line: '" + word + "', must be text in UTF-8");
  }
  nas::load_plugins_of_names(mechanisms);
  Words overrides(std::next(source), words.end());
  for (const auto& word : overrides) {
    const auto equals = word.find('=');
    if (equals != std::string::npos &&
        word.substr(0, equals).find_first_of("|{*+") == std::string::npos) {
      continue;
    }
    throw nas::InputError("command line: '" + word +
                          "', must be key.path=value, and a mechanism before " + *source);
  }
  add_seeds(arguments, *source, overrides);
  if (is_run(*source)) {
    if (!arguments.study.output.empty()) {
      throw nas::InputError("command line: --output " + arguments.study.output +
                            ", must be left out where the run " + *source + " is continued");
    }
    return nas::Study(continued(*source, mechanisms, std::move(overrides)), *source);
  }
  if (!mechanisms.empty()) overrides.push_back(listing(mechanisms));
  nas::Study study(*source, overrides, arguments.study.output);
  if (study.experiment().mechanisms.empty()) {
    throw nas::InputError("command line: no mechanism given before " + *source +
                          ", which lists none; nas-train --help shows how");
  }
  return study;
}

/// Writes and prints a record of gates.
int show_gates(const nlohmann::json& record, const fs::path& path) {
  nas::write_durably(path, record.dump(1) + '\n');
  for (const auto& gate : record.at("gates")) {
    std::cout << nas::wrapped((gate.at("passed") ? "  passed  " : "  FAILED  ") +
                                  gate.at("name").get<std::string>() + ": " +
                                  gate.at("words").get<std::string>() + '\n',
                              nas::line_width());
  }
  std::cout << '\n'
            << nas::wrapped(record.at("verdict").get<std::string>() + '\n', nas::line_width())
            << "\nfor the configuration: " << nas::rates_text(record) << "\nwritten to "
            << path.string() << '\n';
  return record.at("passed") ? nas::kDone : nas::kNotPassed;
}

/// A pilot of a configuration's task.
int run_gates(const Arguments& arguments, char** argv, std::string& kept) {
  if (arguments.words.empty()) {
    throw nas::InputError("command line: no configuration given; nas-train --help shows how");
  }
  for (const auto& [option, value] :
       {std::pair("--seeds", &arguments.seeds), std::pair("--until", &arguments.until)}) {
    if (value->empty()) continue;
    throw nas::InputError(std::string("command line: ") + option + ' ' + *value +
                          ", must be left out beside --gates, whose seeds are fixed");
  }
  const auto& file = arguments.words.front();
  if (!is_configuration(file) && arguments.words.size() > 1 &&
      is_configuration(arguments.words.back())) {
    throw nas::InputError("command line: " + file +
                          ", must be left out beside --gates, which trains the baseline and its "
                          "controls");
  }
  Words overrides(std::next(arguments.words.begin()), arguments.words.end());
  const auto given = nas::load_experiment(file, overrides);
  const auto plan = nas::plan_gates(given);
  overrides.insert(overrides.end(), plan.overrides.begin(), plan.overrides.end());
  const auto folder = arguments.study.output.empty() ? fs::path("runs") / (given.name + "-gates")
                                                     : fs::path(arguments.study.output);
  const nas::Study study(file, overrides, folder);
  nlohmann::json record;
  const nas::Pilot pilot{.text = plan.text,
                         .trainings = plan.trainings,
                         .train = [&record](const auto& work) { record = nas::train_gates(work); }};
  const auto code = nas::run_study(study, arguments.study, argv, kept, &pilot);
  if (record.is_null()) return code;
  return show_gates(record,
                    arguments.record.empty() ? folder / "gates.json" : fs::path(arguments.record));
}

/// @param kept  receives the folder that keeps what is finished.
int run(int argc, char** argv, std::string& kept) {
  Arguments arguments;
  const auto visible = options(arguments);
  nas::parse_command_line(argc, argv, "nas-train", visible, arguments.words);
  const auto& asked = arguments.study;
  if (nas::answers(asked.help, asked.version, kUsage, visible)) {
    return nas::kDone;
  }
  nas::begin_study_program(asked);
  if (arguments.gates) return run_gates(arguments, argv, kept);
  return nas::run_study(study_of(arguments), arguments.study, argv, kept);
}

}  // namespace

int nas::nas_train(int argc, char** argv) {
  std::string kept;
  return nas::run_main(
      "nas-train", [&] { return run(argc, argv, kept); }, kept);
}
