#include "core/format.hpp"

#include <charconv>
#include <clocale>
#include <string_view>

#include "prelude.hpp"

namespace nas {
namespace {

double read_back(const std::string& text) {
  double value = 0.0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

TEST(Shortest, IsTheShortestDecimalThatReadsBackEqual) {
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(1.0), "1");
  EXPECT_EQ(shortest(0.1 + 0.2), "0.30000000000000004");
  for (const double value : {0.1, 1.0 / 3.0, 3e-4, 5e-324, 1.7976931348623157e308, -2.5}) {
    EXPECT_EQ(read_back(shortest(value)), value) << shortest(value);
  }
}

TEST(Printable, CommandsNoTerminal) {
  EXPECT_EQ(printable("two\tcells,\na line: \u00e9 \u2264 \U0001F600"),
            "two\tcells,\na line: \u00e9 \u2264 \U0001F600");
  EXPECT_EQ(printable("x\x1b]0;owned\a\r\b\x7f"), "x\uFFFD]0;owned\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\uFFFDb");
  // U+0080, U+009B (a sequence begins), U+009F; U+00A0 is a blank.
  EXPECT_EQ(printable("\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0"), "\uFFFD\uFFFD\uFFFD\u00a0");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, IsUtf8) {
  EXPECT_EQ(printable("a\x9b"
                      "b"),
            "a\uFFFDb")
      << "the same of one byte";
  EXPECT_EQ(printable("a\xff"), "a\uFFFD");
  EXPECT_EQ(printable("\xe2\x82"), "\uFFFD") << "cut";
  EXPECT_EQ(printable("\xc2"), "\uFFFD");
  EXPECT_EQ(printable("\xc2\x1b"), "\uFFFD\uFFFD") << "nothing hides behind it";
}

TEST(Shortest, NamesWhatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(shortest(infinity), "inf");
  EXPECT_EQ(shortest(-infinity), "-inf");
  EXPECT_EQ(shortest(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(shortest(-std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(HumanDuration, ChangesUnitAtItsBounds) {
  EXPECT_EQ(human_duration(0.4), "0 s");
  EXPECT_EQ(human_duration(41.0), "41 s");
  EXPECT_EQ(human_duration(59.6), "1 min 00 s");
  EXPECT_EQ(human_duration(200.0), "3 min 20 s");
  EXPECT_EQ(human_duration(3600.0), "1 h 00 min");
  EXPECT_EQ(human_duration(7500.0), "2 h 05 min");
  EXPECT_EQ(human_duration(86399.0), "23 h 59 min");
  EXPECT_EQ(human_duration(86400.0 * 4 + 3600.0 * 3), "4 d 3 h");
}

TEST(HumanDuration, OfWhatIsNoDuration) {
  EXPECT_EQ(human_duration(-3.0), "0 s");
  for (const double endless : {1e18, 1e300, std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(human_duration(endless), "unknown") << endless;
  }
  EXPECT_EQ(human_duration(std::numeric_limits<double>::quiet_NaN()), "unknown");
}

TEST(HumanCount, HasThreeSignificantDigitsAndAPrefix) {
  EXPECT_EQ(human_count(0.0), "0");
  EXPECT_EQ(human_count(12.0), "12");
  EXPECT_EQ(human_count(999.0), "999");
  EXPECT_EQ(human_count(999.5), "1 k");
  EXPECT_EQ(human_count(1694208.0), "1.69 M");
  EXPECT_EQ(human_count(445e6), "445 M");
  EXPECT_EQ(human_count(-2.5e9), "-2.5 G");
  EXPECT_EQ(human_count(9.994e17), "999 P");
  EXPECT_EQ(human_count(9.996e17), "1e+18");
  EXPECT_EQ(human_count(2.87e167), "2.87e+167");
  EXPECT_EQ(human_count(-1.7e308), "-1.7e+308");
}

TEST(HumanBytes, UsesBinaryUnits) {
  EXPECT_EQ(human_bytes(1024), "1 KiB");
  EXPECT_EQ(human_bytes(319LL * 1024 * 1024), "319 MiB");
  EXPECT_EQ(human_bytes(5LL * 1024 * 1024 * 1024 / 2), "2.50 GiB");
  EXPECT_EQ(human_bytes(7LL * 1024 * 1024 * 1024 * 1024 / 2), "3.5 TiB");
  EXPECT_EQ(human_bytes(std::numeric_limits<std::int64_t>::max()), "8192 PiB");
}

}  // namespace
}  // namespace nas
