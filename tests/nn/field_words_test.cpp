#include "genotype/field_words.hpp"

#include <iterator>
#include <set>

#include "core/error.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/shorthand.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

const Architecture kFrame{};  // 2 layers of 4 heads

/// What a word is told as a mechanism; empty: it is one.
std::string told(const std::string& word) {
  try {
    require_built(canonical(named_model(word, kFrame)));
    return {};
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(FieldWords, WhatIsToBeWrittenCanBeBuilt) {
  for (const auto& [word, write, what] : field_words()) {
    EXPECT_EQ(write.empty() ? "" : told(write), "") << word;
    EXPECT_FALSE(what.empty() || what.find('|') != std::string::npos) << word;
  }
}

TEST(FieldWords, NoneIsKnownOtherwiseOrTwice) {
  std::set<std::string> words;
  for (const auto& [word, write, what] : field_words()) {
    EXPECT_TRUE(words.insert(word).second) << word;
    EXPECT_THAT(told(word), HasSubstr(": nothing is called '" + word + "'; " + field_word(word)));
  }
  EXPECT_EQ(field_word("Diff-Transformer").substr(0, 51),
            "Diff-Transformer is written maps=difference: the di");
  EXPECT_EQ(field_word("sparsemax"), "");
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

TEST(FieldWords, WhatResearchersTypeLeadsSomewhere) {
  // Mechanisms, or options that are told where they belong.
  for (const auto& word :
       words("mqa swa retnet gla gdn gdn2 deltanet kda alibi rope sink performer linear "
             "bigbird stick_breaking hedgehog sparsemax softmax1 value_embedding smear favor "
             "t5 swiglu relu2 ssd lsh top_k")) {
    EXPECT_THAT(told(word), ::testing::AnyOf("", HasSubstr("it belongs to mixer"))) << word;
  }
  for (const auto& word :
       words("mla gqa mamba2 mamba flash differential diff_transformer gated yoco nsa moba "
             "rwkv xlstm hyena kimi sliding nope yarn qk_norm softpick talking_heads "
             "reformer longformer forgetting mesa titans ttt log_linear based lolcats jamba "
             "zamba hymba samba griffin local ssm s4 cross_layer gemma llama qwen3_next "
             "gpt-oss Flash-Attention")) {
    EXPECT_THAT(told(word),
                ::testing::AnyOf(HasSubstr(" is written "), HasSubstr(" is not here: ")))
        << word;
  }
}

}  // namespace
}  // namespace nas
