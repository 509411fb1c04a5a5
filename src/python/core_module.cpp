// The module attnas._core: the library's front door for the Python package, which gives it its form.
// What crosses is JSON. The interpreter's lock is released while the library works.

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "core/error.hpp"
#include "core/stop.hpp"
#include "python/functions.hpp"
#include "report/files.hpp"
#include "study/ask_and_tell.hpp"
#include "study/study.hpp"

namespace nas::python {

namespace {

namespace py = pybind11;
using Released = py::gil_scoped_release;

/// Tells a callable of Python, by a kind and JSON, what happens. It throws nothing.
class Listener final : public Observer {
 public:
  explicit Listener(py::object hear) : hear_(std::move(hear)) {}

  void warned(const std::string& text) override { tell("warned", text); }
  void search_begins(const Search& search) override {
    space_.emplace(search.experiment.space);
    problem_ = &search.problem;
    objectives_ = &search.objectives;
    const auto& rehearsal = search.rehearsal;
    stage("search", rehearsal.whole && rehearsal.asked > 0 ? nlohmann::json(rehearsal.asked)
                                                           : nlohmann::json());
  }
  void progressed(const Progress& progress) override {
    using Kind = Progress::Kind;
    if (progress.kind != Kind::evaluation_screened_out &&
        progress.kind != Kind::evaluation_finished && progress.kind != Kind::batch_finished) {
      return;
    }
    tell("progressed", {{"asked", progress.asked},
                        {"trained", progress.trained},
                        {"rejected", progress.rejected},
                        {"reused", progress.reused},
                        {"evaluation", evaluation_json(progress.evaluation)}});
  }
  void indicated(const Indicator& indicator) override {
    tell("progressed",
         {{"asked", indicator.asked},
          {"evaluation", nullptr},
          {objectives_->objectives.size() > 1 ? "hypervolume" : "best", indicator.value}});
  }
  void search_ended() override { space_.reset(); }
  void stage_begins(const Stage& begun) override {
    problem_ = &begun.problem;
    stage(begun.name, begun.total);
  }
  void stage_progressed(const Progress& progress) override { progressed(progress); }
  void group_ended(const Group& group) override {
    tell("progressed",
         {{"planned", group.total}, {"decided", group.lines}, {"evaluation", nullptr}});
  }

 private:
  void stage(const std::string& name, const nlohmann::json& planned) {
    tell("progressed", {{"stage", name},
                        {"planned", planned},
                        {"asked", 0},
                        {"trained", 0},
                        {"rejected", 0},
                        {"reused", 0},
                        {"evaluation", nullptr}});
  }

  [[nodiscard]] nlohmann::json evaluation_json(const Evaluation* evaluation) const {
    if (evaluation == nullptr) return nullptr;
    return {{"id", evaluation->id},
            {"candidate", evaluation->candidate},
            {"mechanism", problem_->label(evaluation->candidate)},
            {"replicate", evaluation->replicate},
            {"status", to_string(evaluation->status)},
            {"reason", evaluation->reason},
            {"values", values_json(*evaluation)}};
  }

