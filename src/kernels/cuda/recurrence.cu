// A block has a head of a sequence and takes up its chunks in turn; all matrices of a chunk are in shared
// memory, with odd rows, so that lanes read rows and columns from different banks.

#include <algorithm>
#include <cstddef>

#include "kernels/cuda/math.cuh"
#include "kernels/cuda/recurrence.hpp"
#include "kernels/cuda/warp.cuh"

namespace nas::cuda {

namespace {

template <class Real>
struct Matrix {
  Real* data = nullptr;
  int row = 0;

  __device__ Real& operator()(int i, int j) const { return data[i * row + j]; }
};

/// How decays are: of each feature, or of the whole state.
enum class Decays { none, whole, channels };

/// The matrices of a chunk of C tokens, in memory that the caller has.
template <class Real>
struct Arrays {
  constexpr Arrays(const kernels::RecurrenceShape& shape, Real* memory, bool backward)
      : memory_(memory) {
    const auto tokens = static_cast<int>(shape.chunk);
    const auto features = static_cast<int>(shape.features);
    const auto width = static_cast<int>(shape.width);
    for (auto* x : {&queries, &keys, &erased}) *x = take(tokens, features);
    for (auto* x : {&from_start, &to_end}) *x = take(tokens, shape.by_channel ? features : 1);
    for (auto* x : {&from_middle, &to_middle}) {
      if (shape.by_channel) *x = take(tokens, features);
    }
    for (auto* x : {&scores, &erasing}) *x = take(tokens, tokens);
    for (auto* x : {&updates, &outputs}) *x = take(tokens, width);
    state = take(features, width);
    sums = take(tokens, shape.by_channel ? features : 1);
    if (!backward) return;
    for (auto* x : {&by_queries, &by_keys, &by_erased, &to_keys}) *x = take(tokens, features);
    for (auto* x : {&by_scores, &by_erasing}) *x = take(tokens, tokens);
    by_updates = take(tokens, width);
    by_state = take(features, width);
    behind = take(1, features);
  }

  [[nodiscard]] constexpr std::size_t bytes() const { return size_ * sizeof(Real); }

  Matrix<Real> queries, keys, erased;
  Matrix<Real> sums, from_start, to_end, from_middle, to_middle;  // L, and factors of decays
  Matrix<Real> scores, erasing;                                   // A, W
  Matrix<Real> updates, outputs;                                  // U; O, or gradients w.r.t. it
  Matrix<Real> state;
  Matrix<Real> by_queries, by_keys, by_erased;
  Matrix<Real> to_keys;  // the part of by_keys by way of the state behind the chunk
  Matrix<Real> by_scores, by_erasing, by_updates, by_state;
  Matrix<Real> behind;  // the sums of S . dS behind the chunk, by feature

 private:
  constexpr Matrix<Real> take(int rows, int columns) {
    const int row = columns | 1;
    const Matrix<Real> made{memory_ == nullptr ? nullptr : memory_ + size_, row};
    size_ += static_cast<std::size_t>(rows) * static_cast<std::size_t>(row);
    return made;
  }

  Real* memory_;
  std::size_t size_ = 0;
};

/// use(i, j, sum_p a(i, p) b(p, j)) for all elements; a thread has two rows and two columns at a time.
/// The same thread has the same elements in every call of equal sizes.
template <class Real, class A, class B, class Use>
__device__ void for_products(int rows, int columns, int depth, const A& a, const B& b,
                             const Use& use) {
  const int half_rows = (rows + 1) / 2;
  const int half_columns = (columns + 1) / 2;
  for (int tile = thread_index(); tile < half_rows * half_columns; tile += kThreads) {
    const int i = tile / half_columns;
    const int j = tile % half_columns;
    const bool below = i + half_rows < rows;
    const bool beside = j + half_columns < columns;
    const int other_i = below ? i + half_rows : i;
    const int other_j = beside ? j + half_columns : j;
    Real sums[2][2] = {};
    for (int p = 0; p < depth; ++p) {
      const Real left[2] = {a(i, p), a(other_i, p)};
      const Real right[2] = {b(p, j), b(p, other_j)};
#pragma unroll
      for (int n = 0; n < 4; ++n) sums[n / 2][n % 2] += left[n / 2] * right[n % 2];
    }
    use(i, j, sums[0][0]);
    if (beside) use(i, other_j, sums[0][1]);
    if (below) use(other_i, j, sums[1][0]);
    if (below && beside) use(other_i, other_j, sums[1][1]);
  }
}

/// Calls use(i, j) for all elements.
template <class Use>
__device__ void for_elements(int rows, int columns, const Use& use) {
  for (int n = thread_index(); n < rows * columns; n += kThreads) use(n / columns, n % columns);
}

/// One chunk of a sequence after the other.
template <class Real, Decays kDecays, bool kErases>
class Chunk {
 public:
  __device__ Chunk(const Recurrence<Real>& of, bool backward)
      : of_(of),
        x_(of.shape, shared_memory<Real>(), backward),
        features_(static_cast<int>(of.shape.features)),
        width_(static_cast<int>(of.shape.width)) {}

