// Which layers of a trained transformer must attend: a block for each layer, without training, after stage 1 or after
// stage 2.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>
#include <tuple>

#include <ATen/Parallel.h>

#include "convert/assessment.hpp"
#include "convert/stage_two.hpp"
#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/hash.hpp"
#include "core/process_memory.hpp"
#include "core/setting_forms.hpp"
#include "core/shuffle.hpp"
#include "core/stop.hpp"
#include "data/corpus.hpp"
#include "models/model_folder.hpp"
#include "ops/memory.hpp"
#include "search/problem.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;
using Texts = std::vector<std::string>;

/// Raised by hand with a commit that changes results.
constexpr int kResultsVersion = 3;

constexpr const char* kGene = "layer_";

/// Settings that say what stage 2 comes to.
constexpr std::array kStage2{"stage2_tokens",    "stage2_short",     "stage2_batch",
                             "stage2_rate",      "stage2_rate_rest", "stage2_weights",
                             "stage2_documents", "stage2_rank"};

/// The fidelities, as steps of an evaluation: what blocks cost one by one, added up; the whole hybrid; the same after some
/// of stage 2, and after all of it.
constexpr Integer kAddedUp = 1, kWhole = 2, kShort = 3, kTrained = 4;

constexpr std::array kMeasures{"kl",     "text_nll", "text_loss",    "agreement",
                               "recall", "loss",     "bits_per_byte"};

constexpr Integer kHeldOut = 8;  // documents on which losses of stage 1 are measured

Conversion read_conversion(const Parameters& settings) {
  std::vector<LayerBlock> blocks{parse_block("full")};
  for (const auto& text : settings.get<Texts>("blocks")) {
    auto block = parse_block(text);
    const auto same = [&](const LayerBlock& other) { return other.text == block.text; };
    if (std::any_of(blocks.begin(), blocks.end(), same))
      throw InputError("problem.blocks: " + block.text +
                       " is there twice, must be there once; full is always");
    blocks.push_back(std::move(block));
  }
  if (blocks.size() == 1)
    throw InputError("problem.blocks = [], must name a block: " + join(layer_blocks().keys()));
  auto model = read_model_architecture(settings.get<std::string>("base"));
  try {
    const auto& open = settings.get<std::string>("layers");
    auto layers = open.empty() ? std::vector<std::size_t>() : layers_of(open, model.layers);
    return {std::move(model), std::move(blocks), std::move(layers)};
  } catch (const InputError& error) {
    throw InputError("problem: " + std::string(error.what()));
  }
}

/// Read once for the space, the objectives and the problem, of a file that stays as it is.
Conversion conversion_of(const Parameters& settings) {
  const auto& base = settings.get<std::string>("base");
  std::error_code none;
  const auto written =
      std::filesystem::last_write_time(std::filesystem::path(base) / "config.json", none);
  const auto key =
      std::tuple(base, settings.get<Texts>("blocks"), settings.get<std::string>("layers"), written);
  static std::mutex reading;
  static std::optional<std::pair<std::remove_const_t<decltype(key)>, Conversion>> last;
  const std::lock_guard lock(reading);
  if (!last || last->first != key) last.emplace(key, read_conversion(settings));
  return last->second;
}

std::string gene_name(Integer layer) { return kGene + std::to_string(layer); }

SearchSpace space_of(const Parameters& settings) {
  const auto conversion = conversion_of(settings);
  std::vector<Gene> genes;
  for (Integer i = 0; i < conversion.layers(); ++i) {
    auto& gene = genes.emplace_back(Gene{.name = gene_name(i)});
    for (const auto b : conversion.choices(i)) gene.options.push_back(conversion.blocks()[b].text);
  }
  SearchSpace space(std::move(genes));
  if (space.num_varying() == 0) {
    throw InputError("problem.blocks: no layer of " + settings.get<std::string>("base") +
                     " becomes another by any of these");
  }
  return space;
}

