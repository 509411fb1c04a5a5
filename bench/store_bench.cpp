// What keeping a record costs: the commit that follows every training run, and the look-up that
// comes before it.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/stand_in_training.hpp"
#include "core/seed.hpp"
#include "core/temporary_folder.hpp"
#include "store/store.hpp"

namespace nas {

namespace {

constexpr std::string_view kHex = "0123456789abcdef";

/// Writes the id of the n-th evaluation: different ones for different n, and scattered over the
/// store's index as hashes are.
void set_id(std::uint64_t n, std::string& id) {
  id.assign(64, '0');
  std::uint64_t bits = mix64(n);
  for (std::size_t digit = 0; digit < 16; ++digit, bits >>= 4U) id[digit] = kHex[bits & 15U];
}

std::string id_of(std::uint64_t n) {
  std::string id;
  set_id(n, id);
  return id;
}

/// The record of a training run, of the usual size.
Evaluation record(std::uint64_t n) {
  Evaluation evaluation;
  evaluation.id = id_of(n);
  evaluation.candidate = "dot|relu_norm|none|fixed|no_bias|0.12";
  evaluation.identity = stand_in_identity();
  evaluation.identity["candidate"] = evaluation.candidate;
  evaluation.identity["replicate"] = 0;
  evaluation.measured = {{"started", "2026-01-01T00:00:00Z"}, {"pid", 14760}, {"host", "vm"}};
  stand_in_training(81881.0615203362, evaluation);
  return evaluation;
}

bool reads_back(const Store& store, std::uint64_t n) {
  const auto found = store.find(id_of(n));
  return found && canonical_json(*found) == canonical_json(record(n)) &&
         found->measured == record(n).measured;
}

void commit(benchmark::State& state, Store::Mode mode) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "store.sqlite";
  Store store(file, mode);
  store.add({record(0)});
  store.add({record(1)});
  const bool durable = Store(file, Store::Mode::read_only).evaluations().size() == 2;
  if (!reads_back(store, 0) || !reads_back(store, 1) || (mode == Store::Mode::write && !durable)) {
    state.SkipWithError("what is added must read back, from the disk unless the mode is cheap");
    return;
  }
  std::vector<Evaluation> one{record(0)};
  std::uint64_t n = 2;
  for (auto _ : state) {
    set_id(n++, one.front().id);
    store.add(one);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(commit, expensive, Store::Mode::write)
    ->UseRealTime()  // waiting for the disk is no processor time
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(commit, cheap, Store::Mode::write_cheap)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

/// A store of so many evaluations, and as many asks of one evaluation each; built once.
const Store& filled_store(std::int64_t size) {
  static const TemporaryFolder folder;
  static std::map<std::int64_t, std::unique_ptr<Store>> stores;
  auto& store = stores[size];
  if (store) return *store;
  store = std::make_unique<Store>(folder.path() / (std::to_string(size) + ".sqlite"),
                                  Store::Mode::write_cheap);
  std::vector<Evaluation> evaluations(static_cast<std::size_t>(size), record(0));
  std::vector<Ask> asks;
  for (std::size_t n = 0; n < evaluations.size(); ++n) {
    set_id(n, evaluations[n].id);
    asks.push_back({.number = static_cast<std::int64_t>(n),
                    .batch = static_cast<std::int64_t>(n / 12),
                    .genotype = "dot|relu_norm|none|fixed|no_bias|0.12",
                    .evaluations = {evaluations[n].id},
                    .fitness = {71.1392071014929}});
  }
  store->add(evaluations);
  store->add_asks(asks);
  return *store;
}

void find(benchmark::State& state) {
  const auto size = static_cast<std::uint64_t>(state.range(0));
  const auto& store = filled_store(state.range(0));
  constexpr std::uint64_t kStep = 97;  // has no divisor in common with the sizes: meets every id
  for (std::uint64_t n = 0; n < size; n += kStep) {
    if (!reads_back(store, n)) {
      state.SkipWithError("what is known must be found");
      return;
    }
  }
  if (store.find(id_of(size))) {
    state.SkipWithError("what is unknown must not be found");
    return;
  }
  std::vector<std::string> ids;
  for (std::uint64_t n = 0; n < size; ++n) ids.push_back(id_of(n * kStep % size));
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(store.find(ids[i++ % ids.size()]));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(find)->Arg(1'000)->Arg(10'000)->Unit(benchmark::kMicrosecond);

void asks(benchmark::State& state) {
  const auto& store = filled_store(state.range(0));
  const auto asks = store.asks();
  bool right = asks.size() == static_cast<std::size_t>(state.range(0));
  for (std::size_t n = 0; right && n < asks.size(); ++n) {
    right = asks[n].number == static_cast<std::int64_t>(n) &&
            asks[n].evaluations == std::vector{id_of(n)};
  }
  if (!right) {
    state.SkipWithError("all asks must come, in their order");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(store.asks());
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(asks)->Arg(93)->Arg(1'000)->Unit(benchmark::kMicrosecond);

}  // namespace

}  // namespace nas
