#include "files/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace maxsimd {
namespace {

constexpr std::array<std::array<uint32_t, 256>, 8> makeTables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int k = 0; k < 8; ++k) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    tables[0][i] = crc;
  }
  for (uint32_t i = 0; i < 256; ++i) {
    for (size_t t = 1; t < 8; ++t) tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 0xff];
  }
  return tables;
}

constexpr auto tables = makeTables();

/// Slicing by eight: eight bytes a step, by table look-ups (Kounavis and Berry, ISCC 2005).
uint32_t portable(const uint8_t* data, size_t bytes, uint32_t crc) {
  for (; bytes >= 8; bytes -= 8, data += 8) {
    uint32_t low, high;
    std::memcpy(&low, data, 4);
    std::memcpy(&high, data + 4, 4);
    low ^= crc;
    crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^ tables[4][low >> 24] ^
          tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^ tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
  }
  for (; bytes > 0; --bytes) crc = crc >> 8 ^ tables[0][(crc ^ *data++) & 0xff];
  return crc;
}

#if defined(__x86_64__)

/// The instruction has a latency of three cycles and a throughput of one. So a block is three interleaved streams, whose
/// results are joined by shifting the first two over the bytes behind them (Gopal et al., Intel, 2011).
constexpr size_t streamBytes = 1024;

/// The CRC of a message followed by `streamBytes` zero bytes, as four table look-ups.
constexpr std::array<std::array<uint32_t, 256>, 4> makeShift() {
  std::array<uint32_t, 32> basis{};
  for (int b = 0; b < 32; ++b) {
    uint32_t crc = uint32_t(1) << b;
    for (size_t i = 0; i < streamBytes; ++i) crc = crc >> 8 ^ tables[0][crc & 0xff];
    basis[b] = crc;
  }
  std::array<std::array<uint32_t, 256>, 4> shift{};
  for (int byte = 0; byte < 4; ++byte) {
    for (uint32_t value = 0; value < 256; ++value) {
      for (int b = 0; b < 8; ++b) {
        if (value >> b & 1) shift[byte][value] ^= basis[byte * 8 + b];
      }
    }
  }
  return shift;
}

uint32_t shiftStream(uint32_t crc) {
  static const auto shift = makeShift();
  return shift[0][crc & 0xff] ^ shift[1][crc >> 8 & 0xff] ^ shift[2][crc >> 16 & 0xff] ^ shift[3][crc >> 24];
}

__attribute__((target("sse4.2"))) uint32_t hardware(const uint8_t* data, size_t bytes, uint32_t seed) {
  uint64_t crc = seed;
  while (bytes >= 3 * streamBytes) {
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < streamBytes; i += 8) {
      uint64_t a, b, c;
      std::memcpy(&a, data + i, 8);
      std::memcpy(&b, data + i + streamBytes, 8);
      std::memcpy(&c, data + i + 2 * streamBytes, 8);
      crc = _mm_crc32_u64(crc, a);
      second = _mm_crc32_u64(second, b);
      third = _mm_crc32_u64(third, c);
    }
    crc = shiftStream(shiftStream(uint32_t(crc)) ^ uint32_t(second)) ^ uint32_t(third);
    data += 3 * streamBytes;
    bytes -= 3 * streamBytes;
  }
  for (; bytes >= 8; bytes -= 8, data += 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  for (; bytes > 0; --bytes) crc = _mm_crc32_u8(uint32_t(crc), *data++);
  return uint32_t(crc);
}

#endif

}  // namespace

uint32_t crc32c(const void* data, size_t bytes, uint32_t seed) {
  const auto* from = static_cast<const uint8_t*>(data);
#if defined(__x86_64__)
  static const bool supported = __builtin_cpu_supports("sse4.2");
  if (supported) return ~hardware(from, bytes, ~seed);
#endif
  return ~portable(from, bytes, ~seed);
}

}  // namespace maxsimd
