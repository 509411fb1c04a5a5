#include "cli/table_commands.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iostream>
#include <map>
#include <numeric>
#include <optional>
#include <regex>
#include <set>

#include "cli/program.hpp"
#include "cli/table_audit.hpp"
#include "cli/words.hpp"
#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/terminal.hpp"
#include "data/drawn_corpus.hpp"
#include "data/text.hpp"
#include "report/text.hpp"
#include "statistics/agreement.hpp"
#include "statistics/statistics.hpp"
#include "store/record_json.hpp"
#include "table/answer.hpp"
#include "table/named.hpp"
#include "table/pack.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr std::size_t kMostListed = 20;

/// "WHAT:" and the items below it, the first ones of many.
void print_list(const std::string& what, const Words& items) {
  if (items.empty()) return;
  std::cout << what << ":\n";
  for (std::size_t i = 0; i < std::min(items.size(), kMostListed); ++i) {
    std::cout << "  " << printable(items[i]) << '\n';
  }
  if (items.size() > kMostListed) {
    std::cout << "  and " << items.size() - kMostListed << " more\n";
  }
}

/// How many cells there are of each mechanism: "320 mechanisms x 5 replicates, 30 of them up to 20".
std::string size_text(const Table& table) {
  auto text = counted(table.num_mechanisms(), "mechanism") + " x " +
              counted(table.num_replicates(), "replicate");
  if (table.most_replicates() == table.num_replicates()) return text;
  std::int64_t raced = 0;
  for (std::int64_t i = 0; i < table.num_mechanisms(); ++i) {
    if (std::ssize(recorded_replicates(table, i)) > table.num_replicates()) ++raced;
  }
  return text + ", " + std::to_string(raced) + " of them up to " +
         std::to_string(table.most_replicates());
}

std::int64_t missing_cells(const Table& table) {
  std::int64_t missing = 0;
  for (std::int64_t i = 0; i < table.num_mechanisms(); ++i) {
    for (std::int64_t n = 0; n < table.num_replicates(); ++n) missing += table.has(i, n) ? 0 : 1;
  }
  return missing;
}

/// The fields of a mechanism's name of six.
Words fields_of(const std::string& name) {
  Words fields(1);
  for (const char letter : name) {
    if (letter == '|') {
      fields.emplace_back();
    } else {
      fields.back() += letter;
    }
  }
  return fields;
}

/// A field of a name that has no effect where another one is of `options`.
struct Voiding {
  std::size_t field = 0;
  std::size_t by = 0;
  std::set<std::string> options;
};

/// By the schema of a table's record.
std::vector<Voiding> voidings_of(const nlohmann::json& genes) {
  std::vector<Voiding> rules;
  for (std::size_t field = 0; field < genes.size(); ++field) {
    const auto voided_by = genes[field].value("voided_by", nlohmann::json::object());
    for (std::size_t by = 0; by < genes.size(); ++by) {
      const auto options = voided_by.find(genes[by].value("name", ""));
      if (options != voided_by.end()) rules.push_back({field, by, *options});
    }
  }
  return rules;
}

/// Every combination of one option for each field.
std::vector<Words> combinations(const std::vector<std::set<std::string>>& fields) {
  std::vector<Words> all(1);
  for (const auto& options : fields) {
    std::vector<Words> longer;
    for (const auto& begun : all) {
      for (const auto& option : options) {
        longer.push_back(begun);
        longer.back().push_back(option);
      }
    }
    all = std::move(longer);
  }
  return all;
}

/// Functions that the options of a table's mechanisms make and that it has no training run of, by
/// name. A field without effect has what the vanilla transformer has. Empty without a schema.
Words missing_functions(const Table& table) {
  const auto schema = table.facts().value("schema", nlohmann::json::object());
  const auto genes = schema.value("genes", nlohmann::json::array());
  std::vector<std::set<std::string>> chosen(genes.size());
  for (std::int64_t i = 0; i < table.num_mechanisms(); ++i) {
    const auto fields = fields_of(table.mechanism(i));
    if (fields.size() != genes.size()) return {};
    for (std::size_t j = 0; j < fields.size(); ++j) chosen[j].insert(fields[j]);
  }
  const auto rules = voidings_of(genes);
  const auto vanilla = [&](std::size_t field) {
    for (const auto& option : genes[field].value("vanilla", Words{})) {
      if (chosen[field].contains(option)) return option;
    }
    return *chosen[field].begin();
  };
  std::set<std::string> missing;
  for (auto& name : combinations(chosen)) {
    for (const auto& rule : rules) {
      if (rule.options.contains(name[rule.by])) name[rule.field] = vanilla(rule.field);
    }
    auto whole = join(name, "|");
    if (!table.find(whole)) missing.insert(std::move(whole));
  }
  return {missing.begin(), missing.end()};
}

