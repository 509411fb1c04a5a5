// nas-compare: many searches of several algorithms on one table.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/program_options.hpp>
#include <unistd.h>

#include "cli/command_line.hpp"
#include "cli/page.hpp"
#include "cli/program.hpp"
#include "cli/programs.hpp"
#include "cli/running_trainings.hpp"
#include "cli/status_lines.hpp"
#include "cli/words.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/installed.hpp"
#include "core/stop.hpp"
#include "core/terminal.hpp"
#include "core/words.hpp"
#include "report/columns.hpp"
#include "report/text.hpp"
#include "study/comparison_study.hpp"

namespace {

namespace po = boost::program_options;

constexpr const char* kUsage =
    "nas-compare: compares search algorithms on a table of finished training runs\n"
    "\n"
    "Usage: nas-compare CONFIG [KEY.PATH=VALUE ...] [OPTIONS]\n"
    "\n"
    "Runs, or continues, a comparison. CONFIG is a YAML file with a list `algorithms`, or the "
    "name\n"
    "of one that comes with attnas: nas-run list configurations.\n"
    "\n"
    "Examples:\n"
    "  $ nas-compare compare_text                          # a minute on 2 cores\n"
    "  $ nas-compare compare_text --algorithms local_search,cmaes --seeds 100\n"
    "\n";

struct Arguments {
  std::vector<std::string> words;
  std::vector<std::string> plugins;
  std::string output;
  std::string algorithms;
  std::string seeds;
  int threads = 0;
  bool quiet = false;
  bool no_report = false;
  bool help = false;
  bool version = false;
};

void require_positive_threads(int threads) {
  if (threads >= 1) return;
  throw nas::InputError("command line: --threads = " + std::to_string(threads) +
                        ", must be at least 1");
}

po::options_description options(Arguments& arguments) {
  po::options_description visible("Options");
  visible.add_options()  //
      ("output,o", po::value(&arguments.output),
       "the comparison's folder (default: runs/NAME)")                              //
      ("plugin", po::value(&arguments.plugins), nas::kPluginHelp)                   //
      ("seeds", po::value(&arguments.seeds), "searches per algorithm, as seeds=N")  //
      ("algorithms", po::value(&arguments.algorithms),
       "only these, by name: a,b,...")  //
      ("threads", po::value(&arguments.threads)->notifier(require_positive_threads),
       "concurrent searches (default: one per core)")  //
      ("no-report", po::bool_switch(&arguments.no_report),
       "do not write compare.html, the page with statistics and pictures")     //
      ("quiet,q", po::bool_switch(&arguments.quiet), "print the result only")  //
      ("help,h", po::bool_switch(&arguments.help), "print this text")          //
      ("version", po::bool_switch(&arguments.version), "print versions");
  return visible;
}

/// Says how far the searches are: on a terminal by a line that is rewritten, else by one per algorithm
/// that is reached.
class SearchesDisplay {
 public:
  explicit SearchesDisplay(bool quiet) : quiet_(quiet) {
    if (nas::is_terminal(STDOUT_FILENO)) {
      line_.emplace(std::cout, nas::terminal_width, nas::steady_seconds);
    }
  }

  void update(std::size_t done, std::size_t missing, const std::string& algorithm) {
    const bool news = done == missing || algorithm != std::exchange(algorithm_, algorithm);
    if (quiet_ || !(line_ || news)) return;
    const double left = (nas::steady_seconds() - started_) / static_cast<double>(done) *
                        static_cast<double>(missing - done);
    const auto text = std::to_string(done) + "/" + std::to_string(missing) + " searches, " +
                      nas::human_duration(left) + " left, " + algorithm;
    if (line_) {
      line_->show(text, done == missing);
    } else {
      std::cout << nas::printable(text) << std::endl;
    }
  }

