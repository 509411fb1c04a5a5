// nas-compare: many searches of several algorithms on one table.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <thread>

#include <boost/program_options.hpp>

#include "cli/command_line.hpp"
#include "cli/compare.hpp"
#include "cli/comparison.hpp"
#include "cli/page.hpp"
#include "cli/program.hpp"
#include "cli/run.hpp"
#include "core/error.hpp"
#include "core/stop.hpp"

namespace {

namespace po = boost::program_options;

constexpr const char* kUsage =
    "nas-compare: compares search algorithms on a table of finished trainings\n"
    "\n"
    "  nas-compare CONFIG [key.path=value ...] [options]   run, or continue, a comparison\n"
    "\n";

struct Arguments {
  std::vector<std::string> words;
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
  po::options_description visible("options");
  visible.add_options()  //
      ("output,o", po::value(&arguments.output),
       "the comparison's folder (default: runs/NAME)")                                  //
      ("seeds", po::value(&arguments.seeds), "searches of each algorithm, as seeds=N")  //
      ("algorithms", po::value(&arguments.algorithms),
       "only these, by name: a,b,...")  //
      ("threads", po::value(&arguments.threads)->notifier(require_positive_threads),
       "searches at once (default: the cores)")  //
      ("no-report", po::bool_switch(&arguments.no_report),
       "do not write compare.html, the page with statistics and pictures")     //
      ("quiet,q", po::bool_switch(&arguments.quiet), "print the result only")  //
      ("help,h", po::bool_switch(&arguments.help), "print this text")          //
      ("version", po::bool_switch(&arguments.version), "print versions");
  return visible;
}

std::vector<std::string> split(const std::string& names) {
  std::vector<std::string> result;
  for (std::size_t begin = 0; begin <= names.size();) {
    const auto end = std::min(names.find(',', begin), names.size());
    result.push_back(names.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

/// @param kept  receives the folder that keeps what is finished.
int run(int argc, char** argv, std::string& kept) {
  Arguments arguments;
  const auto visible = options(arguments);
  nas::parse_command_line(argc, argv, "nas-compare", visible, arguments.words);
  if (arguments.help) {
    std::cout << kUsage << visible << nas::exit_codes_text();
    return nas::kDone;
  }
  if (arguments.version) {
    std::cout << nas::version_text();
    return nas::kDone;
  }
  if (arguments.words.empty()) {
    throw nas::InputError("command line: no configuration given\n\n" + std::string(kUsage) +
                          "for example: nas-compare configs/compare_mini.yaml");
  }
  std::vector<std::string> overrides(arguments.words.begin() + 1, arguments.words.end());
  if (!arguments.seeds.empty()) overrides.push_back("seeds=" + arguments.seeds);
  auto comparison = nas::load_comparison(arguments.words.front(), overrides);
  if (!arguments.algorithms.empty()) keep_contenders(comparison, split(arguments.algorithms));
  const std::filesystem::path folder =
      arguments.output.empty() ? std::filesystem::path("runs") / comparison.common().name
                               : std::filesystem::path(arguments.output);
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  nas::install_stop_handlers();
  kept = folder.string();
  try {
    nas::run_comparison(comparison, {.folder = folder,
                                     .threads = arguments.threads > 0 ? arguments.threads : cores,
                                     .quiet = arguments.quiet});
  } catch (const nas::StopRequested&) {
    std::cout << "\nStopped. Every finished search is kept in " << folder.string()
              << "; the same command continues.\n";
    return nas::kStopped;
  }
  if (!arguments.no_report) nas::write_page(nas::page_of_comparison(folder));
  return nas::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  std::string kept;
  return nas::run_main(
      "nas-compare", [&] { return run(argc, argv, kept); }, kept);
}