/// 0 .. n-1 in an order that a seed says.
std::vector<Integer> shuffled(Integer n, std::uint64_t seed) {
  std::vector<Integer> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  RandomEngine random(seed);
  shuffle(order, random);
  return order;
}

/// The inputs of some windows, (B, T), and their targets.
std::pair<torch::Tensor, torch::Tensor> read(const Windows& windows,
                                             const std::vector<Integer>& places) {
  const auto tokens = at::zeros({std::ssize(places), windows.length}, at::kLong);
  const auto targets = at::zeros_like(tokens);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto first = static_cast<Integer>(i) * windows.length;
    windows.read(places[i], 0, tokens.data_ptr<Integer>() + first,
                 targets.data_ptr<Integer>() + first);
  }
  return {tokens, targets};
}

/// A replicate is a document of the corpus and a draw of each probe.
class Conversions final : public Problem {
 public:
  explicit Conversions(const ProblemInputs& inputs)
      : settings_(inputs.settings),
        seed_(inputs.seed),
        mode_(parse_numerical_mode(inputs.evaluation.get<std::string>("numerical_mode"))),
        threads_(static_cast<int>(inputs.evaluation.get<Integer>("threads"))),
        workers_(inputs.evaluation.get<std::string>("workers")),
        objectives_(inputs.objectives),
        cache_context_(inputs.settings.get<Integer>("cache_context")),
        conversion_(conversion_of(inputs.settings)),
        space_(space_of(inputs.settings)) {
    const auto& model = conversion_.teacher();
    const auto context = settings_.get<Integer>("context");
    Integer longest = context;
    for (const auto& text : settings_.get<Texts>("probes")) {
      probes_.emplace_back(text);
      longest = std::max(longest, probes_.back().tokens());
      if (2 * probes_.back().tokens() > model.vocabulary)
        throw InputError("probe " + text + " draws more tokens than the vocabulary of " +
                         std::to_string(model.vocabulary) + " allows");
    }
    if (longest > model.context) {
      throw InputError("problem.context, or a probe, has " + std::to_string(longest) +
                       " tokens, must have at most the model's " + std::to_string(model.context));
    }
    const auto corpus =
        corpora().at(inputs.corpus).make(inputs.data, context, default_data_location());
    documents_ = settings_.get<std::string>("split") == "test" ? corpus.test : corpus.valid;
    corpus_hash_ = corpus.hash;
    corpus_name_ = corpus.name;
    bytes_per_token_ = documents_.size() == 0                          ? 0.0
                       : settings_.get<std::string>("split") == "test" ? corpus.test_bytes_per_token
                                                                       : corpus.bytes_per_token;
    if (corpus.vocabulary > model.vocabulary) {
      throw InputError("data: the corpus has " + std::to_string(corpus.vocabulary) +
                       " tokens, the model knows " + std::to_string(model.vocabulary) +
                       ": give the model's own tokenizer, data.tokenizer=MODEL/tokenizer.json");
    }
    if (documents_.size() == 0) {
      throw InputError("data: no document of " + std::to_string(context) + " tokens in the split " +
                       settings_.get<std::string>("split"));
    }
    order_ = shuffled(documents_.size(), derive_seed(seed_, 0, "documents", 0));
    const auto folder = read_model_folder(settings_.get<std::string>("base"));
    weights_hash_ = folder.config.value("/sha256/model.safetensors"_json_pointer, std::string());
    weights_ = weights_of(folder.model);
    if (settings_.get<Integer>("stage1_tokens") > 0)
      learned_ = learned_blocks(corpus, inputs.folder);
    assessor_ = std::make_unique<Assessor>(
        conversion_, weights_, mode_, [this](Integer replicate) { return samples(replicate); },
        room_bytes(), learned_.get());
    if (trains()) distiller_ = distiller(corpus, inputs.folder);
  }

  [[nodiscard]] Candidate canonical(const Genotype& genotype) const override {
    const auto of = placement(genotype);
    return {.name = conversion_.name(of), .genotype = genotype, .refusal = conversion_.refusal(of)};
  }

