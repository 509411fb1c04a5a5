#include "algorithms/motpe.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <utility>

#include <pagmo/problem.hpp>
#include <pagmo/s11n.hpp>
#include <pagmo/utils/hypervolume.hpp>
#include <pagmo/utils/multi_objective.hpp>

#include "search/algorithm.hpp"
#include "search/conversation.hpp"
#include "search/variation.hpp"

namespace nas {

namespace {

using Vector = std::vector<double>;
using Indices = std::vector<std::size_t>;

constexpr std::size_t kMostGood = 25;
constexpr std::size_t kMostObjectivesOfHypervolume = 4;

// Late in a small space most draws from l are known points.
constexpr std::size_t kDrawsPerCandidate = 10;
// The number of different values of one draw of the engine.
constexpr double kMostPointsToEnumerate = 0x1.0p32;

/// Standard normal (Box & Muller 1958).
double gaussian(std::mt19937& engine) {
  constexpr double kTwoPi = 6.283185307179586;
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform(engine)));
  return radius * std::cos(kTwoPi * uniform(engine));
}

const Requirement require{"motpe"};

/// Each objective from 0, the best, to 1, the worst; all 0 where there is no difference.
std::vector<Vector> unit_range(std::vector<Vector> points) {
  for (std::size_t i = 0; i < points.front().size(); ++i) {
    double best = std::numeric_limits<double>::infinity();
    double worst = -best;
    for (const auto& point : points) {
      best = std::min(best, point[i]);
      worst = std::max(worst, point[i]);
    }
    // Halves, since the range of huge values is no number.
    const double range = worst / 2 - best / 2;
    for (auto& point : points) point[i] = range > 0 ? (point[i] / 2 - best / 2) / range : 0.0;
  }
  return points;
}

/// Hypervolume of points in the unit cube. The reference point is a little outside, else the
/// extremes of a front would be worth nothing.
double volume(const std::vector<Vector>& points) {
  if (points.empty()) return 0;
  const Vector reference(points.front().size(), 1.1);
  return pagmo::hypervolume(points, false).compute(reference);
}

/// `count` of a front, each the one that adds the largest hypervolume to those before.
Indices greedy_subset(const std::vector<Vector>& front, std::size_t count) {
  // What a point adds can only become less, so that an old gain is a bound: only points whose
  // bound is the largest are looked at again.
  struct Bound {
    double gain;
    std::size_t index;
    std::size_t known_at;  // the number of chosen ones for which `gain` is exact
    bool operator<(const Bound& other) const {
      return gain != other.gain ? gain < other.gain : index > other.index;
    }
  };
  const auto points = unit_range(front);
  std::priority_queue<Bound> queue;
  for (std::size_t i = 0; i < points.size(); ++i) queue.push({volume({points[i]}), i, 0});
  Indices chosen;
  std::vector<Vector> covered;
  double covered_volume = 0;
  while (chosen.size() < count) {
    auto bound = queue.top();
    queue.pop();
    covered.push_back(points[bound.index]);
    if (bound.known_at == chosen.size()) {
      chosen.push_back(bound.index);
      covered_volume = volume(covered);
    } else {
      bound.gain = volume(covered) - covered_volume;
      bound.known_at = chosen.size();
      covered.pop_back();
      queue.push(bound);
    }
  }
  return chosen;
}

/// Fronts, the non-dominated ones first, until they have `count` points or all of `indices`; each
/// ascending. Cost: of one front what it leaves, with more than two objectives times its size.
std::vector<Indices> first_fronts(const std::vector<Vector>& fitness, const Indices& indices,
                                  std::size_t count) {
  // In the order of points what dominates another comes before it.
  Indices left = indices;
  std::stable_sort(left.begin(), left.end(),
                   [&](std::size_t a, std::size_t b) { return fitness[a] < fitness[b]; });
  std::vector<Indices> fronts;
  for (std::size_t found = 0; found < count && !left.empty(); found += fronts.back().size()) {
    Indices front;
    Indices rest;
    for (const auto i : left) {
      const auto beats = [&](std::size_t j) {
        return pagmo::pareto_dominance(fitness[j], fitness[i]);
      };
      // With two objectives the one that came last is the best of the front in the second.
      const bool beaten = fitness[i].size() == 2 ? !front.empty() && beats(front.back())
                                                 : std::any_of(front.begin(), front.end(), beats);
      (beaten ? rest : front).push_back(i);
    }
    std::sort(front.begin(), front.end());
    fronts.push_back(std::move(front));
    left = std::move(rest);
  }
  return fronts;
}