/// The record of a task's gates that a table keeps.
/// @param identity  of the table.
/// @throws InputError where the file is no such record, or one of another task.
nlohmann::json read_gates(const std::string& file, const nlohmann::json& identity) {
  if (!fs::is_regular_file(file)) {
    throw InputError("table pack: --gates " + file +
                     " is no file, must be a record of nas-data gates");
  }
  nlohmann::json record;
  try {
    record = parse_record(read_bytes(file));
  } catch (const InputError& error) {
    throw InputError("table pack: --gates " + file + ": " + error.what());
  }
  const auto schema = record.is_object() ? record.value("schema", nlohmann::json()) : record;
  if ((schema != 1 && schema != 2) || !record.value("verdict", nlohmann::json()).is_string()) {
    throw InputError("table pack: --gates " + file + ", must be a record of nas-data gates");
  }
  for (const auto* key :
       {"/corpus_hash", "/semantics", "/model", "/training/steps", "/training/batch_size",
        "/training/learning_rate", "/training/schedule", "/training/warmup_steps"}) {
    const nlohmann::json::json_pointer place(key);
    const auto own = identity.value(place, nlohmann::json());
    const auto of_record =
        record.value(nlohmann::json::json_pointer("/identity") / place, nlohmann::json());
    if (own != of_record) {
      throw InputError("table pack: --gates " + file + ": " + (key + 1) + " is " +
                       of_record.dump() + ", must be that of the runs: " + own.dump());
    }
  }
  return record;
}

int pack_command(Words words) {
  const auto output = take_option(words, "--output");
  if (!output) throw InputError("table pack: --output FILE is missing");
  const fs::path file = *output;
  const auto name = take_option(words, "--name").value_or(file.stem().string());
  const fs::path measured = take_option(words, "--measured").value_or("");
  const auto gates = take_option(words, "--gates");
  if (words.empty()) throw InputError("table pack: no store or folder of a run is given");
  for (const auto& word : words) (void)store_named(word);
  if (fs::is_regular_file(file) && !fs::is_empty(file) && !is_table(file)) {
    throw InputError("table pack: --output " + file.string() +
                     " is there and no table, must be a new file or a table, which is replaced");
  }
  auto packed = pack({words.begin(), words.end()}, name, measured);
  if (const auto licence = licence_of(packed.content.identity.value("corpus", ""));
      !licence.empty()) {
    packed.content.publication["corpus_licence"] = licence;
  }
  if (gates) packed.content.publication["gates"] = read_gates(*gates, packed.content.identity);
  write_table(packed.content, file);

  const Table table(file);
  print_list(
      "left out, since a table holds mechanisms of the paper's six genes without attention dropout "
      "only",
      packed.left_out);
  print_list("not finished yet", packed.unfinished);
  print_list("missing cells", packed.missing);
  std::cout << file.string() << ": " << size_text(table) << ", "
            << counted(static_cast<std::int64_t>(packed.content.cells.size()), "cell") << ", "
            << packed.missing.size() << " missing, "
            << human_bytes(static_cast<std::int64_t>(fs::file_size(file))) << '\n';
  return 0;
}

int verify_command(const Words& words) {
  if (words.empty()) throw InputError("table verify: no table is given");
  for (auto store = words.begin() + 1; store != words.end(); ++store) (void)store_named(*store);
  const Table table(table_named(words.front()));
  std::cout << words.front() << ": checksum " << table.sha256() << " matches\n";
  bool same = true;
  std::vector<TableCheck> checks;
  for (auto store = words.begin() + 1; store != words.end(); ++store) {
    const auto& checked = checks.emplace_back(check_table(table, *store));
    print_list(*store + " differs", checked.differences);
    same = same && checked.differences.empty();
    std::cout << *store << ": "
              << checked.cells - static_cast<std::int64_t>(checked.differences.size()) << " of "
              << counted(checked.cells, "cell") << " as recorded\n";
  }
  if (checks.empty()) return kDone;
  const auto unmet = unmet_cells(table, checks);
  print_list(counted(std::ssize(unmet), "cell") + " of the table that none of these runs has",
             unmet);
  return same ? kDone : kBadInput;
}

