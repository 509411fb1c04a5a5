// Both gradients are like attention's forward pass. A block of four warps holds 128 rows of one matrix
// in shared memory, tokens or words; tiles of the other matrix pass by, and a warp makes 32 rows of
// logits with each, turns them into probabilities where they are, in registers, and multiplies these
// with the same tile. By tokens, what the logits are compared with, their largest, is found on the
// way, and the words are dealt to kParts blocks; by words it is known.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>

#include "kernels/cuda/output_layer.hpp"
#include "kernels/cuda/tensor_cores.cuh"
#include "kernels/cuda/warp.cuh"

namespace nas::cuda {

namespace {

constexpr int kRows = 128;       // of a block
constexpr int kRowsOfWarp = 32;  // two fragments of 16
constexpr std::int64_t kParts =
    4;  // of the words, whatever the sizes: their sums are added in turn
constexpr float kLog2E = 1.4426950408889634F;

/// A warp's sums for each tile: [fragment of 16 rows][8 columns][place].
template <int kColumns>
using Sums = float[2][static_cast<std::size_t>(kColumns / 8)][4];

// Of numbers of a kind: how they lie in shared memory and in fragments.
//   column(n)  which column of the tile column n of a fragment is
//   row(n)     which of a fragment's 16 rows row n is

struct Bfloat16 {
  using Element = std::uint16_t;
  static constexpr int kColumns = 64;  // of a tile
  static constexpr int kPad = 8;       // rows begin in different banks

  __device__ static float value(Element bits) { return float_of(std::uint32_t{bits} << 16U); }
  __device__ static Element rounded(float x) {
    return static_cast<Element>(pack_bfloat16(x, 0.0F) & 0xffffU);
  }
  __device__ static int row(int n) { return n; }
  __device__ static int column(int n) { return n; }
  /// Which element of its row is in mixed[][tile][place] of the calling lane.
  __device__ static int element(int tile, int place) {
    return 8 * tile + 2 * (lane_index() % 4) + place % 2;
  }

  template <int kWidth>
  __device__ static void add_scores(const Element* rows, const Element* tile,
                                    Sums<kColumns>& sums) {
    constexpr int kStride = kWidth + kPad;
    const int lane = lane_index();
    const Element* left = rows + lane % 16 * kStride + lane / 16 * 8;
    const Element* right = tile + (lane / 16 * 8 + lane % 8) * kStride + lane / 8 % 2 * 8;
#pragma unroll
    for (int k = 0; k < kWidth; k += 16) {
      std::uint32_t a[2][4];
      load_matrices(a[0], left + k);
      load_matrices(a[1], left + 16 * kStride + k);
#pragma unroll
      for (int c = 0; c < kColumns; c += 16) {
        std::uint32_t b[4];
        load_matrices(b, right + c * kStride + k);
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          multiply_bfloat16(sums[m][c / 8], a[m], b[0], b[1]);
          multiply_bfloat16(sums[m][c / 8 + 1], a[m], b[2], b[3]);
        }
      }
    }
  }

  template <int kWidth>
  __device__ static void mix(const Sums<kColumns>& shares, const Element* tile,
                             Sums<kWidth>& mixed) {
    constexpr int kStride = kWidth + kPad;
    const int lane = lane_index();
    const Element* right = tile + lane % 16 * kStride + lane / 16 * 8;
#pragma unroll
    for (int c = 0; c < kColumns; c += 16) {
      std::uint32_t a[2][4];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float* pair = &shares[m][c / 8 + i / 2][i % 2 * 2];
          a[m][i] = pack_bfloat16(pair[0], pair[1]);
        }
      }
#pragma unroll
      for (int n = 0; n < kWidth; n += 16) {
        std::uint32_t b[4];
        load_transposed_matrices(b, right + c * kStride + n);
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          multiply_bfloat16(mixed[m][n / 8], a[m], b[0], b[1]);
          multiply_bfloat16(mixed[m][n / 8 + 1], a[m], b[2], b[3]);
        }
      }
    }
  }
};

/// Four numbers at a time: a lane's four consecutive elements are k = t and t + 4 of two products in
/// turn, and rows and columns are permuted such that the lanes of a quarter of a warp find theirs in
/// different banks, in both products.
struct Tf32 {
  using Element = float;
  static constexpr int kColumns = 32;
  static constexpr int kPad = 8;

