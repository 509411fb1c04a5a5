// Searching over any training that is a command, or a function of Python: named parameters in, numbers back.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <regex>

#include <boost/process/search_path.hpp>
#include <poll.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/format.hpp"
#include "core/run_program.hpp"
#include "core/stop.hpp"
#include "core/words.hpp"
#include "search/problem.hpp"

namespace nas {

namespace {

using Clock = std::chrono::steady_clock;
using Steps = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;

constexpr double kMostInteger = 1e15;
constexpr std::size_t kLongestLine = 4096;  ///< of which patterns see no more: std::regex recurses
constexpr int kMillisecondsBetweenLooks = 50;

[[noreturn]] void refuse(const std::string& setting, const std::string& given,
                         const std::string& allowed) {
  throw InputError("problem." + setting + " = " + given + ", must " + allowed);
}

/// "NAME = REST". @throws InputError unless it is one.
std::pair<std::string, std::string> named(const std::string& setting, const std::string& text) {
  const auto sign = text.find('=');
  const auto name = std::string(trimmed(std::string_view(text).substr(0, sign)));
  const bool is_word = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
  if (sign == std::string::npos || !is_word || (name[0] >= '0' && name[0] <= '9')) {
    refuse(setting, text, "be NAME = ..., the name of letters, digits and _");
  }
  return {name, std::string(trimmed(std::string_view(text).substr(sign + 1)))};
}

/// "lr = 1e-4 .. 1e-1 log", "width = 16 .. 512 integer", "optimizer = adam, sgd".
Gene gene(const std::string& text) {
  static constexpr auto kAllowed =
      "be NAME = LOWEST .. HIGHEST, with `log` or `integer` behind it or both, or NAME = OPTION, "
      "OPTION, ...";
  const auto [name, rest] = named("parameters", text);
  if (name == "seed") refuse("parameters", text, "have another name: {seed} is the training's");
  Gene gene{.name = name};
  const auto dots = rest.find("..");
  if (dots == std::string::npos) {
    for (const auto option : split(rest, ',')) gene.options.emplace_back(option);
    if (std::any_of(gene.options.begin(), gene.options.end(), [](const auto& option) {
          return option.empty() || option.find_first_of("|=") != std::string::npos;
        })) {
      refuse("parameters", text, "have options that are not empty and have neither | nor =");
    }
    return gene;
  }
  const auto words = split(trimmed(std::string_view(rest).substr(dots + 2)), ' ');
  const auto least = number_in(trimmed(std::string_view(rest).substr(0, dots)));
  const auto most = number_in(words.front());
  if (!least || !most || !(*least < *most) || !std::isfinite(*most - *least)) {
    refuse("parameters", text, kAllowed);
  }
  gene.min = *least;
  gene.max = *most;
  for (auto word = words.begin() + 1; word != words.end(); ++word) {
    if (*word == "log") {
      gene.log = true;
    } else if (*word == "integer") {
      gene.decimals = 0;
    } else if (!word->empty()) {
      refuse("parameters", text, kAllowed);
    }
  }
  if (gene.log && gene.min <= 0.0)
    refuse("parameters", text, "begin above 0: it is searched by logarithms");
  const auto is_whole = [](double x) { return x == std::floor(x) && std::abs(x) <= kMostInteger; };
  if (gene.decimals == 0 && (!is_whole(gene.min) || !is_whole(gene.max))) {
    refuse("parameters", text, "have whole bounds, since it is an integer");
  }
  return gene;
}

/// A pattern whose one group is the number. @throws InputError in words.
std::regex pattern(const std::string& setting, const std::string& text) {
  try {
    std::regex compiled(text, std::regex::ECMAScript | std::regex::optimize);
    if (compiled.mark_count() != 1)
      refuse(setting, text, "have one group, (...), which is the number");
    return compiled;
  } catch (const std::regex_error& error) {
    refuse(setting, text, std::string("be a regular expression of ECMAScript: ") + error.what());
  }
}

struct Metric {
  std::string name;
  std::regex pattern;
};

/// All that the settings say, checked. A function has neither words nor patterns.
struct Training {
  explicit Training(const Parameters& settings)
      : is_command(settings.contains("command")), rungs(settings.get<Steps>("rungs")) {
    if (is_command) words = settings.get<Texts>("command");
    if (is_command && words.empty()) refuse("command", "[]", "be the words of a command");
    std::vector<Gene> genes;
    for (const auto& text : settings.get<Texts>("parameters")) genes.push_back(gene(text));
    if (genes.empty()) refuse("parameters", "[]", "name at least one");
    space = SearchSpace(std::move(genes));
    for (const auto& text : settings.get<Texts>("metrics")) {
      auto [name, rest] = named("metrics", is_command ? text : text + "=()");
      const auto same = [&](const Metric& other) { return other.name == name; };
      if (std::any_of(metrics.begin(), metrics.end(), same))
        refuse("metrics", text, "have a name of its own");
      if (is_recorded_name(name))
        refuse("metrics", text, "have another name: runs record something else under it");
      metrics.push_back({name, pattern("metrics", rest)});
    }
    if (metrics.empty()) refuse("metrics", "[]", "name at least one");
    if (is_command) {
      require_places();
      const auto& text = settings.get<std::string>("step");
      if (text.empty() != rungs.empty()) {
        refuse("rungs", to_text(rungs), "be given where problem.step is, and only there");
      }
      if (!text.empty()) step = pattern("step", text);
    }
    if (!std::is_sorted(rungs.begin(), rungs.end(), std::less_equal<>()) ||
        (!rungs.empty() && rungs[0] < 1)) {
      refuse("rungs", to_text(rungs), "be ascending and begin at 1 or later");
    }
  }

