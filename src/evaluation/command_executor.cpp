#include "evaluation/command_executor.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/line_reader.hpp"
#include "core/run_program.hpp"
#include "core/stop.hpp"
#include "core/warning.hpp"
#include "evaluation/policy.hpp"
#include "evaluation/protocol.hpp"

namespace nas {

namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

/// Faults of machines at one task after which the run looks no further for one that has none.
constexpr int kMostFaults = 20;
/// Answers in a row of one worker that cannot be, after which the run ends: the engine chooses who
/// works, so that such a worker would take order after order.
constexpr int kMostUnsound = 3;
constexpr std::chrono::milliseconds kBetweenLooks{50};  // at what a signal handler sets
/// For the lines that an engine which has ended left in the pipe.
constexpr std::chrono::seconds kLastLines{1};
/// Bytes of lines that wait to be read, above which the engine waits to write more.
constexpr std::size_t kMostQueued = std::size_t{64} << 20U;

/// Opens the file that receives the engine's standard error, and empties it: what an earlier engine
/// said is not this one's. @throws InputError if it cannot be written, is a link or has another name.
int open_log(const std::filesystem::path& log) {
  const int file = open_own_file(log, O_WRONLY | O_APPEND, 0660);
  if (ftruncate(file, 0) == 0) return file;
  const int error = errno;
  close(file);
  throw InputError(log.string() + ": cannot be written: " + std::generic_category().message(error));
}

/// The last lines of a file that is written to.
std::string last_lines(const std::filesystem::path& file) {
  constexpr std::size_t kKept = 1000;
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  text.erase(text.find_last_not_of(" \n") + 1);
  if (text.size() <= kKept) return text;
  const auto line = text.find('\n', text.size() - kKept);
  return text.substr(line == std::string::npos ? text.size() - kKept : line + 1);
}

}  // namespace

