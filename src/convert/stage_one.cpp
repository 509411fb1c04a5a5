#include "convert/stage_one.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>
#include <utility>

#include <torch/serialize.h>

#include "core/durable_file.hpp"
#include "core/fault.hpp"
#include "core/stop.hpp"
#include "models/safetensors.hpp"
#include "ops/memory.hpp"
#include "training/checkpoint.hpp"

namespace nas {

namespace {

constexpr double kFirstRate = 1e-3, kLastRate = 1e-5, kBeta2 = 0.95;
constexpr const char* kTraining = "stage1";  // of a checkpoint, whose folder says the rest
constexpr const char* kLosses = "L1";        // of a file: before and after
/// Of what the passes through blocks of an array keep, which are tensors of (R, B, T, D) in float32.
constexpr double kArrayBytes = 512e6, kTensors = 32.0;

/// The layers whose mixers one array may compute: of one form, and of one layer where that draws by its number.
std::string array_key(const Conversion& conversion, std::int64_t layer, std::size_t block) {
  const auto form = conversion.form(conversion.alone(layer, block), layer);
  const bool draws =
      form.find("lsh") != std::string::npos || form.find("bigbird") != std::string::npos;
  return form + (draws ? std::to_string(layer) : "");
}

std::filesystem::path file_of(const Conversion& conversion, const std::filesystem::path& folder,
                              std::int64_t layer, std::size_t block) {
  return folder / (std::to_string(layer) + "." + conversion.blocks()[block].text + ".safetensors");
}

LearnedBlock read_learned_block(const std::filesystem::path& file) {
  LearnedBlock learned;
  try {
    SafetensorsFile stored(file);
    for (const auto& [name, tensor] : stored.tensors())
      learned.weights[name] = read_tensor(stored, tensor);
  } catch (const InputError& error) {
    throw InputError(file.string() + ": " + error.what());
  }
  const auto losses = learned.weights.extract(kLosses);
  if (losses.empty() || losses.mapped().numel() != 2)
    throw InputError(file.string() + ": no block that has learned, must have two numbers " +
                     kLosses);
  learned.loss_before = losses.mapped()[0].item<float>();
  learned.loss = losses.mapped()[1].item<float>();
  return learned;
}

/// The step with which an unfinished pass goes on, its arrays as they were; 0: from the start.
std::int64_t resumed(const std::filesystem::path& file, std::vector<BlockArray>& arrays) {
  if (file.empty() || !std::filesystem::exists(file)) return 0;
  try {
    auto archive = read_checkpoint(file, kTraining);
    for (const auto& array : arrays) {
      for (const auto& key : array.keys()) {
        if (torch::serialize::InputArchive own; !archive.try_read(key, own)) return 0;
      }
    }
    for (auto& array : arrays) array.load(archive);
    torch::Tensor step;
    archive.read("step", step);
    return step.item<std::int64_t>();
  } catch (const UnreadableCheckpoint&) {
    return 0;
  }
}

void keep(const std::filesystem::path& file, const std::vector<BlockArray>& arrays,
          std::int64_t step) {
  if (file.empty()) return;
  torch::serialize::OutputArchive archive;
  archive.write("step", at::scalar_tensor(step, at::TensorOptions(at::kLong)));
  for (const auto& array : arrays) array.save(archive);
  make_folder(file.parent_path());
  write_checkpoint(file, kTraining, archive);
}

/// A pass of the teacher. @param act  called with each array whose layers it has passed.
template <class Act>
void pass(HybridModel& teacher, const torch::Tensor& tokens, std::vector<BlockArray>& arrays,
          const Act& act) {
  std::int64_t layers = 0;
  for (const auto& array : arrays) layers = std::max(layers, array.layers().back() + 1);
  auto stream = teacher.embedded(tokens);
  std::vector<nn::SharedKeys> shared;
  for (std::int64_t i = 0; i < layers; ++i) {
    std::vector<BlockArray*> complete;
    nn::Pass watching;
    watching.shared = &shared;
    const auto earlier = shared;
    watching.mixed = [&](const auto& x, const auto& before, const auto& added) {
      for (auto& array : arrays) {
        if (array.note(i, x, before, added, earlier)) complete.push_back(&array);
      }
    };
    stream = teacher.behind(i, 0, stream, watching);
    for (auto* array : complete) act(*array);
  }
}

/// A step of all arrays.
void teach(HybridModel& teacher, const Lessons& lessons, std::int64_t seed, std::int64_t step,
           std::vector<BlockArray>& arrays) {
  pass(teacher, lessons.batch(seed, step), arrays, [&](BlockArray& array) {
    if (step == 0) array.scale();
    array.differentiate();
    array.step(step + 1, lessons.rate(step));
  });
}

/// L1 of each layer of each array on what is held out.
std::vector<std::vector<double>> held_out_losses(HybridModel& teacher, const Lessons& lessons,
                                                 std::vector<BlockArray>& arrays) {
  std::vector<std::vector<std::array<double, 2>>> sums;
  for (const auto& array : arrays) sums.emplace_back(array.layers().size());
  for (const auto& tokens : lessons.held_out) {
    pass(teacher, tokens, arrays, [&](BlockArray& array) {
      auto& own = sums[static_cast<std::size_t>(&array - arrays.data())];
      const auto errors = array.errors();
      for (std::size_t i = 0; i < own.size(); ++i) {
        own[i][0] += errors[i][0];
        own[i][1] += errors[i][1];
      }
    });
  }
  std::vector<std::vector<double>> losses;
  for (const auto& own : sums) {
    auto& of_array = losses.emplace_back();
    for (const auto& [error, square] : own) of_array.push_back(error / square);
  }
  return losses;
}

}  // namespace

double Lessons::rate(std::int64_t step) const {
  const double done =
      static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(steps - 1, 1));
  return kLastRate + (kFirstRate - kLastRate) * (1.0 + std::cos(std::numbers::pi * done)) / 2.0;
}

