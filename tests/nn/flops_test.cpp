#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "genotype/architecture.hpp"
#include "genotype/costs.hpp"
#include "genotype/mechanism_name.hpp"
#include "genotype/slots.hpp"
#include "lone_layer.hpp"
#include "mechanisms.hpp"
#include "nn/transformer.hpp"

namespace nas::nn {
namespace {

/// Floating-point operations that were executed.
struct Executed {
  double products = 0.0;     ///< matrix products, a multiply-add counts 2
  double elementwise = 0.0;  ///< everything else
  std::set<std::string> unknown{};

  [[nodiscard]] double total() const { return products + elementwise; }
};

/// Counts the floating-point operations that LibTorch executes on the calling thread while it
/// lives, from the shapes of the inputs of the operators that the dispatcher calls.
///
/// An operator that is counted hides those that it calls. Not operations: copies, masks, views,
/// and comparisons (maximum, sorting, selecting), except relu, which is an elementary function.
class FlopCounter {
 public:
  FlopCounter()
      : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(begin, end)
                                               .needsInputs(true)
                                               .scopes({at::RecordScope::FUNCTION}))) {
    current = &executed_;
    depth = 0;
  }
  ~FlopCounter() {
    at::removeCallback(handle_);
    current = nullptr;
  }
  FlopCounter(const FlopCounter&) = delete;
  FlopCounter& operator=(const FlopCounter&) = delete;

  [[nodiscard]] const Executed& executed() const { return executed_; }

 private:
  struct Counted final : at::ObserverContext {};
  using Tensors = std::vector<at::Tensor>;

  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
    Tensors tensors;
    for (const auto& input : function.inputs()) {
      if (input.isTensor() && input.toTensor().defined()) tensors.push_back(input.toTensor());
    }
    if (!count(function.name(), tensors)) return nullptr;
    ++depth;
    return std::make_unique<Counted>();
  }

  static void end(const at::RecordFunction& /*function*/, at::ObserverContext* context) {
    if (context != nullptr) --depth;
  }

  /// @return whether the operator is a counted one.
  static bool count(const std::string& name, const Tensors& tensors) {
    static const std::set<std::string> kNone{
        // Composites, whose parts are seen.
        "aten::linear", "aten::matmul", "aten::softmax", "aten::layer_norm", "aten::log_sigmoid",
        "aten::constant_pad_nd",
        // Views.
        "aten::t", "aten::transpose", "aten::view", "aten::_unsafe_view", "aten::reshape",
        "aten::expand", "aten::expand_as", "aten::slice", "aten::unsqueeze", "aten::squeeze",
        "aten::squeeze_", "aten::chunk", "aten::split", "aten::narrow", "aten::as_strided",
        "aten::as_strided_", "aten::alias", "aten::detach", "aten::detach_", "detach",
        "aten::_reshape_alias", "aten::flatten", "aten::unflatten", "aten::select",
        "aten::contiguous", "detach_",
        // Copies and new tensors.
        "aten::copy_", "aten::clone", "aten::flip", "aten::to", "aten::_to_copy", "aten::empty",
        "aten::empty_like", "aten::empty_strided", "aten::zeros", "aten::zeros_like", "aten::zero_",
        "aten::ones", "aten::full", "aten::full_like", "aten::fill_", "aten::arange", "aten::cat",
        "aten::_cat", "aten::gather", "aten::scatter_", "aten::embedding", "aten::index_select",
        "aten::resize_", "aten::resolve_conj", "aten::resolve_neg", "aten::scalar_tensor",
        "aten::lift_fresh", "aten::new_empty", "aten::result_type", "aten::is_nonzero",
        "aten::item", "aten::_local_scalar_dense",
        // Masks and comparisons.
        "aten::masked_fill", "aten::masked_fill_", "aten::where", "aten::logical_not",
        "aten::logical_not_", "aten::logical_and_", "aten::logical_and", "aten::tril", "aten::lt",
        "aten::le", "aten::gt", "aten::ge", "aten::eq", "aten::amax", "aten::max", "aten::sort",
        "aten::topk", "aten::clamp_min", "aten::clamp_min_", "aten::clamp"};
    static const std::set<std::string> kBinary{"aten::add",  "aten::add_", "aten::sub",
                                               "aten::sub_", "aten::mul",  "aten::mul_",
                                               "aten::div",  "aten::div_", "aten::rsub"};
    // Operations for each element of the input; the fused ones by their steps: softmax subtracts,
    // exponentiates, sums and divides; LayerNorm has a mean (1), a variance (3), a normalisation
    // (2) and a scale and shift (2).
    static const std::map<std::string, double> kEach{
        {"aten::sum", 1},        {"aten::mean", 1},
        {"aten::cumsum", 1},     {"aten::exp", 1},
        {"aten::tanh", 1},       {"aten::tanh_", 1},
        {"aten::sigmoid", 1},    {"aten::log_sigmoid_forward", 1},
        {"aten::relu", 1},       {"aten::sqrt", 1},
        {"aten::square", 1},     {"aten::pow", 1},
        {"aten::abs", 1},        {"aten::neg", 1},
        {"aten::reciprocal", 1}, {"aten::log", 1},
        {"aten::gelu", 1},       {"aten::silu", 2},
        {"aten::norm", 2},       {"aten::linalg_vector_norm", 2},
        {"aten::_softmax", 4},   {"aten::native_layer_norm", 8}};
    if (current == nullptr || depth > 0 || kNone.contains(name)) return false;
    const auto m = [&](std::size_t i, std::int64_t dimension) {
      return static_cast<double>(tensors.at(i).size(dimension));
    };
    const auto elements = [&](std::size_t i) { return static_cast<double>(tensors.at(i).numel()); };
    if (name == "aten::mm" || name == "aten::bmm" || name == "aten::mv") {
      // (.., rows, inner) x (.., inner[, columns]).
      current->products += 2.0 * elements(0) * (name == "aten::mv" ? 1.0 : m(1, -1));
    } else if (name == "aten::addmm" || name == "aten::baddbmm") {
      current->products += 2.0 * elements(1) * m(2, -1);
      current->elementwise += elements(1) / m(1, -1) * m(2, -1);
    } else if (kBinary.contains(name)) {
      if (!tensors.at(0).is_floating_point() && !tensors.back().is_floating_point()) return true;
      auto shape = tensors[0].sizes().vec();
      if (tensors.size() > 1) shape = at::infer_size(shape, tensors[1].sizes());
      current->elementwise += static_cast<double>(c10::multiply_integers(shape));
    } else if (const auto each = kEach.find(name); each != kEach.end()) {
      if (tensors.at(0).is_floating_point()) current->elementwise += each->second * elements(0);
    } else {
      current->unknown.insert(name);
      return false;
    }
    return true;
  }

  static thread_local Executed* current;
  static thread_local int depth;

  Executed executed_;
  at::CallbackHandle handle_;
};

