#include "table/table.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <stdexcept>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/hash.hpp"
#include "table/format.hpp"
#include "table/header.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;
namespace format = table_format;

static_assert(std::endian::native == std::endian::little, "tables are read in place");

/// Measured seconds, those that are charged first.
constexpr std::array kCharged{"cpu_seconds", "train_seconds"};

/// A whole file in memory, read-only.
class MappedFile {
 public:
  explicit MappedFile(const fs::path& file) {
    const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) throw InputError(file.string() + ": no such table");
    struct stat status {};
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
      size_ = static_cast<std::size_t>(status.st_size);
      memory_ = mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
    }
    close(fd);
    if (memory_ == MAP_FAILED) throw InputError(file.string() + ": cannot be read as a table");
  }
  ~MappedFile() { munmap(memory_, size_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::string_view bytes() const {
    return {static_cast<const char*>(memory_), size_};
  }

 private:
  void* memory_ = MAP_FAILED;
  std::size_t size_ = 0;
};

std::int64_t integer_at(std::string_view bytes, std::size_t offset) {
  std::int64_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

/// Words of one column and how far apart those of two cells and of two points are; 0 where they
/// agree.
struct Column {
  const char* words = nullptr;
  std::size_t cell_stride = 0;
  std::size_t point_stride = 0;

  template <class Number>
  [[nodiscard]] Number at(std::size_t cell, std::size_t point = 0) const {
    static_assert(sizeof(Number) == 8);
    Number value{};
    std::memcpy(&value, words + 8 * (cell * cell_stride + point * point_stride), sizeof(value));
    return value;
  }
};

}  // namespace

struct Table::Content {
  explicit Content(const fs::path& file);

  [[nodiscard]] const Column& column(const std::string& name) const { return columns.at(name); }
  [[nodiscard]] std::size_t cell(std::int64_t mechanism, std::int64_t replicate) const {
    if (mechanism < 0 || mechanism >= static_cast<std::int64_t>(header.mechanisms.size()) ||
        replicate < 0 || replicate >= header.replicates) {
      throw std::logic_error("table: no cell (" + std::to_string(mechanism) + ", " +
                             std::to_string(replicate) + ")");
    }
    return static_cast<std::size_t>(mechanism * header.replicates + replicate);
  }
  /// The same; @throws InputError if the cell is missing.
  [[nodiscard]] std::size_t present_cell(std::int64_t mechanism, std::int64_t replicate) const;
  [[nodiscard]] std::vector<CurvePoint> curve(std::size_t cell) const;

  MappedFile mapped;
  std::string sha256;
  TableHeader header;
  nlohmann::json facts;
  std::map<std::string, Column> columns;

 private:
  [[nodiscard]] std::string_view header_bytes() const;
  void check_cell(std::size_t cell) const;
  void check_usable(std::size_t cell, std::size_t points) const;
  [[nodiscard]] std::string name_of(std::size_t cell) const;
};

/// Checks everything that stands before the header.
std::string_view Table::Content::header_bytes() const {
  const auto bytes = mapped.bytes();
  if (bytes.size() < format::kHeaderOffset || !bytes.starts_with(format::kTableMagic)) {
    throw InputError("not a table");
  }
  const auto version = integer_at(bytes, format::kTableMagic.size());
  if (version != format::kTableVersion) {
    throw InputError("a table of version " + std::to_string(version) + ", must be of version " +
                     std::to_string(format::kTableVersion));
  }
  if (nas::sha256(bytes.substr(format::kLengthOffset)) !=
      bytes.substr(format::kDigestOffset, format::kLengthOffset - format::kDigestOffset)) {
    throw InputError("its content does not fit its checksum: cut short or altered");
  }
  const auto length = integer_at(bytes, format::kLengthOffset);
  const auto most = static_cast<std::int64_t>(bytes.size() - format::kHeaderOffset);
  if (length < 0 || length > most || (most - length) % 8 != 0) {
    throw InputError("length of the header = " + std::to_string(length) +
                     ", must leave whole words of the " + std::to_string(most) +
                     " bytes that follow it");
  }
  return bytes.substr(format::kHeaderOffset, static_cast<std::size_t>(length));
}

std::string Table::Content::name_of(std::size_t cell) const {
  const auto replicates = static_cast<std::size_t>(header.replicates);
  return header.mechanisms[cell / replicates] + ", replicate " + std::to_string(cell % replicates);
}

void Table::Content::check_cell(std::size_t cell) const {
  const auto in_range = [&](const char* name, std::int64_t least, std::size_t most) {
    const auto value = column(name).at<std::int64_t>(cell);
    if (value >= least && value <= static_cast<std::int64_t>(most)) return value;
    throw InputError(name_of(cell) + ": " + name + " = " + std::to_string(value) +
                     ", must be in [" + std::to_string(least) + ", " + std::to_string(most) + "]");
  };
  const auto status =
      in_range("status", format::kMissing, static_cast<std::size_t>(Status::failed));
  (void)in_range("reason", 0, header.reasons.size() - 1);
  const auto points = in_range("points", 0, header.steps.size());
  format::visit_measured([&](const char* name, const char* /*unit*/) {
    const auto value = column(name).at<double>(cell);
    if (std::isnan(value) || (std::isfinite(value) && value >= 0.0)) return;
    throw InputError(name_of(cell) + ": " + name + " = " + shortest(value) +
                     ", must be finite and at least 0");
  });
  if (status == static_cast<std::int64_t>(Status::ok) ||
      status == static_cast<std::int64_t>(Status::stopped_early)) {
    check_usable(cell, static_cast<std::size_t>(points));
  }
}

/// What readers take for granted of a training run that has a quality.
void Table::Content::check_usable(std::size_t cell, std::size_t points) const {
  const auto require = [&](bool holds, const std::string& what) {
    if (!holds) throw InputError(name_of(cell) + ": " + what);
  };
  require(points > 0, "it was finished, but its curve has no point");
  require(!std::isnan(column("train_seconds").at<double>(cell)),
          "it was finished, but its train_seconds are missing");
  for (const auto& point : curve(cell)) {
    const auto at_step = " at step " + std::to_string(point.step);
    for (const double sum : {point.train_nll, point.valid.nll, point.valid.batch_mean_nll}) {
      require(std::isfinite(sum), "a loss" + at_step + " = " + shortest(sum) + ", must be finite");
    }
    const auto& valid = point.valid;
    require(valid.tokens > 0 && valid.batches > 0 && valid.correct >= 0 &&
                valid.correct <= valid.tokens,
            "its counts" + at_step + " (" + std::to_string(valid.correct) + " correct of " +
                std::to_string(valid.tokens) + " targets in " + std::to_string(valid.batches) +
                " batches) cannot be");
    require(std::isfinite(point.seconds), "its seconds" + at_step + " must be finite");
  }
}

Table::Content::Content(const fs::path& file) : mapped(file) {
  try {
    const auto text = header_bytes();
    const auto begin = format::kHeaderOffset + text.size();
    sha256 =
        mapped.bytes().substr(format::kDigestOffset, format::kLengthOffset - format::kDigestOffset);
    header = read_table_header(text, (mapped.bytes().size() - begin) / 8);
    for (const auto& column : header.columns) {
      const bool point = column.per == TableColumn::Per::point;
      const auto stride = point ? header.steps.size() : std::size_t{1};
      columns[column.name] = {
          .words = mapped.bytes().data() + begin + 8 * column.offset,
          .cell_stride = column.per == TableColumn::Per::table ? std::size_t{0} : stride,
          .point_stride = point ? 1U : 0U};
    }
    for (std::size_t cell = 0; cell < header.num_cells(); ++cell) check_cell(cell);
  } catch (const InputError& error) {
    throw InputError(file.string() + ": " + error.what());
  }
  facts = header.facts;
  facts.update(header.identity);
  facts["name"] = header.name;
  facts["sources"] = header.sources;
}

std::size_t Table::Content::present_cell(std::int64_t mechanism, std::int64_t replicate) const {
  const auto index = cell(mechanism, replicate);
  if (column("status").at<std::int64_t>(index) != format::kMissing) return index;
  throw InputError("the table has no replicate " + std::to_string(replicate) + " of " +
                   header.mechanisms[static_cast<std::size_t>(mechanism)]);
}

std::vector<CurvePoint> Table::Content::curve(std::size_t cell) const {
  std::vector<CurvePoint> curve(static_cast<std::size_t>(column("points").at<std::int64_t>(cell)));
  for (std::size_t i = 0; i < curve.size(); ++i) {
    curve[i].step = header.steps[i];
    format::visit_numbers(curve[i], [&](const char* name, const char* /*unit*/, auto& number) {
      number = column(name).at<std::remove_reference_t<decltype(number)>>(cell, i);
    });
  }
  return curve;
}

Table::Table(const fs::path& file) : content_(std::make_shared<const Content>(file)) {}

const nlohmann::json& Table::facts() const { return content_->facts; }
const std::string& Table::sha256() const { return content_->sha256; }
std::int64_t Table::num_mechanisms() const {
  return static_cast<std::int64_t>(content_->header.mechanisms.size());
}
const std::string& Table::mechanism(std::int64_t mechanism) const {
  return content_->header.mechanisms.at(static_cast<std::size_t>(mechanism));
}
std::optional<std::int64_t> Table::find(const std::string& mechanism) const {
  const auto& names = content_->header.mechanisms;
  const auto found = std::lower_bound(names.begin(), names.end(), mechanism);
  if (found == names.end() || *found != mechanism) return std::nullopt;
  return found - names.begin();
}
std::int64_t Table::num_replicates() const { return content_->header.replicates; }
const std::vector<std::int64_t>& Table::steps() const { return content_->header.steps; }

bool Table::has(std::int64_t mechanism, std::int64_t replicate) const {
  const auto cell = content_->cell(mechanism, replicate);
  return content_->column("status").at<std::int64_t>(cell) != format::kMissing;
}

Evaluation Table::evaluation(std::int64_t mechanism, std::int64_t replicate) const {
  const auto cell = content_->present_cell(mechanism, replicate);
  Evaluation evaluation;
  evaluation.candidate = this->mechanism(mechanism);
  evaluation.replicate = replicate;
  evaluation.identity = content_->header.identity;
  evaluation.identity["candidate"] = evaluation.candidate;
  evaluation.identity["replicate"] = replicate;
  evaluation.id = nas::sha256(evaluation.identity.dump());
  evaluation.status = static_cast<Status>(content_->column("status").at<std::int64_t>(cell));
  evaluation.reason = content_->header.reasons.at(
      static_cast<std::size_t>(content_->column("reason").at<std::int64_t>(cell)));
  evaluation.curve = content_->curve(cell);
  for (const auto& [name, column] : content_->columns) {
    if (!name.starts_with(format::kValuePrefix)) continue;
    const auto value = column.at<double>(cell);
    if (!std::isnan(value)) evaluation.values[name.substr(format::kValuePrefix.size())] = value;
  }
  evaluation.measured = measured(mechanism);
  format::visit_measured([&](const char* name, const char* /*unit*/) {
    const auto value = content_->column(name).at<double>(cell);
    if (!std::isnan(value)) evaluation.measured[name] = value;
  });
  return evaluation;
}

const nlohmann::json& Table::measured(std::int64_t mechanism) const {
  return content_->header.measured.at(static_cast<std::size_t>(mechanism));
}

double Table::seconds(std::int64_t mechanism, std::int64_t replicate) const {
  const auto cell = content_->present_cell(mechanism, replicate);
  for (const auto* name : kCharged) {
    const auto value = content_->column(name).at<double>(cell);
    if (!std::isnan(value)) return value;
  }
  return 0.0;
}

double charged_seconds(const Evaluation& recorded) {
  for (const auto* name : kCharged) {
    const auto found = recorded.measured.find(name);
    if (found != recorded.measured.end()) return found->get<double>();
  }
  return 0.0;
}

}  // namespace nas