  /// Reads the tokens and computes decays, A and W.
  __device__ void begin(int number) {
    number_ = number;
    first_ = number * static_cast<int>(of_.shape.chunk);
    const int left = static_cast<int>(of_.shape.tokens) - first_;
    const int chunk = static_cast<int>(of_.shape.chunk);
    count_ = left < chunk ? left : chunk;
    __syncthreads();  // the chunk before has been used
    load(of_.queries, features_, x_.queries);
    load(of_.keys, features_, x_.keys);
    if constexpr (kErases) load(of_.erased, features_, x_.erased);
    if constexpr (kDecays != Decays::none) load(of_.log_decays, columns_of_decays(), x_.sums);
    __syncthreads();
    if constexpr (kDecays != Decays::none) begin_decays();
    const auto key = [&](int p, int j) { return key_within(j, p); };
    for_products<Real>(
        count_, count_, features_, [&](int i, int p) { return query_within(i, p); }, key,
        [&](int i, int j, Real sum) { x_.scores(i, j) = j <= i ? sum * between(i, j) : Real{0}; });
    if constexpr (kErases) {
      for_products<Real>(
          count_, count_, features_, [&](int i, int p) { return erased_within(i, p); }, key,
          [&](int i, int j, Real sum) {
            x_.erasing(i, j) = j < i ? sum * between(i, j) : Real{0};
          });
    }
    __syncthreads();
  }

  /// S before the first chunk.
  __device__ void clear_state() {
    for_elements(features_, width_, [&](int p, int j) {
      x_.state(p, j) = 0;
      state_at(0)[p * padded_width() + j] = 0;
    });
  }

  __device__ void forward(const HeadVectors<Real>& outputs) {
    const bool follows = number_ > 0;
    const auto state = [&](int p, int j) { return x_.state(p, j); };
    load(of_.values, width_, x_.updates);
    if constexpr (kErases) {
      __syncthreads();
      if (follows) {
        for_products<Real>(
            count_, width_, features_, [&](int i, int p) { return erased_start(i, p); }, state,
            [&](int i, int j, Real sum) { x_.updates(i, j) -= sum; });
        __syncthreads();
      }
      substitute(x_.updates);
    }
    __syncthreads();
    for_products<Real>(
        count_, width_, follows ? features_ : 0, [&](int i, int p) { return query_start(i, p); },
        state, [&](int i, int j, Real sum) { x_.outputs(i, j) = sum; });
    for_products<Real>(
        count_, width_, count_, [&](int i, int p) { return x_.scores(i, p); },
        [&](int p, int j) { return x_.updates(p, j); },
        [&](int i, int j, Real sum) { x_.outputs(i, j) += sum; });
    __syncthreads();
    store(x_.outputs, width_, outputs);
    Real* next = state_at(number_ + 1);
    for_products<Real>(
        features_, width_, count_, [&](int p, int i) { return key_end(i, p); },
        [&](int i, int j) { return x_.updates(i, j); },
        [&](int p, int j, Real sum) {
          if (follows) sum += over(p) * x_.state(p, j);
          x_.state(p, j) = sum;
          next[p * padded_width() + j] = sum;
        });
    for_elements(count_, width_, [&](int i, int j) {
      updates()[(first_ + i) * padded_width() + j] = x_.updates(i, j);
    });
  }

