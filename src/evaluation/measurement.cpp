#include "evaluation/measurement.hpp"

#include "core/hash.hpp"

namespace nas {

Task make_task(const Measurement& measurement, const Candidate& candidate, std::int64_t replicate) {
  Task task{.candidate = candidate, .replicate = replicate, .id = {}, .identity = {}};
  task.identity = measurement.identity();
  task.identity["candidate"] = candidate.name;
  task.identity["replicate"] = replicate;
  task.id = sha256(task.identity.dump());
  return task;
}

}  // namespace nas