  struct alignas(16) Four {
    float at[4];
  };

  __device__ static float value(Element x) { return x; }
  __device__ static Element rounded(float x) { return round_to_tf32(x); }
  /// 0 2 1 3 4 6 5 7 of eight.
  __device__ static int row(int n) { return (n & ~3) | (n & 1) << 1 | (n >> 1 & 1); }
  /// 0 6 1 7 2 4 3 5 of eight.
  __device__ static int column(int n) {
    const int t = n % 8 / 2;
    return n / 8 * 8 + (n % 2 == 0 ? t : 4 + (t + 2) % 4);
  }
  __device__ static int element(int tile, int place) {
    return 32 * (tile / 4) + 8 * (lane_index() % 4) + 4 * (place % 2) + tile % 4;
  }
  __device__ static Four load(const Element* from) { return *reinterpret_cast<const Four*>(from); }

  template <int kWidth>
  __device__ static void add_scores(const Element* rows, const Element* tile,
                                    Sums<kColumns>& sums) {
    constexpr int kStride = kWidth + kPad;
    const int g = lane_index() / 4;
    const int t = lane_index() % 4;
    const Element* left = rows + row(g) * kStride + 4 * t;
    const Element* right = tile + column(g) * kStride + 4 * t;
#pragma unroll
    for (int k = 0; k < kWidth; k += 16) {
      Four a[4];  // rows 0, 8, 16, 24 further on
#pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = load(left + 8 * i * kStride + k);
#pragma unroll
      for (int c = 0; c < kColumns; c += 8) {
        const Four b = load(right + c * kStride + k);
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
          for (int i = 0; i < 4; i += 2) {
            const std::uint32_t factor[4] = {bits_of(a[2 * m].at[i]), bits_of(a[2 * m + 1].at[i]),
                                             bits_of(a[2 * m].at[i + 1]),
                                             bits_of(a[2 * m + 1].at[i + 1])};
            multiply_tf32(sums[m][c / 8], factor, bits_of(b.at[i]), bits_of(b.at[i + 1]));
          }
        }
      }
    }
  }

  template <int kWidth>
  __device__ static void mix(const Sums<kColumns>& shares, const Element* tile,
                             Sums<kWidth>& mixed) {
    constexpr int kStride = kWidth + kPad;
    const int g = lane_index() / 4;
    const int t = lane_index() % 4;
#pragma unroll
    for (int c = 0; c < kColumns; c += 8) {
      std::uint32_t a[2][4];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        constexpr int kPlaces[4] = {0, 2, 1, 3};
#pragma unroll
        for (int i = 0; i < 4; ++i) a[m][i] = bits_of(round_to_tf32(shares[m][c / 8][kPlaces[i]]));
      }
      const Element* first = tile + (c + column(2 * t)) * kStride + 4 * g;
      const Element* second = tile + (c + column(2 * t + 1)) * kStride + 4 * g;
#pragma unroll
      for (int n = 0; n < kWidth; n += 32) {
        const Four b0 = load(first + n);
        const Four b1 = load(second + n);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
          for (int m = 0; m < 2; ++m) {
            multiply_tf32(mixed[m][n / 8 + i], a[m], bits_of(b0.at[i]), bits_of(b1.at[i]));
          }
        }
      }
    }
  }
};

/// What is known of a token: what its logits are compared with, times log2(e), infinite where nothing
/// is asked; and its target.
struct TokenSums {
  float* log_sums = nullptr;        // (R, N)
  std::int32_t* targets = nullptr;  // (R, N)
};

/// Where all is in the scratch.
template <class Of>
struct Scratch {
  using Element = typename Of::Element;
  Element* features;   // (R, N, D), rounded
  Element* embedding;  // (R, V, D), rounded
  float* mixed;        // (kParts, R, N, D): sum_v e^(logit - top) E_v
  float* tops;         // (kParts, R, N): the largest logits
  float* sums;         // (kParts, R, N): sum_v e^(logit - top)
  TokenSums tokens;
  std::int64_t bytes = 0;

  explicit Scratch(const OutputLoss& loss) : next_(static_cast<std::byte*>(loss.scratch)) {
    const auto tokens_of_all = loss.models * loss.tokens;
    features = take<Element>(tokens_of_all * loss.width);
    embedding = take<Element>(loss.models * loss.vocabulary * loss.width);
    mixed = take<float>(kParts * tokens_of_all * loss.width);
    tops = take<float>(kParts * tokens_of_all);
    sums = take<float>(kParts * tokens_of_all);
    tokens.log_sums = take<float>(tokens_of_all);
    tokens.targets = take<std::int32_t>(tokens_of_all);
  }

