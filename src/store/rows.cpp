#include "store/rows.hpp"

#include <utility>

#include "core/error.hpp"
#include "store/record_json.hpp"

namespace nas {

namespace {

// Texts are JSON. Doubles in JSON are the shortest decimals that read back equal, so nothing is
// rounded. A digest is the SHA-256 of its row's other columns, see row_digest. Indicators follow
// from the asks.
//
// Rows of evaluations are long, and their keys come in no order: in a table WITHOUT ROWID most would
// need a page of their own beside the tree.
constexpr const char* kSchema = R"sql(
CREATE TABLE meta (
  key    TEXT PRIMARY KEY,
  value  TEXT NOT NULL,
  digest BLOB
) WITHOUT ROWID;
CREATE TABLE asks (
  number      INTEGER PRIMARY KEY,  -- order in which the algorithm asked
  batch       INTEGER NOT NULL,
  genotype    TEXT NOT NULL,        -- empty: the name of what was evaluated
  evaluations TEXT NOT NULL,        -- ids
  reused      INTEGER NOT NULL,
  fitness     TEXT NOT NULL,        -- minimisation form
  digest      BLOB
);
CREATE TABLE indicators (
  asked     INTEGER PRIMARY KEY,
  batch     INTEGER NOT NULL,
  evaluated INTEGER NOT NULL,
  front     INTEGER NOT NULL,       -- non-dominated candidates
  value     REAL NOT NULL           -- hypervolume, or the best value of one objective
);
CREATE TABLE evaluations (
  id        TEXT NOT NULL UNIQUE,  -- SHA-256 of identity
  candidate TEXT NOT NULL,         -- canonical name
  replicate INTEGER NOT NULL,
  status    TEXT NOT NULL,         -- ok, stopped_early, diverged, ...
  reason    TEXT NOT NULL,
  identity  TEXT NOT NULL,         -- all that determines the result; null for the candidate
  curve     TEXT NOT NULL,
  "values"  TEXT NOT NULL,
  measured  TEXT NOT NULL,         -- times, device, process: not part of the comparable record
  digest    BLOB
);
)sql";

/// @param name  where it stands, for the message.
/// @throws InputError unless it is an object; null, where nothing was given, is an empty one.
nlohmann::json object_of(nlohmann::json json, const std::string& name) {
  if (json.is_null()) return nlohmann::json::object();
  if (json.is_object()) return json;
  throw InputError(name + " is of type " + json.type_name() + ", must be an object");
}

/// What readers take for granted of facts that are there, by examples: an object has these keys, of
/// which one that ends in "?" may be missing, a list has elements like its only one.
const nlohmann::json& examples() {
  static const auto all = nlohmann::json::parse(R"({
    "asking": {"asks": [{"evaluations": [""]}]},
    "at_work": {"stage": "", "workers": 0, "waiting": 0, "written": "",
                "arrays": [{"trainings": [{"evaluation": "", "candidate": "", "replicate": 0}],
                            "started": "", "step": 0, "steps": 0, "curve": [], "worker?": ""}]},
    "baseline": {"evaluations": [""], "fitness": []},
    "last_population": [[0]],
    "objectives": [{"name": "", "key": "", "unit": "", "maximise": false}]
  })");
  return all;
}

std::string kind_of(const nlohmann::json& json) {
  if (json.is_object()) return "an object";
  if (json.is_array()) return "a list";
  if (json.is_string()) return "a text";
  return json.is_boolean() ? "true or false" : "a number";
}

/// @param name  where it stands, for the message.
/// @throws InputError unless a value is like an example.
void require_like(const nlohmann::json& example, const nlohmann::json& value,
                  const std::string& name) {
  if (std::string_view(value.type_name()) != example.type_name()) {
    throw InputError(name + " is of type " + value.type_name() + ", must be " + kind_of(example));
  }
  if (example.is_array() && !example.empty()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      require_like(example.front(), value[i], name + "[" + std::to_string(i) + "]");
    }
  }
  if (!example.is_object()) return;
  for (const auto& [key, part] : example.items()) {
    const bool optional = key.back() == '?';
    const auto own = key.substr(0, key.size() - (optional ? 1 : 0));
    if (const auto found = value.find(own); found != value.end()) {
      require_like(part, *found, name + "." + own);
    } else if (!optional) {
      throw InputError(name + "." + own + " is missing");
    }
  }
}

/// A list of the evaluations' ids; of an ask up to a validation step a map of its one to the step.
nlohmann::json evaluations_json(const Ask& ask) {
  if (ask.until == 0) return ask.evaluations;
  return nlohmann::json::object({{ask.evaluations.front(), ask.until}});
}

/// The opposite of evaluations_json(). @throws InputError unless there is at least one.
void read_evaluations(const nlohmann::json& json, Ask& ask) {
  if (json.is_array() && !json.empty()) {
    ask.evaluations = json.get<Texts>();
    return;
  }
  if (json.is_object() && json.size() == 1 && json.front().is_number_integer()) {
    ask.evaluations = {json.begin().key()};
    ask.until = json.front();
    if (ask.until > 0) return;
  }
  constexpr std::size_t kShown = 80;
  throw InputError("evaluations = " + json.dump().substr(0, kShown) +
                   ", must be a list of at least one, or one with the step at which it was to "
                   "pause, at least 1");
}

}  // namespace

