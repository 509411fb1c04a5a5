// Times training steps of the whole model in a process of its own and prints one JSON object: what
// bench/side_by_side_gpu compares with other programs.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <boost/program_options.hpp>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <torch/torch.h>

#include "core/error.hpp"
#include "core/seed.hpp"
#include "core/version.hpp"
#include "data/corpus.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/costs.hpp"
#include "genotype/mechanism_name.hpp"
#include "instruments/environment.hpp"
#include "nn/transformer.hpp"
#include "ops/device_stream.hpp"
#include "ops/memory.hpp"
#include "training/array_steps.hpp"
#include "training/optimizer.hpp"

namespace nas {
namespace {

struct Settings {
  std::string mode;
  std::string mechanism;
  std::string semantics;
  std::int64_t batch = 0;
  std::int64_t context = 0;
  std::int64_t vocabulary = 0;
  Architecture frame{};  ///< of which layers, width and heads count
  std::int64_t micro = 0;
  bool recompute = false;
  int threads = 1;
  int warm_up = 0;
  int steps = 0;
  std::string tokens;
  std::string allocator;
  std::string device;
  double dropout = 0.0;
  std::string save_start;
  std::int64_t array = 1;
  bool record = true;
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// Windows of context + 1 tokens, one after the other: from a file, or random.
Windows read_windows(const Settings& settings) {
  const auto window = settings.context + 1;
  Windows windows;
  windows.length = settings.context;
  if (settings.tokens.empty()) {
    RandomEngine random(1);
    windows.tokens.resize(static_cast<std::size_t>(8 * settings.batch * window));
    for (auto& token : windows.tokens)
      token = static_cast<std::int32_t>(random.below(settings.vocabulary));
  } else {
    std::ifstream file(settings.tokens, std::ios::binary | std::ios::ate);
    if (!file) throw InputError("--tokens " + settings.tokens + ": cannot be read");
    windows.tokens.resize(static_cast<std::size_t>(file.tellg()) / sizeof(std::int32_t));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(windows.tokens.data()),
              static_cast<std::streamsize>(windows.tokens.size() * sizeof(std::int32_t)));
  }
  const auto size = std::ssize(windows.tokens);
  if (size == 0 || size % window != 0) {
    throw InputError(
        "--tokens " + settings.tokens + ": " + std::to_string(size) +
        " int32 tokens, must be a multiple of context + 1 = " + std::to_string(window));
  }
  for (std::int64_t start = 0; start < size; start += window) windows.starts.push_back(start);
  return windows;
}

/// Mechanisms of a list: commas within braces are their own.
std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char letter : list) {
    depth += letter == '{' ? 1 : letter == '}' ? -1 : 0;
    if (letter == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

/// One for each model of the array: mechanisms in turn.
std::vector<Architecture> architectures_of(const Settings& settings) {
  const auto mechanisms = split(settings.mechanism);
  std::vector<Architecture> architectures;
  for (std::int64_t model = 0; model < settings.array; ++model) {
    Architecture architecture{.semantics = parse_semantics(settings.semantics),
                              .layers = settings.frame.layers,
                              .width = settings.frame.width,
                              .heads = settings.frame.heads,
                              .context = settings.context,
                              .vocabulary = settings.vocabulary,
                              .dropout = settings.dropout};
    architecture =
        parse_model(mechanisms[static_cast<std::size_t>(model) % mechanisms.size()], architecture);
    require_valid(architecture);
    if (architecture.layers != settings.frame.layers) {
      throw InputError("--layers " + std::to_string(settings.frame.layers) + ", must be " +
                       std::to_string(architecture.layers) + " as --mechanism says: 2*attn has 2");
    }
    architectures.push_back(architecture);
  }
  return architectures;
}

/// An array of models, its optimiser and what is trained on.
class Training {
 public:
  Training(const Settings& settings, const Windows& windows)
      : settings_(settings),
        stream_(torch::Device(settings.device)),
        models_(architectures_of(settings), parse_numerical_mode(settings.mode),
                torch::Device(settings.device)),
        optimizer_(begun().parameters(), settings.array,
                   [this](const nn::Parameter& parameter) { return models_.decays(parameter); }),
        losses_(torch::zeros(
            {settings.array},
            torch::TensorOptions(torch::kDouble).device(torch::Device(settings.device)))),
        steps_(array_steps(models_, optimizer_, windows,
                           {.batch = settings.batch, .micro = settings.micro}, losses_,
                           settings.record)) {
    const auto update = [](std::int64_t step) {
      return ModelStep{.step = step, .learning_rate = 3e-4, .weight_decay = 0.01, .clip_norm = 1.0};
    };
    for (std::int64_t model = 0; model < settings.array; ++model) {
      courses_.push_back({.order = TrainingOrder::unshuffled(windows, settings.batch),
                          .run_seed = 1,
                          .replicate = model,
                          .update = update});
    }
  }

  /// Takes one step, or where steps are captured those of one graph if no more than `most`.
  /// @return how many, and their mean loss, (models), on the device.
  std::pair<std::int64_t, torch::Tensor> take_at_once(std::int64_t most) {
    losses_.zero_();
    const auto taken = steps_->take(courses(), most);
    return {taken, losses_ / taken};
  }

  /// Takes `count` steps. @return the mean loss of the last ten of them at most, (models), on the
  /// device.
  torch::Tensor take(std::int64_t count) {
    constexpr std::int64_t kLast = 10;
    std::int64_t summed = 0;
    for (std::int64_t left = count; left > 0;) {
      if (left <= kLast && summed == 0) losses_.zero_();
      const auto taken = steps_->take(courses(), left);
      if (left <= kLast) summed += taken;
      left -= taken;
    }
    return losses_ / summed;
  }

  /// Takes steps until their cost is steady, and at least `least`.
  void warm_up(std::int64_t least) { take(std::max(least, steps_->warm_up())); }

  void synchronize() const {
    if (torch::Device(settings_.device).is_cuda()) torch::cuda::synchronize();
  }

 private:
  std::vector<Course*> courses() {
    std::vector<Course*> all;
    for (auto& course : courses_) all.push_back(&course);
    return all;
  }

  nn::TransformerArray& begun() {
    std::vector<nn::StartSeed> seeds;
    for (std::int64_t model = 0; model < settings_.array; ++model) seeds.push_back({1, model});
    models_.initialise(seeds);
    models_.recompute_layers(settings_.recompute);
    if (!settings_.save_start.empty()) save_start();
    return models_;
  }

  /// The first model: a line of JSON, the shapes by name in the order of what follows: the values
  /// as float32.
  void save_start() const {
    std::ofstream file(settings_.save_start, std::ios::binary);
    nlohmann::ordered_json shapes;
    std::vector<torch::Tensor> values;
    for (const auto& parameter : models_.parameters()) {
      if (parameter.models.front() != 0) continue;
      values.push_back(parameter.tensor[0].cpu());
      shapes[parameter.name] = values.back().sizes().vec();
    }
    file << shapes << "\n";
    for (const auto& tensor : values) {
      file.write(static_cast<const char*>(tensor.data_ptr()),
                 static_cast<std::streamsize>(tensor.nbytes()));
    }
    if (!file.flush()) throw InputError("--save-start " + settings_.save_start + ": not writable");
  }

  const Settings& settings_;
  nn::OwnStream stream_;
  nn::TransformerArray models_;
  Optimizer optimizer_;
  torch::Tensor losses_;
  std::unique_ptr<ArraySteps> steps_;
  std::vector<Course> courses_;
};

/// Of a step of all models of the array.
double flop_per_step(const Settings& settings) {
  double flops = 0.0;
  for (const auto& architecture : architectures_of(settings)) flops += forward_flops(architecture);
  return 3.0 * static_cast<double>(settings.batch) * flops;
}

/// A number for a model alone, else a list.
nlohmann::json to_json(const torch::Tensor& losses) {
  const auto host = losses.to(torch::kCPU, torch::kDouble).contiguous();
  if (host.numel() == 1) return host.item<double>();
  return std::vector<double>(host.data_ptr<double>(), host.data_ptr<double>() + host.numel());
}

struct Timing {
  std::vector<double> cpu, wall;         ///< of a step
  std::vector<nlohmann::json> loss;      ///< mean of the steps that were taken at once
  std::vector<std::int64_t> loss_steps;  ///< how many those were: above 1 where they were captured
  std::int64_t faults = 0;
  std::int64_t peak_bytes = 0;
  std::int64_t requested_bytes = 0;
};

Timing train(const Settings& settings, const Windows& windows) {
  at::set_num_threads(settings.threads);
  std::optional<nn::MemoryScope> memory;
  if (settings.allocator == "ours") memory.emplace();
  Training training(settings, windows);
  Timing timing;
  std::int64_t faults = page_faults();
  std::int64_t requested = 0;
  const std::int64_t warm_up = settings.warm_up;
  for (std::int64_t step = 0; step < warm_up + settings.steps;) {
    if (step == warm_up) {
      faults = page_faults();
      requested = memory ? memory->requested_bytes() : 0;
    }
    const auto wall = std::chrono::steady_clock::now();
    const double cpu = cpu_seconds();
    const bool is_timed = step >= warm_up;
    const auto [taken, loss] =
        training.take_at_once((is_timed ? warm_up + settings.steps : warm_up) - step);
    timing.loss.push_back(to_json(loss));  // waits for a device
    timing.loss_steps.push_back(taken);
    step += taken;
    if (!is_timed) continue;
    const auto of_a_step = [steps = static_cast<double>(taken)](double all) { return all / steps; };
    timing.cpu.push_back(of_a_step(cpu_seconds() - cpu));
    timing.wall.push_back(
        of_a_step(std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count()));
  }
  timing.faults = page_faults() - faults;
  if (memory) {
    timing.peak_bytes = memory->peak_bytes();
    timing.requested_bytes = memory->requested_bytes() - requested;
  }
  return timing;
}

nlohmann::json versions() {
  const auto environment = nn::environment();
  return {{"torch", environment.torch_version},
          {"blas", environment.blas_library},
          {"processor", environment.processor},
          {"instruction_set", environment.instruction_set},
          {"exact_products", environment.products.at("exact_products")},
          {"tf32_products", environment.products.at("tf32_products")},
          {"fast_products", environment.products.at("fast_products")},
          {"compiler", __VERSION__},
          {"revision", kRevision}};
}

/// The paper's 192 mechanisms without bias, those that are the same function once.
std::vector<std::string> all_mechanisms(Semantics semantics) {
  std::set<std::string> names;
  for (const auto& similarity : paper_labels("similarity")) {
    for (const auto& normalization : paper_labels("normalization")) {
      for (const auto& gating : paper_labels("gating")) {
        for (const auto& temperature : paper_labels("temperature")) {
          const auto label =
              similarity + "|" + normalization + "|" + gating + "|" + temperature + "|no_bias|0.1";
          names.insert(to_string(canonical(parse_mechanism(label, semantics), semantics)));
        }
      }
    }
  }
  return {names.begin(), names.end()};
}

/// Trains on request: "ready" once the warm-up is done, then for each line of the standard input
/// `steps` more steps with one synchronisation at their end and a line of what they took; at the
/// end of the input a last line with the peak of memory. Nobody waits for a loss in between.
void train_on_request(const Settings& settings) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds_since = [](auto then) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
  };
  at::set_num_threads(settings.threads);
  const nn::MemoryScope memory;
  const nn::DeviceMemoryScope device_memory(settings.device);
  const auto windows = read_windows(settings);
  Training training(settings, windows);
  training.warm_up(settings.warm_up);
  training.synchronize();
  std::cout << nlohmann::json{{"ready", true},
                              {"prepare_seconds", seconds_since(start)},
                              {"flop_per_step",
                               flop_per_step(settings) / static_cast<double>(settings.array)},
                              {"versions", versions()}}
            << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const auto begin = std::chrono::steady_clock::now();
    const double cpu = cpu_seconds();
    const auto loss = training.take(settings.steps);
    training.synchronize();
    std::cout << nlohmann::json{{"seconds", seconds_since(begin)},
                                {"cpu_seconds", cpu_seconds() - cpu},
                                {"model_steps", settings.steps * settings.array},
                                {"loss", loss[0].item<double>()}}
              << std::endl;
  }
  std::cout << nlohmann::json{{"peak_bytes", settings.device == "cpu" ? memory.peak_bytes()
                                                                      : device_memory.peak_bytes()}}
            << std::endl;
}