/// Random points of a domain, and which were not asked yet.
class Sampler {
 public:
  explicit Sampler(const ParzenDomain& domain) : domain_(domain) {
    for (std::size_t gene = 0; gene < domain.lower.size(); ++gene) {
      if (!(domain.upper[gene] > domain.lower[gene])) continue;
      ++num_free_;
      num_points_ *= is_real(gene) ? std::numeric_limits<double>::infinity() : options(gene);
    }
  }

  /// Genes that vary.
  [[nodiscard]] std::size_t num_free() const { return num_free_; }

  /// @return a uniformly random point that is not in `known`, nor, if a few tries find one, what it
  /// is but for genes without effect; none if there is none.
  [[nodiscard]] std::optional<Vector> unseen(const std::set<Vector>& known,
                                             const pagmo::problem& problem,
                                             std::mt19937& engine) const {
    auto point = drawn(known, engine);
    for (int tries = 0; tries < kTriesForNewPoint && point; ++tries) {
      if (known.count(effective_point(*point, problem)) == 0) break;
      point = drawn(known, engine);
    }
    return point;
  }

 private:
  [[nodiscard]] std::optional<Vector> drawn(const std::set<Vector>& known,
                                            std::mt19937& engine) const {
    if (num_points_ <= kMostPointsToEnumerate) return enumerated(known, engine);
    auto point = random(engine);
    while (known.count(point) > 0) point = random(engine);
    return point;
  }

  [[nodiscard]] bool is_real(std::size_t gene) const {
    return gene + domain_.num_integers < domain_.lower.size();
  }
  [[nodiscard]] double options(std::size_t gene) const {
    return domain_.upper[gene] - domain_.lower[gene] + 1;
  }

  [[nodiscard]] Vector random(std::mt19937& engine) const {
    Vector point = domain_.lower;
    for (std::size_t gene = 0; gene < point.size(); ++gene) {
      const double range = domain_.upper[gene] - domain_.lower[gene];
      point[gene] +=
          is_real(gene)
              ? uniform(engine) * range
              : static_cast<double>(below(engine, static_cast<std::size_t>(options(gene))));
      point[gene] = std::min(point[gene], domain_.upper[gene]);
    }
    return point;
  }

  /// Of a space of categories, by numbering its points.
  [[nodiscard]] std::optional<Vector> enumerated(const std::set<Vector>& known,
                                                 std::mt19937& engine) const {
    std::set<std::uint64_t> taken;
    for (const auto& point : known) {
      std::uint64_t number = 0;
      for (std::size_t gene = 0; gene < point.size(); ++gene) {
        if (is_real(gene)) continue;
        number = number * static_cast<std::uint64_t>(options(gene)) +
                 static_cast<std::uint64_t>(point[gene] - domain_.lower[gene]);
      }
      taken.insert(number);
    }
    const auto total = static_cast<std::uint64_t>(num_points_);
    if (taken.size() >= total) return std::nullopt;
    std::uint64_t number = below(engine, total - taken.size());
    for (const auto other : taken) {
      if (other <= number) ++number;
    }
    Vector point = domain_.lower;
    for (std::size_t gene = point.size(); gene-- > 0;) {
      if (is_real(gene)) continue;
      const auto radix = static_cast<std::uint64_t>(options(gene));
      point[gene] += static_cast<double>(number % radix);
      number /= radix;
    }
    return point;
  }

  const ParzenDomain& domain_;
  std::size_t num_free_ = 0;
  double num_points_ = 1;
};

/// ln of what of a normal distribution lies within [lower, upper], which holds its mean.
double log_mass_within(double mean, double deviation, double lower, double upper) {
  const double scale = deviation * std::sqrt(2.0);
  return std::log(0.5 * (std::erf((upper - mean) / scale) - std::erf((lower - mean) / scale)));
}