BlockArray::BlockArray(const Conversion& conversion, const Weights& teacher, std::size_t block,
                       std::vector<std::int64_t> layers, NumericalMode mode)
    : block_(block),
      text_(conversion.blocks()[block].text),
      layers_(std::move(layers)),
      shares_(conversion.giver(conversion.alone(layers_.front(), block), layers_.front()) >= 0) {
  const at::NoGradGuard no_grad;
  const auto placement = conversion.alone(layers_.front(), block);
  const nn::ParameterScope scope(parameters_, mode,
                                 nn::first_models(static_cast<std::int64_t>(layers_.size())));
  mixer_ =
      nn::make_mixer({layers_.size(), conversion.architecture(placement)}, scope, layers_.front());
  for (auto& parameter : parameters_) {
    for (std::size_t i = 0; i < layers_.size(); ++i)
      parameter.tensor[static_cast<std::int64_t>(i)].copy_(
          start_of(conversion, teacher, layers_[i], block, parameter));
  }
  optimizer_ = std::make_unique<Optimizer>(
      parameters_, std::ssize(layers_), [](const auto&) { return false; }, kBeta2);
}

std::vector<std::string> BlockArray::keys() const {
  std::vector<std::string> keys;
  for (const auto layer : layers_) keys.push_back(std::to_string(layer) + "." + text_);
  return keys;
}

void BlockArray::save(torch::serialize::OutputArchive& archive) const {
  const auto keys = this->keys();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    torch::serialize::OutputArchive own;
    optimizer_->save(own, static_cast<std::int64_t>(i));
    for (const auto& [name, tensor] : weights(i)) own.write(name, tensor);
    archive.write(keys[i], own);
  }
}

void BlockArray::load(torch::serialize::InputArchive& archive) {
  const at::NoGradGuard no_grad;
  const auto keys = this->keys();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    torch::serialize::InputArchive own;
    archive.read(keys[i], own);
    const auto model = static_cast<std::int64_t>(i);
    optimizer_->load(own, model);
    for (auto& parameter : parameters_) {
      torch::Tensor saved;
      own.read(parameter.name, saved);
      parameter.tensor[model].copy_(saved);
    }
  }
}