  __device__ void backward(const RecurrenceGradients<Real>& gradients) {
    const bool last = number_ + 1 == static_cast<int>(of_.shape.chunks());
    const bool continues = !last || gradients.state != nullptr;
    if (last && continues) {
      const Real* given = gradients.state + sequence() * features_ * width_;
      for_elements(features_, width_,
                   [&](int p, int j) { x_.by_state(p, j) = given[p * width_ + j]; });
    }
    for_elements(features_, width_, [&](int p, int j) {
      x_.state(p, j) = number_ > 0 ? state_at(number_)[p * padded_width() + j] : Real{0};
    });
    for_elements(count_, width_, [&](int i, int j) {
      x_.updates(i, j) = updates()[(first_ + i) * padded_width() + j];
    });
    load(gradients.outputs, width_, x_.outputs);
    __syncthreads();
    backward_of_updates(continues);
    store(x_.by_updates, width_, gradients.values);
    backward_of_scores();
    __syncthreads();
    backward_of_queries(x_.by_scores, x_.outputs, Real{1}, x_.by_queries);
    if constexpr (kErases) {
      backward_of_queries(x_.by_erasing, x_.by_updates, Real{-1}, x_.by_erased);
    }
    backward_of_keys(continues);
    __syncthreads();
    store(x_.by_queries, features_, gradients.queries);
    store(x_.by_keys, features_, gradients.keys);
    if constexpr (kErases) store(x_.by_erased, features_, gradients.erased);
    if constexpr (kDecays != Decays::none) {
      if (gradients.log_decays.data != nullptr) {
        backward_of_decays(continues, gradients.log_decays);
        __syncthreads();
      }
    }
    if (number_ > 0) backward_of_state(continues);
  }

 private:
  [[nodiscard]] __device__ std::int64_t sequence() const {
    return (static_cast<std::int64_t>(blockIdx.z) * of_.sequences + blockIdx.y) * of_.heads +
           blockIdx.x;
  }
  [[nodiscard]] __device__ int padded_width() const {
    return static_cast<int>(of_.shape.padded_width());
  }
  [[nodiscard]] __device__ Real* state_at(int number) const {
    const auto size = of_.shape.features * of_.shape.padded_width();
    return of_.states + (sequence() * (of_.shape.chunks() + 1) + number) * size;
  }
  [[nodiscard]] __device__ Real* updates() const {
    return of_.updates + sequence() * of_.shape.tokens * of_.shape.padded_width();
  }
  template <class Number>
  [[nodiscard]] __device__ Number* row_of(const HeadVectors<Number>& of, int i) const {
    return of.data + blockIdx.z * of.model_step + blockIdx.y * of.sequence_step +
           blockIdx.x * of.head_step + (first_ + i) * of.token_step;
  }
  __device__ void load(const HeadVectors<const Real>& from, int columns,
                       const Matrix<Real>& to) const {
    for_elements(count_, columns, [&](int i, int j) { to(i, j) = row_of(from, i)[j]; });
  }
  __device__ void store(const Matrix<Real>& from, int columns, const HeadVectors<Real>& to) const {
    if (to.data == nullptr) return;
    for_elements(count_, columns, [&](int i, int j) { row_of(to, i)[j] = from(i, j); });
  }

  // Factors of decays.
  [[nodiscard]] __device__ int columns_of_decays() const {
    return kDecays == Decays::channels ? features_ : 1;
  }
  [[nodiscard]] __device__ Real factor(const Matrix<Real>& of, int i, int p) const {
    if constexpr (kDecays == Decays::none) return 1;
    return of(i, kDecays == Decays::channels ? p : 0);
  }
  [[nodiscard]] __device__ Real within(const Matrix<Real>& of, int i, int p) const {
    if constexpr (kDecays != Decays::channels) return 1;
    return of(i, p);
  }
  [[nodiscard]] __device__ Real between(int i, int j) const {
    if constexpr (kDecays != Decays::whole) return 1;
    const Real difference = x_.sums(i, 0) - x_.sums(j, 0);
    return exponential(difference < 0 ? difference : Real{0});
  }
  /// e^(L_C).
  [[nodiscard]] __device__ Real over(int p) const { return factor(x_.from_start, count_ - 1, p); }