 private:
  template <class T>
  T* take(std::int64_t count) {
    const auto size = (count * static_cast<std::int64_t>(sizeof(T)) + 15) / 16 * 16;
    bytes += size;
    auto* here = reinterpret_cast<T*>(next_);
    if (next_ != nullptr) next_ += size;
    return here;
  }
  std::byte* next_;
};

/// A matrix of `rows` rows of kWidth numbers.
template <class Element>
struct Matrix {
  const Element* data;
  std::int64_t rows;
};

/// Begins to copy rows [first, first + count) to shared memory, zeros behind the last one.
template <class Of, int kWidth>
__device__ void begin_rows(const Matrix<typename Of::Element>& matrix, std::int64_t first,
                           int count, typename Of::Element* to) {
  constexpr int kAtOnce = 16 / sizeof(typename Of::Element);
  constexpr int kPieces = kWidth / kAtOnce;
  for (int i = thread_index(); i < count * kPieces; i += kThreads) {
    const int row = i / kPieces;
    const int piece = i % kPieces * kAtOnce;
    const bool exists = first + row < matrix.rows;
    begin_copy(to + row * (kWidth + Of::kPad) + piece,
               matrix.data + (exists ? (first + row) * kWidth + piece : 0), exists);
  }
}

/// The row of the block that `place` of fragment m is of, for the calling lane.
template <class Of>
__device__ int row_of(int m, int place) {
  return warp_index() * kRowsOfWarp + 16 * m + Of::row(lane_index() / 4 + place / 2 * 8);
}

/// The column of the tile that place of eight columns c is of.
template <class Of>
__device__ int column_of(int c, int place) {
  return Of::column(8 * c + 2 * (lane_index() % 4) + place % 2);
}

template <class Of, int kWidth>
constexpr std::size_t shared_bytes() {
  return sizeof(typename Of::Element) * (kWidth + Of::kPad) * (kRows + 2 * Of::kColumns) +
         2 * Of::kColumns * (sizeof(float) + sizeof(std::int32_t));
}

/// mixed = weigh(rows tile') tile, summed over tiles [begin, end) of the other matrix; weigh(first
/// column, number of the tile, scores, mixed) turns scores into shares in place.
/// before(number of the tile) is called by the whole block as the tile begins to come.
template <class Of, int kWidth, class Before, class Weigh>
__device__ void mix_tiles(const Matrix<typename Of::Element>& own, std::int64_t first,
                          const Matrix<typename Of::Element>& other, std::int64_t begin,
                          std::int64_t end, const Before& before, const Weigh& weigh,
                          Sums<kWidth>& mixed) {
  constexpr int kStride = kWidth + Of::kPad;
  auto* rows = shared_memory<typename Of::Element>();
  auto* tiles = rows + kRows * kStride;
  const auto bring = [&](std::int64_t tile) {
    begin_rows<Of, kWidth>(other, tile * Of::kColumns, Of::kColumns,
                           tiles + tile % 2 * Of::kColumns * kStride);
    before(tile);
  };
  if (begin == end) return;  // no copy may outlive its block
  begin_rows<Of, kWidth>(own, first, kRows, rows);
  bring(begin);
  for (std::int64_t tile = begin; tile < end; ++tile) {
    wait_for_copies();
    __syncthreads();  // all have come, and nobody reads the one before
    if (tile + 1 < end) bring(tile + 1);
    const auto* here = tiles + tile % 2 * Of::kColumns * kStride;
    Sums<Of::kColumns> scores = {};
    Of::template add_scores<kWidth>(rows + warp_index() * kRowsOfWarp * kStride, here, scores);
    weigh(tile, scores, mixed);
    Of::template mix<kWidth>(scores, here, mixed);
  }
}

/// Softmax of rows whose logits come tile by tile, [fragment][half]: sums are of e^(logit - top).
struct RunningSums {
  float tops[2][2];
  float sums[2][2] = {};  // of the lane's own columns

  __device__ RunningSums() {
    for (auto& fragment : tops) {
      for (auto& top : fragment) top = -std::numeric_limits<float>::infinity();
    }
  }