/// The engine's process, and the lines that it has written.
class CommandExecutor::Engine {
 public:
  explicit Engine(const Settings& settings) : settings_(settings) {
    const int log = open_log(settings.log);
    const auto in = make_pipe();
    const auto out = make_pipe();
    in_ = in[1];
    out_ = out[0];
    process_.emplace(settings.command,
                     ChildProcess::Streams{.input = in[0], .output = out[1], .errors = log});
    for (const int theirs : {in[0], out[1], log}) close(theirs);
    if (const auto& why = process_->failure(); !why.empty()) {
      for (const int ours : {in_, out_}) close(ours);
      throw MachineError("the engine cannot be started: " + settings.command.front() + ": " + why);
    }
    fcntl(in_, F_SETFL, O_NONBLOCK);
    reader_ = std::jthread([this](const std::stop_token& stop) { read(stop); });
  }
  ~Engine() { end(/*save=*/false); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// @param save  whether what runs should write its checkpoints first.
  void end(bool save) {
    if (!reader_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      unheard_ = true;
      changed_.notify_all();
    }
    const auto until = Clock::now() + std::chrono::duration<double>(settings_.grace);
    add({{"kind", "end"}, {"save", save}});
    while (!send() && running() && Clock::now() < until) wait_for_room();
    close(in_);
    while (running() && Clock::now() < until) std::this_thread::sleep_for(kBetweenLooks);
    process_->end();  // but for what has left its group: that may hold its output open
    reader_.request_stop();
    reader_.join();
    close(out_);
  }

  /// Waits until the engine has taken it, but not where the engine may itself wait for line(), which
  /// sends the rest. Nothing is lost where it is not read: then the engine has ended, which
  /// line() reports.
  void write(const Json& line) {
    add(line);
    while (!send() && running() && !is_full() && !stop_requested()) wait_for_room();
  }

  /// Whether a line is there.
  bool has_line() {
    const std::lock_guard lock(mutex_);
    return !lines_.empty();
  }

  /// Waits a moment for a line. @return nothing where there is none yet.
  /// @throws MachineError where the engine has ended, though what it has started goes on and is
  /// silent.
  std::optional<std::string> line() {
    send();
    const auto heard = [this] { return !lines_.empty() || ended_; };
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kBetweenLooks, heard)) {
      if (running()) return std::nullopt;
      changed_.wait_for(lock, kLastLines, heard);
    }
    if (lines_.empty()) {
      const auto what = too_long_.empty() ? "ended" : "wrote " + too_long_;
      lock.unlock();
      fail(what);
    }
    auto line = std::move(lines_.front());
    lines_.pop_front();
    queued_ -= size_of(line);
    changed_.notify_all();
    return line;
  }

  [[noreturn]] void fail(const std::string& what) {
    const auto until = Clock::now() + std::chrono::milliseconds(500);  // it may be about to end
    while (running() && Clock::now() < until) std::this_thread::sleep_for(kBetweenLooks);
    const auto code = running() ? "" : " (exit code " + std::to_string(process_->status()) + ")";
    process_->end();
    const auto said = last_lines(settings_.log);
    throw MachineError("the engine " + join(settings_.command, " ") + " " + what + code +
                       (said.empty() ? "" : "; it said last:\n" + said));
  }

 private:
  bool running() { return process_->running(); }

  /// Bytes that a line takes where it waits: an empty one, too, takes some.
  static std::size_t size_of(const std::string& line) { return line.size() + sizeof(std::string); }

  bool is_full() {
    const std::lock_guard lock(mutex_);
    return queued_ >= kMostQueued;
  }

  /// A text from elsewhere may be no UTF-8: U+FFFD stands for what is none.
  void add(const Json& line) {
    unsent_ += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  /// Sends what the engine has room for. @return whether nothing is left.
  bool send() {
    while (!unsent_.empty()) {
      const auto size = ::write(in_, unsent_.data(), unsent_.size());
      if (size > 0) {
        unsent_.erase(0, static_cast<std::size_t>(size));
      } else if (errno == EAGAIN) {
        return false;
      } else if (errno != EINTR) {
        unsent_.clear();  // nobody reads it
      }
    }
    return true;
  }

  /// Waits a moment for the engine to read.
  void wait_for_room() {
    pollfd waited{.fd = in_, .events = POLLOUT, .revents = 0};
    poll(&waited, 1, static_cast<int>(kBetweenLooks.count()));
  }

  /// Hears lines until their end, or until a stop: what the engine has started may hold its output
  /// open for longer.
  void read(const std::stop_token& stop) {
    LineReader reader(out_);
    std::string line;
    for (auto got = LineReader::Got::nothing;
         got != LineReader::Got::end && !stop.stop_requested();) {
      try {
        got = reader.next(line, kBetweenLooks);
      } catch (const InputError& error) {
        const std::lock_guard lock(mutex_);
        too_long_ = error.what();
        break;
      }
      if (got != LineReader::Got::line) continue;
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return queued_ < kMostQueued || unheard_; });
      if (unheard_) continue;
      queued_ += size_of(line);
      lines_.push_back(std::move(line));
      changed_.notify_all();
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  const Settings& settings_;
  int in_ = -1;   ///< ends of pipes: the engine's input
  int out_ = -1;  ///< and output
  std::optional<ChildProcess> process_;
  std::string unsent_;  ///< what the engine has not taken yet
  std::mutex mutex_;    ///< of what follows
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  std::size_t queued_ = 0;  ///< bytes of them
  std::string too_long_;
  bool ended_ = false;
  bool unheard_ = false;  ///< nobody reads lines any more, but the engine must not wait for that
  std::jthread reader_;
};

/// What is out, and what is made of the engine's lines.
class CommandExecutor::Orders {
 public:
  Orders(Measurement& measurement, Settings settings)
      : measurement_(measurement),
        settings_(std::move(settings)),
        engine_(settings_),
        out_(Outstanding::of(measurement)) {
    auto run = settings_.run;
    run["kind"] = "run";
    run["protocol"] = protocol::kVersion;
    engine_.write(run);
  }
  // Workers that are told to save nothing take the run for complete, which one that fails is not,
  // though nothing may be out at the moment.
  ~Orders() {
    const bool fails = std::uncaught_exceptions() > exceptions_;
    engine_.end(/*save=*/interrupted_ || fails || stop_requested() || !out_.orders.empty());
  }
  Orders(const Orders&) = delete;
  Orders& operator=(const Orders&) = delete;

