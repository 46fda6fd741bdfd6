// Exhaustive MaxSim by one warp. The same source runs on the device and in an emulation on the CPU.
//
// The definition is native/kernels/contract.h, to the last bit. A warp takes 16 document rows at a time and multiplies
// them with 8 query tokens by one tensor core instruction after the other (`mma.sync.m16n8k32`, int8 into int32). Lane
// l = 4 g + t of 32 holds of such a tile, as PTX ISA 9.0 ("Matrix Fragments for mma.m16n8k32") has it:
//
//   documents   words t and t + 4 of rows g and g + 8      (a word: 4 int8)
//   query       words t and t + 4 of token g
//   products    columns 2 t and 2 t + 1 of rows g and g + 8
//
// Any words of a row may take the places t and t + 4, as long as both sides agree. So a lane reads 16 bytes at 16 t of
// every 64. That is one load of full width with four words for two instructions, without shared memory in between.
//
// `Warp` defines the types of a lane. On the device (`device_warp.cuh`) they are plain types, and each lane runs the
// program. In the emulation (`emulated_warp.h`) each holds 32 values, and the program runs once.
#pragma once

#include "device/library.h"

#include <cstdint>

#ifdef __CUDACC__
#define MAXSIMD_LANE __device__ __forceinline__
#else
#define MAXSIMD_LANE inline
#endif

namespace maxsimd::cuda {

/// Query tokens that are scored at once. Queries are padded to a multiple of it with rows, scales and offsets of zero.
inline constexpr uint32_t blockTokens = deviceTokens;
inline constexpr uint32_t tileTokens = 8;
inline constexpr uint32_t blockTiles = blockTokens / tileTokens;
inline constexpr uint32_t tileRows = 16;
/// Bytes of a row that the four lanes of a row read in one load. `dim` is padded with zeros to a multiple of it.
inline constexpr uint32_t stepBytes = 64;

/// All chunks: token vectors one after the other. `starts` [chunks + 1] counts rows. Every chunk has at least one row.
struct Documents {
  const int8_t* vectors;
  const uint16_t* scales;
  const uint64_t* starts;
  uint32_t chunks;
};

/// `queries` queries of `blocks` * 32 tokens each, row-major, 16-byte aligned. `stride` is the distance between the
/// scores of one query and of the next.
struct Queries {
  const int8_t* vectors;
  const float* scales;
  const float* offsets;
  uint32_t queries;
  uint32_t blocks;
  uint32_t stride;
};

/// `Steps` * 64 bytes a row. `AtOnce` blocks share what is read of the documents.
template <class Warp, uint32_t Steps, uint32_t AtOnce>
class WarpProgram {
  using U32 = typename Warp::U32;
  using F32 = typename Warp::F32;
  using I32 = typename Warp::I32;
  using Quad = typename Warp::Quad;
  static constexpr uint32_t dim = Steps * stepBytes;

 public:
  MAXSIMD_LANE WarpProgram(const Documents& documents, const Queries& queries)
      : documents_(documents), queries_(queries), group_(Warp::lane() / 4u), place_(Warp::lane() % 4u) {}

  /// Starts loading the first rows of the first chunk.
  MAXSIMD_LANE void begin(uint32_t chunk) {
    span_ = spanOf(chunk);
    next_ = load(span_, 0);
  }

  /// Scores the chunk that `begin` or the last `score` started to load, into `scores[query * queries.stride + chunk]`.
  /// Starts loading `following` with the last products.
  MAXSIMD_LANE void score(uint32_t chunk, uint32_t following, float* scores) {
    const Span span = span_;
    span_ = spanOf(following);
    const uint32_t blocks = queries_.queries * queries_.blocks;
    Partial partial;
    for (uint32_t block = 0; block < blocks; block += AtOnce) {
      Best best[AtOnce];
      for (uint32_t row = 0; row < span.rows; row += tileRows) {
        const Tile tile = next_;
        // Load the next tile before multiplying this one, so that the memory works meanwhile.
        const bool isLast = row + tileRows >= span.rows, isDone = isLast && block + AtOnce >= blocks;
        next_ = load({isDone ? span_.first : span.first, isDone ? span_.rows : span.rows}, isLast ? 0 : row + tileRows);
        for (uint32_t b = 0; b < AtOnce; ++b) {
          if (block + b < blocks) raise(tile, block + b, best[b]);
        }
      }
      for (uint32_t b = 0; b < AtOnce && block + b < blocks; ++b) {
        const uint32_t inQuery = (block + b) % queries_.blocks;
        if (inQuery == 0) partial = Partial();
        add(best[b], block + b, partial);
        if (inQuery + 1 == queries_.blocks) {
          Warp::store(scores + uint64_t((block + b) / queries_.blocks) * queries_.stride + chunk, total(partial));
        }
      }
    }
  }

 private:
  /// Rows of a chunk.
  struct Span {
    uint64_t first;
    uint32_t rows;
  };

