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
#include "core/hash.hpp"
#include "table/format.hpp"

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
    if (mechanism < 0 || mechanism >= static_cast<std::int64_t>(mechanisms.size()) ||
        replicate < 0 || replicate >= replicates) {
      throw std::logic_error("table: no cell (" + std::to_string(mechanism) + ", " +
                             std::to_string(replicate) + ")");
    }
    return static_cast<std::size_t>(mechanism * replicates + replicate);
  }
  /// The same; @throws InputError if the cell is missing.
  [[nodiscard]] std::size_t present_cell(std::int64_t mechanism, std::int64_t replicate) const;
  [[nodiscard]] std::vector<CurvePoint> curve(std::size_t cell) const;

  MappedFile mapped;
  std::string sha256;
  nlohmann::json facts;
  nlohmann::json identity;
  std::vector<std::string> mechanisms;
  std::int64_t replicates = 0;
  std::vector<std::int64_t> steps;
  std::vector<std::string> reasons;
  std::vector<nlohmann::json> measured;  ///< objectives by name, of a mechanism
  std::map<std::string, Column> columns;

 private:
  nlohmann::json read_header(const fs::path& file);
  void read_columns(const nlohmann::json& header, std::size_t begin);
};

/// Checks everything that stands before the columns.
nlohmann::json Table::Content::read_header(const fs::path& file) {
  const auto bytes = mapped.bytes();
  if (bytes.size() < format::kHeaderOffset || !bytes.starts_with(format::kTableMagic)) {
    throw InputError(file.string() + ": not a table");
  }
  const auto version = integer_at(bytes, format::kTableMagic.size());
  if (version != format::kTableVersion) {
    throw InputError(file.string() + ": a table of version " + std::to_string(version) +
                     ", must be of version " + std::to_string(format::kTableVersion));
  }
  sha256 = bytes.substr(format::kDigestOffset, format::kLengthOffset - format::kDigestOffset);
  if (nas::sha256(bytes.substr(format::kLengthOffset)) != sha256) {
    throw InputError(file.string() +
                     ": its content does not fit its checksum: cut short or altered");
  }
  const auto length = static_cast<std::size_t>(integer_at(bytes, format::kLengthOffset));
  return nlohmann::json::parse(bytes.substr(format::kHeaderOffset, length));
}

void Table::Content::read_columns(const nlohmann::json& header, std::size_t begin) {
  for (const auto& column : header.at("columns")) {
    const auto& per = column.at("per").get_ref<const std::string&>();
    const std::size_t points = per == "point" ? steps.size() : 1;
    const auto offset = begin + 8 * column.at("offset").get<std::size_t>();
    columns[column.at("name")] = {.words = mapped.bytes().data() + offset,
                                  .cell_stride = per == "table" ? 0 : points,
                                  .point_stride = per == "point" ? 1U : 0U};
  }
}

Table::Content::Content(const fs::path& file) : mapped(file) {
  auto header = read_header(file);
  header.at("mechanisms").get_to(mechanisms);
  header.at("replicates").get_to(replicates);
  header.at("steps").get_to(steps);
  header.at("reasons").get_to(reasons);
  header.at("measured").get_to(measured);
  identity = std::move(header.at("identity"));
  facts = std::move(header.at("facts"));
  facts.update(identity);
  facts["name"] = header.at("name");
  facts["sources"] = header.at("sources");
  read_columns(header, format::kHeaderOffset + static_cast<std::size_t>(integer_at(
                                                   mapped.bytes(), format::kLengthOffset)));
}

std::size_t Table::Content::present_cell(std::int64_t mechanism, std::int64_t replicate) const {
  const auto index = cell(mechanism, replicate);
  if (column("status").at<std::int64_t>(index) != format::kMissing) return index;
  throw InputError("the table has no replicate " + std::to_string(replicate) + " of " +
                   mechanisms[static_cast<std::size_t>(mechanism)]);
}

std::vector<CurvePoint> Table::Content::curve(std::size_t cell) const {
  std::vector<CurvePoint> curve(static_cast<std::size_t>(column("points").at<std::int64_t>(cell)));
  for (std::size_t i = 0; i < curve.size(); ++i) {
    curve[i].step = steps[i];
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
  return static_cast<std::int64_t>(content_->mechanisms.size());
}
const std::string& Table::mechanism(std::int64_t mechanism) const {
  return content_->mechanisms.at(static_cast<std::size_t>(mechanism));
}
std::optional<std::int64_t> Table::find(const std::string& mechanism) const {
  const auto& names = content_->mechanisms;
  const auto found = std::lower_bound(names.begin(), names.end(), mechanism);
  if (found == names.end() || *found != mechanism) return std::nullopt;
  return found - names.begin();
}
std::int64_t Table::num_replicates() const { return content_->replicates; }
const std::vector<std::int64_t>& Table::steps() const { return content_->steps; }

bool Table::has(std::int64_t mechanism, std::int64_t replicate) const {
  const auto cell = content_->cell(mechanism, replicate);
  return content_->column("status").at<std::int64_t>(cell) != format::kMissing;
}

Evaluation Table::evaluation(std::int64_t mechanism, std::int64_t replicate) const {
  const auto cell = content_->present_cell(mechanism, replicate);
  Evaluation evaluation;
  evaluation.candidate = this->mechanism(mechanism);
  evaluation.replicate = replicate;
  evaluation.identity = content_->identity;
  evaluation.identity["candidate"] = evaluation.candidate;
  evaluation.identity["replicate"] = replicate;
  evaluation.id = nas::sha256(evaluation.identity.dump());
  evaluation.status = static_cast<Status>(content_->column("status").at<std::int64_t>(cell));
  evaluation.reason = content_->reasons.at(
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
  return content_->measured.at(static_cast<std::size_t>(mechanism));
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
