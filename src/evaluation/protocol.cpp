#include "evaluation/protocol.hpp"

#include <array>
#include <utility>

#include "core/error.hpp"
#include "store/evaluation.hpp"

namespace nas::protocol {

namespace {

using Json = nlohmann::json;
using Type = Field::Type;

constexpr std::int64_t kMostWorkers = 1'000'000;
constexpr bool kOptional = false;

struct Line {
  const char* kind;
  std::span<const Field> fields;
};

constexpr std::array kWorkers{Field{"count", Type::whole, true, 0, kMostWorkers},
                              Field{"slots", Type::whole, kOptional, 0, kMostWorkers}};
constexpr std::array kProgress{kOrder, Field{"step", Type::whole},
                               Field{"steps", Type::whole, kOptional}};
constexpr std::array kFinished{kOrder, Field{"device", Type::text, kOptional},
                               Field{"measure", Type::text, kOptional},
                               Field{"evaluations", Type::list}};
constexpr std::array kLost{kOrder, Field{"reason", Type::text, kOptional},
                           Field{"machine", Type::flag, kOptional}};
constexpr std::array kAside{Field{"worker", Type::text}, Field{"reason", Type::text}};
constexpr std::array kRefused{Field{"reason", Type::text}};

constexpr std::array kLines{Line{"workers", kWorkers},   Line{"progress", kProgress},
                            Line{"finished", kFinished}, Line{"lost", kLost},
                            Line{"aside", kAside},       Line{"refused", kRefused}};
constexpr std::array kFieldsOfRecord{
    Field{"id", Type::text},     Field{"candidate", Type::text},  Field{"status", Type::text},
    Field{"reason", Type::text}, Field{"replicate", Type::whole}, Field{"identity", Type::object},
    Field{"curve", Type::list},  Field{"values", Type::object},   Field{"measured", Type::object}};
constexpr std::array kFieldsOfPoint{Field{"step", Type::whole}, Field{"train_nll", Type::number},
                                    Field{"seconds", Type::amount}, Field{"valid", Type::object}};
constexpr std::array kFieldsOfScores{Field{"nll", Type::number},
                                     Field{"pad_nll", Type::number},
                                     Field{"unknown_nll", Type::number},
                                     Field{"batch_mean_nll", Type::number},
                                     Field{"tokens", Type::whole, true, kNotCounted},
                                     Field{"correct", Type::whole, true, kNotCounted},
                                     Field{"pad_tokens", Type::whole, true, kNotCounted},
                                     Field{"unknown_tokens", Type::whole, true, kNotCounted},
                                     Field{"batches", Type::whole, true, kNotCounted}};
/// What is measured is anybody's, but for what this program reads again.
constexpr std::array kFieldsOfMeasured{Field{"train_seconds", Type::amount, kOptional},
                                       Field{"cpu_seconds", Type::amount, kOptional},
                                       Field{"worker_seconds", Type::amount, kOptional},
                                       Field{"peak_bytes", Type::amount, kOptional},
                                       Field{kFailedSeconds, Type::amount, kOptional},
                                       Field{"array", Type::whole, kOptional, 1, kWidestOrder},
                                       Field{"started", Type::text, kOptional},
                                       Field{"host", Type::text, kOptional},
                                       Field{"model", Type::text, kOptional},
                                       Field{"device", Type::text, kOptional}};

bool is_whole(const Json& value, const Field& field) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(field.most)) {
    return false;
  }
  const auto number = value.get<std::int64_t>();
  return number >= field.least && number <= field.most;
}

/// What a value must be and is not; empty: it is.
std::string missed(const Json& value, const Field& field) {
  const auto unless = [](bool holds, std::string type) { return holds ? "" : std::move(type); };
  switch (field.type) {
    case Type::whole:
      return unless(is_whole(value, field), "a whole number from " + std::to_string(field.least) +
                                                " to " + std::to_string(field.most));
    case Type::number:
      return unless(value.is_number() || value == "nan" || value == "inf" || value == "-inf",
                    "a number");
    case Type::amount:
      return unless(value.is_number() && value.get<double>() >= 0.0, "a number of at least 0");
    case Type::text:
      return unless(value.is_string(), "a text");
    case Type::flag:
      return unless(value.is_boolean(), "true or false");
    case Type::list:
      return unless(value.is_array(), "a list");
    case Type::object:
      return unless(value.is_object(), "an object");
  }
  return {};
}

}  // namespace

std::string beginning(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return text.substr(0, most) + "...";
}

std::string shown(const Json& value) { return beginning(value.dump(), 100); }

void must_be(const std::string& what, const Json& given, const std::string& allowed) {
  throw InputError(what + " = " + shown(given) + ", must be " + allowed);
}

void require_type(const Json& value, const Field& field, const std::string& what) {
  if (const auto type = missed(value, field); !type.empty()) must_be(what, value, type);
}

void require_fields(const Json& object, std::span<const Field> fields, const std::string& within) {
  for (const auto& field : fields) {
    const auto found = object.find(field.name);
    if (found != object.end()) {
      require_type(*found, field, within + field.name);
    } else if (field.required) {
      throw InputError(std::string(field.name) + " is missing");
    }
  }
}

std::span<const Field> fields_of(const Json& line) {
  if (!line.is_object()) throw InputError("must be an object");
  require_fields(line, std::array{Field{"kind", Type::text}});
  const auto& kind = line.at("kind");
  std::string kinds;
  for (std::size_t i = 0; i < kLines.size(); ++i) {
    if (kind == kLines[i].kind) return kLines[i].fields;
    kinds += (i == 0 ? "" : i + 1 < kLines.size() ? ", " : " or ") + std::string(kLines[i].kind);
  }
  must_be("kind", kind, kinds);
}

void require_record(const Json& record) {
  require_fields(record, kFieldsOfRecord);
  const auto& curve = record.at("curve");
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const auto point = "curve[" + std::to_string(i) + "].";
    require_fields(curve[i], kFieldsOfPoint, point);
    require_fields(curve[i].at("valid"), kFieldsOfScores, point + "valid.");
  }
  for (const auto& [name, value] : record.at("values").items()) {
    require_type(value, {"", Type::number}, "values." + beginning(name));
  }
  require_fields(record.at("measured"), kFieldsOfMeasured, "measured.");
}

}  // namespace nas::protocol
