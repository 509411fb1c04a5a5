#include "cli/status.hpp"

#include "core/format.hpp"
#include "report/text.hpp"
#include "store/evaluation.hpp"
#include "store/store.hpp"
#include "store/store_copy.hpp"
#include "table/named.hpp"

namespace nas {

namespace {

/// @param works  whether a process writes the run: one that was killed leaves what it worked on.
std::string work_text(const Store& store, bool works) {
  auto text = counted(store.num_evaluations(), "evaluation");
  if (!works) {
    const auto ended_by = store.meta("ended_by").value_or(nullptr);
    return text +
           (ended_by.is_string() ? ", ended by " + ended_by.get<std::string>()
                                 : ", nobody works on it") +
           "\n";
  }
  const auto work = store.meta("at_work").value_or(nullptr);
  if (!work.is_object()) return text + ", a process works on it\n";
  const auto labels = store.meta("labels").value_or(nlohmann::json::object());
  text += ", " + work.at("stage").get<std::string>() + ", " +
          counted(work.at("workers"), "worker") + ", as of " +
          work.at("written").get<std::string>() + "\n";
  for (const auto& array : work.at("arrays")) {
    const auto& trainings = array.at("trainings");
    if (trainings.empty()) continue;
    const auto candidate = trainings.front().at("candidate").get<std::string>();
    text += "  " + array.value("worker", "of nas-run") + "  " + labels.value(candidate, candidate) +
            " " + seed_text(trainings.front().at("replicate"));
    if (trainings.size() > 1) text += " + " + std::to_string(trainings.size() - 1) + " more";
    if (array.at("step") > 0) {
      text += ", step " + grouped(array.at("step")) + "/" + grouped(array.at("steps"));
    }
    text += ", since " + array.at("started").get<std::string>() + "\n";
  }
  return text + "  " + std::to_string(work.at("waiting").get<std::int64_t>()) + " waiting\n";
}

}  // namespace

std::string status_text(const std::filesystem::path& run) {
  const StoreCopy copy(store_named(run));
  return copy.read([&] {
    const bool works = copy.is_written();
    const Store store(copy.file(), Store::Mode::read_only);
    return printable(run.string() + ": " + work_text(store, works));
  });
}

}  // namespace nas