nlohmann::json result_of(const Settings& settings) {
  const auto timing = train(settings, read_windows(settings));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  nlohmann::json result = {{"mode", settings.mode},
                           {"mechanism", settings.mechanism},
                           {"semantics", settings.semantics},
                           {"allocator", settings.allocator},
                           {"threads", settings.threads},
                           {"array", settings.array},
                           {"cpu_seconds", timing.cpu},
                           {"wall_seconds", timing.wall},
                           {"loss", timing.loss},
                           {"loss_steps", timing.loss_steps},
                           {"page_faults", timing.faults},
                           {"peak_rss_bytes", std::int64_t{1024} * usage.ru_maxrss},
                           {"flop_per_step", flop_per_step(settings)},
                           {"versions", versions()}};
  const bool ours = settings.allocator == "ours";
  result["peak_bytes"] = ours ? nlohmann::json(timing.peak_bytes) : nullptr;
  result["requested_bytes"] = ours ? nlohmann::json(timing.requested_bytes) : nullptr;
  return result;
}

int run(int argc, char** argv) {
  namespace options = boost::program_options;
  Settings settings;
  const auto text = [](std::string& target, const char* value) {
    return options::value(&target)->default_value(value);
  };
  options::options_description description(
      "training_step [options]: times training steps, prints JSON");
  description.add_options()("help", "prints this")("mode", text(settings.mode, "exact"),
                                                   "reference, exact, tf32 or fast")(
      "mechanism", text(settings.mechanism, "dot|softmax|none|sqrt_d|bias|0.1"),
      "its name, several with commas between them for the models of an array in turn, or all: the "
      "paper's 192 without bias, a line each")(
      "array", options::value(&settings.array)->default_value(1), "models trained as one array")(
      "semantics", text(settings.semantics, "published"), "published or corrected")(
      "batch", options::value(&settings.batch)->default_value(32), "sequences a step")(
      "context", options::value(&settings.context)->default_value(128), "tokens a sequence")(
      "vocabulary", options::value(&settings.vocabulary)->default_value(10000), "words")(
      "layers", options::value(&settings.frame.layers)->default_value(2),
      "of a model; what names say, too, must be as many")(
      "width", options::value(&settings.frame.width)->default_value(128), "of the stream")(
      "heads", options::value(&settings.frame.heads)->default_value(4), "of a layer")(
      "micro", options::value(&settings.micro)->default_value(0),
      "sequences that are computed at once; 0: all")(
      "recompute", options::bool_switch(&settings.recompute), "layers, for gradients")(
      "threads", options::value(&settings.threads)->default_value(1), "of a training")(
      "warm-up", options::value(&settings.warm_up)->default_value(2),
      "steps before the timed ones")("steps", options::value(&settings.steps)->default_value(5),
                                     "timed steps")(
      "tokens", text(settings.tokens, ""), "file of int32 windows of context + 1; empty: random")(
      "allocator", text(settings.allocator, "ours"), "ours, or torch: LibTorch's own")(
      "device", text(settings.device, "cpu"), "cpu, cuda, cuda:0, ...")(
      "dropout", options::value(&settings.dropout)->default_value(0.1),
      "of the embedding and the feed-forward layers; attention's is in the mechanism")(
      "record", options::value(&settings.record)->default_value(true),
      "0, or 1: steps on a CUDA device ten at a time, as a CUDA graph, after a few others")(
      "save-start", text(settings.save_start, ""), "file for the initial parameters")(
      "on-request", "trains `steps` more at every line of the standard input");
  options::variables_map given;
  options::store(options::parse_command_line(argc, argv, description), given);
  options::notify(given);
  if (given.contains("help")) {
    std::cout << description;
    return 0;
  }
  const auto positive = [](const char* name, std::int64_t value, std::int64_t least) {
    if (value < least) {
      throw InputError("--" + std::string(name) + " " + std::to_string(value) +
                       ", must be at least " + std::to_string(least));
    }
  };
  positive("batch", settings.batch, 1);
  positive("threads", settings.threads, 1);
  positive("warm-up", settings.warm_up, 0);
  positive("steps", settings.steps, 1);
  positive("array", settings.array, 1);
  if (settings.allocator != "ours" && settings.allocator != "torch")
    throw InputError("--allocator " + settings.allocator + ", must be ours or torch");
  settings.device = nn::resolve_device(settings.device);
  nn::require_numerical_mode(parse_numerical_mode(settings.mode), settings.device);
  if (given.contains("on-request")) {
    train_on_request(settings);
    return 0;
  }
  if (settings.mechanism != "all") {
    std::cout << result_of(settings) << "\n";
    return 0;
  }
  const auto mechanisms = all_mechanisms(parse_semantics(settings.semantics));
  for (const auto& mechanism : mechanisms) {
    settings.mechanism = mechanism;
    std::cout << result_of(settings) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace nas

int main(int argc, char** argv) {
  try {
    return nas::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "training_step: " << error.what() << "\n";
    return 2;
  }
}
