// nas-work: measures the orders of a study that another process runs, on this machine.

#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "cli/programs.hpp"
#include "cli/versions.hpp"
#include "cli/words.hpp"
#include "core/error.hpp"
#include "core/stop.hpp"
#include "study/experiment.hpp"
#include "study/worker.hpp"

namespace {

using Json = nlohmann::json;

constexpr const char* kUsage =
    "nas-work: measures candidates for a study that runs in another process\n"
    "\n"
    "Usage: nas-work [KEY.PATH=VALUE ...] [--plugin FILE.so ...]\n"
    "\n"
    "KEY.PATH=VALUE is what is different on this machine, such as evaluation.device=cuda; "
    "--plugin\n"
    "is a shared library of plug-ins in place of one of this name in the run's configuration.\n"
    "\n"
    "Reads JSON documents, one per line, until there are no more:\n"
    "  {\"kind\": \"run\", \"config\": C}     a run's configuration as it is recorded; comes "
    "first\n"
    "  {\"kind\": \"order\", \"order\": N, \"task\": T, \"evaluation\": E}   see order_json() of\n"
    "                                     study/ask_and_tell.hpp; N is any value\n"
    "and answers each order with one line:\n"
    "  {\"kind\": \"finished\", \"order\": N, \"evaluation\": E}\n"
    "  {\"kind\": \"refused\", \"order\": N, \"reason\": R}    it would be measured otherwise "
    "here\n"
    "\n"
    "Examples:\n"
    "  $ nas-work evaluation.device=cuda <orders.jsonl >answers.jsonl\n"
    "\n"
    "Options:\n"
    "  -h [ --help ]         print this text\n"
    "  --version             print versions\n";

[[noreturn]] void refuse(std::int64_t number, const std::string& what) {
  throw nas::InputError("standard input, line " + std::to_string(number) + ": " + what);
}

Json read_line(const std::string& line, std::int64_t number) {
  try {
    auto json = Json::parse(line);
    if (json.is_object() && json.value("kind", Json()).is_string()) return json;
  } catch (const Json::exception&) {  // NOLINT(bugprone-empty-catch): said below
  }
  refuse(number, "must be a JSON object with the text \"kind\"");
}

Json answer(nas::Worker& worker, const Json& order) {
  const auto number = order.value("order", Json());
  try {
    return {{"kind", "finished"}, {"order", number}, {"evaluation", worker.measure(order)}};
  } catch (const nas::InputError& error) {
    return {{"kind", "refused"}, {"order", number}, {"reason", error.what()}};
  } catch (const Json::exception& error) {
    return {{"kind", "refused"}, {"order", number}, {"reason", error.what()}};
  }
}

int run(const std::vector<std::string>& overrides) {
  nas::install_stop_handlers();
  std::optional<nas::Worker> worker;
  std::string line;
  for (std::int64_t number = 1; std::getline(std::cin, line); ++number) {
    const auto json = read_line(line, number);
    const auto kind = json.at("kind").get<std::string>();
    if (kind == "run") {
      if (!json.contains("config")) refuse(number, "a run must have its \"config\"");
      worker.emplace(nas::recorded_experiment(json.at("config"), overrides));
    } else if (kind == "order") {
      if (!worker) refuse(number, "an order before the run that it belongs to");
      std::cout << answer(*worker, json).dump() << std::endl;  // at once: somebody waits for it
    } else {
      refuse(number, "kind = " + kind + ", must be run or order");
    }
  }
  return nas::kDone;
}

}  // namespace

int nas::nas_work(int argc, char** argv) {
  return nas::run_main("nas-work", [&] {
    std::vector<std::string> words(argv + 1, argv + argc);
    if (!words.empty() && (words.front() == "--help" || words.front() == "-h")) {
      std::cout << kUsage << nas::help_end();
      return static_cast<int>(nas::kDone);
    }
    if (!words.empty() && words.front() == "--version") {
      std::cout << nas::version_text();
      return static_cast<int>(nas::kDone);
    }
    load_plugins(take_options(words, "--plugin"));
    return run(words);
  });
}