/// Accuracy from which on a task that has chance levels counts as solved.
constexpr double kSolved = 0.9;

/// The scores of whole training runs on the validation split.
struct Finals {
  explicit Finals(const Table& table)
      : by_mechanism(static_cast<std::size_t>(table.num_mechanisms())) {
    for (std::int64_t i = 0; i < table.num_mechanisms(); ++i) {
      for (const auto& evaluation : recorded_replicates(table, i)) {
        seconds += table.seconds(i, evaluation.replicate);
        ++cells;
        if (evaluation.status != Status::ok) {
          ++failures[std::string(to_string(evaluation.status))];
          continue;
        }
        const auto& valid = evaluation.curve.back().valid;
        Final final{valid.nll / static_cast<double>(valid.tokens), valid.accuracy(), {}};
        const auto solved =
            std::find_if(evaluation.curve.begin(), evaluation.curve.end(),
                         [](const auto& point) { return point.valid.accuracy() >= kSolved; });
        if (solved != evaluation.curve.end()) final.solved_after = solved->step;
        by_mechanism[static_cast<std::size_t>(i)].emplace(evaluation.replicate, final);
      }
    }
  }

  struct Final {
    double nll;  ///< per target
    double accuracy;
    std::optional<std::int64_t> solved_after;  ///< steps, see kSolved
  };

  /// Between the mechanisms' nll with two replicates, where both are there.
  [[nodiscard]] double rank_correlation(std::int64_t a, std::int64_t b) const {
    std::vector<double> of_a;
    std::vector<double> of_b;
    for (const auto& replicates : by_mechanism) {
      if (!replicates.contains(a) || !replicates.contains(b)) continue;
      of_a.push_back(replicates.at(a).nll);
      of_b.push_back(replicates.at(b).nll);
    }
    return nas::rank_correlation(of_a, of_b);
  }

  /// A number of every mechanism's replicates.
  [[nodiscard]] std::vector<std::vector<double>> groups(double Final::*number) const {
    std::vector<std::vector<double>> groups;
    for (const auto& replicates : by_mechanism) {
      auto& group = groups.emplace_back();
      for (const auto& [replicate, final] : replicates) group.push_back(final.*number);
    }
    return groups;
  }

  /// The nll of the mechanisms that have all of so many replicates.
  [[nodiscard]] std::vector<std::vector<double>> complete(std::int64_t replicates) const {
    auto all = groups(&Final::nll);
    std::erase_if(all, [&](const auto& group) { return std::ssize(group) != replicates; });
    return all;
  }

  std::vector<std::map<std::int64_t, Final>> by_mechanism;  ///< by replicate
  std::map<std::string, std::int64_t> failures;             ///< by status
  std::int64_t cells = 0;
  double seconds = 0.0;
};

void print_line(const std::string& name, const std::string& value) {
  const std::string column(name.size() < 12 ? 12 - name.size() : 1, ' ');
  std::cout << wrapped("  " + name + column + printable(value) + '\n', line_width());
}

/// As a configuration has it: `width=64, heads=2`, `[25, 50]`.
std::string value_text(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_structured()) return value.dump();
  Words items;
  for (const auto& [key, item] : value.items()) {
    items.push_back((value.is_object() ? key + "=" : "") + value_text(item));
  }
  return value.is_object() ? join(items) : "[" + join(items) + "]";
}

std::string fact_text(const nlohmann::json& facts, const char* key) {
  return facts.contains(key) ? value_text(facts.at(key)) : "unknown";
}

/// Version, changes and licence of the table itself, as far as it was published.
void print_publication(const Table& table) {
  const auto& publication = table.publication();
  const auto print = [&publication](const std::string& name, const char* key) {
    if (publication.contains(key)) print_line(name, publication.at(key).get<std::string>());
  };
  print("version", "version");
  for (const auto& change : publication.value("changelog", nlohmann::json::array())) {
    print_line("", fact_text(change, "version") + " (" + fact_text(change, "date") +
                       "): " + fact_text(change, "text"));
  }
  print("licence", "licence");
}

/// The terms of what the models were trained on; of older tables as far as this program knows them.
std::string corpus_terms(const Table& table) {
  return table.publication().value("corpus_licence",
                                   licence_of(fact_text(table.facts(), "corpus")));
}