thread_local Executed* FlopCounter::current = nullptr;
thread_local int FlopCounter::depth = 0;

Executed run_attention(const Architecture& architecture) {
  const at::NoGradGuard no_grad;
  std::vector<Parameter> parameters;
  test::LoneLayer layer(architecture.stack.front(), attention_shape(architecture),
                        architecture.semantics, ParameterScope(parameters));
  initialise(parameters, {{1, 0}});
  at::manual_seed(1);
  const auto x = at::randn({1, architecture.context, architecture.width});
  const auto residual = at::randn_like(x);
  (void)layer.forward(x, residual, Pass{}, 0);  // the mask of visible keys is made once
  const FlopCounter counter;
  (void)layer.forward(x, residual, Pass{}, 0);
  return counter.executed();
}

Executed run_model(const Architecture& architecture) {
  const at::NoGradGuard no_grad;
  Transformer model(architecture);
  model.initialise(1, 0);
  const auto tokens = at::arange(architecture.context, at::TensorOptions(at::kLong))
                          .remainder(architecture.vocabulary)
                          .unsqueeze(0);
  (void)model.logits(tokens, Pass{});
  const FlopCounter counter;
  (void)model.logits(tokens, Pass{});
  return counter.executed();
}

double real(std::int64_t value) { return static_cast<double>(value); }