  [[nodiscard]] Candidate parse(const std::string& name) const override {
    const auto placement = conversion_.parse(name);
    std::vector<std::pair<std::string, GeneValue>> values;
    for (Integer i = 0; i < conversion_.layers(); ++i)
      values.emplace_back(gene_name(i),
                          conversion_.blocks()[placement[static_cast<std::size_t>(i)]].text);
    const Genotype genotype(std::move(values));
    (void)space_.encode(genotype);  // refuses what is not in the space
    return canonical(genotype);
  }

  [[nodiscard]] std::string label(const std::string& candidate) const override { return candidate; }

  [[nodiscard]] nlohmann::json identity() const override {
    nlohmann::json identity = settings_;
    for (const auto* name : {"base", "layers", "room", "stage1_folder", "stage2_folder"})
      identity.erase(name);
    if (!distiller_)
      for (const auto* name : kStage2) identity.erase(name);
    if (!is_low_rank()) identity.erase("stage2_rank");
    if (!learned_) {
      for (const auto* name : {"stage1_tokens", "stage1_batch", "stage1_seeds"})
        identity.erase(name);
    }
    identity.update({{"problem", "convert"},
                     {"results_version", kResultsVersion},
                     {"weights", weights_hash_},
                     {"corpus_hash", corpus_hash_},
                     {"numerical_mode", to_string(mode_)},
                     {"threads", threads_},
                     {"run_seed", seed_}});
    for (const auto& constraint : objectives_->constraints)
      identity["constraints"].push_back(constraint.text());
    return identity;
  }

  [[nodiscard]] std::vector<Integer> rungs() const override {
    if (fidelity() == "both") return {kAddedUp, kWhole};
    if (fidelity() == "all") return {kAddedUp, kWhole, kShort, kTrained};
    return {};
  }

  void end_at(Evaluation& evaluation, Integer rung) const override {
    const auto all = rungs();
    if (!is_usable(evaluation) || all.empty() || rung >= all.back() || evaluation.curve.empty() ||
        evaluation.curve.back().step <= rung)
      return;
    evaluation.status = Status::paused;
    auto& values = evaluation.values;
    for (const auto* name : kMeasures) {
      const auto own = values.find(name + at(rung));
      if (own != values.end()) values[name] = own->second;
      for (auto later = rung + 1; later < all.back(); ++later) values.erase(name + at(later));
    }
    evaluation.curve.resize(static_cast<std::size_t>(rung));
    evaluation.measured["train_seconds"] = evaluation.curve.back().seconds;
  }

  void recorded(const Evaluation& evaluation) override {
    if (distiller_ && evaluation.status != Status::paused)
      distiller_->forget(conversion_.parse(evaluation.candidate), evaluation.replicate);
  }

  void screen(const Task& task, Evaluation& evaluation) override {
    const auto of = conversion_.parse(task.candidate.name);
    const auto bytes = static_cast<double>(conversion_.cache_bytes(of, cache_context_));
    evaluation.values["cache_bytes"] = bytes;
    evaluation.values["cache_share"] = bytes / full_bytes();
    const auto wants = [&](const ChosenObjective& one) { return one.name == "decode_ms"; };
    const auto& [wanted, limits] = *objectives_;
    if (std::any_of(wanted.begin(), wanted.end(), wants) ||
        std::any_of(limits.begin(), limits.end(),
                    [&](const auto& one) { return wants(one.quantity); })) {
      at::set_num_threads(threads_);
      evaluation.values["decode_ms"] = assessor_->decode_milliseconds(of, cache_context_);
    }
    for (const auto& constraint : objectives_->constraints) {
      const auto found = evaluation.values.find(constraint.quantity.name);
      if (found == evaluation.values.end()) continue;
      if (auto violation = constraint.violation(found->second); !violation.empty()) {
        evaluation.status = Status::rejected;
        evaluation.reason = std::move(violation);
      }
    }
  }

