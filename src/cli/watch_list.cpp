#include "cli/watch_list.hpp"

#include <algorithm>
#include <exception>
#include <system_error>

#include "core/error.hpp"
#include "store/store.hpp"
#include "table/named.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

constexpr int kDepth = 3;   ///< folders between a word and a run
constexpr int kShare = 10;  ///< of the time of one core
constexpr std::chrono::milliseconds kBetween{500};
constexpr std::chrono::seconds kBetweenScans{2};
constexpr std::chrono::milliseconds kSlice{300};  ///< nobody is answered meanwhile
constexpr std::chrono::seconds kKept{60};         ///< without a word from the page of a run

bool is_run(const fs::path& folder) {
  std::error_code none;
  const auto store = store_file(folder);
  return fs::is_regular_file(store, none) && !is_table(store);
}

}  // namespace

WatchList::WatchList(const std::vector<std::string>& words) : words_(words) {
  for (const auto& word : words) {
    if (!fs::is_directory(word)) {
      add(store_named(word), word);
    } else if (!find(word, words_.size() == 1 ? "" : word, 0)) {
      throw InputError(word +
                       ": holds no run; give a run's folder, or one that holds runs "
                       "(store.sqlite) at most " +
                       std::to_string(kDepth) + " folders deep");
    }
  }
}

WatchList::Stamp WatchList::stamp_of(const fs::path& store) {
  Stamp stamp;
  std::error_code none;
  for (std::size_t i = 0; i < stamp.size(); ++i) {
    const fs::path file = i == 0 ? store.string() : store.string() + "-wal";
    stamp[i] = {fs::file_size(file, none), fs::last_write_time(file, none)};
  }
  return stamp;
}

void WatchList::scan() {
  for (const auto& word : words_) (void)find(word, words_.size() == 1 ? "" : word, 0);
}

/// Within runs there are no others. Of links those to runs count, so that there are no circles.
bool WatchList::find(const fs::path& folder, const std::string& name, int depth) {
  if (is_run(folder)) {
    add(store_file(folder), name);
    return true;
  }
  std::error_code none;
  if (depth == kDepth || (depth > 0 && fs::is_symlink(folder, none))) return false;
  bool found = false;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end;
       entry.increment(none)) {
    const auto own = entry->path().filename().string();
    std::error_code unknown;
    if (own.starts_with('.') || !entry->is_directory(unknown)) continue;
    if (find(entry->path(), name.empty() ? own : name + "/" + own, depth + 1)) found = true;
  }
  return found;
}

void WatchList::add(const fs::path& store, const std::string& name) {
  const auto known = std::find_if(runs_.begin(), runs_.end(),
                                  [&store](const Run& run) { return run.store == store; });
  if (known == runs_.end()) {
    runs_.push_back({.name = name.empty() ? "." : name, .store = store});
  } else if (known->gone) {
    known->gone = false;
  } else {
    return;
  }
  ++version_;
}

void WatchList::look() {
  const auto began = Clock::now();
  if (began < next_look_) return;
  if (began >= next_scan_) {
    scan();
    next_scan_ =
        Clock::now() + std::max<Clock::duration>(kBetweenScans, kShare * (Clock::now() - began));
  }
  for (std::size_t i = 0; i < runs_.size() && Clock::now() - began < kSlice; ++i) {
    turn_ = (turn_ + 1) % runs_.size();
    if (!runs_[turn_].gone) read(runs_[turn_]);
  }
  if (num_unread() == 0) rest(Clock::now() - began);
}

void WatchList::rest(Clock::duration took) {
  const auto now = Clock::now();
  next_look_ = std::max(next_look_, now) + kShare * took;
  next_look_ = std::max<Clock::time_point>(next_look_, now + kBetween);
}

void WatchList::read(Run& run) {
  const auto stamp = stamp_of(run.store);
  nlohmann::json row;
  try {
    if (!fs::exists(run.store)) {
      run.gone = true;
      run.watch.reset();
      run.row = nullptr;
      ++version_;
      return;
    }
    if (run.watch) {
      run.watch->look();
    } else {
      if (!run.row.is_null() && stamp == run.stamp) return;
      run.stamp = stamp;
      run.watch = std::make_unique<RunWatch>(run.store, run.version);
    }
    const bool same = run.watch->version() == run.version && !run.row.is_null();
    run.version = run.watch->version();
    row = same ? run.row : run.watch->overview();
  } catch (const std::exception& error) {  // whatever it is, the next look may succeed
    row = {{"error", error.what()}};
  }
  if (row != run.row) {
    run.row = std::move(row);
    ++version_;
  }
  const auto phase = run.row.value("phase", "");
  const bool written = phase == "running" || phase == "silent";
  if (!written && Clock::now() - run.opened > kKept) run.watch.reset();
}

std::size_t WatchList::num_unread() const {
  return static_cast<std::size_t>(std::count_if(
      runs_.begin(), runs_.end(), [](const Run& run) { return !run.gone && run.row.is_null(); }));
}

bool WatchList::contains(std::size_t number) const {
  return number < runs_.size() && !runs_[number].gone;
}

RunWatch& WatchList::open(std::size_t number) {
  auto& run = runs_.at(number);
  const auto began = Clock::now();
  run.opened = began;
  if (run.watch) {
    run.watch->look();
  } else {
    run.stamp = stamp_of(run.store);
    run.watch = std::make_unique<RunWatch>(run.store, run.version);
  }
  run.version = run.watch->version();
  rest(Clock::now() - began);
  return *run.watch;
}

nlohmann::json WatchList::state() const {
  auto runs = nlohmann::json::array();
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].gone || runs_[i].row.is_null()) continue;
    auto row = runs_[i].row;
    row["number"] = i;
    row["run"] = runs_[i].name;
    runs.push_back(std::move(row));
  }
  return {{"folders", words_},
          {"version", version_},
          {"unread", num_unread()},
          {"runs", std::move(runs)}};
}

}  // namespace nas
