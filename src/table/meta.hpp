#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace nas {

/// What a table says of itself beside its cells.
struct TableMeta {
  nlohmann::json identity;  ///< of every cell, without candidate and replicate
  nlohmann::json facts;     ///< those of the file, identity, "name" and "sources"
};

/// Reads the rows of `meta`, of unknown origin: what it returns can be relied
/// upon, so that no reader checks again. Keys of `facts` and `identity` that readers interpret have
/// their types.
/// @param given  values by key.
/// @throws InputError saying what was given and what is allowed, without the file's name.
TableMeta read_table_meta(const nlohmann::json& given);

/// Reads the column `measured` of a mechanism, likewise: measured objectives by name.
nlohmann::json read_measured(const std::string& mechanism, const std::string& text);

/// What a table says of its publication; all keys may be missing, others may be there: texts
/// "licence" (its own), "corpus_licence" (the terms of what its models were trained on), "version",
/// and "changelog", objects with texts "version", "date" and "text", the newest first; "gates", the
/// record of nas-data gates of its task.
/// @throws InputError "publication: licence = 5, must be a text".
void check_publication(const nlohmann::json& given);

/// JSON of a place in a file. @throws InputError "PLACE: it is no JSON: ...".
nlohmann::json parse_at(const std::string& place, const std::string& text);

/// A value for a message, the beginning of a long one.
std::string shown(const nlohmann::json& value);

}  // namespace nas
