#include "core/line_reader.hpp"

#include <array>
#include <thread>

#include <unistd.h>

#include "core/error.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

using Got = LineReader::Got;
constexpr std::chrono::seconds kLong{20};

class LineReaderTest : public ::testing::Test {
 protected:
  LineReaderTest() { EXPECT_EQ(pipe(ends_.data()), 0); }
  ~LineReaderTest() override {
    close(ends_[0]);
    end();
  }
  void write(const std::string& text) const {
    ASSERT_EQ(::write(ends_[1], text.data(), text.size()), std::ssize(text));
  }
  void end() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
  }
  std::array<int, 2> ends_{};
};

TEST_F(LineReaderTest, GivesLinesAsTheyCome) {
  LineReader reader(ends_[0]);
  std::string line;
  EXPECT_EQ(reader.next(line, std::chrono::milliseconds(1)), Got::nothing);
  write("a\n\nb");
  EXPECT_EQ(reader.next(line, kLong), Got::line);
  EXPECT_EQ(line, "a");
  EXPECT_EQ(reader.next(line, kLong), Got::line);
  EXPECT_EQ(line, "");
  EXPECT_EQ(reader.next(line, std::chrono::milliseconds(0)), Got::nothing) << "half a line";
  write("c\nrest");
  end();
  EXPECT_EQ(reader.next(line, kLong), Got::line);
  EXPECT_EQ(line, "bc");
  EXPECT_EQ(reader.next(line, kLong), Got::line);
  EXPECT_EQ(line, "rest");
  EXPECT_EQ(reader.next(line, kLong), Got::end);
  EXPECT_EQ(reader.next(line, kLong), Got::end);
}

TEST_F(LineReaderTest, TakesALineOfSixteenMebibytesAndNoLongerOne) {
  LineReader reader(ends_[0]);
  std::jthread writer([this] {
    std::string text(LineReader::kLongest, 'x');
    text += "\n" + text + "x\n";
    for (std::size_t done = 0; done < text.size();) {
      const auto size = ::write(ends_[1], text.data() + done, text.size() - done);
      if (size <= 0) break;
      done += static_cast<std::size_t>(size);
    }
    end();
  });
  std::string line;
  EXPECT_EQ(reader.next(line, kLong), Got::line);
  EXPECT_EQ(line.size(), LineReader::kLongest);
  EXPECT_EQ(message_of<InputError>([&] { (void)reader.next(line, kLong); }),
            "a line of more than 16 MiB, must be shorter");
  std::string rest(1 << 16, '\0');
  while (read(ends_[0], rest.data(), rest.size()) > 0) {
  }
}

}  // namespace
}  // namespace nas