  /// Rows g and g + 8 of a tile, this lane's quads of each step.
  struct Tile {
    Quad upper[Steps];
    Quad lower[Steps];
    F32 upperScale;
    F32 lowerScale;
  };

  /// best(i) of columns 2 t and 2 t + 1 of each tile of a block.
  struct Best {
    MAXSIMD_LANE Best() {
      for (auto& tile : columns) tile[0] = tile[1] = Warp::f32(-__builtin_huge_valf());
    }
    F32 columns[blockTiles][2];
  };

  /// The partial sums p[2 t], p[2 t + 1] and p[8 + 2 t], p[9 + 2 t] of the definition.
  struct Partial {
    MAXSIMD_LANE Partial() {
      for (auto& half : sums) half[0] = half[1] = Warp::f32(0.0f);
    }
    F32 sums[2][2];
  };

  MAXSIMD_LANE Span spanOf(uint32_t chunk) const {
    const uint64_t first = documents_.starts[chunk];
    return {first, uint32_t(documents_.starts[chunk + 1] - first)};
  }

  /// Rows behind the last repeat the last one. That changes no maximum and reads nothing past the chunk.
  MAXSIMD_LANE Tile load(const Span& span, uint32_t row) const {
    const U32 upper = Warp::least(group_ + row, span.rows - 1);
    const U32 lower = Warp::least(group_ + (row + 8u), span.rows - 1);
    Tile tile;
    for (uint32_t step = 0; step < Steps; ++step) {
      const int8_t* vectors = documents_.vectors + span.first * dim + step * stepBytes;
      tile.upper[step] = Warp::stream(vectors, upper * dim + place_ * 16u);
      tile.lower[step] = Warp::stream(vectors, lower * dim + place_ * 16u);
    }
    tile.upperScale = Warp::half(documents_.scales + span.first, upper);
    tile.lowerScale = Warp::half(documents_.scales + span.first, lower);
    return tile;
  }

  MAXSIMD_LANE void raise(const Tile& tile, uint32_t block, Best& best) const {
    const int8_t* vectors = queries_.vectors + uint64_t(block) * blockTokens * dim;
#ifdef __CUDACC__
#pragma unroll
#endif
    for (uint32_t n = 0; n < blockTiles; ++n) {
      I32 products[4] = {Warp::i32(0), Warp::i32(0), Warp::i32(0), Warp::i32(0)};
      for (uint32_t step = 0; step < Steps; ++step) {
        const U32 token = group_ + n * tileTokens;
        const Quad query = Warp::keep(vectors, token * dim + (place_ * 16u + step * stepBytes));
        const Quad &upper = tile.upper[step], &lower = tile.lower[step];
        Warp::multiply(products, upper.words[0], lower.words[0], upper.words[1], lower.words[1], query.words[0],
                       query.words[1]);
        Warp::multiply(products, upper.words[2], lower.words[2], upper.words[3], lower.words[3], query.words[2],
                       query.words[3]);
      }
      for (uint32_t column = 0; column < 2; ++column) {
        const F32 upper = Warp::product(Warp::toFloat(products[column]), tile.upperScale);
        const F32 lower = Warp::product(Warp::toFloat(products[column + 2]), tile.lowerScale);
        F32& so_far = best.columns[n][column];
        so_far = Warp::greater(so_far, Warp::greater(upper, lower));
      }
    }
  }

  /// Takes the maxima over the rows of all lanes and adds their terms.
  MAXSIMD_LANE void add(const Best& best, uint32_t block, Partial& partial) const {
    for (uint32_t n = 0; n < blockTiles; ++n) {
      for (uint32_t column = 0; column < 2; ++column) {
        F32 most = best.columns[n][column];
        for (uint32_t distance = 4; distance < 32; distance *= 2) {
          most = Warp::greater(most, Warp::exchange(most, distance));
        }
        const U32 token = place_ * 2u + (block * blockTokens + n * tileTokens + column);
        const F32 term =
            Warp::sum(Warp::product(most, Warp::read(queries_.scales, token)), Warp::read(queries_.offsets, token));
        F32& sum = partial.sums[n % 2][column];
        sum = Warp::sum(sum, term);
      }
    }
  }

  MAXSIMD_LANE F32 total(const Partial& partial) const {
    F32 sums[2];
    for (uint32_t column = 0; column < 2; ++column) {
      F32 sum = Warp::sum(partial.sums[0][column], partial.sums[1][column]);
      // Columns 4 away lie 2 lanes away, those 2 away the next lane.
      sum = Warp::sum(sum, Warp::exchange(sum, 2));
      sums[column] = Warp::sum(sum, Warp::exchange(sum, 1));
    }
    return Warp::sum(sums[0], sums[1]);
  }

  const Documents documents_;
  const Queries queries_;
  const U32 group_;
  const U32 place_;
  /// The chunk that is being loaded, and its first rows.
  Span span_;
  Tile next_;
};

}  // namespace maxsimd::cuda
