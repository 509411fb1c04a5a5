#include "core/error.hpp"
#include "core/host.hpp"
#include "data_fixture.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/costs.hpp"
#include "genotype/mechanism_name.hpp"
#include "genotype/slots.hpp"
#include "prelude.hpp"
#include "unit/paper_components.hpp"

namespace nas::testing {
namespace {

TEST(MemoryNeed, WhatFitsIsAllowedAndWhatDoesNotIsRefusedWithBothFigures) {
  const double largest = largest_memory();
  EXPECT_GT(largest, 1e8);
  EXPECT_NO_THROW(require_memory("this", largest));
  EXPECT_THAT(message_of<InputError>([&] { require_memory("model.width = 9", 2.0 * largest); }),
              AllOf(HasSubstr("model.width = 9: at least "),
                    HasSubstr("iB of memory, must be at most "), HasSubstr("all that there is")));
  EXPECT_THROW(require_memory("this", 1e300), InputError);
}

TEST(MemoryNeed, OfATrainingRunFollowsFromItsSizes) {
  Architecture small{
      .layers = 2, .width = 4, .heads = 1, .context = 8, .vocabulary = 10, .feed_forward = 3};
  // 2 (4 + 6) 16 + 18 * 4 = 392 parameters; 2 * 5 * 8 * 4 * 7 values of tokens
  EXPECT_EQ(least_training_bytes(small, 5), 16.0 * 392 + 4.0 * 2240);
  small.stack = {parse_mechanism("dot|softmax|none|fixed|bias|0", Semantics::published)};
  // It must never exceed what is counted.
  EXPECT_LE(least_training_bytes(small, 0), 16.0 * static_cast<double>(num_parameters(small)));
}

TEST(MemoryNeed, OfATrainingRunIsRightWhereIntegersWouldOverflow) {
  Architecture large{.layers = 1'000'000, .width = 1'048'576};
  EXPECT_NEAR(least_training_bytes(large, 32) / 2.1e20, 1.0, 0.05);
  EXPECT_GT(least_training_bytes({}, 1'000'000'000), 1e15);
}

/// Of the space of these genes besides the paper's.
std::string largest_of(const std::vector<Gene>& wide, std::int64_t most_parameters) {
  auto genes = paper_space().genes();
  genes.insert(genes.end(), wide.begin(), wide.end());
  const Architecture frame{.vocabulary = 100};
  const auto largest = largest_candidate(
      SearchSpace(std::move(genes)), frame,
      [](const Architecture& given) { return least_training_bytes(given, 32); },
      [&](const Architecture& given) { return num_parameters(given) <= most_parameters; });
  return largest ? to_string(*largest) : "none";
}

TEST(MemoryNeed, OfASpaceIsThatOfItsLargestCandidate) {
  constexpr std::int64_t kMany = 1'000'000'000;
  // No model has more heads of keys than heads: the first options of all genes are no candidate.
  const std::vector<Gene> wide{{.name = "heads", .options = {"2", "4"}},
                               {.name = "kv_heads", .options = {"4", "1"}},
                               {.name = "ffn", .options = {"none", "gelu"}},
                               {.name = "ratio", .options = {"2", "8", "4"}}};
  EXPECT_EQ(largest_of(wide, kMany), "2*attn{dropout=0}+gelu{ratio=8}");
  EXPECT_EQ(largest_of(wide, 500'000), "dot|softmax|none|fixed|bias|0");
  EXPECT_EQ(largest_of(wide, 1000), "none");
  EXPECT_EQ(largest_of({{.name = "slot0.ratio", .options = {"1", "2"}},
                        {.name = "slot1.ratio", .options = {"1", "3"}}},
                       kMany),
            "attn{dropout=0}+gelu{ratio=2}/attn{dropout=0}+gelu{ratio=3}");
  EXPECT_TRUE(largest_of({}, kMany).starts_with("dot|softmax|"));
}

TEST(MemoryNeed, ExamplesThatDoNotFitAreRefusedBeforeTheyAreDrawn) {
  const std::int64_t many = 1'000'000'000'000;
  EXPECT_THAT(message_of<InputError>([&] {
                (void)make_corpus("mqar", 64, {{"train_examples", many}});
              }),
              AllOf(HasSubstr("mqar: data.train_examples = 1000000000000"),
                    HasSubstr("at least 465.7 TiB of memory")));
}

}  // namespace
}  // namespace nas::testing
