// nas-watch: runs in the browser, while they are written and after their end.

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "cli/command_line.hpp"
#include "cli/program.hpp"
#include "cli/programs.hpp"
#include "cli/run_watch.hpp"
#include "cli/watch_list.hpp"
#include "cli/watch_server.hpp"
#include "core/error.hpp"
#include "store/store.hpp"

namespace {

namespace po = boost::program_options;

constexpr const char* kUsage =
    "nas-watch: shows runs in the browser, while other processes write them and after their end\n"
    "\n"
    "Usage: nas-watch RUN [OPTIONS]\n"
    "   or: nas-watch FOLDER... [OPTIONS]\n"
    "\n"
    "RUN is a run's folder, or its store.sqlite. Prints the address of a page that follows the\n"
    "run: how far it is, what trains, the front, learning curves, the latest evaluations. Only\n"
    "who knows the address can read it. Reads the run and changes nothing of it. Ctrl-C, or "
    "another\n"
    "signal to stop, ends it with exit code 0.\n"
    "\n"
    "Of a FOLDER that holds runs, at most three folders deep, or of several runs, the page lists\n"
    "them, those that begin meanwhile included: how far each is, its best mechanism beside the\n"
    "baseline, and a picture of their best values so far. A row leads to the page of its run.\n"
    "\n"
    "Examples:\n"
    "  $ nas-watch runs/quickstart\n"
    "  $ nas-watch runs/quickstart --port 8080\n"
    "  $ nas-watch runs\n"
    "\n";

struct Arguments {
  std::vector<std::string> words{};
  std::string host = "127.0.0.1";
  std::int64_t port = 0;
  bool help = false;
  bool version = false;
};

void require_port(std::int64_t port) {
  if (port >= 0 && port <= 65535) return;
  throw nas::InputError("command line: --port = " + std::to_string(port) +
                        ", must be in [0, 65535]");
}

int run(int argc, char** argv) {
  Arguments arguments;
  po::options_description visible("Options");
  visible.add_options()  //
      ("port", po::value(&arguments.port)->notifier(require_port),
       "where to listen (default: 0, any port that is free)")  //
      ("host", po::value(&arguments.host),
       "address to listen at, or localhost (default: 127.0.0.1, for this machine alone)")  //
      ("help,h", po::bool_switch(&arguments.help), "print this text")                      //
      ("version", po::bool_switch(&arguments.version), "print the version");
  nas::parse_command_line(argc, argv, "nas-watch", visible, arguments.words);
  if (arguments.help) {
    std::cout << nas::help_text(kUsage, visible, nas::help_end(""));
    return nas::kDone;
  }
  if (arguments.version) {
    std::cout << nas::version_line();
    return nas::kDone;
  }
  if (arguments.words.empty()) {
    throw nas::InputError(
        "command line: give a run, or a folder of runs, as in nas-watch runs/quickstart");
  }
  const auto& words = arguments.words;
  const auto& first = words.front();
  nas::WatchServer server(arguments.host, static_cast<std::uint16_t>(arguments.port));
  const auto serve = [&](auto watch) {
    std::cout << "watching " << nas::join(words, " ") << " at " << server.url()
              << "\nCtrl-C ends it\n"
              << std::flush;
    server.serve(watch);
  };
  const bool is_one = words.size() == 1 && (!std::filesystem::is_directory(first) ||
                                            std::filesystem::exists(nas::store_file(first)));
  if (is_one) {
    serve(nas::RunWatch(first));
  } else {
    serve(nas::WatchList(words));
  }
  return nas::kDone;
}

}  // namespace

int nas::nas_watch(int argc, char** argv) {
  return nas::run_main("nas-watch", [&] { return run(argc, argv); });
}