  /// Turns logits into e^(logit - top), and what was summed before into sums for the new top.
  template <int kColumns, int kWidth>
  __device__ void take(Sums<kColumns>& logits, Sums<kWidth>& mixed) {
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      float scale[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float top = tops[m][half];
#pragma unroll
        for (int c = 0; c < kColumns / 8; ++c) {
          const float* pair = &logits[m][c][2 * half];
          top = pair[0] > top ? pair[0] : top;
          top = pair[1] > top ? pair[1] : top;
        }
        top = largest_of_quad(top);
        scale[half] = top == tops[m][half] ? 1 : power_of_two((tops[m][half] - top) * kLog2E);
        tops[m][half] = top;
        const float offset = top * kLog2E;
        float sum = 0;
#pragma unroll
        for (int c = 0; c < kColumns / 8; ++c) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            float& share = logits[m][c][2 * half + i];
            share = power_of_two(share * kLog2E - offset);
            sum += share;
          }
        }
        sums[m][half] = sums[m][half] * scale[half] + sum;
      }
      if (__ballot_sync(kAllLanes, scale[0] != 1 || scale[1] != 1) == 0) continue;
#pragma unroll
      for (int tile = 0; tile < kWidth / 8; ++tile) {
#pragma unroll
        for (int place = 0; place < 4; ++place) mixed[m][tile][place] *= scale[place / 2];
      }
    }
  }
};

/// One block per 128 tokens of a model and part of the words.
template <class Of, int kWidth>
__global__ void __launch_bounds__(kThreads, 2)
    by_token_kernel(OutputLoss loss, Scratch<Of> scratch) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kRows;
  const std::int64_t part = blockIdx.y;
  const std::int64_t model = blockIdx.z;
  const std::int64_t tiles = (loss.vocabulary + Of::kColumns - 1) / Of::kColumns;
  const Matrix<typename Of::Element> features{scratch.features + model * loss.tokens * kWidth,
                                              loss.tokens};
  const Matrix<typename Of::Element> embedding{scratch.embedding + model * loss.vocabulary * kWidth,
                                               loss.vocabulary};
  RunningSums sums;
  Sums<kWidth> mixed = {};
  mix_tiles<Of, kWidth>(
      features, first, embedding, part * tiles / kParts, (part + 1) * tiles / kParts,
      [](std::int64_t) {},
      [&](std::int64_t tile, Sums<Of::kColumns>& logits, Sums<kWidth>& so_far) {
        const std::int64_t behind = loss.vocabulary - tile * Of::kColumns;
        if (behind < Of::kColumns) {
#pragma unroll
          for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int c = 0; c < Of::kColumns / 8; ++c) {
#pragma unroll
              for (int place = 0; place < 4; ++place) {
                if (column_of<Of>(c, place) >= behind) {
                  logits[m][c][place] = -std::numeric_limits<float>::infinity();
                }
              }
            }
          }
        }
        sums.template take<Of::kColumns, kWidth>(logits, so_far);
      },
      mixed);
  const std::int64_t before = (part * loss.models + model) * loss.tokens;
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = sum_of_quad(sums.sums[m][half]);
      const std::int64_t token = first + row_of<Of>(m, 2 * half);
      if (token >= loss.tokens) continue;
      if (lane_index() % 4 == 0) {
        scratch.tops[before + token] = sums.tops[m][half];
        scratch.sums[before + token] = sum;
      }
      float* row = scratch.mixed + (before + token) * kWidth;
#pragma unroll
      for (int tile = 0; tile < kWidth / 8; ++tile) {
#pragma unroll
        for (int i = 0; i < 2; ++i) row[Of::element(tile, i)] = mixed[m][tile][2 * half + i];
      }
    }
  }
}

