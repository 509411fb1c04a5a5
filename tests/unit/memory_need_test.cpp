#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/host.hpp"
#include "data_fixture.hpp"
#include "genotype/architecture.hpp"
#include "unit/message_of.hpp"
#include "unit/paper_components.hpp"

namespace nas::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
  Architecture small;
  small.layers = 2;
  small.width = 4;
  small.heads = 1;
  small.context = 8;
  small.vocabulary = 10;
  small.feed_forward = 3;
  // 2 (4 + 6) 16 + 18 * 4 = 392 parameters; 2 * 5 * 8 * 4 * 7 values of tokens
  EXPECT_EQ(least_training_bytes(small, 5), 16.0 * 392 + 4.0 * 2240);
  small.stack = {parse_mechanism("dot|softmax|none|fixed|bias|0", Semantics::published)};
  // It must never exceed what is counted.
  EXPECT_LE(least_training_bytes(small, 0), 16.0 * static_cast<double>(num_parameters(small)));
}

TEST(MemoryNeed, OfATrainingRunIsRightWhereIntegersWouldOverflow) {
  Architecture large;
  large.layers = 1'000'000;
  large.width = 1'048'576;
  EXPECT_NEAR(least_training_bytes(large, 32) / 2.1e20, 1.0, 0.05);
  EXPECT_GT(least_training_bytes({}, 1'000'000'000), 1e15);
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
