#pragma once

#include <chrono>
#include <filesystem>

#include <SQLiteCpp/SQLiteCpp.h>

namespace nas {

/// Lets an SQLite file be waited for as long as another program holds it, which a warning says
/// every so often: what took hours to find is not lost to a backup. Once a stop is asked for, it
/// waits two seconds more; the operation then fails with SQLITE_BUSY.
class BusyWait {
 public:
  explicit BusyWait(std::filesystem::path file,
                    std::chrono::milliseconds said_every = std::chrono::minutes(1));
  BusyWait(const BusyWait&) = delete;
  BusyWait& operator=(const BusyWait&) = delete;

  /// @param database  must end before this does.
  void attach(SQLite::Database& database);

 private:
  static int wait(void* self, int times);

  std::filesystem::path file_;
  std::chrono::milliseconds said_every_;
  std::chrono::steady_clock::time_point begin_{};
  std::chrono::steady_clock::time_point next_said_{};
};

}  // namespace nas
