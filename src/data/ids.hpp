#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "data/corpus.hpp"

namespace nas {

/// Reads a folder that `attnas prepare` has written (docs/files.md), and forms windows of `context`
/// ids, L, which may have been prepared for a smaller one.
///
/// Layout `standard`: one stream per split; contiguous windows of L inputs, so that validation and
/// test score every id once. The stream begins with an id (the end of what came before) that is
/// input only, so that the first one behind it is scored too; the last window is shorter. Training
/// windows are all full, since they may start at any offset below L.
///
/// Layout `published` (the EvoAttention code): lines longer than L ids only, windows of L that start
/// every L/2 while another id follows them, the last target <pad>; nothing crosses a line.
///
/// Layout `examples`: windows of L ids each, of which the label is asked at the last, or each next
/// id.
///
/// @param name  key of the corpus, which begins its errors.
/// @throws InputError naming the file, what it has and what is allowed: where one is missing, cut or
/// not the one that card.json has the digest of, an id is no id, a split gives no window, or the
/// tokens do not fit into memory.
Corpus read_ids(const std::string& name, const std::filesystem::path& folder, std::int64_t context);

}  // namespace nas
