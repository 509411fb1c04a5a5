#include "study/ask_and_tell.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/stop.hpp"
#include "evaluation/engine_lines.hpp"

namespace nas {

nlohmann::json order_json(const Order& order) {
  return {{"task", task_json(order.task)}, {"evaluation", order.evaluation}};
}

namespace {

/// Hears nothing, so that any number of studies can share it.
Observer& nobody() {
  static Observer observer;
  return observer;
}

}  // namespace

/// Where the study's thread lays down orders and waits, and the others take and answer them.
class AskAndTell::Desk final : public Executor {
 public:
  Desk(Study study, Observer& observer, Study::RunSettings settings) : study_(std::move(study)) {
    // The study's thread ends before this object does.
    settings.executor = std::shared_ptr<Executor>(std::shared_ptr<Executor>(), this);
    thread_ = std::thread([this, &observer, settings = std::move(settings)] {
      std::unique_ptr<const RunSummary> result;
      std::exception_ptr error;
      try {
        result = std::make_unique<const RunSummary>(study_.run(observer, settings));
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      result_ = std::move(result);
      ended_by_ = error;
      ended_ = true;
      changed_.notify_all();
    });
  }

  ~Desk() override {
    {
      const std::lock_guard lock(mutex_);
      left_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  // What the study's thread does.

  void submit(Task task, Evaluation begun) override {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(task), std::move(begun)});
  }

  void withdraw() override {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
  }

  std::optional<Event> next() override {
    constexpr std::chrono::milliseconds kBetweenLooks{50};  // at what a signal handler sets
    std::unique_lock lock(mutex_);
    while (events_.empty()) {
      if (waiting_.empty() && out_.empty()) return std::nullopt;
      if (left_ || stop_requested()) throw StopRequested();
      listening_ = true;
      changed_.notify_all();
      changed_.wait_for(lock, kBetweenLooks);
      listening_ = false;
    }
    auto event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

  void abandon() override {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
    out_.clear();
    events_.clear();
  }

  // What the others do.

  std::optional<Order> ask() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || (listening_ && events_.empty()); });
    if (ended_ || waiting_.empty()) return std::nullopt;
    auto order = std::move(waiting_.front());
    waiting_.pop_front();
    out_.emplace(order.task.id, order);
    happened({.kind = Event::Kind::started, .ids = {order.task.id}});
    return order;
  }

  void tell(Evaluation evaluation) {
    require_wanted_pause(evaluation);
    if (is_usable(evaluation)) require_values(evaluation);
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    auto order = take(evaluation.id);
    evaluation.candidate = order.task.candidate.name;
    evaluation.replicate = order.task.replicate;
    evaluation.identity = std::move(order.task.identity);
    Event event{.kind = Event::Kind::finished, .ids = {evaluation.id}};
    event.evaluations.push_back(std::move(evaluation));
    happened(std::move(event));
  }

  void put_back(const std::string& id) {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    waiting_.push_front(take(id));
    changed_.notify_all();
  }

  bool ended() {
    const std::lock_guard lock(mutex_);
    return ended_;
  }

  const RunSummary& result() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_; });
    if (ended_by_) std::rethrow_exception(ended_by_);
    return *result_;
  }

 private:
  void happened(Event event) {
    events_.push_back(std::move(event));
    changed_.notify_all();
  }

  /// An order that is out, and is no longer.
  Order take(const std::string& id) {
    const auto found = out_.find(id);
    if (found == out_.end()) {
      throw InputError("evaluation " + id +
                       ": must be that of an order that was asked for and "
                       "is neither told nor put back");
    }
    auto order = std::move(found->second);
    out_.erase(found);
    return order;
  }

  void require_wanted_pause(const Evaluation& evaluation) {
    const std::lock_guard lock(mutex_);
    const auto found = out_.find(evaluation.id);
    if (found != out_.end()) nas::require_wanted_pause(found->second.task, evaluation);
  }

  void require_values(Evaluation& evaluation) const {
    const auto& objectives = study_.experiment().objectives;
    try {
      for (const auto& objective : objectives.objectives) {
        if (objective.objective.across) continue;  // no single evaluation has it
        const auto value = objective.value(evaluation);
        const auto& [least, most] = objective.objective.limits;
        if (!(value < least || value > most)) continue;
        throw InputError("evaluation " + evaluation.id + ": " + objective.name + " = " +
                         shortest(value) + ", must be in [" + shortest(least) + ", " +
                         shortest(most) + "]");
      }
      objectives.record_trained(evaluation);
    } catch (const std::logic_error& error) {
      throw InputError("evaluation " + evaluation.id + " is " +
                       std::string(to_string(evaluation.status)) + ", but " + error.what());
    }
  }

  const Study study_;

  std::mutex mutex_{};  ///< of what follows
  std::condition_variable changed_{};
  std::deque<Order> waiting_{};
  std::map<std::string, Order> out_{};  ///< by id
  std::deque<Event> events_{};          ///< that the study's thread has not heard of
  bool listening_ = false;              ///< whether it waits for one
  bool left_ = false;
  bool ended_ = false;
  std::exception_ptr ended_by_{};
  std::unique_ptr<const RunSummary> result_{};

  std::thread thread_{};
};

AskAndTell::AskAndTell(Study study, const Study::RunSettings& settings)
    : AskAndTell(std::move(study), nobody(), settings) {}

AskAndTell::AskAndTell(Study study, Observer& observer, const Study::RunSettings& settings)
    : desk_(std::make_unique<Desk>(std::move(study), observer, settings)) {}

AskAndTell::~AskAndTell() = default;

std::optional<Order> AskAndTell::ask() { return desk_->ask(); }
void AskAndTell::tell(Evaluation evaluation) { desk_->tell(std::move(evaluation)); }
void AskAndTell::put_back(const std::string& id) { desk_->put_back(id); }
bool AskAndTell::ended() const { return desk_->ended(); }
const RunSummary& AskAndTell::result() { return desk_->result(); }

}  // namespace nas