/// One warp per token: what its parts say together.
template <class Of>
__global__ void token_kernel(OutputLoss loss, Scratch<Of> scratch) {
  const std::int64_t model = blockIdx.y;
  const std::int64_t of_model = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_index();
  if (of_model >= loss.tokens) return;  // the whole warp
  const std::int64_t token = model * loss.tokens + of_model;
  const std::int64_t step = loss.models * loss.tokens;  // from a part to the next
  float* gradient = loss.by_features + token * loss.width;
  const std::int64_t target = loss.targets[token];
  if (target < 0) {
    for (std::int64_t e = lane_index(); e < loss.width; e += kWarp) gradient[e] = 0;
    if (lane_index() == 0) {
      loss.nll[token] = 0;
      scratch.tokens.log_sums[token] = std::numeric_limits<float>::infinity();
      scratch.tokens.targets[token] = -1;
    }
    return;
  }
  float top = scratch.tops[token];
  for (std::int64_t part = 1; part < kParts; ++part) {
    const float other = scratch.tops[part * step + token];
    top = other > top ? other : top;
  }
  float scales[kParts];
  float sum = 0;
  for (std::int64_t part = 0; part < kParts; ++part) {
    // A part of no words, or of none that are above -infinity, has none of the sum.
    scales[part] = power_of_two((scratch.tops[part * step + token] - top) * kLog2E);
    sum += scratch.sums[part * step + token] * scales[part];
  }
  const auto* feature = scratch.features + token * loss.width;
  const auto* wanted = scratch.embedding + (model * loss.vocabulary + target) * loss.width;
  const float weight = loss.weights[model];
  float logit = 0;
  for (std::int64_t e = lane_index(); e < loss.width; e += kWarp) {
    float mixed = 0;
    for (std::int64_t part = 0; part < kParts; ++part) {
      mixed += scales[part] * scratch.mixed[(part * step + token) * loss.width + e];
    }
    logit += Of::value(feature[e]) * Of::value(wanted[e]);
    gradient[e] = weight * (mixed / sum - Of::value(wanted[e]));
  }
  logit = warp_sum(logit);
  if (lane_index() > 0) return;
  const double log_sum = std::log(static_cast<double>(sum));
  const double nll = log_sum + (static_cast<double>(top) - static_cast<double>(logit));
  loss.nll[token] = nll < 0 ? 0 : nll;  // the logit was summed in another order
  scratch.tokens.log_sums[token] =
      static_cast<float>((log_sum + static_cast<double>(top)) * 1.4426950408889634);
  scratch.tokens.targets[token] = static_cast<std::int32_t>(target);
}

/// One block per 128 words of a model.
template <class Of, int kWidth>
__global__ void __launch_bounds__(kThreads, 2)
    by_word_kernel(OutputLoss loss, Scratch<Of> scratch) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kRows;
  const std::int64_t model = blockIdx.y;
  const Matrix<typename Of::Element> features{scratch.features + model * loss.tokens * kWidth,
                                              loss.tokens};
  const Matrix<typename Of::Element> embedding{scratch.embedding + model * loss.vocabulary * kWidth,
                                               loss.vocabulary};
  const float* log_sums = scratch.tokens.log_sums + model * loss.tokens;
  const std::int32_t* targets = scratch.tokens.targets + model * loss.tokens;
  // Of two tiles of tokens.
  auto* log_sums_of_tiles = reinterpret_cast<float*>(
      shared_memory<typename Of::Element>() + (kRows + 2 * Of::kColumns) * (kWidth + Of::kPad));
  auto* targets_of_tiles = reinterpret_cast<std::int32_t*>(log_sums_of_tiles + 2 * Of::kColumns);
  Sums<kWidth> mixed = {};
  mix_tiles<Of, kWidth>(
      embedding, first, features, 0, (loss.tokens + Of::kColumns - 1) / Of::kColumns,
      [&](std::int64_t tile) {
        const int i = thread_index();
        if (i >= Of::kColumns) return;
        const std::int64_t token = tile * Of::kColumns + i;
        const bool exists = token < loss.tokens;
        const auto place = tile % 2 * Of::kColumns + i;
        log_sums_of_tiles[place] =
            exists ? log_sums[token] : std::numeric_limits<float>::infinity();
        targets_of_tiles[place] = exists ? targets[token] : -1;
      },
      [&](std::int64_t tile, Sums<Of::kColumns>& logits, Sums<kWidth>& /*so_far*/) {
        const float* offsets = log_sums_of_tiles + tile % 2 * Of::kColumns;
        const std::int32_t* wanted = targets_of_tiles + tile % 2 * Of::kColumns;
#pragma unroll
        for (int c = 0; c < Of::kColumns / 8; ++c) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const int column = column_of<Of>(c, i);
            const float offset = offsets[column];
            const auto target = static_cast<int>(wanted[column] - first);  // as a row of the block
#pragma unroll
            for (int m = 0; m < 2; ++m) {
#pragma unroll
              for (int half = 0; half < 2; ++half) {
                float& share = logits[m][c][2 * half + i];
                share = power_of_two(share * kLog2E - offset);
                if (target == row_of<Of>(m, 2 * half)) share -= 1;
              }
            }
          }
        }
      },
      mixed);
  const float weight = loss.weights[model];
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t word = first + row_of<Of>(m, 2 * half);
      if (word >= loss.vocabulary) continue;
      float* row = loss.by_embedding + (model * loss.vocabulary + word) * kWidth;