/// Whether attention matters on the table's task, with the controls and counts that say so.
void print_gates(const nlohmann::json& publication) {
  const auto gates = publication.find("gates");
  if (gates == publication.end()) {
    print_line("gates", "no gates were recorded");
    return;
  }
  print_line("gates", gates->at("verdict").get<std::string>());
  for (const auto& gate : gates->at("gates")) {
    print_line("", gate.at("name").get<std::string>() + ": " + gate.at("words").get<std::string>());
  }
}

void print_facts(const Table& table) {
  const auto& facts = table.facts();
  const auto text = [&facts](const char* key) { return fact_text(facts, key); };
  print_line("semantics", text("semantics"));
  print_line("corpus", text("corpus") + ", vocabulary " + text("vocabulary"));
  if (const auto terms = corpus_terms(table); !terms.empty()) print_line("its terms", terms);
  print_line("model", text("model"));
  print_line("training", text("training"));
  print_line("device", text("device") + ", numerical mode " + text("numerical_mode"));
  print_line("run seed", text("run_seed"));
  for (const auto& source : facts.at("sources")) {
    const auto what =
        source.contains("measured")
            ? fact_text(source, "measured") + ", measured there"
            : fact_text(source, "cells") + " cells, SHA-256 " + fact_text(source, "sha256");
    print_line("source", fact_text(source, "name") + ": " + what);
  }
  print_line("SHA-256", table.sha256());
  print_gates(table.publication());
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The mechanism of the least and of the largest mean nll.
void print_extremes(const Table& table, const Finals& finals) {
  std::vector<std::pair<double, std::int64_t>> means;
  const auto groups = finals.groups(&Finals::Final::nll);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].empty()) continue;
    means.emplace_back(mean_of(groups[i]), static_cast<std::int64_t>(i));
  }
  if (means.empty()) return;
  const auto [best, worst] = std::minmax_element(means.begin(), means.end());
  for (const auto& [what, which] : {std::pair{"best", best}, std::pair{"worst", worst}}) {
    print_line(what, table.mechanism(which->second) + ": nll " + fixed_text(which->first, 3) +
                         ", perplexity " + fixed_text(std::exp(which->first), 3));
  }
}

/// The mechanisms' means over their replicates, ascending.
std::vector<double> sorted_means(const std::vector<std::vector<double>>& groups) {
  std::vector<double> means;
  for (const auto& group : groups) {
    if (!group.empty()) means.push_back(mean_of(group));
  }
  std::sort(means.begin(), means.end());
  return means;
}

std::string percent(double share) { return fixed_text(100.0 * share, 1) + " %"; }

/// What the table's corpus says is chance; nothing where it does not.
std::optional<ChanceLevel> chance_level(const nlohmann::json& facts) {
  if (const auto chance = facts.find("chance"); chance != facts.end()) {
    return ChanceLevel{
        .by = chance->at("by"), .nll = chance->at("nll"), .accuracy = chance->at("accuracy")};
  }
  // Older tables have what the task was in the description only.
  const std::string description = facts.value("corpus_description", "");
  std::smatch pairs;
  if (facts.value("corpus", "") == "mqar" &&
      std::regex_search(description, pairs, std::regex("\\b([1-9][0-9]{0,5}) pairs in "))) {
    return uniform_chance("the values shown", std::stoll(pairs[1]));
  }
  return std::nullopt;
}

/// Which mechanisms solve the task, and how early.
void print_solved(const Finals& finals) {
  std::int64_t trained = 0;
  std::int64_t solving = 0;
  std::int64_t solving_mostly = 0;
  std::vector<double> steps;
  for (const auto& replicates : finals.by_mechanism) {
    if (replicates.empty()) continue;
    ++trained;
    double accuracy = 0.0;
    const auto before = steps.size();
    for (const auto& [replicate, final] : replicates) {
      accuracy += final.accuracy / static_cast<double>(replicates.size());
      if (final.solved_after) steps.push_back(static_cast<double>(*final.solved_after));
    }
    solving += accuracy >= kSolved ? 1 : 0;
    solving_mostly += 2 * (steps.size() - before) > replicates.size() ? 1 : 0;
  }
  std::sort(steps.begin(), steps.end());
  print_line("solved",
             std::to_string(solving) + " of " + counted(trained, "mechanism") + " (" +
                 percent(static_cast<double>(solving) / static_cast<double>(trained)) + ") reach " +
                 percent(kSolved) + " accuracy, mean over replicates, " +
                 std::to_string(solving_mostly) + " (" +
                 percent(static_cast<double>(solving_mostly) / static_cast<double>(trained)) +
                 ") do so with most replicates");
  if (steps.empty()) return;
  print_line("", std::to_string(steps.size()) + " trainings do, the first after " +
                     shortest(steps.front()) + " steps, half of them by " +
                     shortest(steps[(steps.size() - 1) / 2]));
}

