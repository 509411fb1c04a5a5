#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

namespace nas {

/// Lines between a study's process, its engine and their workers (docs/how-to/cluster.md): JSON
/// objects, each with the text "kind".
namespace protocol {

inline constexpr int kVersion = 1;
/// Beyond it, doubles do not count one by one.
inline constexpr std::int64_t kLargestCount = std::int64_t{1} << 53U;
inline constexpr std::int64_t kWidestOrder = 65536;  ///< tasks

/// A field of a JSON object.
struct Field {
  enum class Type {
    whole,   ///< number from least to most
    number,  ///< any, or one of the texts of number_json()
    amount,  ///< number of at least 0
    text,
    flag,
    list,
    object
  };
  const char* name;
  Type type;
  bool required = true;
  std::int64_t least = 0;
  std::int64_t most = kLargestCount;
};

/// Which order a line is about.
inline constexpr Field kOrder{"order", Field::Type::whole};

/// What an engine writes: workers, progress, finished, lost, aside, refused.
/// @return the fields of such a line. @throws InputError if it is none.
std::span<const Field> fields_of(const nlohmann::json& line);

/// Refuses an object of which a field is missing or has another type. JSON's own conversions are
/// generous: a boolean becomes a number, a large number whatever fits.
/// @param within  stands before the fields' names: "curve[3].".
/// @throws InputError "step is missing", "curve[3].step = -1, must be a whole number from 0 to 9".
void require_fields(const nlohmann::json& object, std::span<const Field> fields,
                    const std::string& within = "");
/// The same of a value. @param what  its name.
void require_type(const nlohmann::json& value, const Field& field, const std::string& what);
/// The same of an evaluation's record and of all its parts.
void require_record(const nlohmann::json& record);

inline constexpr std::size_t kLongestName = 200;  ///< bytes, of a worker, a device or a candidate
/// So many bytes of a text, at whose end no character is cut.
std::string beginning(const std::string& text, std::size_t most = kLongestName);
/// A value, or its beginning, for messages.
std::string shown(const nlohmann::json& value);
/// @throws InputError "what = given, must be allowed".
[[noreturn]] void must_be(const std::string& what, const nlohmann::json& given,
                          const std::string& allowed);

}  // namespace protocol

}  // namespace nas