#pragma unroll
      for (int tile = 0; tile < kWidth / 8; ++tile) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          row[Of::element(tile, i)] = weight * mixed[m][tile][2 * half + i];
        }
      }
    }
  }
}

template <class Of>
__global__ void round_kernel(const float* from, std::int64_t size, typename Of::Element* to) {
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + thread_index(); i < size;
       i += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    to[i] = Of::rounded(from[i]);
  }
}

template <class Of>
void round(const float* from, std::int64_t size, typename Of::Element* to, Stream stream) {
  launch("output_loss, rounded factors", round_kernel<Of>, Grid{pieces(size, 8 * kThreads)}, 0,
         stream, from, size, to);
}

template <class Of, int kWidth>
void run(const OutputLoss& loss, Stream stream) {
  const Scratch<Of> scratch(loss);
  constexpr auto kShared = shared_bytes<Of, kWidth>();
  round<Of>(loss.features, loss.models * loss.tokens * kWidth, scratch.features, stream);
  round<Of>(loss.embedding, loss.models * loss.vocabulary * kWidth, scratch.embedding, stream);
  launch("output_loss, by token", by_token_kernel<Of, kWidth>,
         Grid{pieces(loss.tokens, kRows), kParts, loss.models}, kShared, stream, loss, scratch);
  launch("output_loss, tokens", token_kernel<Of>, Grid{pieces(loss.tokens, kWarps), loss.models}, 0,
         stream, loss, scratch);
  launch("output_loss, by word", by_word_kernel<Of, kWidth>,
         Grid{pieces(loss.vocabulary, kRows), loss.models}, kShared, stream, loss, scratch);
}

template <class Of>
void run_of_width(const OutputLoss& loss, Stream stream) {
  switch (loss.width) {
    case 32:
      return run<Of, 32>(loss, stream);
    case 64:
      return run<Of, 64>(loss, stream);
    case 128:
      return run<Of, 128>(loss, stream);
    default:
      throw std::invalid_argument("output_loss: width " + std::to_string(loss.width) +
                                  ", must be 32, 64 or 128");
  }
}

std::int64_t scratch_bytes(OutputLoss loss, std::int64_t models) {
  loss.models = models;
  loss.scratch = nullptr;
  return loss.factors == Factors::bfloat16 ? Scratch<Bfloat16>(loss).bytes
                                           : Scratch<Tf32>(loss).bytes;
}

std::int64_t models_at_once(const OutputLoss& loss) {
  const auto most = loss.most_scratch_bytes / std::max<std::int64_t>(scratch_bytes(loss, 1), 1);
  return std::clamp<std::int64_t>(most, 1, std::max<std::int64_t>(loss.models, 1));
}

}  // namespace

bool output_loss_fits(std::int64_t width) {
  return (width == 32 || width == 64 || width == 128) && has_tensor_cores() &&
         shared_bytes<Tf32, 128>() <= most_shared_bytes();
}

OutputLoss OutputLoss::of_models(std::int64_t first, std::int64_t count) const {
  auto part = *this;
  part.models = count;
  part.features += first * tokens * width;
  part.embedding += first * vocabulary * width;
  part.targets += first * tokens;
  part.weights += first;
  part.nll += first * tokens;
  part.by_features += first * tokens * width;
  part.by_embedding += first * vocabulary * width;
  return part;
}

std::int64_t output_loss_scratch_bytes(const OutputLoss& loss) {
  return scratch_bytes(loss, models_at_once(loss));
}

void output_loss(const OutputLoss& loss, Stream stream) {
  const auto at_once = models_at_once(loss);
  for (std::int64_t first = 0; first < loss.models; first += at_once) {
    const auto part = loss.of_models(first, std::min(at_once, loss.models - first));
    if (loss.factors == Factors::bfloat16) {
      run_of_width<Bfloat16>(part, stream);
    } else {
      run_of_width<Tf32>(part, stream);
    }
  }
}

}  // namespace nas::cuda
