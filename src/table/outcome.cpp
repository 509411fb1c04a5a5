#include "table/outcome.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "search/belief.hpp"
#include "search/search.hpp"

namespace nas {

namespace {

double volume(const Points& points) {
  return hypervolume(points, Point(points.front().size(), kReferencePoint));
}

}  // namespace

Trust trust_of(const nlohmann::json& settings) {
  if (settings.contains("belief")) return Trust::best_answer;
  return settings.at("evaluation").at("repeated") == "retrain" ? Trust::mean : Trust::latest;
}

std::int64_t num_recycled(const Trajectory& trajectory, std::int64_t replicates) {
  std::map<std::int32_t, std::int64_t> charged;  // training runs by candidate
  std::int64_t before = 0;
  for (std::size_t i = 0; i < trajectory.candidates.size(); ++i) {
    charged[trajectory.candidates[i]] += trajectory.trained[i] - before;
    before = trajectory.trained[i];
  }
  std::int64_t recycled = 0;
  for (const auto& [candidate, count] : charged) {
    recycled += std::max<std::int64_t>(count - replicates, 0);
  }
  return recycled;
}

Truth::Truth(const ObjectiveSet& objectives, Points truth)
    : objectives_(objectives), truth_(std::move(truth)) {
  for (const auto& point : truth_) scaled_.push_back(objectives_.scaled(point));
  best_ = several() ? volume(scaled_) : (*std::min_element(truth_.begin(), truth_.end())).front();
}

double Truth::worth(const std::vector<std::size_t>& candidates) const {
  if (candidates.empty()) return std::numeric_limits<double>::quiet_NaN();
  if (!several()) {
    double least = std::numeric_limits<double>::infinity();
    for (const auto candidate : candidates) least = std::min(least, truth_[candidate].front());
    return least - best_;
  }
  Points points;
  for (const auto candidate : candidates) points.push_back(scaled_[candidate]);
  return volume(points) / best_;
}

double Truth::returned(const Trajectory& trajectory, Trust trust) const {
  const auto width = static_cast<std::ptrdiff_t>(objectives_.objectives.size());
  std::vector<std::size_t> candidates;  // in the order in which they came
  std::vector<Belief> beliefs;          // of each of them
  std::map<std::int32_t, std::size_t> place;
  const auto failure = objectives_.failure();
  auto fitness = trajectory.fitness.begin();
  for (const auto candidate : trajectory.candidates) {
    const auto [known, added] = place.try_emplace(candidate, candidates.size());
    if (added) {
      candidates.push_back(static_cast<std::size_t>(candidate));
      beliefs.emplace_back();
    }
    auto& belief = beliefs[known->second];
    const Point answer(fitness, fitness + width);
    fitness += width;
    if (std::isnan(answer.front())) continue;  // paused at a rung
    if (answer == failure) {
      if (trust == Trust::latest) belief = {};
    } else if (trust != Trust::best_answer || belief.answers == 0 || answer < belief.point) {
      belief.add(answer, trust == Trust::mean);
    }
  }
  if (candidates.empty()) return worth({});
  std::size_t usable = 0;
  for (std::size_t i = 0; i < beliefs.size(); ++i) {
    if (beliefs[i].answers == 0) continue;
    candidates[usable] = candidates[i];
    beliefs[usable++] = beliefs[i];
  }
  candidates.resize(usable);
  beliefs.resize(usable);
  if (candidates.empty()) return several() ? 0.0 : failure.front() - best_;
  if (!several()) {
    const auto chosen =
        std::min_element(beliefs.begin(), beliefs.end(),
                         [](const Belief& a, const Belief& b) { return a.point < b.point; });
    return worth({candidates[static_cast<std::size_t>(chosen - beliefs.begin())]});
  }
  Points points;
  for (const auto& belief : beliefs) points.push_back(belief.point);
  std::vector<std::size_t> chosen;
  for (const auto i : non_dominated(points)) chosen.push_back(candidates[i]);
  return worth(chosen);
}

double Truth::everything(const Trajectory& trajectory) const {
  return worth({trajectory.candidates.begin(), trajectory.candidates.end()});
}

}  // namespace nas