  [[nodiscard]] __device__ Real query_start(int i, int p) const {
    return x_.queries(i, p) * factor(x_.from_start, i, p);
  }
  [[nodiscard]] __device__ Real erased_start(int i, int p) const {
    return x_.erased(i, p) * factor(x_.from_start, i, p);
  }
  [[nodiscard]] __device__ Real key_end(int i, int p) const {
    return x_.keys(i, p) * factor(x_.to_end, i, p);
  }
  [[nodiscard]] __device__ Real query_within(int i, int p) const {
    return x_.queries(i, p) * within(x_.from_middle, i, p);
  }
  [[nodiscard]] __device__ Real erased_within(int i, int p) const {
    return x_.erased(i, p) * within(x_.from_middle, i, p);
  }
  [[nodiscard]] __device__ Real key_within(int i, int p) const {
    return x_.keys(i, p) * within(x_.to_middle, i, p);
  }

  __device__ void begin_decays() {
    const int columns = columns_of_decays();
    for (int p = thread_index(); p < columns; p += kThreads) {
      for (int i = 1; i < count_; ++i) x_.sums(i, p) += x_.sums(i - 1, p);
    }
    __syncthreads();
    for_elements(count_, columns, [&](int i, int p) {
      const Real sum = x_.sums(i, p);
      const Real left = x_.sums(count_ - 1, p) - sum;
      x_.from_start(i, p) = exponential(sum);
      x_.to_end(i, p) = exponential(left < 0 ? left : Real{0});
      if constexpr (kDecays == Decays::channels) {
        const Real middle = x_.sums(count_ / 2, p);
        x_.from_middle(i, p) = exponential(sum - middle);
        x_.to_middle(i, p) = exponential(middle - sum);
      }
    });
    __syncthreads();
  }

  /// x <- (I + W)^-1 x, a column by a thread.
  __device__ void substitute(const Matrix<Real>& x) const {
    for (int j = thread_index(); j < width_; j += kThreads) {
      for (int i = 1; i < count_; ++i) {
        Real sum = x(i, j);
        for (int p = 0; p < i; ++p) sum -= x_.erasing(i, p) * x(p, j);
        x(i, j) = sum;
      }
    }
  }

  /// x <- (I + W')^-1 x.
  __device__ void substitute_back(const Matrix<Real>& x) const {
    for (int j = thread_index(); j < width_; j += kThreads) {
      for (int i = count_ - 2; i >= 0; --i) {
        Real sum = x(i, j);
        for (int p = i + 1; p < count_; ++p) sum -= x_.erasing(p, i) * x(p, j);
        x(i, j) = sum;
      }
    }
  }

  /// W.r.t. U, then w.r.t. what it is solved from, which are those w.r.t. values.
  __device__ void backward_of_updates(bool continues) {
    for_products<Real>(
        count_, width_, continues ? features_ : 0, [&](int i, int p) { return key_end(i, p); },
        [&](int p, int j) { return x_.by_state(p, j); },
        [&](int i, int j, Real sum) { x_.by_updates(i, j) = sum; });
    for_products<Real>(
        count_, width_, count_, [&](int i, int p) { return x_.scores(p, i); },
        [&](int p, int j) { return x_.outputs(p, j); },
        [&](int i, int j, Real sum) { x_.by_updates(i, j) += sum; });
    __syncthreads();
    if constexpr (kErases) {
      substitute_back(x_.by_updates);
      __syncthreads();
    }
  }

