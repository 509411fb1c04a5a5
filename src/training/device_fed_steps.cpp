#include "training/device_fed_steps.hpp"

#include <algorithm>
#include <utility>

#include "ops/device_copy.hpp"

namespace nas {

namespace {

/// Steps in one graph. A call that starts them costs the host about as much as one operation.
constexpr std::int64_t kRecordedSteps = 10;
/// Steps before the capture: libraries choose their algorithms and get their workspaces.
constexpr std::int64_t kStepsBefore = 3;

template <class Element>
torch::Tensor as_tensor(const std::vector<Element>& elements) {
  return at::tensor(elements, at::TensorOptions(c10::CppTypeToScalarType<Element>::value));
}

}  // namespace

DeviceFedSteps::DeviceFedSteps(nn::TransformerArray& models, Optimizer& optimizer,
                               const Windows& windows, const StepPlan& plan, torch::Tensor losses,
                               bool record)
    : models_(models),
      optimizer_(optimizer),
      host_windows_(windows),
      plan_(plan),
      operations_(*nn::device_operations(losses.device())),
      losses_(std::move(losses)),
      // LibTorch's own operations may wait for the host.
      // Nor is a backward pass captured that starts another, which waits for streams.
      record_(record && models.numerical_mode() != NumericalMode::reference &&
              !models.recomputes_layers()),
      at_once_(std::min(kRecordedSteps, windows.size() / plan.batch)),
      epochs_(static_cast<std::size_t>(2 * models.num_models()), -1),
      done_(static_cast<std::size_t>(models.num_models()), -1) {
  const auto device = losses_.device();
  const auto count = models.num_models();
  const auto here = [&](at::ScalarType type) { return at::TensorOptions(type).device(device); };
  windows_ = {.tokens = nn::sent(as_tensor(windows.tokens), device),
              .starts = nn::sent(as_tensor(windows.starts), device),
              .targets = windows.targets.empty() ? torch::Tensor()
                                                 : nn::sent(as_tensor(windows.targets), device),
              .length = windows.length,
              .last_target = windows.last_target};
  orders_ = {.permutations = at::empty({count, 2, windows.size()}, here(at::kInt)),
             .offsets = at::empty({count, 2}, here(at::kLong)),
             .steps = at::empty({count}, here(at::kLong))};
  tables_ = {.numbers = {.seeds = at::empty({at_once_, count}, here(at::kLong)),
                         .learning_rates = at::empty({at_once_, count}, here(at::kDouble))},
             .row = at::empty({1}, here(at::kLong))};
  current_ = {.seeds = at::empty({count}, here(at::kLong)),
              .learning_rates = at::empty({count}, here(at::kDouble))};
  updates_ = {.learning_rates = current_.learning_rates,
              .weight_decays = at::empty({count}, here(at::kDouble)),
              .clip_norms = at::empty({count}, here(at::kDouble)),
              .done = orders_.steps};
  input_ = at::empty({count, plan.batch, windows.length}, here(at::kLong));
  target_ = at::empty_like(input_);
}

std::int64_t DeviceFedSteps::warm_up() const {
  return record_ ? kStepsBefore + at_once_ : kStepsBefore;
}

std::int64_t DeviceFedSteps::take(std::span<Course* const> courses, std::int64_t most) {
  if (record_ && graph_ == nullptr && taken_ >= kStepsBefore && most >= at_once_) record();
  const bool replays = graph_ != nullptr && most >= at_once_;
  const auto count = replays ? at_once_ : std::int64_t{1};
  prepare(courses, count);
  if (replays) {
    graph_->replay();
  } else {
    step();
  }
  for (std::size_t r = 0; r < courses.size(); ++r) {
    courses[r]->done += count;
    done_[r] += count;
  }
  taken_ += count;
  return count;
}

void DeviceFedSteps::prepare(std::span<Course* const> courses, std::int64_t count) {
  std::vector<std::int64_t> done;
  for (const auto* course : courses) done.push_back(course->done);
  if (done != done_) {  // from the beginning, or from a checkpoint
    std::vector<double> weight_decays;
    std::vector<double> clip_norms;
    for (const auto* course : courses) {
      const auto update = course->update(course->done + 1);
      weight_decays.push_back(update.weight_decay);
      clip_norms.push_back(update.clip_norm);
    }
    const auto send = [](const torch::Tensor& from, torch::Tensor& to) {
      to.copy_(nn::sent(from, to.device()));
    };
    send(as_tensor(done), orders_.steps);
    send(as_tensor(weight_decays), updates_.weight_decays);
    send(as_tensor(clip_norms), updates_.clip_norms);
    done_ = std::move(done);
  }
  send_orders(courses, count);
  send_tables(courses, count);
}

void DeviceFedSteps::send_orders(std::span<Course* const> courses, std::int64_t count) {
  const auto size = host_windows_.size();
  const auto batch_size = input_.size(1);
  for (std::size_t r = 0; r < courses.size(); ++r) {
    const auto first = courses[r]->done * batch_size;
    for (auto epoch = first / size; epoch <= (first + count * batch_size - 1) / size; ++epoch) {
      const auto slot = epoch % 2;
      auto& known = epochs_[2 * r + static_cast<std::size_t>(slot)];
      if (known == epoch) continue;
      known = epoch;
      const auto& order = courses[r]->order.epoch(epoch);
      const std::vector<std::int32_t> permutation(order.permutation.begin(),
                                                  order.permutation.end());
      const auto model = static_cast<std::int64_t>(r);
      orders_.permutations[model][slot].copy_(nn::sent(as_tensor(permutation), losses_.device()));
      orders_.offsets[model][slot].fill_(order.offset);
    }
  }
}

void DeviceFedSteps::send_tables(std::span<Course* const> courses, std::int64_t count) {
  const auto models = static_cast<std::int64_t>(courses.size());
  const auto seeds = at::empty({count, models}, at::TensorOptions(at::kLong));
  const auto rates = at::empty({count, models}, at::TensorOptions(at::kDouble));
  for (std::int64_t row = 0; row < count; ++row) {
    for (std::int64_t r = 0; r < models; ++r) {
      const auto& course = *courses[static_cast<std::size_t>(r)];
      const auto at = row * models + r;
      seeds.data_ptr<std::int64_t>()[at] =
          static_cast<std::int64_t>(dropout_seed(course, course.done + row));
      rates.data_ptr<double>()[at] = course.update(course.done + row + 1).learning_rate;
    }
  }
  const auto device = losses_.device();
  tables_.numbers.seeds.narrow(0, 0, count).copy_(nn::sent(seeds, device));
  tables_.numbers.learning_rates.narrow(0, 0, count).copy_(nn::sent(rates, device));
  tables_.row.zero_();
}

void DeviceFedSteps::step() {
  operations_.begin_step(tables_, current_);
  operations_.advance(tables_.row);
  operations_.read_batches(windows_, orders_, input_, target_);
  const nn::Pass pass{.training = true, .seeds = {}, .device_seeds = current_.seeds};
  take_step(models_, optimizer_, plan_, {input_, target_}, pass, updates_, losses_);
}

void DeviceFedSteps::record() {
  graph_ = operations_.graph(losses_.device());
  try {
    optimizer_.begin_recording(at_once_);
    graph_->record([this] {
      for (std::int64_t i = 0; i < at_once_; ++i) step();
    });
  } catch (const std::exception& error) {
    graph_.reset();
    record_ = false;
    const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
    TORCH_WARN("steps cannot be recorded, every operation is started by the host: ",
               of_torch == nullptr ? error.what() : of_torch->what_without_backtrace());
  }
  optimizer_.end_recording(graph_ != nullptr);
}

}  // namespace nas