  void measure(const Task& task, Evaluation& evaluation) override {
    at::set_num_threads(threads_);
    if (stop_requested()) throw StopRequested();
    const auto begin = std::chrono::steady_clock::now();
    const auto of = conversion_.parse(task.candidate.name);
    evaluation.curve.clear();
    evaluation.status = Status::ok;
    if (const auto losses =
            learned_ ? learned_->losses(of, learned_->seed(task.replicate)) : std::nullopt) {
      evaluation.values["stage1_before"] = losses->front();
      evaluation.values["stage1_loss"] = losses->back();
    }
    const auto note = [&](const Assessment& found, const std::string& suffix) {
      const std::array<double, kMeasures.size()> numbers{
          found.kl,
          found.text_nll,
          found.text_loss,
          found.agreement,
          found.recall,
          found.kl + found.recall,
          found.text_loss / std::numbers::ln2 / bytes_per_token_};
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (i + 1 < numbers.size() || bytes_per_token_ > 0.0)
          evaluation.values[kMeasures[i] + suffix] = numbers[i];
      }
      evaluation.values["recall_margin"] = found.recall_margin;
    };
    const auto all = rungs();
    /// Whether it pauses there.
    const auto reach = [&](Integer step, const Assessment& found) {
      note(found, "");
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      evaluation.measured["train_seconds"] = took.count();
      if (all.empty()) return false;
      if (step < all.back()) note(found, at(step));
      auto& point = evaluation.curve.emplace_back();
      point.step = step;
      point.seconds = took.count();
      if (task.until != step || step == all.back()) return false;
      require_finite_values(evaluation);
      if (is_usable(evaluation)) evaluation.status = Status::paused;
      return true;
    };
    const auto mean = [&](const auto& assess) {
      if (!distiller_) return assess(task.replicate);
      const auto count = settings_.get<Integer>("stage2_documents");
      return mean_of(count, [&](Integer i) { return assess(task.replicate * count + i); });
    };
    const auto wants = [&](const auto&... names) { return ((fidelity() == names) || ...); };
    if (wants("added_up", "both", "all") && reach(kAddedUp, mean([&](Integer document) {
                                                    return assessor_->added_up(of, document,
                                                                               task.replicate);
                                                  })))
      return;
    if (wants("whole", "both", "all") && reach(kWhole, mean([&](Integer document) {
                                                 return assessor_->assess(of, document,
                                                                          task.replicate);
                                               })))
      return;
    if (distiller_) {
      const bool pauses = task.until == kShort;
      const auto found = distiller_->train(
          of, task.replicate, all.empty() || pauses ? 1 : 2, [&](nn::TransformerArray& hybrid) {
            return mean([&](Integer document) { return assessor_->assess(hybrid, document); });
          });
      if (!all.empty() && reach(kShort, found.front())) return;
      (void)reach(kTrained, found.back());
    }
    require_finite_values(evaluation);
  }

  [[nodiscard]] nlohmann::json facts() const override {
    auto choices = nlohmann::json::array();
    for (const auto& gene : space_.genes()) choices.push_back(gene.options);
    auto base = std::filesystem::path(settings_.get<std::string>("base")).filename().string() +
                ", " + std::to_string(conversion_.layers()) + " layers; documents of " +
                std::to_string(documents_.length) + " tokens of " + corpus_name_;
    for (const auto& probe : probes_) base += ", " + probe.text();
    nlohmann::json facts{{"device", "cpu"},
                         {"base", base},
                         {"choices", choices},
                         {"corpus", corpus_name_},
                         {"corpus_hash", corpus_hash_},
                         {"weights", weights_hash_},
                         {"layers", conversion_.layers()},
                         {"full_cache_bytes", full_bytes()},
                         {"documents", documents_.size()}};
    if (learned_) facts["stage1"] = stage1_;
    if (distiller_) facts["stage2"] = stage2_;
    return facts;
  }

  [[nodiscard]] int num_workers() const override {
    return workers_ == "auto" ? std::max(1, at::get_num_threads() / threads_) : std::stoi(workers_);
  }

  /// On one replicate: of a placement without any layer as it was; of stage 2, which takes longest, the mean of this and of
  /// the model itself.
  double calibrate_seconds(const Candidate& /*candidate*/) override {
    if (calibrated_) return *calibrated_;
    at::set_num_threads(threads_);
    Placement last;
    for (Integer i = 0; i < conversion_.layers(); ++i)
      last.push_back(conversion_.choices(i).back());
    (void)assessor_->assess_untrained(last, 0);  // makes what is kept
    const auto begin = std::chrono::steady_clock::now();
    (void)assessor_->assess_untrained(last, 0);
    const std::chrono::duration<double> one = std::chrono::steady_clock::now() - begin;
    calibrated_ = one.count();
    if (distiller_) {
      const nn::MemoryScope memory;
      *calibrated_ *= static_cast<double>(settings_.get<Integer>("stage2_documents")) *
                      (fidelity() == "all" ? 3.0 : 1.0);
      *calibrated_ +=
          (distiller_->seconds(last) + distiller_->seconds(Placement(last.size(), 0))) / 2.0;
      training_bytes_ = memory.peak_bytes();
    }
    return *calibrated_;
  }

  /// Of stage 2 each worker has its own training; documents and the teacher's features are kept while there is room.
  Preparation calibrate_preparation(Integer replicates) override {
    Preparation found;
    const auto workers = num_workers();  // of as many threads as there are
    at::set_num_threads(threads_);
    if (learned_) {
      found.seconds = learned_->seconds(seeds_of(replicates));
      found.peaks.emplace_back("stage 1", peak_resident_memory());
    }
    if (!distiller_) return found;
    (void)calibrate_seconds({});
    const auto kept = [&](double bytes) { return std::min(bytes, room_bytes()); };
    const auto documents = replicates * settings_.get<Integer>("stage2_documents");
    double bytes = static_cast<double>(resident_memory() + (workers - 1) * training_bytes_) +
                   kept(static_cast<double>(replicates) * distiller_->feature_bytes()) +
                   kept(static_cast<double>(documents - 1) * assessor_->kept_bytes());
    if (learned_) bytes += learned_->bytes() * static_cast<double>(seeds_of(replicates));
    found.peaks.emplace_back("stage 2", static_cast<Integer>(bytes));
    return found;
  }

 private:
  [[nodiscard]] Integer seeds_of(Integer replicates) const {
    return std::min(replicates, settings_.get<Integer>("stage1_seeds"));
  }
  [[nodiscard]] std::string fidelity() const { return settings_.get<std::string>("fidelity"); }
  [[nodiscard]] bool trains() const { return fidelity() == "trained" || fidelity() == "all"; }
  /// Of values at a rung before the end.
  [[nodiscard]] static std::string at(Integer rung) { return "@" + std::to_string(rung); }

  [[nodiscard]] bool is_low_rank() const {
    return settings_.get<std::string>("stage2_weights") == "low_rank";
  }

  /// Windows of the training split, in an order of each number. @param what  they are for.
  [[nodiscard]] std::function<torch::Tensor(Integer, Integer)> batches(
      const Windows& train, Integer count, const std::string& what) const {
    if (train.size() == 0)
      throw InputError("data: no document to train on, problem.stage" + what.substr(6) +
                       "_tokens needs some");
    return [train, count, what, seed = seed_](Integer of, Integer step) {
      std::vector<Integer> places, order;
      for (Integer i = step * count; i < (step + 1) * count; ++i) {
        if (order.empty() || i % train.size() == 0)
          order = shuffled(train.size(), derive_seed(seed, of, what, i / train.size()));
        places.push_back(order[static_cast<std::size_t>(i % train.size())]);
      }
      return read(train, places).first;
    };
  }

  /// What the weights of a hybrid depend on besides its placement.
  [[nodiscard]] nlohmann::json origin(const Corpus& corpus) const {
    return {{"results_version", kResultsVersion},
            {"weights", weights_hash_},
            {"corpus_hash", corpus_hash_},
            {"numerical_mode", to_string(mode_)},
            {"threads", threads_},
            {"run_seed", seed_},
            {"context", corpus.train.length}};
  }

  /// Steps that a setting's tokens are.
  [[nodiscard]] Integer steps(const Corpus& corpus, const std::string& tokens,
                              const std::string& batch) const {
    return static_cast<Integer>(
        std::ceil(static_cast<double>(settings_.get<Integer>(tokens)) /
                  static_cast<double>(settings_.get<Integer>(batch) * corpus.train.length)));
  }

  [[nodiscard]] std::unique_ptr<Distiller> distiller(const Corpus& corpus,
                                                     std::filesystem::path folder) {
    const auto documents = settings_.get<Integer>("stage2_documents");
    if (documents > documents_.size())
      throw InputError("problem.stage2_documents = " + std::to_string(documents) +
                       ", must be at most " + std::to_string(documents_.size()) +
                       ", all that there are");
    Distillation plan{
        .steps = steps(corpus, "stage2_tokens", "stage2_batch"),
        .batch = batches(corpus.train, settings_.get<Integer>("stage2_batch"), "stage 2"),
        .mixer_rate = settings_.get<double>("stage2_rate"),
        .other_rate = settings_.get<std::string>("stage2_weights") == "mixers"
                          ? 0.0
                          : settings_.get<double>("stage2_rate_rest"),
        .rank = is_low_rank() ? settings_.get<Integer>("stage2_rank") : 0,
        .room = room_bytes()};
    if (plan.rank > conversion_.teacher().width)
      throw InputError("problem.stage2_rank = " + std::to_string(plan.rank) +
                       ", must be at most the model's width " +
                       std::to_string(conversion_.teacher().width));
    if (plan.steps == 0)
      throw InputError("problem.stage2_tokens = 0, must be more where problem.fidelity = " +
                       fidelity());
    if (fidelity() == "all") {
      const auto early = settings_.get<Integer>("stage2_short") > 0
                             ? steps(corpus, "stage2_short", "stage2_batch")
                             : (plan.steps + 9) / 10;
      if (early >= plan.steps)
        throw InputError("problem.stage2_short is " + std::to_string(early) +
                         " steps, must be fewer than the " + std::to_string(plan.steps) +
                         " of problem.stage2_tokens");
      plan.marks.push_back(early);
    }
    plan.marks.push_back(plan.steps);
    auto of = origin(corpus);
    const nlohmann::json settings = settings_;
    for (const auto* name : kStage2) of[name] = settings.at(name);
    if (!is_low_rank()) of.erase("stage2_rank");  // as it was before there was this setting
    of["stage1"] = stage1_, of["fidelity"] = fidelity(), of["split"] = settings.at("split");
    of["probes"] = settings.at("probes");
    stage2_ = sha256(of.dump()).substr(0, 12);
    std::filesystem::path kept = settings_.get<std::string>("stage2_folder");
    if (!kept.empty()) kept /= stage2_;
    if (!folder.empty()) folder = folder / "stage2" / stage2_;
    return std::make_unique<Distiller>(conversion_, weights_, mode_, std::move(plan),
                                       learned_.get(), folder, kept);
  }

  [[nodiscard]] double room_bytes() const { return settings_.get<double>("room") * 0x1.0p30; }

  /// What blocks learn from: windows of the training split, in an order of each seed.
  [[nodiscard]] std::unique_ptr<LearnedBlocks> learned_blocks(const Corpus& corpus,
                                                              std::filesystem::path folder) {
    const auto count = settings_.get<Integer>("stage1_batch");
    Lessons lessons{.steps = steps(corpus, "stage1_tokens", "stage1_batch"),
                    .seeds = settings_.get<Integer>("stage1_seeds"),
                    .batch = batches(corpus.train, count, "stage 1"),
                    .room = room_bytes()};
    const auto held_out = std::min<Integer>(kHeldOut, corpus.valid.size());
    for (Integer i = 0; i < held_out; ++i)
      lessons.held_out.push_back(read(corpus.valid, {i * corpus.valid.size() / held_out}).first);
    auto of = origin(corpus);
    of["tokens"] = settings_.get<Integer>("stage1_tokens");
    of["batch"] = count;
    stage1_ = sha256(of.dump()).substr(0, 12);
    const auto& shared = settings_.get<std::string>("stage1_folder");
    if (!shared.empty())
      folder = std::filesystem::path(shared) / stage1_;
    else if (!folder.empty())
      folder = folder / "stage1" / stage1_;
    return std::make_unique<LearnedBlocks>(conversion_, weights_, mode_, std::move(lessons),
                                           folder);
  }

  [[nodiscard]] Placement placement(const Genotype& genotype) const {
    Placement placement;
    for (Integer i = 0; i < conversion_.layers(); ++i) {
      const auto& blocks = conversion_.blocks();
      const auto& text = genotype.option(gene_name(i));
      placement.push_back(
          static_cast<std::size_t>(std::find_if(blocks.begin(), blocks.end(),
                                                [&](const auto& b) { return b.text == text; }) -
                                   blocks.begin()));
    }
    return placement;
  }

  [[nodiscard]] double full_bytes() const {
    return static_cast<double>(conversion_.cache_bytes(
        Placement(static_cast<std::size_t>(conversion_.layers()), 0), cache_context_));
  }

  [[nodiscard]] Samples samples(Integer replicate) const {
    const auto place = order_[static_cast<std::size_t>(replicate % std::ssize(order_))];
    const auto [tokens, targets] = read(documents_, {place});
    Samples samples{{tokens.flatten(), targets.flatten()}};
    for (const auto& probe : probes_) {
      samples.push_back(probe.draw(derive_seed(seed_, replicate, "probe", probe.text()),
                                   conversion_.teacher().vocabulary));
    }
    return samples;
  }

  Parameters settings_;
  std::uint64_t seed_;
  NumericalMode mode_;
  int threads_;
  std::string workers_;
  const ObjectiveSet* objectives_;
  Integer cache_context_;
  Conversion conversion_;
  SearchSpace space_;
  std::vector<Probe> probes_;
  Windows documents_;
  std::string corpus_hash_, corpus_name_, weights_hash_, stage1_, stage2_;
  double bytes_per_token_ = 0.0;
  std::optional<double> calibrated_;
  Integer training_bytes_ = 0;  // of tensors of one training of stage 2, once calibrated
  std::vector<Integer> order_;
  Weights weights_;
  std::unique_ptr<LearnedBlocks> learned_;
  std::unique_ptr<Assessor> assessor_;
  std::unique_ptr<Distiller> distiller_;
};