double standard_deviation(const std::vector<Vector>& points, std::size_t gene) {
  const auto n = static_cast<double>(points.size());
  double mean = 0;
  for (const auto& point : points) mean += point[gene] / n;
  double variance = 0;
  for (const auto& point : points) variance += (point[gene] - mean) * (point[gene] - mean) / n;
  return std::sqrt(variance);
}

}  // namespace

ParzenEstimator::ParzenEstimator(const ParzenDomain& domain, std::vector<Vector> points,
                                 Vector weights, double categorical_bandwidth)
    : domain_(domain), points_(std::move(points)), shares_(std::move(weights)) {
  const auto n = static_cast<double>(points_.size());
  if (shares_.empty()) shares_.assign(points_.size(), 1.0);
  const double sum = std::accumulate(shares_.begin(), shares_.end(), 0.0);
  for (double& share : shares_) share *= n / sum / (n + 1);
  shares_.push_back(1 / (n + 1));

  for (std::size_t index = 0; index < domain.lower.size(); ++index) {
    const double range = domain.upper[index] - domain.lower[index];
    if (!(range > 0)) continue;
    Gene gene{};
    gene.index = index;
    gene.lower = domain.lower[index];
    gene.upper = domain.upper[index];
    gene.real = index + domain.num_integers < domain.lower.size();
    gene.num_options = range + 1;
    gene.log_uniform = -std::log(gene.real ? range : gene.num_options);
    genes_.push_back(gene);
  }
  const auto num_genes = static_cast<double>(genes_.size());
  for (auto& gene : genes_) {
    if (gene.real) {
      const double range = gene.upper - gene.lower;
      const double scott = points_.empty() ? 0.0
                                           : 1.059 * standard_deviation(points_, gene.index) *
                                                 std::pow(n, -1 / (num_genes + 4));
      gene.bandwidth = std::max(scott, range / std::min(100.0, n + 1));
      gene.log_bandwidth = std::log(gene.bandwidth);
    } else {
      const double others = gene.num_options - 1;
      gene.bandwidth =
          categorical_bandwidth > 0 ? categorical_bandwidth : others / (n + 1 + gene.num_options);
      gene.bandwidth = std::min(gene.bandwidth, others / gene.num_options);
      gene.log_same = std::log(1 - gene.bandwidth);
      gene.log_other = std::log(gene.bandwidth / others);
    }
  }
  note_components();
}

/// What log_density() reads of the components that have a share.
void ParzenEstimator::note_components() {
  for (std::size_t i = 0; i < points_.size(); ++i) {
    if (!(shares_[i] > 0)) continue;
    log_shares_.push_back(std::log(shares_[i]));
    for (auto& gene : genes_) {
      const double centre = points_[i][gene.index];
      gene.centres.push_back(centre);
      if (!gene.real) continue;
      gene.log_mass.push_back(log_mass_within(centre, gene.bandwidth, gene.lower, gene.upper));
    }
  }
  log_shares_.push_back(std::log(shares_.back()));
}

// Component by component for each gene, so that what is read lies side by side; each component's sum
// has its terms in the order of the genes.
double ParzenEstimator::log_density(const Vector& x) const {
  constexpr double kLogRootTwoPi = 0.9189385332046727;
  Vector logs = log_shares_;
  const std::size_t num_points = logs.size() - 1;
  for (const auto& gene : genes_) {
    const double value = x[gene.index];
    if (gene.real) {
      for (std::size_t i = 0; i < num_points; ++i) {
        const double z = (value - gene.centres[i]) / gene.bandwidth;
        logs[i] -= 0.5 * z * z + kLogRootTwoPi + gene.log_bandwidth + gene.log_mass[i];
      }
    } else {
      for (std::size_t i = 0; i < num_points; ++i) {
        logs[i] += value == gene.centres[i] ? gene.log_same : gene.log_other;
      }
    }
    logs.back() += gene.log_uniform;
  }
  const double largest = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double log : logs) sum += std::exp(log - largest);
  return largest + std::log(sum);
}

