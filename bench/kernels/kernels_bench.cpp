// Kernels of a CPU by themselves: operations a second, of one thread. Each checks its answer first.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "kernels/adamw.hpp"
#include "kernels/norm.hpp"
#include "kernels/product.hpp"
#include "kernels/recurrence.hpp"

namespace {

using nas::kernels::TokenRows;
using Numbers = std::vector<float>;

Numbers waves(std::int64_t size, double phase) {
  Numbers x(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(std::sin(phase + 1.7 * static_cast<double>(i)));
  }
  return x;
}

bool is_near(double found, double expected) {
  return std::abs(found - expected) <= 1e-4 * (1.0 + std::abs(expected));
}

/// A packed product (512, n) (n, n).
void product(benchmark::State& state) {
  const std::int64_t m = 512;
  const auto n = state.range(0);
  const auto a = waves(m * n, 0.1);
  const auto b = waves(n * n, 0.2);
  Numbers packed(static_cast<std::size_t>(nas::kernels::packed_size(n, n)));
  Numbers c(static_cast<std::size_t>(m * n));
  nas::kernels::pack<float>({b.data(), n, 1}, n, n, packed.data());
  const auto run = [&] {
    nas::kernels::multiply<float>(m, n, n, {a.data(), n, 1}, packed.data(), {}, c.data(), n);
  };
  run();
  double last = 0.0;
  for (std::int64_t k = 0; k < n; ++k) {
    last += static_cast<double>(a[static_cast<std::size_t>((m - 1) * n + k)]) *
            static_cast<double>(b[static_cast<std::size_t>(k * n + n - 1)]);
  }
  if (!is_near(static_cast<double>(c.back()), last)) state.SkipWithError("another product");
  for (auto _ : state) run();
  state.counters["flop"] = benchmark::Counter(2.0 * static_cast<double>(m * n * n),
                                              benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(product)->Arg(128)->Arg(512);

void layer_norm(benchmark::State& state) {
  const std::int64_t rows = 1024;
  const auto width = state.range(0);
  const auto x = waves(rows * width, 0.1);
  const Numbers weight(static_cast<std::size_t>(width), 1.0F);
  const Numbers bias(static_cast<std::size_t>(width), 0.0F);
  Numbers y(x.size());
  Numbers mean(static_cast<std::size_t>(rows));
  Numbers inverse(mean.size());
  const auto run = [&] {
    nas::kernels::norm<float>({rows, width, x.data(), weight.data(), bias.data()}, 1e-5, y.data(),
                              {mean.data(), inverse.data()});
  };
  run();
  double sum = 0.0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(width); ++i)
    sum += static_cast<double>(y[i]);
  if (!is_near(sum, 0.0)) state.SkipWithError("the mean of a row is not 0");
  for (auto _ : state) run();
  state.SetBytesProcessed(state.iterations() * 2 * rows * width * 4);
}
BENCHMARK(layer_norm)->Arg(128)->Arg(768);

void adamw(benchmark::State& state) {
  const auto size = state.range(0);
  auto parameter = waves(size, 0.1);
  const auto gradient = waves(size, 0.2);
  Numbers first(parameter.size());
  Numbers second(parameter.size());
  const auto before = static_cast<double>(parameter.front());
  const auto run = [&] {
    nas::kernels::adamw<float>(
        parameter.data(), gradient.data(), first.data(), second.data(), size,
        {.learning_rate = 1e-3, .first_correction = 0.1, .second_correction = 0.001});
  };
  run();
  // The first step is the learning rate, against the gradient's sign.
  if (!is_near(static_cast<double>(parameter.front()), before - 1e-3)) {
    state.SkipWithError("another step");
  }
  for (auto _ : state) run();
  state.SetBytesProcessed(state.iterations() * 7 * size * 4);
}
BENCHMARK(adamw)->Arg(1 << 16);

/// A head whose state adds up products of keys and values: linear attention.
void recurrence(benchmark::State& state) {
  const std::int64_t width = 32;
  const nas::kernels::RecurrenceShape shape{state.range(0), width, width, 16};
  const auto size = shape.tokens * width;
  const auto q = waves(size, 0.1);
  const auto k = waves(size, 0.2);
  const auto v = waves(size, 0.3);
  Numbers outputs(q.size());
  Numbers states(static_cast<std::size_t>((shape.chunks() + 1) * width * shape.padded_width()));
  Numbers updates(static_cast<std::size_t>(shape.tokens * shape.padded_width()));
  Numbers scratch(static_cast<std::size_t>(nas::kernels::recurrence_scratch(shape)));
  const auto rows = [](const Numbers& x) { return TokenRows<const float>{x.data(), width}; };
  const auto run = [&] {
    nas::kernels::recurrence<float>(
        shape,
        {.queries = rows(q), .keys = rows(k), .values = rows(v), .log_decays = {}, .erased = {}},
        {states.data(), updates.data()}, {outputs.data(), width}, scratch.data());
  };
  run();
  double first = 0.0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(width); ++i) {
    first += static_cast<double>(q[i]) * static_cast<double>(k[i]);
  }
  if (!is_near(static_cast<double>(outputs.front()), first * static_cast<double>(v.front()))) {
    state.SkipWithError("another output");
  }
  for (auto _ : state) run();
  state.SetItemsProcessed(state.iterations() * shape.tokens);
}
BENCHMARK(recurrence)->Arg(128)->Arg(1024);

}  // namespace