std::vector<ChosenObjective> measures_of(const Parameters& settings) {
  const auto conversion = conversion_of(settings);
  const Placement full(static_cast<std::size_t>(conversion.layers()), 0);
  const auto bytes =
      static_cast<double>(conversion.cache_bytes(full, settings.get<Integer>("cache_context")));
  std::vector<ChosenObjective> chosen;
  const auto add = [&](const char* name, const char* unit, Range range, bool maximise = false) {
    chosen.push_back({.name = name,
                      .key = name,
                      .settings = {},
                      .objective = {.unit = unit,
                                    .maximise = maximise,
                                    .trained =
                                        [name = std::string(name)](const Evaluation& evaluation) {
                                          return evaluation.values.at(name);
                                        }},
                      .maximise = maximise,
                      .range = range});
  };
  add("loss", "nat", {0.0, 11.0});
  add("kl", "nat", {0.0, 1.0});
  add("recall", "nat", {0.0, 10.0});
  add("cache_bytes", "B", {0.0, bytes});
  add("cache_share", "1", {0.0, 1.0});
  add("decode_ms", "ms", {0.0, 1000.0});
  add("text_loss", "nat", {0.0, 1.0});
  add("bits_per_byte", "bit", {0.0, 0.5});
  add("agreement", "1", {1.0, 0.0}, true);
  return chosen;
}