  void tell(const char* kind, const nlohmann::json& what) {
    const py::gil_scoped_acquire lock;
    // What programs wrote into a record may be no UTF-8.
    hear_(kind, what.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  py::object hear_;
  std::optional<SearchedSpace> space_{};
  const Problem* problem_ = nullptr;
  const ObjectiveSet* objectives_ = nullptr;
};

Study open_study(const std::string& configuration, const std::vector<std::string>& overrides,
                 const std::string& folder) {
  return Study(with_versions(load_experiment(configuration, overrides)), folder);
}

nlohmann::json plan_json(const Plan& plan) {
  nlohmann::json json{{"objectives", plan.objectives.record()},
                      {"facts", plan.facts},
                      {"trains", plan.trains},
                      {"continues", plan.recorded.has_value()}};
  if (plan.feasibility) {
    json["combinations"] = plan.feasibility->combinations;
    json["feasible"] = plan.feasibility->passing;
  }
  if (!plan.trains) return json;
  auto candidates = nlohmann::json::array();
  for (const auto& candidate : plan.rehearsal.candidates) candidates.push_back(candidate.name);
  json["asks"] = plan.rehearsal.whole && !plan.ended_by_time ? nlohmann::json(plan.rehearsal.asked)
                                                             : nlohmann::json();
  json["trainings"] = plan.rehearsal.trained;
  json["retest_trainings"] = plan.retest.trainings;
  json["candidates"] = std::move(candidates);
  json["workers"] = plan.workers;
  json["training_seconds"] = plan.training_seconds;
  json["seconds"] = plan.seconds;
  json["preparation_seconds"] = plan.preparation.seconds;
  json["peak_bytes"] = plan.preparation.peaks;
  return json;
}

std::string plan_study(const Study& study, py::object hear, bool calibrate) {
  Listener listener(std::move(hear));
  const Released released;
  return plan_json(study.plan(calibrate, listener, {.force_device = true})).dump();
}

/// Runs, and leaves the files that nas-run leaves but for the page.
void run_study(const Study& study, py::object hear, bool retry_failed, bool force_device) {
  Listener listener(std::move(hear));
  const Released released;
  try {
    write_results(study.folder(), study.run(listener, {.force_device = force_device,
                                                       .retry_failed = retry_failed}));
  } catch (const StopRequested&) {
    write_results(study.folder());
    throw;
  }
}

/// An AskAndTell with the listener that it tells. Threads may use it while one closes it: each holds
/// it as long as it works, and takes it under the interpreter's lock.
class Loop {
 public:
  Loop(const Study& study, py::object hear) : listener_(std::move(hear)), folder_(study.folder()) {
    const Released released;
    loop_ = std::make_shared<AskAndTell>(study, listener_);
  }
  ~Loop() { close(); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  std::optional<std::string> ask() {
    const auto loop = open();
    const Released released;
    const auto order = loop->ask();
    return order ? std::optional(order_json(*order).dump()) : std::nullopt;
  }
  void tell(const std::string& evaluation) {
    const auto loop = open();
    const Released released;
    loop->tell(nlohmann::json::parse(evaluation).get<Evaluation>());
  }
  void put_back(const std::string& id) {
    const auto loop = open();
    const Released released;
    loop->put_back(id);
  }
  [[nodiscard]] bool ended() {
    const auto loop = loop_;
    const Released released;
    return !loop || loop->ended();
  }
  void result() {
    const auto loop = open();
    const Released released;
    write_results(folder_, loop->result());
    written_ = true;
  }
  /// Leaves the study; of one that has not ended the files say what is there.
  void close() {
    auto loop = std::exchange(loop_, nullptr);
    if (!loop) return;
    const Released released;
    loop.reset();
    if (!written_) write_results(folder_);
  }

 private:
  [[nodiscard]] std::shared_ptr<AskAndTell> open() const {
    if (!loop_) throw InputError("this AskAndTell is closed, must be used within its `with`");
    return loop_;
  }

  Listener listener_;
  std::filesystem::path folder_;
  std::shared_ptr<AskAndTell> loop_{};
  std::atomic<bool> written_ = false;
};

/// What the library throws as what attnas.errors and attnas.functions have.
void translate(std::exception_ptr error) {
  const auto raise = [](const char* module, const char* name, const char* text) {
    PyErr_SetString(py::module_::import(module).attr(name).ptr(), text);
  };
  constexpr auto kErrors = "attnas.errors";
  try {
    std::rethrow_exception(std::move(error));
  } catch (const Asking::Ended&) {
    raise("attnas.functions", "SearchEnded", "the search has ended");
  } catch (const InputError& bad) {
    raise(kErrors, "InputError", bad.what());
  } catch (const MachineError& bad) {
    raise(kErrors, "MachineError", bad.what());
  } catch (const std::system_error& bad) {
    raise(kErrors, "MachineError", bad.what());
  } catch (const StopRequested&) {
    raise(kErrors, "Stopped", "stopped; everything finished is kept, and the same call continues");
  } catch (const std::bad_alloc&) {
    raise(kErrors, "MachineError", "out of memory");
  } catch (const std::exception& unknown) {
    raise(kErrors, "Error", unknown.what());
  }
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  py::register_local_exception_translator(translate);
  module.def("request_stop", &request_stop);
  module.def("add_objective", &add_objective);
  module.def("add_algorithm", &add_algorithm);

  py::class_<Study>(module, "Study")
      .def(py::init(&open_study))
      .def("config", [](const Study& study) { return study.experiment().resolved.dump(); })
      .def("folder", [](const Study& study) { return study.folder().string(); })
      .def("notes", [](const Study& study) { return study.experiment().notes; })
      .def("plan", &plan_study)
      .def("run", &run_study);
  py::class_<Loop>(module, "Loop")
      .def(py::init<const Study&, py::object>())
      .def("ask", &Loop::ask)
      .def("tell", &Loop::tell)
      .def("put_back", &Loop::put_back)
      .def("ended", &Loop::ended)
      .def("result", &Loop::result)
      .def("close", &Loop::close);
  py::class_<Asking>(module, "Asking")
      .def("genes", [](const Asking& asking) { return asking.genes().dump(); })
      .def("initial", [](const Asking& asking) { return asking.initial().dump(); })
      .def("ask", [](Asking& asking, const std::string& genotypes) {
        const Released released;
        return asking.ask(nlohmann::json::parse(genotypes)).dump();
      });
}

}  // namespace nas::python