  void submit(Task task, Evaluation begun) {
    submitted_.push_back({std::move(task), std::move(begun)});
  }

  Evaluation inspect(const Task& task, const std::string& what) {
    EngineOrder order{.members = {}, .priority = -ordered_++, .inspects = what};
    order.members.push_back({task, unmeasured(task)});
    send(std::move(order));
    while (auto event = next()) {
      if (event->kind == Event::Kind::finished) return std::move(event->evaluations.front());
    }
    throw std::logic_error("an inspection that nothing answers");
  }

  [[nodiscard]] int workers() const { return workforce_.slots; }

  void withdraw() {
    submitted_.clear();
    for (auto& [number, order] : std::map(out_.orders)) {
      if (!order.started) forget(number);
    }
  }

  std::optional<Event> next() {
    divide();
    while (events_.empty()) {
      if (out_.orders.empty()) return std::nullopt;
      // What has come by now is handled first: its worker may have kept no checkpoint of it.
      if (stop_requested() && !engine_.has_line()) throw StopRequested();
      if (const auto line = engine_.line()) {
        hear(*line);
      } else {
        look_for_workers();
      }
    }
    auto event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

  void abandon() {
    submitted_.clear();
    events_.clear();
    // The same command is to go on: the end of the engine has checkpoints written first, and workers
    // wait for it.
    interrupted_ = !stopped_by_deadline();
    if (interrupted_) return;
    while (!out_.orders.empty()) forget(out_.orders.begin()->first);
  }

 private:
  static std::vector<std::string> ids_of(const EngineOrder& order) {
    std::vector<std::string> ids;
    for (const auto& member : order.members) ids.push_back(member.task.id);
    return ids;
  }

  /// Makes orders of what was submitted: of tasks that are alike, as many as an array takes.
  void divide() {
    if (submitted_.empty()) return;
    auto members = std::exchange(submitted_, {});
    std::vector<Assignment> assignments;
    for (auto& member : members) assignments.push_back({member.task, member.begun});
    const auto slots = static_cast<std::size_t>(workers());
    if (settings_.array == 0 && members.size() > slots && out_.orders.empty()) {
      const auto first = inspect(members.front().task, kArrayWidth);
      settings_.array = first.status == Status::ok
                            ? first.measured.at(kArrayWidth).at("value").get<std::size_t>()
                            : 1;
    }
    const auto width = std::max<std::size_t>(1, settings_.array);
    const auto groups =
        width > 1 ? measurement_.alike(assignments) : measurement_.Measurement::alike(assignments);
    for (const auto& places :
         arrays_of(groups, static_cast<std::size_t>(std::max(1, workers())), width)) {
      EngineOrder order{.members = {}, .priority = -ordered_++};
      for (const auto place : places) order.members.push_back(std::move(members[place]));
      send(std::move(order));
    }
  }

  void send(EngineOrder order) {
    const auto number = ++last_number_;
    auto tasks = Json::array();
    for (const auto& member : order.members) {
      tasks.push_back({{"task", task_json(member.task)}, {"evaluation", member.begun}});
      if (order.inspects.empty()) out_.number_of[member.task.id] = number;
    }
    Json line{{"kind", "order"},
              {"order", number},
              {"priority", order.priority},
              {"tasks", std::move(tasks)}};
    if (!order.inspects.empty()) line["measure"] = order.inspects;
    out_.orders.emplace(number, std::move(order));
    engine_.write(line);
  }

  /// No result of an order is waited for any more.
  void forget(std::int64_t number) {
    for (const auto& id : ids_of(out_.orders.at(number))) out_.number_of.erase(id);
    out_.orders.erase(number);
    engine_.write({{"kind", "withdraw"}, {"order", number}});
  }

  void hear(const std::string& text) {
    EngineLine line;
    try {
      line = read_engine_line(text, out_);
    } catch (const InputError& error) {
      engine_.fail("wrote what is no line of its protocol: " + text.substr(0, 200) + " (" +
                   error.what() + ")");
    }
    std::visit([this](auto& said) { this->take(said); }, line);
  }

  [[noreturn]] static void take(const engine_line::Refused& said) {
    throw MachineError("a worker would measure otherwise than this run: " + said.reason);
  }

  void take(const engine_line::Workers& said) {
    workforce_ = said.now;
    if (settings_.on_workforce) settings_.on_workforce(workforce_);
  }

  void look_for_workers() {
    const std::chrono::duration<double> waited = Clock::now() - begun_;
    if (workforce_.workers > 0 || told_ || waited.count() < settings_.patience) return;
    told_ = true;
    if (settings_.on_nobody) settings_.on_nobody();
  }

  void start(EngineOrder& order) {
    if (!std::exchange(order.started, true)) {
      events_.push_back({.kind = Event::Kind::started, .ids = ids_of(order)});
    }
  }

  void take(engine_line::Progress& said) {
    const auto found = out_.orders.find(said.order);
    if (found == out_.orders.end()) return;  // it is withdrawn, or given to another
    start(found->second);
    if (said.advance.step == 0) return;
    events_.push_back({.kind = Event::Kind::advanced,
                       .ids = ids_of(found->second),
                       .advance = std::move(said.advance)});
  }

  void take(engine_line::Finished& said) {
    require_device(said);
    unsound_.erase(said.worker);
    if (!said.measure.empty()) return take_inspection(said);
    const bool is_out = out_.orders.contains(said.order);
    std::set<std::int64_t> touched;
    for (auto& evaluation : said.evaluations) {
      auto* const asked = out_.find(evaluation.id);
      const bool wanted = asked != nullptr && (is_out || is_result_of(evaluation, asked->task));
      if (wanted || results_.contains(key_of(evaluation))) require_same(evaluation, said.worker);
      if (!wanted) continue;  // it is withdrawn, or was told before
      touched.insert(out_.number_of.at(evaluation.id));
      asked->result = std::move(evaluation);
    }
    for (const auto number : touched) finish(number);
    // It came from elsewhere than it was last sent to.
    for (const auto number : touched) {
      if (!out_.orders.contains(number) && said.order != number) {
        engine_.write({{"kind", "withdraw"}, {"order", number}});
      }
    }
  }

  void take_inspection(engine_line::Finished& said) {
    const auto found = out_.orders.find(said.order);
    if (found == out_.orders.end()) return;
    found->second.members.front().result = std::move(said.evaluations.front());
    finish(said.order);
  }

  /// What a worker cannot have measured is discarded: its order is given again, as after any other
  /// fault of a machine.
  void take(const engine_line::Unsound& said) {
    const auto what = "the worker " + (said.worker.empty() ? "without a name" : said.worker) +
                      " has answered what cannot be true";
    const auto times = ++unsound_[said.worker];
    if (times >= kMostUnsound) {
      throw MachineError(what + " " + std::to_string(times) +
                         " times in a row, nothing of which is recorded, the last time: " +
                         said.why + "; end that worker, and the same command goes on");
    }
    warn(what + ", which is not recorded: " + said.why);
    const auto found = out_.orders.find(said.order);
    if (found == out_.orders.end()) return;
    auto order = std::move(found->second);
    out_.orders.erase(found);
    engine_.write({{"kind", "withdraw"}, {"order", said.order}});  // it may be at work on it
    send_again(std::move(order), what + ": " + said.why);
  }

  /// Under what a result is known: a training run may be paused more than once.
  static std::string key_of(const Evaluation& evaluation) {
    return evaluation.status == Status::paused
               ? evaluation.id + " at " + std::to_string(evaluation.curve.back().step)
               : evaluation.id;
  }

  /// What may be retried depends on more than the task: how long it took, what else was at work.
  void require_same(const Evaluation& evaluation, const std::string& worker) {
    if (may_be_retried(evaluation.status)) return;
    auto json = canonical_json(evaluation);
    for (const auto* own : {"candidate", "replicate", "identity"}) json.erase(own);
    const auto digest = sha256(json.dump());
    const auto [known, fresh] = results_.emplace(key_of(evaluation), digest);
    if (fresh || known->second == digest) return;
    throw MachineError("evaluation " + evaluation.id + " has come twice with different results (" +
                       known->second.substr(0, 12) + " and " + digest.substr(0, 12) +
                       (worker.empty() ? "" : ", the latter by the worker " + worker) +
                       "): two workers do not compute alike, or one of them is broken");
  }

  void require_device(const engine_line::Finished& said) {
    const auto& device = said.device;
    if (device.empty() || settings_.device == "mixed") return;
    if (settings_.device == "auto") settings_.device = device;
    if (settings_.device == device) return;
    throw MachineError("the worker " + said.worker + " has the device " + device + ", must be " +
                       settings_.device +
                       ": each model rounds in its own way; cluster.device: mixed takes any");
  }

  /// Ends an order once all its results are there.
  void finish(std::int64_t number) {
    auto& order = out_.orders.at(number);
    const bool whole =
        std::all_of(order.members.begin(), order.members.end(),
                    [](const OrderedTask& member) { return member.result.has_value(); });
    if (!whole) return;
    start(order);
    Event event{.kind = Event::Kind::finished, .ids = ids_of(order)};
    for (auto& member : order.members) {
      event.evaluations.push_back(std::move(*member.result));
      out_.number_of.erase(member.task.id);
    }
    events_.push_back(std::move(event));
    out_.orders.erase(number);
  }

  void take(const engine_line::Lost& said) {
    const auto found = out_.orders.find(said.order);
    const auto& reason = said.reason;
    if (found == out_.orders.end()) return;
    auto order = std::move(found->second);
    out_.orders.erase(found);
    if (said.machine) return send_again(std::move(order), reason);
    for (auto& member : order.members) {
      EngineOrder alone{.members = {},
                        .priority = order.priority,
                        .started = order.started,
                        .inspects = order.inspects};
      if (!member.result && ++member.losses > settings_.retries) {
        member.result = member.begun;
        member.result->status = Status::failed;
        member.result->reason = "its workers died " + std::to_string(member.losses) + " times" +
                                (reason.empty() ? "" : ": " + reason);
      }
      const bool ended = member.result.has_value();
      alone.members.push_back(std::move(member));
      if (ended) {
        const auto number = ++last_number_;
        out_.orders.emplace(number, std::move(alone));
        finish(number);
      } else {
        send(std::move(alone));
      }
    }
  }

  /// Orders again, as it was, what a machine is to blame for.
  void send_again(EngineOrder order, const std::string& reason) {
    for (auto& member : order.members) {
      if (++member.faults < kMostFaults) continue;
      throw MachineError(std::to_string(kMostFaults) + " times a machine has failed with " +
                         member.task.candidate.name + ": " + reason);
    }
    send(std::move(order));
  }

  static void take(const engine_line::Aside& said) {
    warn("the worker " + said.worker + " is set aside: " + said.reason);
  }

  Measurement& measurement_;
  Settings settings_;
  Engine engine_;
  std::vector<OrderedTask> submitted_;  ///< not ordered yet
  Outstanding out_;
  std::map<std::string, std::string> results_;  ///< digests of what has come, by key_of()
  std::map<std::string, int> unsound_;          ///< answers of a worker in a row that cannot be
  std::deque<Event> events_;
  std::int64_t last_number_ = 0;
  std::int64_t ordered_ = 0;
  Workforce workforce_;
  Clock::time_point begun_ = Clock::now();
  bool told_ = false;
  bool interrupted_ = false;  ///< the same command is to go on
  int exceptions_ = std::uncaught_exceptions();
};

CommandExecutor::CommandExecutor(Measurement& measurement, Settings settings)
    : orders_(std::make_unique<Orders>(measurement, std::move(settings))) {}

CommandExecutor::~CommandExecutor() = default;

void CommandExecutor::submit(Task task, Evaluation begun) {
  orders_->submit(std::move(task), std::move(begun));
}
void CommandExecutor::withdraw() { orders_->withdraw(); }
std::optional<Executor::Event> CommandExecutor::next() { return orders_->next(); }
void CommandExecutor::abandon() { orders_->abandon(); }
int CommandExecutor::workers() const { return orders_->workers(); }
Evaluation CommandExecutor::inspect(const Task& task, const std::string& what) {
  return orders_->inspect(task, what);
}

}  // namespace nas
