// One word for each thing: what is shown is the name that is stored; other words are read.

#include "cli/describe.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/component.hpp"
#include "genotype/mechanism.hpp"
#include "genotype/slots.hpp"
#include "prelude.hpp"
#include "unit/paper_components.hpp"

namespace nas {
namespace {

class Vocabulary : public ::testing::TestWithParam<Semantics> {
 protected:
  /// What people see of the paper's model with another option of one gene.
  static std::string shown(const std::string& gene, const std::string& option) {
    std::string name;
    for (const auto* slot : paper_slots()) {
      const bool own = slot->name == gene;
      const auto standard = slot->is_component() ? paper_labels(slot->name).front()
                            : slot->is_number()  ? "0"
                                                 : slot->choices.front();
      name += (name.empty() ? "" : "|") + (own ? option : standard);
    }
    Architecture frame{.semantics = GetParam(), .layers = 2, .width = 16, .heads = 2};
    frame.context = 16;
    frame.vocabulary = 10;
    return label(parse_unchecked(name, frame));
  }
};

TEST_P(Vocabulary, ShowsEachComponentByItsKey) {
  for (const auto* slot : paper_slots()) {
    if (!slot->is_component()) continue;
    std::map<std::string, int> times;
    for (const auto& key : components().keys(slot->name)) {
      // As published, some keys are words for another component, which is shown then.
      const auto meant = component_key(GetParam(), slot->name, key);
      const auto text = "|" + shown(slot->name, key) + "|";
      EXPECT_THAT(text, HasSubstr("|" + meant + "|"));
      if (meant == key) ++times[text];
    }
    for (const auto& [text, count] : times) EXPECT_EQ(count, 1) << text;
  }
}

TEST_P(Vocabulary, ReadsThePapersWordsAndShowsThemNot) {
  for (const auto* slot : paper_slots()) {
    if (!slot->is_component()) continue;
    for (const auto& word : paper_labels(slot->name)) {
      const auto key = component_key(GetParam(), slot->name, word);
      const auto text = shown(slot->name, word);
      EXPECT_THAT("|" + text + "|", HasSubstr("|" + key + "|"));
      if (word == key) continue;
      EXPECT_THAT("|" + text + "|", Not(HasSubstr("|" + word + "|")));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Semantics, Vocabulary,
                         ::testing::Values(Semantics::corrected, Semantics::published),
                         [](const auto& own) { return std::string(to_string(own.param)); });

TEST(VocabularyOfLists, NamesEachComponentOnce) {
  const auto text = "\n" + list_text("components");
  for (const auto* slot : paper_slots()) {
    if (!slot->is_component()) continue;
    std::set<std::string> keys;
    for (const auto& key : components().keys(slot->name)) {
      EXPECT_TRUE(keys.insert(key).second);
      EXPECT_THAT(text, ::testing::ContainsRegex("\n  " + slot->name + " +" + key + " "));
    }
    for (const auto& word : paper_labels(slot->name)) {
      if (keys.contains(word)) continue;  // it is its own key
      EXPECT_THAT(text,
                  testing::Not(testing::ContainsRegex("\n  " + slot->name + " +" + word + " ")));
      EXPECT_THAT(text, HasSubstr("(" + word + ")"));
    }
  }
}

}  // namespace
}  // namespace nas