Vector ParzenEstimator::sample(std::mt19937& engine) const {
  double left = uniform(engine);
  std::size_t component = 0;
  while (component < points_.size() && left >= shares_[component]) left -= shares_[component++];
  Vector x = domain_.lower;
  for (const auto& gene : genes_) {
    double& value = x[gene.index];
    const auto num_options = static_cast<std::size_t>(gene.num_options);
    if (component == points_.size()) {
      value = gene.real
                  ? std::min(gene.upper, gene.lower + uniform(engine) * (gene.upper - gene.lower))
                  : gene.lower + static_cast<double>(below(engine, num_options));
      continue;
    }
    const double mean = points_[component][gene.index];
    value = mean;
    if (gene.real) {
      // At least a third of it lies within the bounds, unless the bandwidth is beyond the range.
      for (int tries = 0; tries < 100; ++tries) {
        const double draw = mean + gene.bandwidth * gaussian(engine);
        if (draw < gene.lower || draw > gene.upper) continue;
        value = draw;
        break;
      }
    } else if (uniform(engine) < gene.bandwidth) {
      const double other = gene.lower + static_cast<double>(below(engine, num_options - 1));
      value = other < mean ? other : other + 1;
    }
  }
  return x;
}

Indices best_first(const std::vector<Vector>& fitness, std::size_t count, std::mt19937& engine) {
  Indices finite;
  Indices failed;
  for (std::size_t i = 0; i < fitness.size(); ++i) {
    (is_finite(fitness[i]) ? finite : failed).push_back(i);
  }
  Indices order;
  if (finite.empty() || fitness.front().size() == 1) {
    order = finite;
    std::stable_sort(order.begin(), order.end(), [&fitness](std::size_t a, std::size_t b) {
      return fitness[a].front() < fitness[b].front();
    });
  } else {
    for (const auto& front : first_fronts(fitness, finite, count)) {
      if (order.size() + front.size() <= count) {
        order.insert(order.end(), front.begin(), front.end());
      } else if (fitness.front().size() <= kMostObjectivesOfHypervolume) {
        std::vector<Vector> members;
        for (const auto i : front) members.push_back(fitness[i]);
        for (const auto i : greedy_subset(members, count - order.size())) {
          order.push_back(front[i]);
        }
      } else {
        auto left = front;
        for (std::size_t i = 0; order.size() < count; ++i) {
          std::swap(left[i], left[i + below(engine, left.size() - i)]);
          order.push_back(left[i]);
        }
      }
    }
  }
  order.insert(order.end(), failed.begin(), failed.end());
  order.resize(std::min(count, order.size()));
  return order;
}