  /// Every parameter and the seed has a place in the command, and every {NAME} there is one of them.
  void require_places() const {
    std::vector<std::string> names{"seed"};
    for (const auto& gene : space.genes()) names.push_back(gene.name);
    static const std::regex kPlace(R"(\{([A-Za-z_][A-Za-z0-9_]*)\})");
    const auto whole = join(words, " ");
    for (std::sregex_iterator place(whole.begin(), whole.end(), kPlace), end; place != end;
         ++place) {
      const auto name = (*place)[1].str();
      if (!holds(names, name))
        refuse("command", whole, "name a parameter in {" + name + "}, or seed");
    }
    for (const auto& name : names) {
      if (!uses("{" + name + "}")) {
        refuse("command", whole,
               "say {" + name + "}" + (name == "seed" ? ": each training has its own" : ""));
      }
    }
    const auto& program = words.front();
    const bool is_there = program.find('/') == std::string::npos
                              ? !boost::process::search_path(program).empty()
                              : access(program.c_str(), X_OK) == 0;
    if (!is_there) refuse("command", whole, "begin with a program that can be started");
  }

  [[nodiscard]] bool uses(const std::string& word) const {
    return std::any_of(words.begin(), words.end(),
                       [&](const auto& given) { return given.find(word) != std::string::npos; });
  }

