// The tile instructions of AMX in plain C++, per thread, for running the amx kernel's source on other machines. It
// follows the definitions of LDTILECFG, TILEZERO, TILELOADD, TILESTORED and TDPBSSD in Intel's instruction set
// reference (volume 2). Where those would fault, it ends the process.
#pragma once

#define TILE_CONFIGURE(configuration) emulatedTiles.configure(configuration)
#define TILE_RELEASE() emulatedTiles.release()
#define TILE_ZERO(tile) emulatedTiles.zero(tile)
#define TILE_LOAD(tile, from, stride) emulatedTiles.load(tile, from, stride)
#define TILE_STORE(tile, to, stride) emulatedTiles.store(tile, to, stride)
#define TILE_DOT(sums, rows, columns) emulatedTiles.dot(sums, rows, columns)

#include "kernels/exact/amx_tiles.h"

#include <cstdlib>
#include <cstring>

namespace maxsimd {
namespace {

struct EmulatedTiles {
  TileConfiguration configuration;
  bool configured = false;
  uint8_t bytes[8][16][64];

  static void need(bool condition) {
    if (!condition) std::abort();
  }

  void configure(const void* from) {
    std::memcpy(&configuration, from, sizeof configuration);
    need(configuration.palette == 1);
    for (int t = 0; t < 8; ++t) need(configuration.rows[t] <= 16 && configuration.rowBytes[t] <= 64);
    configured = true;
    std::memset(bytes, 0, sizeof bytes);
  }

  void release() { configured = false; }

  void zero(int tile) {
    need(configured);
    std::memset(bytes[tile], 0, sizeof bytes[tile]);
  }

  void load(int tile, const void* from, size_t stride) {
    zero(tile);
    for (int row = 0; row < configuration.rows[tile]; ++row) {
      std::memcpy(bytes[tile][row], static_cast<const char*>(from) + row * stride, configuration.rowBytes[tile]);
    }
  }

  void store(int tile, void* to, size_t stride) const {
    need(configured);
    for (int row = 0; row < configuration.rows[tile]; ++row) {
      std::memcpy(static_cast<char*>(to) + row * stride, bytes[tile][row], configuration.rowBytes[tile]);
    }
  }

  /// Not instrumented: it only touches `bytes`, and most of the kernel tests' time is spent here.
  __attribute__((no_sanitize("address", "undefined"), optimize("O3"))) void dot(int sums, int left, int right) {
    need(configured && configuration.rows[sums] == configuration.rows[left]);
    need(configuration.rowBytes[sums] == configuration.rowBytes[right]);
    need(configuration.rowBytes[left] == configuration.rows[right] * 4);
    for (int m = 0; m < configuration.rows[sums]; ++m) {
      int32_t sum[16];
      std::memcpy(sum, bytes[sums][m], sizeof sum);
      for (int k = 0; k < configuration.rowBytes[left]; ++k) {
        const int32_t factor = int8_t(bytes[left][m][k]);
        for (int n = 0; n < configuration.rowBytes[sums] / 4; ++n) {
          sum[n] += factor * int32_t(int8_t(bytes[right][k / 4][n * 4 + k % 4]));
        }
      }
      std::memcpy(bytes[sums][m], sum, sizeof sum);
    }
  }
};

thread_local EmulatedTiles emulatedTiles;

}  // namespace
}  // namespace maxsimd
