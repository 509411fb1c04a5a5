#pragma once

// AMX where the processor has none: the signal of an illegal instruction is answered by what Intel's manual says of it
// (volume 2, LDTILECFG, TILELOADD, TILESTORED, TILEZERO, TILERELEASE, TDPBF16PS). x86-64 Linux only.

#if defined(__x86_64__)
#include <array>
#include <bit>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstring>

#include <ucontext.h>
#include <xmmintrin.h>

namespace nas {

/// While it lives; of one thread.
class EmulatedTiles {
 public:
  EmulatedTiles() {
    products_ = 0;
    struct sigaction action {};
    action.sa_sigaction = &execute;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &action, &before_);
  }
  ~EmulatedTiles() { sigaction(SIGILL, &before_, nullptr); }
  EmulatedTiles(const EmulatedTiles&) = delete;
  EmulatedTiles& operator=(const EmulatedTiles&) = delete;

  /// Of tiles that were emulated: 0 where the processor has its own.
  static int products() { return products_; }

 private:
  struct Tile {
    std::array<std::array<std::uint32_t, 16>, 16> row;
  };
  static inline std::array<Tile, 8> tiles_;
  static inline std::array<std::uint8_t, 64> shapes_;
  static inline bool configured_ = false;
  static inline int products_ = 0;
  struct sigaction before_ {};

  static std::size_t rows(unsigned tile) { return shapes_[48 + tile]; }
  static std::size_t bytes(unsigned tile) {
    return shapes_[16 + 2 * tile] + 256U * shapes_[17 + 2 * tile];
  }
  [[noreturn]] static void refuse() { std::abort(); }
  static void require(bool holds) {
    if (!holds) refuse();
  }

  static float first(std::uint32_t pair) { return std::bit_cast<float>(pair << 16U); }
  static float second(std::uint32_t pair) { return std::bit_cast<float>(pair & 0xffff0000U); }

  static void multiply(unsigned to, unsigned a, unsigned b) {
    require(configured_ && to != a && to != b && a != b && bytes(a) == 4 * rows(b) &&
            rows(to) == rows(a) && bytes(to) == bytes(b));
    ++products_;
    const unsigned before = _mm_getcsr();
    _mm_setcsr(0x9fc0);  // no exceptions, to the nearest, numbers below 2^-126 are 0
    for (std::size_t m = 0; m < rows(to); ++m) {
      for (std::size_t n = 0; n < bytes(to) / 4; ++n) {
        float even = 0.0F, odd = 0.0F;
        for (std::size_t k = 0; k < rows(b); ++k) {
          const auto x = tiles_[a].row[m][k], y = tiles_[b].row[k][n];
          even = std::fma(first(x), first(y), even);
          odd = std::fma(second(x), second(y), odd);
        }
        auto& sum = tiles_[to].row[m][n];
        sum = std::bit_cast<std::uint32_t>(std::bit_cast<float>(sum) + (even + odd));
      }
    }
    _mm_setcsr(before);
  }

  static void execute(int /*signal*/, siginfo_t* /*info*/, void* context) {
    static constexpr std::array kRegisters{REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                           REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                           REG_R12, REG_R13, REG_R14, REG_R15};
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    const auto value = [&](unsigned number) { return registers[kRegisters.at(number)]; };
    const auto* code = reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]);
    require(code[0] == 0xc4 && (code[1] & 0x1fU) == 2 && (code[2] & 0x84U) == 0);
    const unsigned prefix = code[2] & 3U, third = ~(code[2] >> 3U) & 15U, opcode = code[3];
    const unsigned kind = code[4] >> 6U, tile = (code[4] >> 3U) & 7U, rm = code[4] & 7U;
    const unsigned more_base = (code[1] & 0x20U) == 0 ? 8U : 0U,
                   more_index = (code[1] & 0x40U) == 0 ? 8U : 0U;
    code += 5;
    std::int64_t address = 0, stride = 0;
    if (kind != 3) {
      unsigned base = rm;
      if (rm == 4) {
        const unsigned index = (*code >> 3U & 7U) + more_index;
        base = *code & 7U;
        if (index != 4) stride = value(index) << (*code >> 6U);
        ++code;
      }
      const bool without_base = kind == 0 && base == 5;
      std::int32_t shift = 0;
      if (kind == 1) {
        shift = static_cast<std::int8_t>(*code++);
      } else if (kind == 2 || without_base) {
        std::memcpy(&shift, code, 4);
        code += 4;
      }
      address = shift;
      if (!without_base) address += value(base + more_base);
      if (without_base && rm == 5) address += reinterpret_cast<std::int64_t>(code);
    }
    if (opcode == 0x49 && prefix == 0 && kind != 3) {
      std::memcpy(shapes_.data(), reinterpret_cast<const void*>(address), shapes_.size());
      require(shapes_[0] == 1);
      for (unsigned t = 0; t < 8; ++t) require(rows(t) <= 16 && bytes(t) <= 64);
      configured_ = true;
      tiles_ = {};
    } else if (opcode == 0x49 && prefix == 0) {
      configured_ = false;
    } else if (opcode == 0x49 && prefix == 3 && kind == 3) {
      require(configured_ && rows(tile) > 0);
      tiles_.at(tile) = {};
    } else if (opcode == 0x4b && (prefix == 2 || prefix == 3) && kind != 3) {
      require(configured_ && rows(tile) > 0);
      if (prefix == 3) tiles_.at(tile) = {};
      for (std::size_t i = 0; i < rows(tile); ++i) {
        auto* const there =
            reinterpret_cast<void*>(address + static_cast<std::int64_t>(i) * stride);
        auto* const here = tiles_.at(tile).row.at(i).data();
        std::memcpy(prefix == 3 ? here : there, prefix == 3 ? there : here, bytes(tile));
      }
    } else if (opcode == 0x5c && prefix == 2 && kind == 3) {
      multiply(tile, rm, third);
    } else {
      refuse();
    }
    registers[REG_RIP] = reinterpret_cast<std::int64_t>(code);
  }
};

}  // namespace nas
#endif
