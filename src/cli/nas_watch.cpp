// nas-watch: a run in the browser, while it is written and after its end.

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "cli/command_line.hpp"
#include "cli/program.hpp"
#include "cli/programs.hpp"
#include "cli/run_watch.hpp"
#include "cli/watch_server.hpp"
#include "core/error.hpp"

namespace {

namespace po = boost::program_options;

constexpr const char* kUsage =
    "nas-watch: shows a run in the browser, while another process writes it and after its end\n"
    "\n"
    "Usage: nas-watch RUN [OPTIONS]\n"
    "\n"
    "RUN is a run's folder, or its store.sqlite. Prints the address of a page that follows the\n"
    "run: how far it is, what trains, the front, learning curves, the latest evaluations. Only\n"
    "who knows the address can read it. Reads the run and changes nothing of it. Ctrl-C, or "
    "another\n"
    "signal to stop, ends it with exit code 0.\n"
    "\n"
    "Examples:\n"
    "  $ nas-watch runs/quickstart\n"
    "  $ nas-watch runs/quickstart --port 8080\n"
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
  if (arguments.words.size() != 1) {
    throw nas::InputError("command line: give one run, as in nas-watch runs/quickstart");
  }
  const auto& folder = arguments.words.front();
  nas::WatchServer server(arguments.host, static_cast<std::uint16_t>(arguments.port));
  nas::RunWatch watch(folder);
  std::cout << "watching " << folder << " at " << server.url() << "\nCtrl-C ends it\n"
            << std::flush;
  server.serve(watch);
  return nas::kDone;
}

}  // namespace

int nas::nas_watch(int argc, char** argv) {
  return nas::run_main("nas-watch", [&] { return run(argc, argv); });
}
