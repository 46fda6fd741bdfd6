// The eight tile registers of AMX. The native tests define the macros below before, as an emulation, so that the kernel's
// source also runs on machines without AMX.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace maxsimd {
namespace {

/// The operand of LDTILECFG: palette 1, and for each register its rows and the bytes of a row.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1;
  uint8_t startRow = 0;
  uint8_t reserved[14] = {};
  uint16_t rowBytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfiguration) == 64);

}  // namespace
}  // namespace maxsimd

#if !defined(TILE_DOT)

// Macros, because the register number is part of the instruction.
#define TILE_CONFIGURE(configuration) _tile_loadconfig(configuration)
#define TILE_RELEASE() _tile_release()
#define TILE_ZERO(tile) _tile_zero(tile)
#define TILE_LOAD(tile, from, stride) _tile_loadd(tile, from, stride)
#define TILE_STORE(tile, to, stride) _tile_stored(tile, to, stride)
/// sums += rows (int8) x columns (int8, four rows of the product's inner dimension side by side), int32.
#define TILE_DOT(sums, rows, columns) _tile_dpbssd(sums, rows, columns)

#endif