Weights BlockArray::weights(std::size_t model) const {
  Weights weights;
  for (const auto& [name, tensor, models, start, decay] : parameters_)
    weights.emplace(name, tensor.detach()[static_cast<std::int64_t>(model)].clone());
  return weights;
}

bool BlockArray::note(std::int64_t layer, const torch::Tensor& x, const torch::Tensor& stream,
                      const torch::Tensor& added, const std::vector<nn::SharedKeys>& shared) {
  if (read_.size() == layers_.size() || layers_[read_.size()] != layer) return false;
  read_.push_back(x);
  streams_.push_back(stream);
  added_.push_back(added);
  if (shares_) keys_.push_back(shared.front().keys), values_.push_back(shared.front().values);
  return read_.size() == layers_.size();
}

torch::Tensor BlockArray::difference(bool keeps) {
  const auto taken = [keeps](std::vector<torch::Tensor>& parts) {
    const auto all = parts.size() == 1 ? parts.front() : at::cat(parts);
    if (!keeps) parts.clear();
    return all;
  };
  const auto x = taken(read_), stream = taken(streams_);
  std::vector<nn::SharedKeys> shared;
  nn::Pass pass;
  pass.shared = &shared;
  if (shares_) shared = {{taken(keys_), taken(values_)}};
  return mixer_->forward(x, stream, pass, 0) - taken(added_);
}

void BlockArray::scale() {
  const at::NoGradGuard no_grad;
  const auto is_output = [](const nn::Parameter& parameter) {
    return parameter.name.starts_with("recurrent.out_proj.");
  };
  if (std::none_of(parameters_.begin(), parameters_.end(), is_output)) return;
  const auto difference = this->difference(/*keeps=*/true);
  for (std::size_t i = 0; i < added_.size(); ++i) {
    const auto model = static_cast<std::int64_t>(i);
    const auto own = difference[model] + added_[i][0];
    const double square = own.square().sum(at::kDouble).item<double>();
    if (square == 0.0) continue;
    const double factor = (own * added_[i][0]).sum(at::kDouble).item<double>() / square;
    for (auto& parameter : parameters_) {
      if (is_output(parameter)) parameter.tensor[model].mul_(factor);
    }
  }
}

void BlockArray::differentiate() {
  // Each layer's sum by itself: the order in which an array's would be added depends on its size.
  std::vector<double> factors;
  for (const auto& added : added_)
    factors.push_back(2.0 / added.square().sum(at::kDouble).item<double>());
  const auto difference = this->difference();
  auto slope = difference.detach().clone();
  for (std::size_t i = 0; i < factors.size(); ++i)
    slope[static_cast<std::int64_t>(i)].mul_(factors[i]);
  difference.backward(slope);
}

void BlockArray::step(std::int64_t number, double rate) {
  const std::vector<ModelStep> steps(layers_.size(),
                                     {.step = number, .learning_rate = rate, .weight_decay = 0.0});
  optimizer_->step(steps);
}

std::vector<std::array<double, 2>> BlockArray::errors() {
  const at::NoGradGuard no_grad;
  std::vector<std::array<double, 2>> errors;
  for (const auto& added : added_)
    errors.push_back({0.0, added.square().sum(at::kDouble).item<double>()});
  const auto difference = this->difference();
  for (std::size_t i = 0; i < errors.size(); ++i)
    errors[i][0] =
        difference[static_cast<std::int64_t>(i)].square().sum(at::kDouble).item<double>();
  return errors;
}

LearnedBlocks::LearnedBlocks(const Conversion& conversion, const Weights& teacher,
                             NumericalMode mode, Lessons lessons, std::filesystem::path folder)
    : conversion_(conversion),
      teacher_(teacher),
      mode_(mode),
      lessons_(std::move(lessons)),
      folder_(std::move(folder)) {}

std::filesystem::path LearnedBlocks::file(std::int64_t seed, const Place& place) const {
  return file_of(conversion_, folder_ / std::to_string(seed), place.first, place.second);
}

std::filesystem::path LearnedBlocks::unfinished(std::int64_t seed) const {
  return folder_.empty() ? folder_ : folder_ / std::to_string(seed) / "unfinished.pt";
}

