// nas-work: measures the orders of a study that another process runs, on this machine.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cli/program.hpp"
#include "cli/programs.hpp"
#include "cli/versions.hpp"
#include "cli/words.hpp"
#include "core/error.hpp"
#include "core/host.hpp"
#include "core/line_reader.hpp"
#include "core/stop.hpp"
#include "core/terminal.hpp"
#include "core/version.hpp"
#include "evaluation/protocol.hpp"
#include "instruments/environment.hpp"
#include "report/text.hpp"
#include "store/record_json.hpp"
#include "study/reader/experiment.hpp"
#include "study/worker.hpp"
#include "training/trainer.hpp"

namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr const char* kLeftHelp =
    "  143  stopped by a signal or the end of its input: checkpoints are written, another worker\n"
    "       goes on\n";

constexpr const char* kUsage =
    "nas-work: measures candidates for a study that runs in another process\n"
    "\n"
    "Usage: nas-work [--folder DIR | --scratch DIR] [--device auto|cpu|cuda|cuda:N] [--slot N]\n"
    "                [KEY.PATH=VALUE ...] [--plugin FILE.so ...]\n"
    "\n"
    "--folder is the study's folder as this machine sees it: a training run that moves to another\n"
    "worker goes on from its checkpoint there. --scratch is a folder of this machine alone, where\n"
    "checkpoints serve this worker only. --device auto takes GPUs in turn, by --slot, the number "
    "of\n"
    "this process among those of the machine (default: $SLURM_LOCALID, else 0). KEY.PATH=VALUE is\n"
    "what else is different on this machine; --plugin is a shared library of plug-ins in place of\n"
    "one of this name in the run's configuration.\n"
    "\n"
    "Reads JSON documents, one per line, and measures one order after the other meanwhile:\n"
    "  {\"kind\": \"run\", \"protocol\": 1, \"config\": C, ...}   a run's configuration as it is\n"
    "                        recorded, comes first; where \"identity\" or \"revision\" are given,\n"
    "                        they must be those of this program\n"
    "  {\"kind\": \"order\", \"order\": N, \"priority\": P, \"tasks\": [T, ...]}   what is "
    "measured\n"
    "                        together, each {\"task\", \"evaluation\"}, see order_json() of\n"
    "                        study/ask_and_tell.hpp; the largest priority first. With \"measure\"\n"
    "                        one task, of which only that is measured: an objective that needs no\n"
    "                        training, or array_width\n"
    "  {\"kind\": \"withdraw\", \"order\": N}   no result is wanted\n"
    "  {\"kind\": \"end\", \"save\": B}   true: writes checkpoints and leaves, as at the end of "
    "the\n"
    "                        input or SIGTERM, with exit code 143; false: first does what is left\n"
    "and writes such lines:\n"
    "  {\"kind\": \"workers\", \"count\": 1, \"slots\": 1, \"devices\": [D]}   it is ready\n"
    "  {\"kind\": \"progress\", \"order\": N, \"step\": S, \"steps\": S, \"loss\": L, \"worker\": "
    "W}\n"
    "  {\"kind\": \"finished\", \"order\": N, \"evaluations\": [E, ...], \"device\": D, "
    "\"worker\": W}\n"
    "  {\"kind\": \"refused\", \"order\": N, \"reason\": R}    it would be measured otherwise "
    "here\n"
    "\n"
    "Examples:\n"
    "  $ nas-work --folder runs/x --device auto <orders.jsonl >answers.jsonl\n"
    "\n"
    "Options:\n"
    "  -h [ --help ]         print this text\n"
    "  --version             print versions\n";

/// What a process ends with that SIGTERM ended.
inline constexpr int kLeft = 143;

/// Where and how nas-work works.
struct Place {
  fs::path folder;       ///< for checkpoints; empty: none
  bool scratch = false;  ///< nobody else sees that folder, which is made
  std::vector<std::string> overrides;
  std::optional<std::int64_t> number{};  ///< of the process, which decides about its device
};