/// Matrix products of one layer's component, a multiply-add counts 2; nothing for a component that
/// this table does not know, whose total is checked all the same.
std::optional<double> products_of(std::string_view gene, const std::string& key,
                                  const AttentionShape& shape) {
  const double tokens = real(shape.context);
  const double width = real(shape.width);
  const double scores = 2 * tokens * tokens * width;
  const double heads_projected = 2 * tokens * width * real(shape.head_width());
  const std::map<std::string, double> similarity{{"dot", scores},
                                                 {"silu_dot", scores},
                                                 {"cosine", scores},
                                                 {"l2", scores},
                                                 {"bilinear", heads_projected + scores},
                                                 {"additive", 2 * heads_projected + scores}};
  const double gate = 2 * tokens * width * width;
  const std::map<std::string, double> gating{
      {"none", 0.0},
      {"input_gate", gate},
      {"output_gate", gate},
      {"elementwise_gate", gate},
      {"headwise_gate", 2 * tokens * width * real(shape.heads)},
      {"highway", gate},
      {"normed_highway", gate}};
  const std::map<std::string, double> temperature{
      {"fixed", 0.0},
      {"sqrt_d", 0.0},
      {"log_length", 0.0},
      {"learned", 0.0},
      {"per_query", 2 * tokens * width * real(shape.heads)},
      {"shifted_abs", 0.0},
      {"sequence_mean", 2 * width}};
  if (gene == "normalization") return 0.0;
  const auto& table = gene == "similarity" ? similarity : gene == "gating" ? gating : temperature;
  const auto found = table.find(key);
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

/// Matrix products of one attention layer: projections, weights times values, components.
std::optional<double> attention_products(const Architecture& architecture) {
  const double tokens = real(architecture.context);
  const double width = real(architecture.width);
  double products = 8 * tokens * width * width + 2 * tokens * tokens * width;
  for (const auto& gene : component_genes()) {
    const auto added =
        products_of(gene, architecture.stack.front().word(gene), attention_shape(architecture));
    if (!added) return std::nullopt;
    products += *added;
  }
  return products;
}

/// The same of the whole model: with feed-forward and output layer.
std::optional<double> model_products(const Architecture& architecture) {
  const auto attention = attention_products(architecture);
  if (!attention) return std::nullopt;
  const double tokens = real(architecture.context);
  const double width = real(architecture.width);
  return real(architecture.layers) *
             (*attention + 4 * real(architecture.feed_forward) * tokens * width * width) +
         2 * tokens * width * real(architecture.vocabulary);
}

TEST(FlopCounter, CountsProductsAndElements) {
  const auto a = at::ones({3, 4});
  const FlopCounter counter;
  (void)a.mm(at::ones({4, 5}));
  EXPECT_EQ(counter.executed().products, 2 * 3 * 4 * 5);
  EXPECT_EQ(counter.executed().elementwise, 0);
  (void)at::linear(a, at::ones({5, 4}), at::ones({5}));
  EXPECT_EQ(counter.executed().products, 2 * 2 * 3 * 4 * 5);
  EXPECT_EQ(counter.executed().elementwise, 3 * 5);
  (void)at::ones({2, 3, 4}).bmm(at::ones({2, 4, 6}));
  (void)at::ones({2, 3, 4}).matmul(at::ones({4}));
  EXPECT_EQ(counter.executed().products, 240 + 2 * 2 * 3 * 4 * 6 + 2 * 2 * 3 * 4);
  const double before = counter.executed().elementwise;
  (void)(at::ones({2, 1, 4}) + at::ones({3, 1}));  // broadcast to (2, 3, 4)
  (void)a.softmax(-1);
  (void)a.mean(-1);                                                   // its sum counts once
  (void)(at::arange(3, at::kLong) + at::arange(3, at::kLong)).sum();  // integers
  (void)a.t().contiguous().masked_fill(a.t() > 0, 1.0);
  EXPECT_EQ(counter.executed().elementwise - before, 24 + 4 * 12 + 12);
  EXPECT_TRUE(counter.executed().unknown.empty());
  (void)a.erfinv();
  EXPECT_EQ(counter.executed().unknown, std::set<std::string>{"aten::erfinv"});
}

/// What is executed beyond a formula that counts what a kernel needs: distances from |q|^2 as well,
/// which rows with a sum do not need; no exponential and sum apart in a sigmoid, which count 2.
double known_difference(const Mechanism& mechanism, const AttentionShape& shape) {
  const double scores = real(shape.heads * shape.context * shape.context);
  return (mechanism.word("similarity") == "l2" ? scores + 2 * real(shape.context * shape.width)
                                               : 0.0) -
         (mechanism.word("normalization") == "sigmoid_attn" ? 2 * scores : 0.0);
}

// Left out of the formula of an attention layer are additions of biases, known exactly, and
// operations on one number for each query and head (sums plus 1e-8, thresholds, temperatures) or
// channel (the one row of sequence_mean). The sizes are such that the tolerance for these is less
// than one operation a score (H T^2) and than one a channel of a token (T D): a component's formula
// is right to the operation. One block of rows holds all of the additive similarity.
TEST(AttentionFlops, AreThoseExecutedForAllPairsOfOptions) {
  Architecture architecture{.layers = 1, .width = 64, .context = 32};
  const auto tokens = real(architecture.context);
  const auto width = real(architecture.width);
  const auto heads = real(architecture.heads);
  const double tolerance = 10 * heads * tokens + 2 * tokens + 4 * width;
  ASSERT_LT(tolerance, heads * tokens * tokens);
  ASSERT_LT(tolerance, tokens * width);
  int exact = 0;
  for (const auto& mechanism : test::fifth_of_mechanisms()) {
    architecture.stack = {mechanism};
    const auto executed = run_attention(architecture);
    EXPECT_THAT(executed.unknown, testing::IsEmpty()) << to_string(mechanism);
    if (const auto products = attention_products(architecture)) {
      EXPECT_EQ(executed.products, *products) << to_string(mechanism);
      ++exact;
    }
    const double biases =
        (4 + (mechanism.word("similarity") == "additive" ? 1 : 0)) * tokens * width;
    const double left_out = executed.total() - biases - attention_flops(architecture) -
                            known_difference(mechanism, attention_shape(architecture));
    EXPECT_GE(left_out, 0.0) << to_string(mechanism);
    EXPECT_LE(left_out, tolerance) << to_string(mechanism);
  }
  EXPECT_GE(exact, 240);
}

// What the formula of the model leaves out at the paper's sizes: four biases in attention and five
// in the feed-forward layer (its first is four times as wide), two LayerNorms of 8 operations, GELU
// on four times the width, two additions to the stream: 31 N L D, and the final LayerNorm and the
// positions, 9 L D; 1.2 of 445 MFLOP.
TEST(ForwardFlops, AreThoseExecutedByThePapersModel) {
  Architecture architecture;
  for (const auto& mechanism : test::single_options(Semantics::corrected)) {
    if (mechanism.word("similarity") == "additive") continue;
    architecture.stack = {mechanism};
    const auto executed = run_model(architecture);
    EXPECT_THAT(executed.unknown, testing::IsEmpty()) << to_string(mechanism);
    if (const auto products = model_products(architecture)) {
      EXPECT_EQ(executed.products, *products) << to_string(mechanism);
    }
    const double more = executed.total() / forward_flops(architecture) - 1;
    EXPECT_GE(more, 0.0) << to_string(mechanism);
    EXPECT_LE(more, 0.0035) << to_string(mechanism);
  }
}

// The formula counts all pairs of tokens, for every similarity. The additive one leaves out keys
// behind the last query of a block of rows: between none and, with one row a block, nearly half.
TEST(AttentionFlops, OfTheAdditiveSimilarityCountAllPairs) {
  Architecture architecture{.stack = {vanilla_mechanism(Semantics::corrected)}, .layers = 1};
  architecture.stack.front().set("similarity", "additive");
  for (const auto context : {32, 128, 512}) {
    architecture.context = context;
    const auto executed = run_attention(architecture);
    EXPECT_THAT(executed.unknown, testing::IsEmpty());
    const double tokens = context;
    const double hidden = tokens * (tokens - 1) / 2 * real(architecture.width);
    EXPECT_LE(executed.products, *attention_products(architecture));
    EXPECT_GE(executed.products, *attention_products(architecture) - 2 * hidden);
    EXPECT_GE(executed.total(), attention_flops(architecture) - 4 * hidden);
    EXPECT_LE(executed.total(), 1.01 * attention_flops(architecture));
  }
}

}  // namespace
}  // namespace nas::nn