/// How many mechanisms do better than a guess.
/// @param nll  of the mechanisms, ascending.
void print_better(const std::vector<double>& nll, double of_guess, const std::string& guess) {
  const auto better = std::lower_bound(nll.begin(), nll.end(), of_guess) - nll.begin();
  if (better == 0) {
    print_line("", "no mechanism does better than " + guess + ", by its nll");
    return;
  }
  print_line("", std::to_string(better) + " of " +
                     counted(static_cast<std::int64_t>(nll.size()), "mechanism") + " (" +
                     percent(static_cast<double>(better) / static_cast<double>(nll.size())) +
                     ") do better than " + guess + ", by their nll");
}

/// How good the mechanisms are, and whether that is more than chance.
void print_quality(const Table& table, const Finals& finals) {
  const auto nll = sorted_means(finals.groups(&Finals::Final::nll));
  const auto accuracy = sorted_means(finals.groups(&Finals::Final::accuracy));
  if (nll.empty()) return;
  print_line("nll", fixed_text(nll.front(), 3) + " best mechanism, " + fixed_text(median(nll), 3) +
                        " median (means over replicates)");
  print_line("accuracy", percent(accuracy.back()) + " best mechanism, " +
                             percent(median(accuracy)) + " median");
  if (const auto chance = chance_level(table.facts())) {
    print_solved(finals);
    print_line("chance", chance->by + ": nll " + fixed_text(chance->nll, 3) + ", accuracy " +
                             percent(chance->accuracy));
    print_better(nll, chance->nll, chance->by);
  } else if (const auto unigram = table.facts().value("unigram_perplexity", 0.0); unigram > 1.0) {
    const std::string by = "guessing by how often each token occurs";
    print_line("chance", by + ": nll " + fixed_text(std::log(unigram), 3));
    print_better(nll, std::log(unigram), by);
  }
}

/// How much of what differs is not the replicates' noise.
void print_variance(const Table& table, const Finals& finals) {
  const auto groups = finals.groups(&Finals::Final::nll);
  const auto icc = intraclass_correlation(groups);
  if (std::isnan(icc)) {
    const bool several = std::any_of(groups.begin(), groups.end(),
                                     [](const auto& group) { return group.size() > 1; });
    if (several) print_line("variance", "-");  // one mechanism, or replicates that do not differ
    return;
  }
  const std::string of_what = " of that of the final validation nll is between mechanisms";
  auto text = icc > 0.0 ? fixed_text(icc, 3) + of_what + " (ICC)"
                        : "nothing" + of_what + " (ICC " + fixed_text(icc, 3) + ")";
  if (const auto paired = consistency_correlation(finals.complete(table.num_replicates()));
      paired > 0.0) {
    text += "; " + fixed_text(paired, 3) + " without what a replicate does to all of them alike";
  }
  print_line("variance", text);
}

/// How alike replicates rank the mechanisms, over all pairs of them.
void print_rank_correlations(const Table& table, const Finals& finals) {
  std::vector<double> pairs;
  for (std::int64_t a = 0; a < table.num_replicates(); ++a) {
    for (std::int64_t b = a + 1; b < table.num_replicates(); ++b) {
      pairs.push_back(finals.rank_correlation(a, b));
    }
  }
  if (pairs.empty()) return;
  std::erase_if(pairs, [](double pair) { return std::isnan(pair); });
  if (pairs.empty()) {
    print_line("ranks", "-");
    return;
  }
  const auto [least, most] = std::minmax_element(pairs.begin(), pairs.end());
  print_line("ranks", "Spearman " + fixed_text(mean_of(pairs), 3) + " between replicates, " +
                          fixed_text(*least, 3) + " to " + fixed_text(*most, 3) + " over " +
                          counted(static_cast<std::int64_t>(pairs.size()), "pair"));
}

