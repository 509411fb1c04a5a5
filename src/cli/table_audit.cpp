#include "cli/table_audit.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "cli/program.hpp"
#include "cli/words.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "report/files.hpp"
#include "report/text.hpp"
#include "table/named.hpp"
#include "table/rung_audit.hpp"

namespace nas {

namespace {

using Words = std::vector<std::string>;

constexpr std::size_t kColumns = 80;

Words items(const std::string& text) {
  Words words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

std::string decimals(double value, int digits) {
  return std::isnan(value) ? "-" : fixed_text(value, digits);
}

std::string percent(double share) {
  return std::isnan(share) ? "-" : fixed_text(100.0 * share, 0) + " %";
}

void write_agreement(std::ostream& out, const RungAudit& audit) {
  const auto& rungs = audit.options.rungs;
  for (const auto& seeds : audit.between_seeds) {
    out << "\nRanks by " << seeds.objective << " at a step against those at the end, same seeds\n\n"
        << "    step  Spearman   95 % interval  best 16 shared     noise\n";
    for (const auto& rung : audit.agreement) {
      if (rung.objective != seeds.objective || rung.step == rungs.back()) continue;
      const bool is_rung = std::binary_search(rungs.begin(), rungs.end(), rung.step);
      out << (is_rung ? "  * " : "    ") << std::setw(4) << rung.step << std::setw(10)
          << decimals(rung.correlation, 3) << std::setw(16)
          << decimals(rung.low, 3) + " - " + decimals(rung.high, 3) << std::setw(16)
          << percent(rung.overlap) << std::setw(10) << decimals(rung.noise, 3) << '\n';
    }
    out << "   seeds" << std::setw(10) << decimals(seeds.correlation, 3) << std::setw(32)
        << percent(seeds.overlap) << std::setw(10) << decimals(seeds.noise, 3) << '\n';
  }
  out << "\n  * a rung; seeds: the ends with two seeds against each other\n"
         "  noise: what seeds do to a difference of two mechanisms (fidelity.epsilon)\n";
}

void write_replayed(std::ostream& out, const RungAudit& audit) {
  const bool several = audit.options.objectives.size() > 1;
  const auto regret = [several](double value) {
    return several ? (std::isnan(value) ? "-" : fixed_text(100.0 * value, 1) + " %")
                   : decimals(value, 3);
  };
  out << "\nPruning: " << grouped(audit.options.searches)
      << " searches a line, each of one replicate and in a random order\n\n";
  out << "                                          pruned of the started\n"
      << "  runs  method        started  end  saved  top 3  top 16  front   regret   fresh\n";
  for (const auto& one : audit.replayed) {
    out << std::setw(6) << one.budget << "  " << std::left << std::setw(12)
        << (one.method == "successive halving" ? "halving" : one.method) << std::right
        << std::setw(9) << fixed_text(one.started, 0) << std::setw(5) << fixed_text(one.finished, 0)
        << std::setw(7) << percent(one.saved) << std::setw(7) << percent(one.top_3.share())
        << std::setw(8) << percent(one.top_16.share()) << std::setw(7) << percent(one.front.share())
        << std::setw(9) << regret(one.regret.mean) << std::setw(8) << regret(one.fresh_regret.mean)
        << '\n';
  }
  out << '\n'
      << wrapped(std::string("runs: steps that are paid, in whole training runs; saved: of the "
                             "steps of what was started; regret: ") +
                     (several ? "hypervolume of the front that is missed"
                              : "distance from the best " + audit.options.objectives.front()) +
                     " with the seeds that the search saw; fresh: with the others",
                 kColumns);
}

std::string text_of(const RungAudit& audit) {
  std::ostringstream out;
  Words rungs;
  for (std::size_t k = 0; k < audit.options.rungs.size(); ++k) {
    rungs.push_back(std::to_string(audit.options.rungs[k]));
    if (k < audit.eta.size()) rungs.back() += " (eta " + fixed_text(audit.eta[k], 2) + ")";
  }
  out << printable(audit.table) << ": " << counted(audit.mechanisms, "mechanism") << " x "
      << counted(audit.replicates, "replicate") << ", rungs " << join(rungs) << '\n';
  write_agreement(out, audit);
  write_replayed(out, audit);
  out << '\n' << wrapped(audit.verdict(), kColumns);
  return out.str();
}

}  // namespace

int audit_command(Words words) {
  RungAudit::Options options;
  const auto rungs = take_option(words, "--rungs");
  if (!rungs) throw InputError("table audit: --rungs STEP,STEP,... is missing");
  for (const auto& word : items(*rungs)) {
    options.rungs.push_back(parse_number<std::int64_t>("--rungs", word));
  }
  if (const auto eta = take_option(words, "--eta")) {
    options.eta = parse_number<double>("--eta", *eta);
  }
  if (const auto objectives = take_option(words, "--objectives")) {
    options.objectives = items(*objectives);
    for (const auto& name : options.objectives) {
      if (std::count(options.objectives.begin(), options.objectives.end(), name) > 1) {
        throw InputError("--objectives " + *objectives + ": " + name + " is there twice");
      }
    }
  }
  if (const auto seeds = take_option(words, "--seeds")) {
    options.searches = parse_number<std::int64_t>("--seeds", *seeds);
  }
  options.spread = parse_spread(take_option(words, "--promote").value_or("crowding"));
  const auto format = take_option(words, "--format").value_or("text");
  if (format != "text" && format != "json" && format != "csv") {
    throw InputError("--format " + format + ", must be text, json or csv");
  }
  const auto output = take_option(words, "--output");
  if (words.size() != 1) throw InputError("table audit: one table must be given");
  if (output) require_replaceable(*output, "--output ");
  const auto audit = audit_rungs(Table(table_named(words.front())), options);
  const auto text = format == "json"  ? nlohmann::json(audit).dump(2) + '\n'
                    : format == "csv" ? csv(audit)
                                      : text_of(audit);
  if (output) {
    write_file(*output, [&text](std::ostream& out) { out << text; });
  } else {
    std::cout << text;
  }
  return kDone;
}

}  // namespace nas