std::shared_ptr<const LearnedBlock> LearnedBlocks::at(std::int64_t layer, std::size_t block,
                                                      std::int64_t seed) {
  const std::lock_guard lock(learning_);
  if (!made_.contains(seed)) learn(seed);
  const auto& made = made_.at(seed);
  const auto found = made.find({layer, block});
  return found == made.end() ? nullptr : found->second;
}

TrainedBlocks LearnedBlocks::of_seed(std::int64_t seed) {
  return [this, seed](std::int64_t layer, std::size_t block) {
    const auto learned = block == 0 ? nullptr : at(layer, block, seed);
    return learned ? std::shared_ptr<const Weights>(learned, &learned->weights) : nullptr;
  };
}

std::optional<std::array<double, 2>> LearnedBlocks::losses(const Placement& placement,
                                                           std::int64_t seed) {
  std::array<double, 2> sums{};
  double layers = 0.0;
  for (std::size_t i = 0; i < placement.size(); ++i) {
    const auto learned =
        placement[i] == 0 ? nullptr : at(static_cast<std::int64_t>(i), placement[i], seed);
    if (!learned) continue;
    ++layers;
    sums[0] += learned->loss_before;
    sums[1] += learned->loss;
  }
  if (layers == 0.0) return std::nullopt;
  return std::array{sums[0] / layers, sums[1] / layers};
}

std::vector<LearnedBlocks::Place> LearnedBlocks::places() const {
  std::vector<Place> places;
  for (std::size_t block = 1; block < conversion_.blocks().size(); ++block) {
    for (std::int64_t layer = 0; layer < conversion_.layers(); ++layer) {
      const auto choices = conversion_.choices(layer);
      if (std::find(choices.begin(), choices.end(), block) != choices.end() &&
          conversion_.mixer_parameters(layer, block) > 0)
        places.emplace_back(layer, block);
    }
  }
  return places;
}

bool LearnedBlocks::is_kept(std::int64_t seed, const Place& place) const {
  return !folder_.empty() && std::filesystem::exists(file(seed, place));
}

std::vector<LearnedBlocks::Place> LearnedBlocks::of_pass(std::vector<Place>& left) const {
  double bytes = 0.0;
  auto end = left.begin();
  for (; end != left.end(); ++end) {
    bytes += 16.0 * static_cast<double>(conversion_.mixer_parameters(end->first, end->second));
    if (end != left.begin() && bytes > lessons_.room) break;
  }
  std::vector<Place> taken(left.begin(), end);
  left.erase(left.begin(), end);
  return taken;
}

void LearnedBlocks::learn(std::int64_t seed) {
  std::map<Place, std::shared_ptr<const LearnedBlock>> made;
  std::vector<Place> left;
  for (const auto& place : places()) {
    if (is_kept(seed, place)) {
      made[place] = std::make_shared<LearnedBlock>(read_learned_block(file(seed, place)));
    } else {
      left.push_back(place);
    }
  }
  while (!left.empty()) {
    for (auto& [place, learned] : trained(seed, of_pass(left))) {
      if (!folder_.empty()) {
        std::vector<std::pair<std::string, torch::Tensor>> tensors(learned.weights.begin(),
                                                                   learned.weights.end());
        tensors.emplace_back(kLosses, at::tensor({learned.loss_before, learned.loss}));
        make_folder(file(seed, place).parent_path());
        (void)write_safetensors(file(seed, place), tensors);
      }
      made[place] = std::make_shared<LearnedBlock>(std::move(learned));
    }
    if (!folder_.empty()) std::filesystem::remove(unfinished(seed));
    nn::release_cached_memory();  // what follows has tensors of other sizes
  }
  made_[seed] = std::move(made);
}

double LearnedBlocks::bytes() const {
  double bytes = 0.0;
  for (const auto& [layer, block] : places())
    bytes += 4.0 * static_cast<double>(conversion_.mixer_parameters(layer, block));
  return bytes;
}

