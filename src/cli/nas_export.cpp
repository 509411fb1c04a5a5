// nas-export: the records of runs in other forms.

#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>

#include <boost/program_options.hpp>

#include "cli/program.hpp"
#include "core/error.hpp"
#include "report/digest.hpp"
#include "report/exports.hpp"
#include "report/files.hpp"
#include "report/recorded_asks.hpp"

namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;
using Runs = std::span<const nas::RunSummary>;

constexpr const char* kUsage =
    "nas-export RUN... --format FORMAT [--output PATH]\n"
    "  RUN is a run's folder, or its store.sqlite\n\n";

struct Options {
  std::vector<std::string> runs{};
  std::string format{};
  std::string output{};
  bool canonical = false;
  bool all_points = false;
  std::int64_t trainings = std::numeric_limits<std::int64_t>::max();
  bool force = false;
  bool help = false;
};

/// A form in which runs can be had: a text, or a folder of files.
struct Format {
  const char* name;
  const char* help;
  bool several = false;     ///< takes several runs
  bool comparable = false;  ///< which must be of the same objectives and the same function
  std::function<std::string(Runs, const Options&)> text{};
  std::function<std::map<fs::path, std::string>(Runs)> files{};
};

const std::vector<Format>& formats() {
  static const std::vector<Format> kFormats{
      {.name = "canonical",
       .help = "JSON Lines of all that does not depend on clock, process or machine",
       .text = [](Runs runs, const Options&) { return nas::canonical_export(runs.front()); }},
      {.name = "json",
       .help = "the result, as results.json",
       .text = [](Runs runs,
                  const Options&) { return nas::digest_text(nas::results_json(runs.front())); }},
      {.name = "evaluations",
       .help = "CSV, one line per evaluation, as evaluations.csv",
       .text = [](Runs runs, const Options&) { return nas::evaluations_csv(runs.front()); }},
      {.name = "csv",
       .help = "CSV, one line per ask",
       .text = [](Runs runs, const Options&) { return nas::asks_csv(runs.front()); }},
      {.name = "ioh",
       .help = "IOHprofiler's folder, for IOHanalyzer and iohinspector; several runs",
       .several = true,
       .comparable = true,
       .files = nas::ioh_files},
      {.name = "points",
       .help = "point sets, for moocore and R's eaf; several runs",
       .several = true,
       .comparable = true,
       .text = [](Runs runs,
                  const Options& options) { return nas::point_sets(runs, options.all_points); }},
      {.name = "optuna",
       .help = "Optuna's journal file, for optuna-dashboard; several runs",
       .several = true,
       .text = [](Runs runs, const Options&) { return nas::optuna_journal(runs); }}};
  return kFormats;
}

std::string formats_text() {
  std::string text = "formats:\n";
  for (const auto& format : formats()) {
    const std::string name = format.name;
    text += "  " + name + std::string(13 - name.size(), ' ') + format.help + '\n';
  }
  return text;
}

const Format& format_named(const std::string& name) {
  std::vector<std::string> known;
  for (const auto& format : formats()) {
    if (format.name == name) return format;
    known.emplace_back(format.name);
  }
  throw nas::InputError("command line: --format " + name + ", must be one of " + nas::join(known));
}

po::options_description visible_options(Options& options) {
  po::options_description visible("options");
  visible.add_options()                                                         //
      ("format", po::value(&options.format), "what to write, see below")        //
      ("canonical", po::bool_switch(&options.canonical), "--format canonical")  //
      ("output,o", po::value(&options.output),
       "write to PATH instead of standard output; a folder needs it")        //
      ("force", po::bool_switch(&options.force), "replace what is at PATH")  //
      ("trainings", po::value(&options.trainings),
       "points: as the run stood after so many training runs")  //
      ("all-points", po::bool_switch(&options.all_points),
       "points: all candidates, not the non-dominated ones alone")  //
      ("help,h", po::bool_switch(&options.help), "print this text");
  return visible;
}

/// @throws InputError if options are missing or do not go together.
const Format& check(const Options& options) {
  const auto refuse = [](const std::string& message) -> void {
    throw nas::InputError("command line: " + message);
  };
  if (options.runs.empty() || options.canonical != options.format.empty()) {
    refuse(std::string("give a run and one format\n") + kUsage + formats_text());
  }
  const auto& format = format_named(options.canonical ? "canonical" : options.format);
  const std::string name = format.name;
  if (options.runs.size() > 1 && !format.several) {
    refuse("--format " + name + " takes one run, not " + std::to_string(options.runs.size()));
  }
  const bool cut = options.trainings != std::numeric_limits<std::int64_t>::max();
  if (name != "points" && (cut || options.all_points)) {
    refuse("--trainings and --all-points belong to --format points, not to " + name);
  }
  if (options.trainings < 1) {
    refuse("--trainings " + std::to_string(options.trainings) + ", must be >= 1");
  }
  if (format.files && options.output.empty()) {
    refuse("--format " + name + " is a folder: give --output PATH");
  }
  if (!options.force && !options.output.empty() && fs::exists(options.output)) {
    refuse(options.output + " exists already; --force replaces it");
  }
  return format;
}

/// What runs that are written together must have in common.
std::string subject(const nas::RunSummary& run) {
  std::vector<std::string> objectives;
  for (const auto& objective : run.objectives) objectives.push_back(objective.title());
  return nas::join(objectives) + " on " + nas::function_title(run);
}

std::vector<nas::RunSummary> read_runs(const Options& options, bool comparable) {
  std::vector<nas::RunSummary> runs;
  for (const auto& source : options.runs) {
    fs::path file = source;
    if (fs::is_directory(file)) file /= "store.sqlite";
    runs.emplace_back(nas::Store(file, nas::Store::Mode::read_only), options.trainings);
    if (comparable && subject(runs.back()) != subject(runs.front())) {
      throw nas::InputError(source + " is a search of " + subject(runs.back()) + ", " +
                            options.runs.front() + " of " + subject(runs.front()) +
                            "; runs that are written together must agree");
    }
  }
  return runs;
}

int run(int argc, char** argv) {
  Options options;
  const auto visible = visible_options(options);
  po::options_description all;
  all.add(visible).add_options()("run", po::value(&options.runs));
  po::positional_options_description positional;
  positional.add("run", -1);
  try {
    po::variables_map values;
    po::store(po::command_line_parser(argc, argv).options(all).positional(positional).run(),
              values);
    po::notify(values);
  } catch (const po::error& error) {
    throw nas::InputError(std::string("command line: ") + error.what());
  }
  if (options.help) {
    std::cout << kUsage << visible << '\n' << formats_text() << nas::exit_codes_text();
    return 0;
  }
  const auto& format = check(options);
  const auto runs = read_runs(options, format.comparable);
  if (format.files) {
    nas::write_folder(options.output, format.files(runs));
  } else if (options.output.empty()) {
    std::cout << format.text(runs, options) << std::flush;
    if (!std::cout) throw nas::MachineError("standard output: cannot be written");
  } else {
    nas::write_file(options.output, format.text(runs, options));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return nas::run_main("nas-export", [&] { return run(argc, argv); });
}