  /// Of A and W.
  __device__ void backward_of_scores() {
    const auto update = [&](int p, int j) { return x_.updates(j, p); };
    for_products<Real>(
        count_, count_, width_, [&](int i, int p) { return x_.outputs(i, p); }, update,
        [&](int i, int j, Real sum) {
          x_.by_scores(i, j) = j <= i ? sum * between(i, j) : Real{0};
        });
    if constexpr (kErases) {
      for_products<Real>(
          count_, count_, width_, [&](int i, int p) { return x_.by_updates(i, p); }, update,
          [&](int i, int j, Real sum) {
            x_.by_erasing(i, j) = j < i ? -sum * between(i, j) : Real{0};
          });
    }
  }

  /// Of queries, by A and by what they read of the state; or of what is erased, by W.
  __device__ void backward_of_queries(const Matrix<Real>& by_within, const Matrix<Real>& by_read,
                                      Real sign, const Matrix<Real>& by) const {
    for_products<Real>(
        count_, features_, count_, [&](int i, int j) { return by_within(i, j); },
        [&](int j, int p) { return key_within(j, p); },
        [&](int i, int p, Real sum) { by(i, p) = sum * within(x_.from_middle, i, p); });
    if (number_ == 0) return;
    for_products<Real>(
        count_, features_, width_, [&](int i, int j) { return by_read(i, j); },
        [&](int j, int p) { return x_.state(p, j); },
        [&](int i, int p, Real sum) { by(i, p) += sign * sum * factor(x_.from_start, i, p); });
  }

  __device__ void backward_of_keys(bool continues) {
    for_products<Real>(
        count_, features_, count_, [&](int i, int j) { return x_.by_scores(j, i); },
        [&](int j, int p) { return query_within(j, p); },
        [&](int i, int p, Real sum) { x_.by_keys(i, p) = sum * within(x_.to_middle, i, p); });
    if constexpr (kErases) {
      for_products<Real>(
          count_, features_, count_, [&](int i, int j) { return x_.by_erasing(j, i); },
          [&](int j, int p) { return erased_within(j, p); },
          [&](int i, int p, Real sum) { x_.by_keys(i, p) += sum * within(x_.to_middle, i, p); });
    }
    if (!continues) return;
    for_products<Real>(
        count_, features_, width_, [&](int i, int j) { return x_.updates(i, j); },
        [&](int j, int p) { return x_.by_state(p, j); },
        [&](int i, int p, Real sum) {
          x_.to_keys(i, p) = sum * factor(x_.to_end, i, p);
          x_.by_keys(i, p) += x_.to_keys(i, p);
        });
  }

  /// What token i's L_i has a gradient of, but for the sums behind the chunk.
  [[nodiscard]] __device__ Real by_sum(int i, int p) const {
    Real sum = x_.queries(i, p) * x_.by_queries(i, p) - x_.keys(i, p) * x_.by_keys(i, p);
    if constexpr (kErases) sum += x_.erased(i, p) * x_.by_erased(i, p);
    return sum;
  }

  __device__ void backward_of_decays(bool continues, const HeadVectors<Real>& by) const {
    for (int p = thread_index(); p < features_; p += kThreads) {
      Real sum = 0;
      for (int j = 0; continues && number_ > 0 && j < width_; ++j) {
        sum += x_.state(p, j) * x_.by_state(p, j);
      }
      sum *= over(p);
      for (int i = 0; continues && i < count_; ++i) sum += x_.to_keys(i, p) * x_.keys(i, p);
      if constexpr (kDecays == Decays::channels) {
        for (int i = count_ - 1; i >= 0; --i) {
          sum += by_sum(i, p);
          row_of(by, i)[p] = sum;
        }
      } else {
        x_.behind(0, p) = sum;
      }
    }
    if constexpr (kDecays == Decays::whole) {
      __syncthreads();
      if (warp_index() > 0) return;
      Real sum = 0;
      for (int p = lane_index(); p < features_; p += kWarp) sum += x_.behind(0, p);
      sum = warp_sum(sum);
      for (int i = count_ - 1; i >= 0; --i) {
        Real own = 0;
        for (int p = lane_index(); p < features_; p += kWarp) own += by_sum(i, p);
        sum += warp_sum(own);
        if (lane_index() == 0) *row_of(by, i) = sum;
      }
    }
  }