/// How far the ranking can be trusted: all ways to divide the first replicates into two halves, and
/// how alike the means of the halves rank the mechanisms.
void print_halves(const Finals& finals) {
  constexpr std::size_t kBest = 10;
  constexpr unsigned kMostReplicates = 10;  // 126 divisions
  std::vector<unsigned> whole;              // replicates from the first on, ascending
  for (const auto& of_one : finals.by_mechanism) {
    unsigned count = 0;
    while (count < kMostReplicates && of_one.contains(count)) ++count;
    whole.push_back(count);
  }
  std::sort(whole.begin(), whole.end());
  // As many as nine mechanisms of ten have; the others are left out.
  const auto replicates = whole.empty() ? 0U : whole[whole.size() / 10];
  std::vector<double> agreement;
  std::vector<double> overlap;
  for (unsigned half = 1; half < (1U << replicates); ++half) {
    if (std::popcount(half) != static_cast<int>(replicates + 1) / 2) continue;
    if (replicates % 2 == 0 && (half & 1U) == 0) continue;  // the complement of one with the first
    std::vector<double> means[2];
    for (const auto& of_one : finals.by_mechanism) {
      std::vector<double> sides[2];
      for (unsigned i = 0; i < replicates; ++i) {
        if (of_one.contains(i)) sides[(half >> i) & 1U].push_back(of_one.at(i).nll);
      }
      if (sides[0].size() + sides[1].size() < replicates) continue;
      for (const auto side : {0, 1}) means[side].push_back(mean_of(sides[side]));
    }
    if (means[0].size() <= kBest) return;
    agreement.push_back(rank_correlation(means[0], means[1]));
    std::set<std::size_t> best[2];
    for (const auto side : {0, 1}) {
      std::vector<std::size_t> order(means[side].size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return means[side][a] < means[side][b];
      });
      best[side].insert(order.begin(), order.begin() + kBest);
    }
    overlap.push_back(
        static_cast<double>(std::count_if(best[0].begin(), best[0].end(), [&](std::size_t which) {
          return best[1].contains(which);
        })));
  }
  if (agreement.empty()) return;
  const double alike = mean_of(agreement);
  print_line("halves", "of the first " + counted(replicates, "replicate") + ": Spearman " +
                           (std::isnan(alike) ? "-" : fixed_text(alike, 3)) + "; of the " +
                           std::to_string(kBest) + " best by one half " +
                           fixed_text(mean_of(overlap), 1) + " are among the best of the other (" +
                           counted(std::ssize(agreement), "division") + ")");
}

/// Processors and libraries that the trainings ran on.
void print_machines(const Table& table) {
  std::set<std::string> machines;
  for (const auto& source : table.facts().at("sources")) {
    auto environments = source.value("environments", nlohmann::json::array());
    if (source.contains("environment")) environments.push_back(source.at("environment"));
    for (const auto& environment : environments) {
      Words words;
      for (const auto* key : {"processor", "instruction_set", "device", "torch", "revision"}) {
        if (!environment.contains(key) || !environment.at(key).is_string()) continue;
        const auto value = environment.at(key).get<std::string>();
        words.push_back(key == std::string("torch") ? "LibTorch " + value : value);
      }
      machines.insert(join(words));
    }
  }
  for (const auto& machine : machines) print_line("made on", machine);
}

int info_command(const Words& words) {
  if (words.size() != 1) throw InputError("table info: one table must be given");
  const Table table(table_named(words.front()));
  const Finals finals(table);
  std::cout << printable(table.facts().at("name").get<std::string>()) << ": " << size_text(table)
            << '\n';
  print_publication(table);
  print_facts(table);
  std::string cells =
      counted(finals.cells, "cell") + ", " + std::to_string(missing_cells(table)) + " missing";
  for (const auto& [status, count] : finals.failures) {
    cells += ", " + std::to_string(count) + " " + status;
  }
  print_line("cells", cells);
  if (const auto missing = missing_functions(table); !missing.empty()) {
    const auto all = table.num_mechanisms() + std::ssize(missing);
    print_line("missing", std::to_string(missing.size()) + " of the " + std::to_string(all) +
                              " functions that its options make have no training run, such as " +
                              missing.front());
  }
  print_line("steps", value_text(table.steps()));
  print_line("seconds", human_duration(finals.seconds) + " of training");
  print_machines(table);
  print_variance(table, finals);
  print_rank_correlations(table, finals);
  print_halves(finals);
  print_extremes(table, finals);
  print_quality(table, finals);
  return 0;
}

}  // namespace

int table_command(Words words) {
  if (words.empty()) throw InputError("table: no command given, known: audit, info, pack, verify");
  const auto command = words.front();
  words.erase(words.begin());
  if (command == "audit") return audit_command(std::move(words));
  if (command == "pack") return pack_command(std::move(words));
  if (command == "verify") return verify_command(words);
  if (command == "info") return info_command(words);
  throw InputError("table: unknown command '" + command + "', known: audit, info, pack, verify");
}

}  // namespace nas
