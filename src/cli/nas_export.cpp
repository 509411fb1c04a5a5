// nas-export: a run's records in other forms.

#include <filesystem>
#include <iostream>

#include <boost/program_options.hpp>

#include "core/error.hpp"
#include "report/files.hpp"

namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr const char* kUsage =
    "nas-export RUN --canonical | --json | --csv [--output FILE]\n"
    "  RUN is a run's folder, or its store.sqlite\n\n";

int run(int argc, char** argv) {
  std::string source;
  std::string output;
  bool canonical = false;
  bool json = false;
  bool csv = false;
  bool help = false;
  po::options_description visible("options");
  visible.add_options()  //
      ("canonical", po::bool_switch(&canonical),
       "JSON Lines of all that does not depend on clock, process or machine")       //
      ("json", po::bool_switch(&json), "the result, as results.json")               //
      ("csv", po::bool_switch(&csv), "one line an evaluation")                      //
      ("output,o", po::value(&output), "write to FILE instead of standard output")  //
      ("help,h", po::bool_switch(&help), "print this text");
  po::options_description all = visible;
  all.add_options()("run", po::value(&source));
  po::positional_options_description positional;
  positional.add("run", 1);
  try {
    po::variables_map values;
    po::store(po::command_line_parser(argc, argv).options(all).positional(positional).run(),
              values);
    po::notify(values);
  } catch (const po::error& error) {
    throw nas::InputError(std::string("command line: ") + error.what());
  }
  if (help) {
    std::cout << kUsage << visible;
    return 0;
  }
  if (source.empty() || int{canonical} + int{json} + int{csv} != 1) {
    throw nas::InputError(std::string("command line: give a run and one form\n") + kUsage);
  }
  fs::path file = source;
  if (fs::is_directory(file)) file /= "store.sqlite";
  const nas::RunSummary summary(nas::Store(file, nas::Store::Mode::read_only));
  const auto text = canonical ? nas::canonical_export(summary)
                    : json    ? nas::results_json(summary).dump(2) + "\n"
                              : nas::evaluations_csv(summary);
  if (output.empty()) {
    std::cout << text;
  } else {
    nas::write_file(output, text);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const nas::InputError& error) {
    std::cerr << "nas-export: " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "nas-export: " << error.what() << '\n';
    return 1;
  }
}