  bool is_command;
  Texts words{};
  SearchSpace space{};
  std::vector<Metric> metrics{};
  Steps rungs;
  std::regex step{};
};

std::string value_text(const GeneValue& value) {
  const auto* number = std::get_if<double>(&value);
  if (number == nullptr) return std::get<std::string>(value);
  const bool whole = *number == std::floor(*number) && std::abs(*number) <= kMostInteger;
  return whole ? std::to_string(static_cast<std::int64_t>(*number)) : shortest(*number);
}

/// A process whose output and errors come as lines.
class Process {
 public:
  explicit Process(const Texts& words) : Process(words, make_pipe()) {}
  ~Process() {
    if (output_ >= 0) close(output_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Waits a moment. @param line  called with each line that has come. @return whether there may be
  /// more: what it leaves behind may hold its output open, and it may go on without one.
  bool read(const std::function<void(const std::string&)>& line) {
    const bool runs = child_.running();
    if (!runs) child_.end();  // with what it leaves behind
    pollfd waiting{.fd = output_, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, output_ < 0 ? 1 : kMillisecondsBetweenLooks) <= 0) return runs;
    std::array<char, 1U << 16U> bytes{};
    const auto count = ::read(output_, bytes.data(), bytes.size());
    if (count <= 0) {
      if (!begun_.empty()) line(std::exchange(begun_, {}));
      close(std::exchange(output_, -1));
      return true;
    }
    for (const char byte : std::string_view(bytes.data(), static_cast<std::size_t>(count))) {
      if (byte == '\n' || byte == '\r') {
        if (!begun_.empty()) line(std::exchange(begun_, {}));
      } else if (begun_.size() < kLongestLine) {
        begun_ += byte;
      }
    }
    return true;
  }

  /// Nothing where it ended well, else how.
  [[nodiscard]] std::string failure() const {
    const int status = child_.status();
    if (status > 128) return "ended by signal " + std::to_string(status - 128);
    return status == 0 ? "" : "exit code " + std::to_string(status);
  }

 private:
  Process(const Texts& words, std::array<int, 2> ends)
      : output_(ends[0]), child_(words, {.output = ends[1], .errors = ends[1]}) {
    close(ends[1]);
    if (child_.failure().empty()) return;
    close(output_);
    throw MachineError("the command cannot be started: " + words[0] + ": " + child_.failure());
  }

  int output_;
  ChildProcess child_;
  std::string begun_{};
};

/// Candidates are named "lr=0.001|optimizer=adam".
class ForeignTraining final : public Problem {
 public:
  explicit ForeignTraining(const ProblemInputs& inputs)
      : settings_(inputs.settings),
        training_(inputs.settings),
        seed_(inputs.seed),
        workers_(inputs.evaluation.get<std::string>("workers")),
        time_limit_(inputs.evaluation.get<double>("time_limit")),
        objectives_(inputs.objectives) {
    if (!training_.is_command && time_limit_ > 0.0) {
      throw InputError("evaluation.time_limit = " + shortest(time_limit_) +
                       ", must be 0: nothing ends a function");
    }
  }

  [[nodiscard]] Candidate canonical(const Genotype& genotype) const override {
    std::string name;
    for (const auto& [gene, value] : genotype.values()) {
      name += (name.empty() ? "" : "|") + gene + "=" + value_text(value);
    }
    return {.name = name, .genotype = genotype};
  }

  [[nodiscard]] Candidate parse(const std::string& name) const override {
    std::vector<std::pair<std::string, GeneValue>> values;
    const auto fields = split(name, '|');
    for (const auto& gene : training_.space.genes()) {
      const auto begins = [&](std::string_view field) {
        return field.starts_with(gene.name + "=");
      };
      const auto field = std::find_if(fields.begin(), fields.end(), begins);
      if (field == fields.end()) throw InputError("'" + name + "' says no " + gene.name + "=...");
      const auto text = field->substr(gene.name.size() + 1);
      const auto number = number_in(text);
      if (!gene.categorical() && !number) {
        throw InputError("'" + name + "': " + gene.name + " = " + std::string(text) +
                         ", must be a number");
      }
      values.emplace_back(gene.name,
                          gene.categorical() ? GeneValue(std::string(text)) : GeneValue(*number));
    }
    if (fields.size() != values.size())
      throw InputError("'" + name + "' says more than the parameters");
    const Genotype genotype(std::move(values));
    (void)training_.space.encode(genotype);  // refuses what is not in the space
    return canonical(genotype);
  }

  [[nodiscard]] std::string label(const std::string& candidate) const override { return candidate; }

  [[nodiscard]] nlohmann::json identity() const override {
    nlohmann::json identity = settings_;
    identity.erase("rungs");  // where it may pause changes nothing that it comes to
    identity["problem"] = training_.is_command ? "command" : "function";
    identity["run_seed"] = seed_;
    if (time_limit_ > 0.0) identity["time_limit"] = time_limit_;
    for (const auto& constraint : objectives_->constraints)
      identity["constraints"].push_back(constraint.text());
    return identity;
  }

  [[nodiscard]] Steps rungs() const override { return training_.rungs; }
  /// What is trained knows no section `training`.
  [[nodiscard]] std::shared_ptr<Problem> with_training(const Parameters& /*none*/) const override {
    return std::make_shared<ForeignTraining>(*this);
  }