const DatabaseKind kStoreKind{
    .name = "store", .application_id = 0, .version = 1, .schema = kSchema};

const char* const kTellsSchema = R"sql(
CREATE TABLE IF NOT EXISTS tells (
  number INTEGER PRIMARY KEY,  -- order in which the algorithm heard of answers
  ask    INTEGER NOT NULL,
  digest BLOB
);
)sql";

const char* const kPartialsSchema = R"sql(
CREATE TABLE IF NOT EXISTS partials (
  id        TEXT NOT NULL UNIQUE,  -- that of the evaluation that it is a part of
  candidate TEXT NOT NULL,
  replicate INTEGER NOT NULL,
  identity  TEXT NOT NULL,
  step      INTEGER NOT NULL,      -- validation step at which it was paused
  curve     TEXT NOT NULL,
  "values"  TEXT NOT NULL,
  measured  TEXT NOT NULL,
  digest    BLOB
);
)sql";

/// Readers take the types of these facts for granted.
nlohmann::json read_meta(const Texts& columns) {
  auto value = parse_record(columns[1]);
  const auto& key = columns[0];
  if (const auto example = examples().find(key); example != examples().end()) {
    if (!value.is_null()) require_like(*example, value, key);
    return value;
  }
  if (key == "config" || key == "facts") {
    return object_of(std::move(value), key);
  }
  if (key == "labels") {
    value = object_of(std::move(value), key);
    for (const auto& [candidate, label] : value.items()) {
      if (!label.is_string()) throw InputError("the label of " + candidate + " must be a text");
    }
    return value;
  }
  if ((key == "elapsed_seconds" || key == kAskedBefore) && !value.is_number()) {
    throw InputError(key + " is of type " + value.type_name() + ", must be a number");
  }
  if (key != "sessions") return value;
  if (!value.is_array()) {
    throw InputError(key + " is of type " + value.type_name() + ", must be a list");
  }
  for (auto& session : value) {
    session = object_of(std::move(session), "a session");
    session["environment"] =
        object_of(session.value("environment", nlohmann::json()), "a session's environment");
  }
  return value;
}

Texts evaluation_columns(const Evaluation& evaluation, std::optional<std::int64_t> session) {
  auto measured = evaluation.measured;
  if (session) measured["session"] = *session;
  Evaluation named;  // what of it shorten_identity() looks at
  named.candidate = evaluation.candidate;
  named.identity = evaluation.identity;
  shorten_identity(named);
  return {evaluation.id,
          evaluation.candidate,
          std::to_string(evaluation.replicate),
          std::string(to_string(evaluation.status)),
          evaluation.reason,
          named.identity.dump(),
          nlohmann::json(evaluation.curve).dump(),
          values_json(evaluation).dump(),
          measured.dump()};
}

Evaluation read_evaluation(const Texts& columns) {
  Evaluation evaluation;
  evaluation.id = columns[0];
  evaluation.candidate = columns[1];
  evaluation.replicate = std::stoll(columns[2]);
  evaluation.status = parse_status(columns[3]);
  evaluation.reason = columns[4];
  evaluation.identity = object_of(parse_record(columns[5]), "identity");
  evaluation.identity = whole_identity(evaluation);
  evaluation.curve = parse_record(columns[6]).get<std::vector<CurvePoint>>();
  if (evaluation.status == Status::paused && evaluation.curve.empty()) {
    throw InputError("curve = [], must be that of a training run which is paused, not empty");
  }
  const auto values = object_of(parse_record(columns[7]), "values");
  for (const auto& [name, value] : values.items()) evaluation.values[name] = read_number(value);
  evaluation.measured = object_of(parse_record(columns[8]), "measured");
  return evaluation;
}

/// The columns of an evaluation that is paused, of those of one.
Texts partial_columns(const Evaluation& evaluation, std::optional<std::int64_t> session) {
  auto columns = evaluation_columns(evaluation, session);
  return {
      columns[0], columns[1], columns[2], columns[5], std::to_string(evaluation.curve.back().step),
      columns[6], columns[7], columns[8]};
}

Evaluation read_partial(const Texts& columns) {
  return read_evaluation({columns[0], columns[1], columns[2],
                          std::string(to_string(Status::paused)), "", columns[3], columns[5],
                          columns[6], columns[7]});
}

Texts ask_columns(const Ask& ask) {
  return {
      std::to_string(ask.number),   std::to_string(ask.batch), ask.genotype,
      evaluations_json(ask).dump(), ask.reused ? "1" : "0",    nlohmann::json(ask.fitness).dump()};
}

Ask read_ask(const Texts& columns) {
  Ask ask{.number = std::stoll(columns[0]),
          .batch = std::stoll(columns[1]),
          .genotype = columns[2],
          .evaluations = {},
          .reused = columns[4] != "0",
          .fitness = {}};
  read_evaluations(parse_record(columns[3]), ask);
  for (const auto& value : parse_record(columns[5])) ask.fitness.push_back(read_number(value));
  return ask;
}

}  // namespace nas