 private:
  bool quiet_;
  std::optional<nas::PacedLine> line_{};  ///< of a terminal
  std::string algorithm_{};               ///< that the last line named
  double started_ = nas::steady_seconds();
};

/// The outcome of each algorithm, one line each.
std::string closing_table(const nas::ComparisonResult& result) {
  nas::Column names{.header = "algorithm", .left = true};
  nas::Column searches{.header = "searches"};
  nas::Column outcome{.header = result.several ? "true hypervolume" : "true regret"};
  nas::Column interval{.header = "95 %"};
  nas::Column everything{.header = "of everything evaluated", .spare = true};
  nas::Column asks{.header = "asks/training", .spare = true};
  nas::Column rate{.header = "asks/s", .spare = true};
  const int decimals = result.several ? 4 : 3;
  for (const auto& algorithm : result.algorithms) {
    names.cells.push_back(algorithm.name);
    searches.cells.push_back(std::to_string(algorithm.searches));
    outcome.cells.push_back(nas::fixed_text(algorithm.returned, decimals));
    const auto [low, high] = algorithm.interval;
    interval.cells.push_back(std::isfinite(low) ? nas::fixed_text(low, decimals) + " to " +
                                                      nas::fixed_text(high, decimals)
                                                : std::string());
    everything.cells.push_back(nas::fixed_text(algorithm.everything, decimals));
    asks.cells.push_back(nas::fixed_text(algorithm.asks_per_training, 2));
    rate.cells.push_back(nas::human_count(algorithm.asks_per_second));
  }
  auto text = (result.several ? "medians over searches: true hypervolume of the fronts that they "
                                "return, as a share of the best, "
                              : "medians over searches: by how much the " + result.objective +
                                    " of what they return is worse than the best, ") +
              nas::number_text(result.best) + "\n";
  const auto& on_validation = result.judged_on_validation;
  if (!on_validation.empty()) {
    text += "beware: " + nas::join(on_validation) +
            " judged on the validation split, as searched: the table does not hold what the test "
            "split says of " +
            (on_validation.size() == 1 ? "it" : "them") + "\n";
  }
  const auto width = nas::line_width();
  text += nas::aligned({names, searches, outcome, interval, everything, asks, rate}, width);
  if (result.recycled > 0) {
    text += "\n" + std::to_string(result.recycled) +
            " evaluations met a recorded training run again: the table has " +
            std::to_string(result.replicates) + " per mechanism\n";
  }
  return nas::wrapped(text, width);
}

/// @param kept  receives the folder that keeps what is finished.
int run(int argc, char** argv, std::string& kept) {
  Arguments arguments;
  const auto visible = options(arguments);
  nas::parse_command_line(argc, argv, "nas-compare", visible, arguments.words);
  if (nas::answers(arguments.help, arguments.version, kUsage, visible)) {
    return nas::kDone;
  }
  if (arguments.words.empty()) {
    throw nas::InputError("command line: no configuration given\n\n" + std::string(kUsage) +
                          "for example: nas-compare compare_text");
  }
  nas::load_plugins(arguments.plugins);
  std::vector<std::string> overrides(arguments.words.begin() + 1, arguments.words.end());
  if (!arguments.seeds.empty()) nas::add_override(overrides, "--seeds", "seeds", arguments.seeds);
  auto comparison = nas::load_comparison(arguments.words.front(), overrides);
  if (const auto names = nas::split(arguments.algorithms, ','); !arguments.algorithms.empty()) {
    keep_contenders(comparison, {names.begin(), names.end()});
  }
  const std::filesystem::path folder =
      arguments.output.empty() ? std::filesystem::path("runs") / comparison.common().name
                               : std::filesystem::path(nas::at_home(arguments.output));
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  nas::install_stop_handlers();
  kept = folder.string();
  try {
    nas::ComparisonResult result;
    {
      SearchesDisplay display(arguments.quiet);
      result = nas::run_comparison(comparison,
                                   {.folder = folder,
                                    .threads = arguments.threads > 0 ? arguments.threads : cores,
                                    .on_progress = [&display](std::size_t done, std::size_t missing,
                                                              const std::string& name) {
                                      display.update(done, missing, name);
                                    }});
    }
    std::cout << '\n'
              << nas::printable(closing_table(result)) << "\nwritten to "
              << (folder / "comparison.sqlite").string() << '\n';
  } catch (const nas::StopRequested&) {
    std::cout << "\nStopped.";
    if (nas::has_store(folder)) {
      std::cout << " Every finished search is kept in " << folder.string()
                << "; the same command continues.";
    }
    std::cout << '\n';
    return nas::kStopped;
  }
  if (!arguments.no_report) nas::write_page(nas::page_of_comparison(folder));
  return nas::kDone;
}

}  // namespace

int nas::nas_compare(int argc, char** argv) {
  std::string kept;
  return nas::run_main(
      "nas-compare", [&] { return run(argc, argv, kept); }, kept);
}