[[noreturn]] void refuse(std::int64_t number, const std::string& what) {
  throw nas::InputError("standard input, line " + std::to_string(number) + ": " + what);
}

Json read_line(const std::string& line, std::int64_t number) {
  try {
    auto json = nas::parse_record(line);
    if (json.is_object() && json.value("kind", Json()).is_string()) return json;
  } catch (const nas::InputError&) {  // NOLINT(bugprone-empty-catch): said below
  }
  refuse(number, "must be a JSON object with the text \"kind\"");
}

/// Writes lines from two threads. A reason may quote what is no UTF-8: U+FFFD stands for that.
/// @return as nas::flush_output() does. @throws MachineError as that does.
bool say(const Json& line) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::cout << line.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  return nas::flush_output();  // at once: the other end waits for it
}

/// The orders of a run, measured one after the other on a thread of its own.
class Bench {
 public:
  Bench(nas::Experiment experiment, Place place)
      : place_(std::move(place)),
        worker_(std::move(experiment), place_.folder),
        name_(nas::host_name() + ":" + std::to_string(getpid())),
        thread_([this] { work(); }) {}
  ~Bench() { finish(/*at_once=*/true); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  [[nodiscard]] const nas::Worker& worker() const { return worker_; }

  /// Says again how far it is where nothing else was said for so many seconds: a step may take long,
  /// but a process that stands still says nothing.
  void say_alive(double seconds) {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (!at_work_ || progress_.value("order", Json()) != *at_work_ ||
        now - said_ < std::chrono::duration<double>(seconds)) {
      return;
    }
    said_ = now;
    say(progress_);
  }

  void add(Json order) {
    const std::lock_guard lock(mutex_);
    const auto priority = order.value("priority", 0.0);
    const auto place = std::find_if(orders_.begin(), orders_.end(), [&](const Json& other) {
      return other.value("priority", 0.0) < priority;
    });
    orders_.insert(place, std::move(order));
    changed_.notify_all();
  }

  void withdraw(const Json& number) {
    const std::lock_guard lock(mutex_);
    std::erase_if(orders_, [&](const Json& order) { return order.at("order") == number; });
    if (!at_work_ || *at_work_ != number) return;
    withdrawn_ = true;
    if (!stop_) stop_.emplace().ask();
  }

  /// Whether it has ended before its time.
  bool failed() {
    const std::lock_guard lock(mutex_);
    return failure_ != nullptr;
  }

  /// Waits for the end: of all orders, or of the step that is taken.
  /// @throws what ended it before.
  void end(bool at_once) {
    finish(at_once);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void finish(bool at_once) {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      if (at_once) nas::request_stop();
      changed_.notify_all();
    }
    thread_.join();
  }

  void work() {
    try {
      while (const auto order = next()) answer(*order);
    } catch (const nas::StopRequested&) {  // NOLINT(bugprone-empty-catch): what was asked for
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
  }

  std::optional<Json> next() {
    std::unique_lock lock(mutex_);
    stop_.reset();
    withdrawn_ = false;
    at_work_.reset();
    changed_.wait(
        lock, [this] { return ending_ || nas::stop_of_process_requested() || !orders_.empty(); });
    if (nas::stop_of_process_requested() || orders_.empty()) return std::nullopt;
    auto order = std::move(orders_.front());
    orders_.pop_front();
    at_work_ = order.at("order");
    return order;
  }

  bool withdrawn() {
    const std::lock_guard lock(mutex_);
    return withdrawn_;
  }

  void answer(const Json& order) {
    const auto& number = order.at("order");
    const auto progressed = [&](const nas::Advance& advance) {
      const std::lock_guard lock(mutex_);
      progress_ = {{"kind", "progress"},   {"order", number},
                   {"step", advance.step}, {"steps", advance.steps},
                   {"worker", name_},      {"loss", nas::number_json(advance.loss)}};
      said_ = Clock::now();
      say(progress_);
    };
    try {
      progressed({});
      const auto tasks = order.at("tasks").get<std::vector<Json>>();
      if (tasks.empty()) throw nas::InputError("an order without tasks");
      Json line{{"kind", "finished"}, {"order", number}, {"worker", name_}};
      const auto what = order.value("measure", "");
      const auto evaluations = what.empty() ? worker_.measure_all(tasks, progressed)
                                            : std::vector{worker_.inspect(tasks.at(0), what)};
      if (!what.empty()) line["measure"] = what;
      line["evaluations"] = evaluations;
      line["device"] = worker_.device();
      // A result that was not delivered is in its checkpoint alone.
      if (say(line) && place_.scratch && what.empty()) remove_checkpoints(evaluations);
    } catch (const nas::StopRequested&) {
      if (!withdrawn()) throw;
    } catch (const nas::InputError& error) {
      say({{"kind", "refused"}, {"order", number}, {"reason", error.what()}});
    } catch (const Json::exception& error) {
      say({{"kind", "refused"}, {"order", number}, {"reason", error.what()}});
    }
  }

  /// What the study's process would do where it sees the folder.
  void remove_checkpoints(const std::vector<Json>& evaluations) const {
    for (const auto& evaluation : evaluations) {
      std::error_code unknown;
      fs::remove(nas::checkpoint_file(place_.folder / "checkpoints", evaluation.at("id"),
                                      evaluation.at("replicate")),
                 unknown);
    }
  }

  const Place place_;
  nas::Worker worker_;
  const std::string name_;
  std::mutex mutex_;  ///< of what follows
  std::condition_variable changed_;
  std::deque<Json> orders_;      ///< that wait, the next one first
  std::optional<Json> at_work_;  ///< number of the one that is measured
  std::optional<nas::StopOfOthers> stop_;
  bool withdrawn_ = false;
  bool ending_ = false;
  Json progress_ = Json::object();  ///< the last line of this kind; none yet: empty
  Clock::time_point said_{};
  std::exception_ptr failure_;
  std::thread thread_;  ///< last: it uses what stands above
};

/// What of a run is otherwise here.
void check_run(const Json& run, const nas::Worker& worker) {
  const auto version = run.value("protocol", Json(nas::protocol::kVersion));
  if (version != nas::protocol::kVersion) {
    nas::protocol::must_be("protocol", version, std::to_string(nas::protocol::kVersion));
  }
  const auto check = [&run](const std::string& what, const std::string& here) {
    const auto there = run.value(what, here);
    if (there == here) return;
    throw nas::InputError(what + " = " + there + ", must be " + here + " to be measured here");
  };
  check("revision", nas::kRevision);
  if (const auto wanted = run.value("device", "auto"); wanted != "auto" && wanted != "mixed") {
    check("device", worker.device());
  }
  if (const auto identity = run.find("identity"); identity != run.end()) {
    worker.require_identity(*identity);
  }
}

std::unique_ptr<Bench> begin(const Json& run, const Place& place) {
  try {
    if (run.contains("environment")) nas::nn::keep_products(run.at("environment"));
    auto experiment =
        nas::recorded_experiment(run.at("config"), place.overrides, /*load_plugins=*/true);
    auto bench = std::make_unique<Bench>(std::move(experiment), place);
    check_run(run, bench->worker());
    nas::install_stop_handlers(run.value("grace", 25.0), kLeft);
    say({{"kind", "workers"},
         {"count", 1},
         {"slots", 1},
         {"devices", Json::array({bench->worker().device()})}});
    return bench;
  } catch (const nas::InputError& error) {
    say({{"kind", "refused"}, {"reason", error.what()}});
    throw;
  } catch (const Json::exception& error) {  // a field of another type
    say({{"kind", "refused"}, {"reason", error.what()}});
    throw nas::InputError(error.what());
  }
}

Place place_of(std::vector<std::string> words) {
  const auto folder = nas::take_option(words, "--folder");
  const auto scratch = nas::take_option(words, "--scratch");
  const auto device = nas::take_option(words, "--device");
  const auto slot = nas::take_option(words, "--slot");
  for (const auto& word : words) {
    if (!word.starts_with('-') && word.find('=') != word.npos) continue;
    throw nas::InputError("command line: '" + word +
                          "', must be key.path=value; nas-work --help lists the options");
  }
  if (folder && scratch)
    throw nas::InputError("command line: --folder and --scratch, one is enough");
  if (folder && !fs::is_directory(*folder)) {
    throw nas::InputError("command line: --folder " + *folder + ": there is no such folder");
  }
  Place place{.folder = folder.value_or(scratch.value_or("")),
              .scratch = scratch.has_value(),
              .overrides = std::move(words)};
  if (device && *device != "auto") place.overrides.push_back("evaluation.device=" + *device);
  if (device == "auto") {
    const char* rank = std::getenv("SLURM_LOCALID");
    const auto text = slot.value_or(rank != nullptr ? rank : "0");
    if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != text.npos) {
      throw nas::InputError("command line: --slot " + text + ", must be a number from 0 on");
    }
    place.number = std::stoll(text);
  }
  return place;
}

int run(const Place& place) {
  constexpr std::chrono::milliseconds kBetweenLooks{50};  // at what signal handlers set
  nas::install_stop_handlers(/*seconds=*/4.5, kLeft);
  std::unique_ptr<Bench> bench;
  nas::LineReader reader(STDIN_FILENO);
  std::string line;
  std::int64_t number = 0;
  std::optional<bool> saves;   // once the end has come
  double seconds_alive = 0.0;  // between two signs of life
  while (!saves && !nas::stop_of_process_requested() && !(bench && bench->failed())) {
    const auto got = reader.next(line, kBetweenLooks);
    if (bench) bench->say_alive(seconds_alive);
    if (got == nas::LineReader::Got::nothing) continue;
    if (got == nas::LineReader::Got::end) break;
    const auto json = read_line(line, ++number);
    const auto kind = json.at("kind").get<std::string>();
    if (kind == "end") {
      if (!json.value("save", Json(true)).is_boolean()) {
        refuse(number, "save: must be true or false");
      }
      saves = json.value("save", true);
    } else if (kind == "run") {
      if (bench) refuse(number, "a second run");
      if (!json.contains("config")) refuse(number, "a run must have its \"config\"");
      bench = begin(json, place);
      const auto silence = json.at("config").value("/cluster/silence"_json_pointer, 60.0);
      seconds_alive = std::min(5.0, silence / 4.0);
    } else if (kind == "order" || kind == "withdraw") {
      if (!bench) refuse(number, "an order before the run that it belongs to");
      if (!json.contains("order")) refuse(number, kind + ": must have its \"order\"");
      if (!json.value("priority", Json(0)).is_number())
        refuse(number, "priority: must be a number");
      kind == "order" ? bench->add(json) : bench->withdraw(json.at("order"));
    } else {
      refuse(number, "kind = " + kind + ", must be run, order, withdraw or end");
    }
  }
  if (bench) bench->end(/*at_once=*/saves.value_or(true));
  return saves && !*saves && !nas::stop_of_process_requested() ? nas::kDone : kLeft;
}

int work(Place place) {
  if (place.number) {
    place.overrides.push_back("evaluation.device=" + nas::nn::device_of_place(*place.number));
  }
  if (place.scratch) fs::create_directories(place.folder);  // nothing is refused any more
  return run(place);
}

}  // namespace

int nas::nas_work(int argc, char** argv) {
  return nas::run_main("nas-work", [&] {
    std::vector<std::string> words(argv + 1, argv + argc);
    if (has_word(words, {"--help", "-h"})) {
      std::cout << nas::wrapped(kUsage + nas::help_end(kLeftHelp), nas::line_width(),
                                /*paragraphs=*/true);
      return static_cast<int>(nas::kDone);
    }
    if (has_word(words, {"--version"})) {
      std::cout << version_text();
      return static_cast<int>(nas::kDone);
    }
    load_plugins(take_options(words, "--plugin"));
    return work(place_of(std::move(words)));
  });
}