NAS_REGISTER_PROBLEM(
    {.key = "convert",
     .summary = "replaces layers of a trained transformer, without training or by blocks that have "
                "learned from it, and compares what it says with what it said",
     .settings =
         {{.name = "base",
           .default_value = std::string(),
           .help = "folder of the model, as nas-model import and nas-export write it",
           .required = true,
           .names_file = true},
          {.name = "blocks",
           .default_value = Texts{"window{64,4}"},
           .help = "what a layer may become besides `full`, sizes in braces"},
          setting::text("layers", "", "which may become another, as 8,17-20; empty: all"),
          setting::integer("context", 512, 2, 1e6, "tokens of a document"),
          setting::integer("cache_context", 2048, 1, 1e9,
                           "tokens after which the bytes of the cache are counted"),
          {.name = "probes",
           .default_value = Texts{"copy{128}", "pairs{32}"},
           .help = "what can be answered only from tokens far before: copy{n}, pairs{n}, "
                   "needle{n}"},
          setting::choice("split", "valid", {"valid", "test"}, "which documents are read"),
          setting::choice("fidelity", "whole", {"added_up", "whole", "both", "trained", "all"},
                          "added_up: the sum of what each block costs alone; both: at rung 1 "
                          "the sum, at rung 2 the whole model; trained: the whole model after "
                          "stage 2; all: as both, at rung 3 after stage2_short tokens of stage "
                          "2, at rung 4 after all"),
          setting::integer("stage1_tokens", 0, 0, 1e12,
                           "from which each block learns to add what its layer adds; 0: none does"),
          setting::integer("stage1_batch", 8, 1, 1e6, "documents of a step of that"),
          setting::integer("stage1_seeds", 1, 1, 1e6,
                           "trainings of each block: replicate r has that of r modulo these"),
          {.name = "stage1_folder",
           .default_value = std::string(),
           .help = "where blocks that have learned are kept; empty: in the run's folder",
           .effect = Effect::execution},
          setting::integer("stage2_tokens", 0, 0, 1e12,
                           "of fidelity trained and all: from which each hybrid learns as a whole "
                           "to say what the model says"),
          setting::integer("stage2_short", 0, 0, 1e12,
                           "tokens after which fidelity all looks at rung 3; 0: a tenth of all"),
          setting::integer("stage2_batch", 8, 1, 1e6, "documents of a step of that"),
          setting::number("stage2_rate", 1e-4, 0, 1,
                          "learning rate of attention and of what takes its place"),
          setting::number("stage2_rate_rest", 1e-5, 0, 1, "that of all else; 0: it stays"),
          setting::choice("stage2_weights", "all", {"all", "mixers", "low_rank"},
                          "what learns; mixers: attention and what takes its place; low_rank: "
                          "these, and what is added to all other matrices, of rank stage2_rank"),
          setting::integer("stage2_rank", 8, 1, 1e6, "of what low_rank adds to a matrix"),
          setting::integer("stage2_documents", 8, 1, 1e6,
                           "documents of each replicate that a trained hybrid is assessed on"),
          {.name = "stage2_folder",
           .default_value = std::string(),
           .help = "where the weights of trained hybrids are kept; empty: nowhere",
           .effect = Effect::execution},
          [] {
            auto room =
                setting::number("room", 4.0, 0, 1e6,
                                "GiB of what is kept of documents, to be compared with, and "
                                "of what blocks learn in at once");
            room.effect = Effect::execution;
            return room;
          }()},
     .file = __FILE__},
    [] {
      return ProblemKind{.sections = {"data"},
                         .space = space_of,
                         .objectives = measures_of,
                         .make = [](const ProblemInputs& inputs) -> std::shared_ptr<Problem> {
                           return std::make_shared<Conversions>(inputs);
                         }};
    });

}  // namespace

}  // namespace nas
