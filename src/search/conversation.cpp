#include "search/conversation.hpp"

#include <stdexcept>
#include <string>

#include "search/algorithm.hpp"
#include "search/search.hpp"

namespace nas {

namespace {

TellOrder order_of(bool arrival) { return arrival ? TellOrder::arrival : TellOrder::virtual_time; }

}  // namespace

Conversation::Conversation(const pagmo::problem& problem, std::size_t in_flight, bool arrival)
    : problem_(problem), in_flight_(in_flight), arrival_(arrival) {}

std::vector<std::vector<double>> Conversation::out() const {
  std::vector<std::vector<double>> points;
  for (const auto& [number, point] : out_) {
    if (!point.empty()) points.push_back(point);
  }
  return points;
}

void Conversation::run(std::size_t asks, const std::function<Vector()>& propose,
                       const std::function<void(const Vector&, const Vector&)>& hear) {
  for (std::size_t asked = 0;;) {
    while (out_.size() < in_flight_ && promote()) {
    }
    for (; asked < asks && out_.size() < in_flight_; ++asked) {
      const auto point = propose();
      if (point.empty()) {
        asks = asked;
        break;
      }
      ask(point);
    }
    if (out_.empty()) return;
    const auto [point, fitness] = next();
    if (!point.empty()) hear(point, fitness);
  }
}

void Conversation::ask(const std::vector<double>& point) {
  if (out_.size() >= in_flight_) {
    throw std::logic_error("in_flight = " + std::to_string(in_flight_) +
                           " points are out, must be told first");
  }
  if (const auto* search = problem_.extract<SearchProblem>()) {
    out_.emplace(search->begin(point, order_of(arrival_)), point);
    return;
  }
  answers_.push_back(problem_.fitness(point));
  out_.emplace(asked_++, point);
}

bool Conversation::promote() {
  const auto* search = problem_.extract<SearchProblem>();
  const auto number = search != nullptr ? search->promote(order_of(arrival_)) : std::nullopt;
  if (number) out_.emplace(*number, Vector());
  return number.has_value();
}

std::pair<std::vector<double>, std::vector<double>> Conversation::next() {
  if (out_.empty()) throw std::logic_error("no point is out");
  if (const auto* search = problem_.extract<SearchProblem>()) {
    auto [number, fitness] = search->next();
    return {out_.extract(number).mapped(), std::move(fitness)};
  }
  auto fitness = std::move(answers_.front());
  answers_.pop_front();
  return {out_.extract(out_.begin()).mapped(), std::move(fitness)};
}

std::vector<std::pair<Conversation::Vector, Conversation::Vector>> at_highest_rung(
    const pagmo::problem& problem, std::size_t least) {
  const auto* search = problem.extract<SearchProblem>();
  if (search == nullptr) return {};
  return search->at_highest_rung(least);
}

std::vector<Setting> with_conversation(std::vector<Setting> settings, std::int64_t in_flight) {
  settings.push_back(integer_setting(
      "in_flight", in_flight, 1, 1e6,
      "candidates that are out at once, each answer followed by the next ask; best 1.5 times as "
      "many as there are workers, on which nothing depends" +
          std::string(in_flight == 1 ? "; 1 = asks in batches" : "")));
  settings.push_back(choice_setting(
      "order", {"virtual", "arrival"},
      "of answers with in_flight > 1: virtual, as equal workers would finish by expected cost, the "
      "same whenever trainings end; arrival, as they end, which is recorded"));
  // Where nothing else is out, neither makes a difference.
  for (auto at = settings.end() - 2; at != settings.end(); ++at) {
    at->needs = {.setting = "in_flight", .above = 1.0};
  }
  return settings;
}

}  // namespace nas
