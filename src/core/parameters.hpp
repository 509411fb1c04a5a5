#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// What a setting can hold. The alternative of a setting's default is its type.
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                           std::vector<std::string>, std::vector<double>>;

/// What depends on a setting.
enum class Effect {
  result,     ///< what a training run comes to
  search,     ///< which training runs a search makes, and how it ranks candidates
  limit,      ///< when a search ends: it may be continued with another
  execution,  ///< where, how fast and how safely training runs are carried out
  further,    ///< what is trained or kept beside the search
  none,
};
/// @return "result", "search", "limit", "execution", "further" or "none".
std::string_view to_string(Effect effect);

/// Another setting of the same section, without which a setting has no effect.
struct Need {
  std::string setting{};  ///< of integers or numbers; empty: none
  double above = 0.0;     ///< what it must exceed
};

/// One setting that a section or a plug-in understands: the single source for validation, `nas-run
/// describe` and the documentation.
struct Setting {
  std::string name;
  Value default_value;
  std::string help;  ///< one line, unit included
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_exclusive = false;
  bool max_exclusive = false;
  std::vector<std::string> choices{};  ///< allowed strings; empty = any
  bool required = false;               ///< no default: the user must give it
  Effect effect = Effect::result;
  Need needs{};
  /// Looked for beside the configuration that says it; where there are choices, too, NAME.json.
  bool names_file = false;

  /// @return "in [0, 1)", "one of a, b", "an integer >= 1", ...: what is allowed.
  [[nodiscard]] std::string allowed() const;
  /// @return why `value` is not allowed ("must be in [0, 1)"), empty if it is. The type must
  /// already match.
  [[nodiscard]] std::string violation(const Value& value) const;
  /// @return "integer", "number", "true or false", "text", "list of integers", "list of texts",
  /// "list of numbers".
  [[nodiscard]] std::string type_name() const;
};

/// @return the value as text, lists in brackets.
std::string to_text(const Value& value);

/// Settings by name, complete: every setting of a section with the user's value or the default.
class Parameters {
 public:
  Parameters() = default;
  /// All defaults of `settings`.
  explicit Parameters(const std::vector<Setting>& settings);

  /// @tparam T one of Value's alternatives.
  /// @throws std::logic_error if there is no such setting or it has another type: a defect of the
  /// program, since
  ///         settings are declared and validated before they are read.
  template <class T>
  [[nodiscard]] const T& get(std::string_view name) const {
    const auto* value = std::get_if<T>(&at(name));
    if (value == nullptr) wrong_type(name);
    return *value;
  }
  /// @throws std::logic_error if there is no such setting.
  [[nodiscard]] const Value& at(std::string_view name) const;
  [[nodiscard]] bool contains(std::string_view name) const {
    return values_.find(name) != values_.end();
  }
  void set(const std::string& name, Value value) { values_[name] = std::move(value); }
  [[nodiscard]] const std::map<std::string, Value, std::less<>>& values() const { return values_; }

 private:
  [[noreturn]] static void wrong_type(std::string_view name);

  std::map<std::string, Value, std::less<>> values_;
};

/// JSON object with sorted keys, for identities and records.
void to_json(nlohmann::json& json, const Parameters& parameters);
/// Takes over the values of such an object; settings that it lacks keep theirs.
/// @throws std::logic_error if `parameters` has no setting of a name.
void from_json(const nlohmann::json& json, Parameters& parameters);

}  // namespace nas
