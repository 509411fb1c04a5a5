#include "cli/running_trainings.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <iterator>
#include <utility>

#include "cli/status_lines.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "report/text.hpp"

namespace nas {

namespace {

constexpr std::size_t kRecent = 20;

/// A unit of time, and from how many seconds on it is used.
struct Unit {
  const char* name;
  double seconds;
  double from;
};
constexpr std::array<Unit, 4> kUnits{
    {{"d", 86400, 2 * 86400}, {"h", 3600, 1.5 * 3600}, {"min", 60, 90}, {"s", 1, 0}}};

/// To a half where it is small: "0.5", "3", "45".
std::string rough(double value) {
  return shortest(value < 9.5 ? std::round(2 * value) / 2 : std::round(value));
}

/// The value below which a share of sorted values lies.
double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

/// The share of a training run's steps that are taken, in [0, 1]; 0 where it is not known how many
/// there are.
double share_done(std::int64_t step, std::int64_t steps) {
  if (steps <= 0) return 0.0;
  return std::clamp(static_cast<double>(step) / static_cast<double>(steps), 0.0, 1.0);
}

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::optional<TimeRange> time_left(double trainings, int workers, std::vector<double> seconds) {
  if (seconds.empty()) return std::nullopt;
  if (seconds.size() > kRecent) {
    seconds.erase(seconds.begin(), seconds.end() - static_cast<std::ptrdiff_t>(kRecent));
  }
  std::sort(seconds.begin(), seconds.end());
  return TimeRange{.low = trainings * quantile(seconds, 0.25) / workers,
                   .high = trainings * quantile(seconds, 0.75) / workers};
}

TimeRange time_left_by_budget(const std::optional<TimeRange>& by_asks, double budget,
                              double elapsed, const std::optional<TimeRange>& running,
                              int workers) {
  const double most = std::max(0.0, budget - elapsed) / workers;
  const auto least = running.value_or(TimeRange{});
  const TimeRange left{.low = std::max(most, least.low), .high = std::max(most, least.high)};
  if (!by_asks) return left;
  return {.low = std::min(left.low, by_asks->low), .high = std::min(left.high, by_asks->high)};
}

std::string left_text(const TimeRange& left) {
  const auto& unit = *std::find_if(kUnits.begin(), std::prev(kUnits.end()),
                                   [&](const Unit& one) { return left.high >= one.from; });
  const auto low = rough(left.low / unit.seconds);
  const auto high = rough(left.high / unit.seconds);
  return (low == high ? high : low + " to " + high) + " " + unit.name + " left";
}

std::string text_of(const Workforce& workforce) {
  return counted(workforce.workers, "worker") + ", " + counted(workforce.slots, "slot");
}

void RunningTrainings::update(const Progress& progress, double now) {
  switch (progress.kind) {
    case Progress::Kind::evaluation_started:
      if (const auto before = running_.find(progress.evaluation->id); before != running_.end()) {
        std::erase_if(arrays_,
                      [&](const Array& array) { return array.has(before->second.number); });
      }
      running_[progress.evaluation->id] = {
          .candidate = progress.evaluation->candidate, .number = ++started_, .began = now};
      break;
    case Progress::Kind::evaluation_advanced:
      advance(progress, now);
      break;
    case Progress::Kind::evaluation_screened_out:
    case Progress::Kind::evaluation_finished:
      finish(*progress.evaluation, now);
      break;
    default:
      break;
  }
}

void RunningTrainings::finish(const Evaluation& evaluation, double now) {
  const auto found = running_.find(evaluation.id);
  seconds_.reset();
  if (found == running_.end()) return;
  const auto array_size = evaluation.measured.find("array");
  const double size = array_size != evaluation.measured.end() ? array_size->get<double>() : 1.0;
  seconds_ = (now - found->second.began) / size;
  durations_.push_back(*seconds_);
  if (durations_.size() > kRecent) durations_.pop_front();
  std::erase_if(arrays_, [&](const Array& array) { return array.has(found->second.number); });
  running_.erase(found);
}

void RunningTrainings::advance(const Progress& progress, double now) {
  const auto first = running_.find(progress.evaluation->id);
  const auto last = running_.find(progress.last->id);
  if (first == running_.end() || last == running_.end()) return;
  Array array{.first = first->second.number,
              .last = last->second.number,
              .first_step = progress.advance.step,
              .since = now,
              .step = progress.advance.step,
              .steps = progress.advance.steps,
              .loss = progress.advance.loss};
  const auto known = std::find_if(arrays_.begin(), arrays_.end(), [&array](const Array& one) {
    return one.first == array.first && one.last == array.last;
  });
  if (known != arrays_.end()) {
    array.first_step = known->first_step;
    array.since = known->since;
    *known = array;
    return;
  }
  // Parts of an array that did not fit in memory replace it.
  std::erase_if(arrays_, [&array](const Array& one) {
    return one.has(array.first) || one.has(array.last) || array.has(one.first);
  });
  arrays_.push_back(array);
  std::sort(arrays_.begin(), arrays_.end(),
            [](const Array& a, const Array& b) { return a.first < b.first; });
}

const RunningTrainings::Array* RunningTrainings::array_of(std::int64_t number) const {
  const auto found = std::find_if(arrays_.begin(), arrays_.end(),
                                  [number](const Array& array) { return array.has(number); });
  return found == arrays_.end() ? nullptr : &*found;
}

std::vector<double> RunningTrainings::recent(double now) const {
  std::vector<double> seconds(durations_.begin(), durations_.end());
  for (const auto& array : arrays_) {
    const auto taken = static_cast<double>(array.step - array.first_step);
    if (taken <= 0 || array.steps <= 0) continue;
    const auto size = array.last - array.first + 1;
    const double each =
        (now - array.since) * static_cast<double>(array.steps) / taken / static_cast<double>(size);
    seconds.insert(seconds.end(), static_cast<std::size_t>(size), each);
  }
  return seconds;
}

std::optional<TimeRange> RunningTrainings::left(double further, int workers, double now) const {
  double count = further;
  for (const auto& [id, running] : running_) {
    const auto* array = array_of(running.number);
    count += array == nullptr ? 1.0 : 1.0 - share_done(array->step, array->steps);
  }
  return time_left(count, workers, recent(now));
}

double RunningTrainings::elapsed(double now) const {
  double seconds = 0.0;
  for (const auto& array : arrays_) {
    const auto one = std::find_if(running_.begin(), running_.end(), [&array](const auto& running) {
      return array.has(running.second.number);
    });
    if (one != running_.end()) seconds += now - one->second.began;
  }
  return seconds;
}

std::vector<RunningTrainings::Shown> RunningTrainings::shown() const {
  std::map<std::int64_t, const Running*> by_number;
  for (const auto& [id, running] : running_) by_number[running.number] = &running;
  std::vector<Shown> found;
  for (const auto& array : arrays_) {
    auto state = "step " + grouped(array.step) + "/" + grouped(array.steps);
    if (std::isfinite(array.loss)) state += ", loss " + number_text(array.loss);
    const auto first = by_number.lower_bound(array.first);
    found.push_back({first == by_number.end() ? "" : first->second->candidate,
                     array.last - array.first, std::move(state)});
  }
  // Those of which no step is known yet.
  std::int64_t before = 0;
  for (const auto& [number, running] : by_number) {
    if (array_of(number) != nullptr) continue;
    if (before > 0 && number == before + 1) {
      ++found.back().others;
    } else {
      found.push_back({running->candidate, 0, "training"});
    }
    before = number;
  }
  return found;
}

/// Nothing where less than 12 columns would be left of a name.
std::optional<std::string> RunningTrainings::named(std::vector<Shown> some, std::size_t columns) {
  constexpr std::size_t kLeast = 12;
  std::size_t taken = 2 * (some.size() - 1);
  std::vector<Shown*> order;
  for (auto& one : some) {
    one.state =
        (one.others > 0 ? " + " + std::to_string(one.others) + " more: " : ": ") + one.state;
    taken += width_of(one.state);
    order.push_back(&one);
  }
  if (taken > columns) return std::nullopt;
  // Short names leave their room to the others.
  std::ranges::sort(order, {}, [](const Shown* one) { return width_of(one->name); });
  auto room = columns - taken;
  for (std::size_t i = 0; i < order.size(); ++i) {
    auto& name = order[i]->name;
    const auto share = room / (order.size() - i);
    if (share < std::min(width_of(name), kLeast)) return std::nullopt;
    name = abridged(name, share);
    room -= width_of(name);
  }
  std::vector<std::string> texts;
  for (const auto& one : some) texts.push_back(one.name + one.state);
  return join(texts, "; ");
}

std::string RunningTrainings::text(
    std::size_t columns, const std::function<std::string(const std::string&)>& label) const {
  auto some = shown();
  if (some.empty()) return {};
  for (auto& one : some) one.name = label(one.name);
  const auto first = some.front().state;
  for (std::string rest; !some.empty(); some.pop_back(), rest = "; ...") {
    if (columns < rest.size()) break;
    if (auto names = named(some, columns - rest.size())) return *names + rest;
  }
  return first;
}

}  // namespace nas
