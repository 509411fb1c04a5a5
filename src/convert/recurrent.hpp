#pragma once

#include <string>
#include <utility>
#include <vector>

#include "convert/block.hpp"

namespace nas {

/// A recurrent layer (nn/recurrent_layer.hpp) in the place of attention, which begins with what the teacher has: W_q, W_v
/// and W_o copied, those of keys and values repeated for each of H heads, rotated where the layer was and the update lets
/// it. What decays does by alpha = 0.99, whatever the token; what erases or writes, by 1/2; convolutions pass on the newest
/// token; gate times norm of outputs is 1; features are identities. Norms of queries and keys are not taken over.
///
/// @param genes  in which it differs from linear attention: {{"update", "delta"}, ...}.
/// @param sizes  of the block: gate, 1: of outputs; conv, taps of short convolutions.
/// @see HALO, arXiv:2601.22156.
LayerBlock recurrent_block(std::vector<std::pair<std::string, SlotValue>> genes,
                           const Parameters& sizes = {});

/// Sizes that such blocks have alike.
Setting block_taps();
Setting block_gate();

}  // namespace nas
