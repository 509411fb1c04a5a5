#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/parameters.hpp"
#include "data/corpus.hpp"

namespace nas {

/// What every corpus made of text reads from its Parameters: how its text becomes ids (`vocabulary`,
/// `unit` or `tokenizer` with settings of their own) and ids windows (`layout`).
/// @param tokenizer  the default.
std::vector<Setting> text_settings(const std::string& tokenizer = "unit");

/// @return the settings of a corpus as records have them, in which a text has one name for its
/// tokenizer: it is the unit, and settings of tokenizers are told where they are not their defaults.
nlohmann::json recorded_settings(const Parameters& settings);

/// The terms of a corpus that is a known data set; empty for others.
std::string licence_of(const std::string& corpus);

/// A corpus that Python prepares (`python3 -m attnas.prepare corpus`), once: what was made of the
/// same text with the same settings is read again.
/// @throws InputError, MachineError  in Python's words; those of read_ids().
Corpus prepared_corpus(const std::string& name, const Parameters& settings, std::int64_t context,
                       const DataLocation& location);

}  // namespace nas