  /// W.r.t. the state before the chunk, in place of that behind it.
  __device__ void backward_of_state(bool continues) {
    for_products<Real>(
        features_, width_, count_, [&](int p, int i) { return query_start(i, p); },
        [&](int i, int j) { return x_.outputs(i, j); },
        [&](int p, int j, Real sum) {
          x_.by_state(p, j) = continues ? sum + over(p) * x_.by_state(p, j) : sum;
        });
    if constexpr (kErases) {
      for_products<Real>(
          features_, width_, count_, [&](int p, int i) { return erased_start(i, p); },
          [&](int i, int j) { return x_.by_updates(i, j); },
          [&](int p, int j, Real sum) { x_.by_state(p, j) -= sum; });
    }
  }

  const Recurrence<Real>& of_;
  Arrays<Real> x_;
  int features_, width_;
  int number_ = 0, first_ = 0, count_ = 0;
};

template <class Real, Decays kDecays, bool kErases>
__global__ void forward_kernel(Recurrence<Real> of, HeadVectors<Real> outputs) {
  Chunk<Real, kDecays, kErases> chunk(of, /*backward=*/false);
  chunk.clear_state();
  for (int i = 0; i < static_cast<int>(of.shape.chunks()); ++i) {
    chunk.begin(i);
    chunk.forward(outputs);
  }
}

template <class Real, Decays kDecays, bool kErases>
__global__ void backward_kernel(Recurrence<Real> of, RecurrenceGradients<Real> gradients) {
  Chunk<Real, kDecays, kErases> chunk(of, /*backward=*/true);
  for (int i = static_cast<int>(of.shape.chunks()) - 1; i >= 0; --i) {
    chunk.begin(i);
    chunk.backward(gradients);
  }
}

template <Decays kValue>
struct DecaysOf {
  static constexpr Decays value = kValue;
};

/// Calls run(decays, erases), constants.
template <class Real, class Run>
void with_form(const Recurrence<Real>& of, const Run& run) {
  const auto with_decays = [&](auto decays) {
    of.erased.data == nullptr ? run(decays, std::false_type()) : run(decays, std::true_type());
  };
  if (of.log_decays.data == nullptr) {
    with_decays(DecaysOf<Decays::none>());
  } else if (of.shape.by_channel) {
    with_decays(DecaysOf<Decays::channels>());
  } else {
    with_decays(DecaysOf<Decays::whole>());
  }
}

template <class Real>
Grid grid_of(const Recurrence<Real>& of) {
  return {of.heads, of.sequences, of.models};
}

}  // namespace

template <class Real>
bool recurrence_fits(const kernels::RecurrenceShape& shape) {
  return Arrays<Real>(shape, nullptr, /*backward=*/true).bytes() <= most_shared_bytes();
}

template <class Real>
void recurrence(const Recurrence<Real>& of, HeadVectors<Real> outputs, Stream stream) {
  with_form(of, [&](auto decays, auto erases) {
    launch("recurrence", forward_kernel<Real, decltype(decays)::value, decltype(erases)::value>,
           grid_of(of), Arrays<Real>(of.shape, nullptr, /*backward=*/false).bytes(), stream, of,
           outputs);
  });
}

template <class Real>
void recurrence_backward(const Recurrence<Real>& of, const RecurrenceGradients<Real>& gradients,
                         Stream stream) {
  with_form(of, [&](auto decays, auto erases) {
    launch("recurrence_backward",
           backward_kernel<Real, decltype(decays)::value, decltype(erases)::value>, grid_of(of),
           Arrays<Real>(of.shape, nullptr, /*backward=*/true).bytes(), stream, of, gradients);
  });
}

#define NAS_RECURRENCE(Real)                                                                   \
  template bool recurrence_fits<Real>(const kernels::RecurrenceShape&);                        \
  template void recurrence(const Recurrence<Real>&, HeadVectors<Real>, Stream);                \
  template void recurrence_backward(const Recurrence<Real>&, const RecurrenceGradients<Real>&, \
                                    Stream);
NAS_RECURRENCE(float)
NAS_RECURRENCE(double)
#undef NAS_RECURRENCE

}  // namespace nas::cuda