  void end_at(Evaluation& evaluation, std::int64_t rung) const override {
    const auto& curve = evaluation.curve;
    const auto point =
        std::find_if(curve.begin(), curve.end(), [&](const auto& p) { return p.step == rung; });
    if (point == curve.end() || !is_usable(evaluation)) return;
    const bool ended_there = rung == training_.rungs.back() &&
                             evaluation.values.contains(training_.metrics.front().name);
    if (ended_there && evaluation.status == Status::ok) return;
    pause(evaluation, rung);
    evaluation.measured["train_seconds"] = point->seconds;
    evaluation.curve.erase(point + 1, curve.end());
  }

  void screen(const Task& task, Evaluation& evaluation) override {
    evaluation.measured["seed"] = seed_of(task.replicate);
  }

  void measure(const Task& task, Evaluation& evaluation) override {
    if (!training_.is_command) {
      throw InputError(
          "problem: function is measured by the process that has the function: by attnas.search");
    }
    auto words = training_.words;
    for (auto& word : words) {
      for (const auto& [gene, value] : task.candidate.genotype.values())
        put(word, gene, value_text(value));
      put(word, "seed", std::to_string(seed_of(task.replicate)));
    }
    const auto begin = Clock::now();
    const auto seconds = [&] {
      return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    evaluation.curve.clear();
    Process process(words);
    Output output{.seconds = seconds};
    bool more = true;
    while (more) {
      if (stop_requested()) throw StopRequested();
      more = process.read([&](const std::string& line) { take(line, output, evaluation); });
      evaluation.measured["train_seconds"] = seconds();
      if (task.until > 0 && reached(evaluation) >= task.until) {
        evaluation.status = Status::ok;
        return end_at(evaluation, task.until);
      }
      if (time_limit_ > 0.0 && seconds() > time_limit_) {
        evaluation.status = Status::timed_out;
        evaluation.reason = "took longer than " + shortest(time_limit_) + " s";
        return;
      }
    }
    if (const auto how = process.failure(); !how.empty()) {
      throw CandidateFailure(how + (output.last.empty() ? "" : "; it said last: " + output.last));
    }
    for (const auto& metric : training_.metrics) {
      const auto found = output.values.find(metric.name);
      if (found == output.values.end()) {
        throw CandidateFailure("printed nothing that metric " + metric.name + " matches" +
                               (output.last.empty() ? "" : "; it said last: " + output.last));
      }
      evaluation.values[metric.name] = found->second;
    }
    if (!training_.rungs.empty() && reached(evaluation) < training_.rungs.back()) {
      come_to(training_.rungs.back(), output, evaluation);  // its end, whatever step that was
    }
    evaluation.status = Status::ok;
    require_finite_values(evaluation);
  }

  [[nodiscard]] nlohmann::json facts() const override {
    nlohmann::json facts{{"device", "cpu"}};
    if (training_.is_command) facts["command"] = join(training_.words, " ");
    if (!training_.rungs.empty()) facts["steps"] = training_.rungs.back();
    return facts;
  }

  [[nodiscard]] int num_workers() const override {
    return workers_ == "auto" ? 1 : std::stoi(workers_);
  }
  double calibrate_seconds(const Candidate& /*candidate*/) override { return 0.0; }

 private:
  /// What a process has said so far.
  struct Output {
    std::function<double()> seconds;
    std::map<std::string, double> values{};
    std::int64_t step = 0;
    std::string last{};
  };

  static void put(std::string& word, const std::string& name, const std::string& text) {
    const auto place = "{" + name + "}";
    for (auto at = word.find(place); at != std::string::npos;
         at = word.find(place, at + text.size())) {
      word.replace(at, place.size(), text);
    }
  }

  /// Below 2^31, which every library takes for a seed.
  [[nodiscard]] std::uint64_t seed_of(std::int64_t replicate) const {
    return derive_seed(seed_, replicate, "command", 0) >> 33U;
  }

  /// What the group of a pattern matches in a line; what is no number there, as "nan", is none.
  static std::optional<double> find(const std::string& line, const std::regex& pattern) {
    std::smatch match;
    if (!std::regex_search(line, match, pattern)) return std::nullopt;
    return number_in(match[1].str()).value_or(std::numeric_limits<double>::quiet_NaN());
  }

  /// A rung's values are those that the output has when it first names a step so far, its line's included.
  void take(const std::string& line, Output& output, Evaluation& evaluation) const {
    output.last = line.substr(0, 200);
    bool found = false;
    for (const auto& metric : training_.metrics) {
      if (const auto value = find(line, metric.pattern)) {
        output.values[metric.name] = *value;
        found = true;
      }
    }
    if (training_.rungs.empty()) return;
    if (const auto step = find(line, training_.step); step && *step < kMostInteger) {
      output.step = static_cast<std::int64_t>(*step);
    }
    if (!found || output.values.size() < training_.metrics.size()) return;
    for (const auto rung : training_.rungs) {
      if (rung > reached(evaluation) && rung <= output.step) come_to(rung, output, evaluation);
    }
  }

  static std::int64_t reached(const Evaluation& evaluation) {
    return evaluation.curve.empty() ? 0 : evaluation.curve.back().step;
  }

  static void come_to(std::int64_t rung, const Output& output, Evaluation& evaluation) {
    auto& point = evaluation.curve.emplace_back();
    point.step = rung;
    point.seconds = output.seconds();
    for (const auto& [name, value] : output.values) evaluation.values[at(name, rung)] = value;
  }

  static std::string at(const std::string& name, std::int64_t rung) {
    return name + "@" + std::to_string(rung);
  }

  void pause(Evaluation& evaluation, std::int64_t rung) const {
    evaluation.status = Status::paused;
    evaluation.reason.clear();
    for (const auto& metric : training_.metrics) {
      evaluation.values[metric.name] = evaluation.values.at(at(metric.name, rung));
      for (const auto later : training_.rungs) {
        if (later > rung) evaluation.values.erase(at(metric.name, later));
      }
    }
  }

  Parameters settings_;
  Training training_;
  std::uint64_t seed_;
  std::string workers_;
  double time_limit_;
  const ObjectiveSet* objectives_;
};

std::vector<ChosenObjective> metrics_of(const Parameters& settings) {
  const Training training(settings);
  std::vector<ChosenObjective> chosen;
  for (const auto& metric : training.metrics) {
    const auto value = [name = metric.name](const Evaluation& evaluation) {
      return evaluation.values.at(name);
    };
    chosen.push_back({.name = metric.name,
                      .key = metric.name,
                      .settings = {},
                      .objective = {.unit = "1", .trained = value}});
    if (training.metrics.size() == 1) chosen.back().range = Range{};
  }
  return chosen;
}

ProblemKind kind() {
  return {.sections = {},
          .space = [](const Parameters& settings) { return Training(settings).space; },
          .objectives = metrics_of,
          .make = [](const ProblemInputs& inputs) -> std::shared_ptr<Problem> {
            return std::make_shared<ForeignTraining>(inputs);
          }};
}

Setting texts(const char* name, const char* help) {
  return {.name = name, .default_value = Texts{}, .help = help, .required = true};
}
const auto kParameters = texts("parameters",
                               "what is searched: `lr = 1e-4 .. 1e-1 log`, `width = 16 .. 512 "
                               "integer`, `optimizer = adam, sgd`");
const Setting kRungs{.name = "rungs",
                     .default_value = Steps{},
                     .help = "steps at which a search may stop it; the last is its end",
                     .effect = Effect::search};

NAS_REGISTER_PROBLEM(
    {.key = "command",
     .summary = "runs a command for each candidate and seed, and reads numbers in what it prints",
     .settings = {texts("command",
                        "its words, without a shell; {NAME} is a parameter's value, "
                        "{seed} the training's seed"),
                  kParameters,
                  texts("metrics",
                        "`NAME = PATTERN`, a regular expression with one group; the "
                        "last match counts; objectives by name"),
                  {.name = "step",
                   .default_value = std::string(),
                   .help = "pattern of the step that a line carries; empty: it cannot pause"},
                  kRungs},
     .file = __FILE__},
    kind);

[[maybe_unused]] const bool registered_function = problems().add(
    {.key = "function",
     .summary = "calls a function of Python for each candidate and seed: attnas.search",
     .settings = {kParameters,
                  texts("metrics", "names of what it returns; objectives by name"),
                  {.name = "version",
                   .default_value = std::string(),
                   .help = "of the function: another one is not continued"},
                  kRungs},
     .file = __FILE__},
    kind);

}  // namespace

}  // namespace nas