Vector contribution_weights(const std::vector<Vector>& fitness) {
  const Vector alike(fitness.size(), 1.0);
  if (fitness.empty() || fitness.front().size() == 1 ||
      fitness.front().size() > kMostObjectivesOfHypervolume) {
    return alike;
  }
  const auto points = unit_range(fitness);
  const double all = volume(points);
  Vector weights;
  for (std::size_t i = 0; i < points.size(); ++i) {
    auto others = points;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    weights.push_back(std::max(0.0, all - volume(others)));
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  // Differences of volumes of order 1: less is rounding.
  if (!(sum > 1e-12)) return alike;
  for (double& weight : weights) weight *= static_cast<double>(weights.size()) / sum;
  return weights;
}

void MotpeOptions::check() const {
  require(evaluations >= 1, "evaluations", evaluations, ">= 1");
  require(gamma > 0 && gamma < 1, "gamma", gamma, "in (0, 1)");
  require(candidates >= 1, "candidates", candidates, ">= 1");
  require(batch >= 1, "batch", batch, ">= 1");
  require(categorical_bandwidth >= 0 && categorical_bandwidth < 1, "categorical_bandwidth",
          categorical_bandwidth, "in [0, 1)");
  require(in_flight >= 1, "in_flight", in_flight, ">= 1");
  require(batch == 1 || in_flight == 1, "batch", batch, "1 with in_flight > 1");
}

namespace {

/// All distinct points asked so far.
struct Observations {
  std::vector<Vector> x;
  std::vector<Vector> f;
  std::set<Vector> known;  ///< and what they are but for genes without effect

  /// @return whether it is new.
  bool add(const Vector& point, const Vector& fitness) {
    const bool is_new = std::find(x.begin(), x.end(), point) == x.end();
    if (is_new) {
      x.push_back(point);
      f.push_back(fitness);
    }
    known.insert(point);
    return is_new;
  }
};

/// The densities of the good and of the other observations.
struct Model {
  ParzenEstimator good;
  ParzenEstimator other;
};

/// @param out  points that are out: among the others.
Model fit_model(const ParzenDomain& domain, const Observations& seen, std::vector<Vector> out,
                const MotpeOptions& options, std::mt19937& engine) {
  const auto share = std::ceil(options.gamma * static_cast<double>(seen.x.size()));
  const auto count = std::min(kMostGood, static_cast<std::size_t>(share));
  std::vector<Vector> good;
  std::vector<Vector> good_fitness;
  std::vector<bool> is_good(seen.x.size(), false);
  for (const auto i : best_first(seen.f, count, engine)) {
    if (!is_finite(seen.f[i])) continue;
    is_good[i] = true;
    good.push_back(seen.x[i]);
    good_fitness.push_back(seen.f[i]);
  }
  std::vector<Vector> other = std::move(out);
  for (std::size_t i = 0; i < seen.x.size(); ++i) {
    if (!is_good[i]) other.push_back(seen.x[i]);
  }
  const double bandwidth = options.categorical_bandwidth;
  return {ParzenEstimator(domain, std::move(good), contribution_weights(good_fitness), bandwidth),
          ParzenEstimator(domain, std::move(other), {}, bandwidth)};
}

/// The same of what is known at the highest rung that so many points have come to, where there is one
/// beyond the first, else of all observations.
Model fit_model(const ParzenDomain& domain, const Observations& seen, std::size_t least,
                const pagmo::problem& problem, std::vector<Vector> out, const MotpeOptions& options,
                std::mt19937& engine) {
  Observations higher;
  for (const auto& [point, fitness] : at_highest_rung(problem, least)) higher.add(point, fitness);
  return fit_model(domain, higher.x.empty() ? seen : higher, std::move(out), options, engine);
}

/// @return of draws from the good density that are not known the one that speaks most for it.
std::optional<Vector> propose(const Model& model, const std::set<Vector>& known,
                              const pagmo::problem& problem, std::size_t candidates,
                              std::mt19937& engine) {
  std::optional<Vector> best;
  double best_ratio = 0;
  std::size_t found = 0;
  for (std::size_t i = 0; found < candidates && i < kDrawsPerCandidate * candidates; ++i) {
    auto candidate = model.good.sample(engine);
    if (known.count(effective_point(candidate, problem)) > 0) continue;
    ++found;
    const double ratio = model.good.log_density(candidate) - model.other.log_density(candidate);
    if (best && ratio <= best_ratio) continue;
    best = std::move(candidate);
    best_ratio = ratio;
  }
  return best;
}

}  // namespace

pagmo::population Motpe::evolve(pagmo::population population) const {
  require_suitable("motpe", population, /*single=*/false);
  const pagmo::problem& problem = population.get_problem();
  const std::size_t size = population.size();
  require(options_.evaluations >= size, "evaluations", options_.evaluations,
          "at least the population, " + std::to_string(size));

  const auto [lower, upper] = problem.get_bounds();
  const ParzenDomain domain{lower, upper, problem.get_nix()};
  const Sampler sampler(domain);
  Observations seen;
  Indices copies;
  for (std::size_t i = 0; i < size; ++i) {
    const auto& point = population.get_x()[i];
    if (!seen.add(point, population.get_f()[i])) copies.push_back(i);
    seen.known.insert(effective_point(point, problem));
  }
  const std::size_t startup =
      options_.startup > 0 ? options_.startup : std::max(size, 2 * sampler.num_free());
  // A point that is new to the search; nothing where there is none.
  const auto new_point = [&](const std::optional<Model>& model) {
    std::optional<Vector> point;
    if (model) point = propose(*model, seen.known, problem, options_.candidates, engine_);
    if (!point) point = sampler.unseen(seen.known, problem, engine_);
    if (!point) return point;
    seen.known.insert(effective_point(*point, problem));
    seen.known.insert(*point);
    return point;
  };
  unsigned long long asked = size;
  if (options_.in_flight > 1) {
    Conversation conversation(problem, options_.in_flight, options_.arrival);
    const auto next_point = [&] {
      std::optional<Model> model;
      if (asked >= startup) {
        model = fit_model(domain, seen, startup, problem, conversation.out(), options_, engine_);
      }
      const auto point = new_point(model);
      if (!point) return Vector();
      ++asked;
      return *point;
    };
    conversation.run(
        options_.evaluations - asked, next_point,
        [&seen](const Vector& point, const Vector& fitness) { seen.add(point, fitness); });
  }
  while (asked < options_.evaluations && options_.in_flight == 1) {
    std::optional<Model> model;
    std::size_t count = options_.batch;
    if (asked < startup) {
      count = startup - asked;
    } else {
      model = fit_model(domain, seen, startup, problem, {}, options_, engine_);
    }
    count = std::min<std::size_t>(count, options_.evaluations - asked);
    std::vector<Vector> batch;
    while (batch.size() < count) {
      auto point = new_point(model);
      if (!point) break;
      batch.push_back(std::move(*point));
    }
    if (batch.empty()) break;
    const auto fitness = evaluate(problem, batch);
    for (std::size_t i = 0; i < batch.size(); ++i) seen.add(batch[i], fitness[i]);
    asked += batch.size();
  }

  std::vector<std::pair<Vector, Vector>> best;
  for (const auto i : best_first(seen.f, size, engine_)) best.emplace_back(seen.x[i], seen.f[i]);
  for (const auto i : copies) best.emplace_back(population.get_x()[i], population.get_f()[i]);
  for (std::size_t i = 0; i < size; ++i) population.set_xf(i, best[i].first, best[i].second);
  return population;
}

namespace {

using Integer = std::int64_t;

std::vector<Misfit> fit(Parameters& parameters, const SearchFacts& facts) {
  const auto population = parameters.get<Integer>("population");
  const auto evaluations = parameters.get<Integer>("evaluations");
  const auto startup = parameters.get<Integer>("startup");
  if (startup > evaluations) {
    return {{"startup", "must be at most algorithm.evaluations = " + std::to_string(evaluations)}};
  }
  if (parameters.get<Integer>("batch") > 1 && parameters.get<Integer>("in_flight") > 1) {
    return {{"batch", "must be 1 where algorithm.in_flight > 1: nothing waits for a batch"}};
  }
  if (startup == 0) {
    const auto wanted = std::max(population, 2 * static_cast<Integer>(facts.num_genes));
    parameters.set("startup", std::min(wanted, evaluations));
  }
  return {};
}

Algorithm motpe() {
  return {.objectives = Algorithm::Objectives::any,
          .batches = true,
          .fit = fit,
          .make = make_seeded<Motpe>};
}

NAS_REGISTER_ALGORITHM(
    {.key = "motpe",
     .summary = "tree-structured Parzen estimator for one or several objectives: asks where good "
                "candidates are denser than others (Watanabe 2023, Ozaki et al. 2022)",
     .settings = with_conversation(
         {evaluations_setting(),
          integer_setting("startup", 0, 0, 1e9,
                          "candidates before the model is used, the initial population included; "
                          "0 = the larger of the population and twice the number of genes"),
          {.name = "gamma",
           .default_value = 0.1,
           .help = "share of the candidates that counts as good, of which 25 at most",
           .min = 0,
           .max = 1,
           .min_exclusive = true,
           .max_exclusive = true},
          integer_setting(
              "candidates", 24, 1, 1e6,
              "draws from the density of the good ones, of which the most promising is asked for"),
          integer_setting("batch", 1, 1, 1e6,
                          "candidates asked for at once: as many as there are workers"),
          {.name = "categorical_bandwidth",
           .default_value = 0.0,
           .help = "probability that a kernel gives to options other than the observed one; 0 = "
                   "(options - 1) / (observations + 1 + options)",
           .min = 0,
           .max = 1,
           .max_exclusive = true}},
         1),
     .file = __FILE__},
    motpe);

}  // namespace

}  // namespace nas

PAGMO_S11N_ALGORITHM_IMPLEMENT(nas::Motpe)