double LearnedBlocks::seconds(std::int64_t seeds) const {
  const at::AutoGradMode with_gradients(true);
  constexpr int kSteps = 3;
  constexpr double kShort = 5.0;
  const auto timed = [](const auto& act) {
    const auto begin = std::chrono::steady_clock::now();
    act();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::map<std::vector<Place>, double> known;
  double seconds = 0.0;
  for (std::int64_t seed = 0; seed < seeds; ++seed) {
    auto left = places();
    std::erase_if(left, [&](const Place& place) { return is_kept(seed, place); });
    while (!left.empty()) {
      const auto own = of_pass(left);
      auto& taken = known[own];
      if (taken == 0.0) {
        HybridModel teacher(conversion_, teacher_, mode_);
        auto arrays = this->arrays(seed, own);
        auto step = kShort;
        for (int i = 0; i < kSteps && (i == 0 || step < kShort); ++i) {
          const auto took = timed([&] { teach(teacher, lessons_, seed, i, arrays); });
          step = i == 0 ? took : std::min(step, took);
        }
        taken = step * static_cast<double>(lessons_.steps) +
                2.0 * timed([&] { (void)held_out_losses(teacher, lessons_, arrays); });
      }
      seconds += taken;
      nn::release_cached_memory();
    }
  }
  return seconds;
}

std::vector<BlockArray> LearnedBlocks::arrays(std::int64_t seed,
                                              const std::vector<Place>& places) const {
  const auto numbers =
      static_cast<double>(lessons_.batch(seed, 0).numel() * conversion_.teacher().width);
  const auto most =
      std::max<std::size_t>(1, static_cast<std::size_t>(kArrayBytes / (4.0 * kTensors * numbers)));
  std::vector<BlockArray> arrays;
  for (auto first = places.begin(); first != places.end();) {
    const auto key = [&](const Place& place) {
      return array_key(conversion_, place.first, place.second);
    };
    std::vector<std::int64_t> layers;
    auto last = first;
    for (; last != places.end() && layers.size() < most && last->second == first->second &&
           key(*last) == key(*first);
         ++last)
      layers.push_back(last->first);
    arrays.emplace_back(conversion_, teacher_, first->second, std::move(layers), mode_);
    first = last;
  }
  return arrays;
}

std::map<LearnedBlocks::Place, LearnedBlock> LearnedBlocks::trained(
    std::int64_t seed, const std::vector<Place>& places) const {
  const at::AutoGradMode with_gradients(true);
  auto arrays = this->arrays(seed, places);
  HybridModel teacher(conversion_, teacher_, mode_);
  const auto before = held_out_losses(teacher, lessons_, arrays);
  auto kept = std::chrono::steady_clock::now();
  for (auto step = resumed(unfinished(seed), arrays); step < lessons_.steps; ++step) {
    const auto now = std::chrono::steady_clock::now();
    const bool stops = stop_requested();
    if (stops || std::chrono::duration<double>(now - kept).count() > lessons_.checkpoint_seconds) {
      keep(unfinished(seed), arrays, step);
      kept = now;
    }
    if (stops) throw StopRequested();
    teach(teacher, lessons_, seed, step, arrays);
  }
  const auto after = held_out_losses(teacher, lessons_, arrays);
  std::map<Place, LearnedBlock> learned;
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    for (std::size_t i = 0; i < arrays[a].layers().size(); ++i)
      learned[{arrays[a].layers()[i], arrays[a].block()}] = {
          .weights = arrays[a].weights(i),
          .loss_before = static_cast<float>(before[a][i]),
          .loss = static_cast<float>(after[a][i])};
  }
  return learned;
}

TrainedBlocks learned_blocks_of(const Conversion& conversion, const std::filesystem::path& folder) {
  auto read = std::make_shared<std::map<std::filesystem::path, std::shared_ptr<const Weights>>>();
  return [&conversion, folder, read](std::int64_t layer, std::size_t block) {
    if (block == 0 || conversion.mixer_parameters(layer, block) == 0)
      return std::shared_ptr<const Weights>();
    auto& own = (*read)[file_of(conversion, folder, layer, block)];
    if (!own)
      own = std::make_shared<Weights>(
          read_learned_block(file_of(conversion, folder, layer, block)).weights);
    return own;
  };
}

}  // namespace nas
