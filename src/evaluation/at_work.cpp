#include "evaluation/at_work.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "core/host.hpp"

namespace nas {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWritesPerSecond = 2.0;
constexpr double kWritesAtOnce = 8.0;
/// Between writes that say nothing but how far training runs are.
constexpr std::chrono::seconds kPace{2};
constexpr std::size_t kLongestCurve = 128;

}  // namespace

AtWork::AtWork(Store& store, std::string stage, int workers)
    : store_(store),
      stage_(std::move(stage)),
      workers_(workers),
      allowed_(kWritesAtOnce),
      looked_(Clock::now()) {}

AtWork::~AtWork() {
  if (!wrote_) return;
  try {
    for (const auto* fact : {"asking", "at_work"}) store_.set_meta(fact, nullptr);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // A store that cannot be written says so where something is lost by it.
  }
}

void AtWork::asked(std::int64_t batch, nlohmann::json asks) {
  asking_ = {{"batch", batch}, {"asks", std::move(asks)}};
  asking_changed_ = true;
  if (may_write()) write();
}

void AtWork::submitted(std::size_t evaluations) {
  waiting_ += static_cast<std::int64_t>(evaluations);
}

/// The array of these members, which leave the one that they were in.
AtWork::Array& AtWork::array_of(const std::vector<const Evaluation*>& members) {
  for (auto& array : arrays_) {
    if (array.members == members) return array;
  }
  auto started = utc_now();
  for (auto& array : arrays_) {
    const auto leaves = [&members](const Evaluation* member) {
      return std::find(members.begin(), members.end(), member) != members.end();
    };
    if (std::erase_if(array.members, leaves) > 0) started = array.started;
  }
  std::erase_if(arrays_, [](const Array& array) { return array.members.empty(); });
  arrays_.push_back({.members = members, .started = std::move(started)});
  return arrays_.back();
}

void AtWork::started(const std::vector<const Evaluation*>& array) {
  array_of(array);
  waiting_ -= std::ssize(array);
  if (may_write()) write();
}

void AtWork::advanced(const std::vector<const Evaluation*>& array, const Advance& advance) {
  auto& [members, started, latest, curve] = array_of(array);
  latest = advance;
  if (std::isfinite(advance.loss) && (curve.empty() || curve.back().first < advance.step)) {
    curve.emplace_back(advance.step, advance.loss);
  }
  if (curve.size() > kLongestCurve) {  // every other point, the last one among them
    std::size_t kept = 0;
    for (std::size_t i = curve.size() % 2 == 0 ? 1 : 0; i < curve.size(); i += 2) {
      curve[kept++] = curve[i];
    }
    curve.resize(kept);
  }
  if (Clock::now() - written_ >= kPace && may_write()) write();
}

void AtWork::finished(const std::vector<Evaluation>& evaluations) {
  for (auto& array : arrays_) {
    std::erase_if(array.members, [&evaluations](const Evaluation* member) {
      return std::any_of(evaluations.begin(), evaluations.end(),
                         [member](const auto& one) { return one.id == member->id; });
    });
  }
  std::erase_if(arrays_, [](const Array& array) { return array.members.empty(); });
}

nlohmann::json AtWork::record() const {
  auto arrays = nlohmann::json::array();
  for (const auto& [members, started, advance, curve] : arrays_) {
    auto trainings = nlohmann::json::array();
    for (const auto* evaluation : members) {
      trainings.push_back({{"evaluation", evaluation->id},
                           {"candidate", evaluation->candidate},
                           {"replicate", evaluation->replicate}});
    }
    arrays.push_back({{"trainings", trainings},
                      {"started", started},
                      {"step", advance.step},
                      {"steps", advance.steps},
                      {"curve", curve}});
    if (!advance.worker.empty()) arrays.back()["worker"] = advance.worker;
  }
  return {{"stage", stage_},
          {"workers", workers_},
          {"waiting", waiting_},
          {"arrays", arrays},
          {"written", utc_now()}};
}

bool AtWork::may_write() {
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - looked_).count();
  looked_ = now;
  allowed_ = std::min(kWritesAtOnce, allowed_ + kWritesPerSecond * seconds);
  return allowed_ >= 1.0;
}

void AtWork::write() {
  allowed_ -= 1.0;
  written_ = Clock::now();
  wrote_ = true;
  // A display is no reason to end the run: a disk that is full now may have room again when an
  // evaluation is stored, and that failure is reported.
  try {
    if (asking_changed_) store_.set_meta("asking", asking_);
    asking_changed_ = false;
    store_.set_meta("at_work", record());
  } catch (const std::exception&) {
  }
}

}  // namespace nas
