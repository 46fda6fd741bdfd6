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
// Any words of a row may take the places t and t + 4, as long as both sides agree. So no shared memory lies in between:
//
//   rows of 8 bits     in a step of 64 dimensions lane t reads 16 bytes at 16 t: four words for two instructions
//   rows of few bits   in a step of 128 dimensions lane t reads strip t (kernels/rows.h): eight words for four
//
// A code u of few bits is multiplied as 2u, which one shift and one mask give. The component is 2u - most, so the sums
// of products begin at -most * (sum of the query token's components) and are exact.
//
// `Warp` defines the types of a lane. On the device (`device_warp.cuh`) they are plain types, and each lane runs the
// program. In the emulation (`emulated_warp.h`) each holds 32 values, and the program runs once.
#pragma once

#include "device/library.h"
#include "kernels/rows.h"

#include <cstdint>

#ifdef __CUDACC__
#define MAXSIMD_LANE __device__ __forceinline__
#define MAXSIMD_UNROLL _Pragma("unroll")
#else
#define MAXSIMD_LANE inline
#define MAXSIMD_UNROLL
#endif

namespace maxsimd::cuda {

/// Query tokens that are scored at once. Queries are padded to a multiple of it with rows, scales and offsets of zero.
inline constexpr uint32_t blockTokens = deviceTokens;
inline constexpr uint32_t tileTokens = 8;
inline constexpr uint32_t blockTiles = blockTokens / tileTokens;
inline constexpr uint32_t tileRows = 16;

/// Dimensions that the four lanes of a row read in one load. Rows are padded with zeros to a multiple of it.
constexpr uint32_t stepDims(uint32_t bits) { return bits == 8 ? 64 : 4 * stripCodes; }

/// Where the sums of products with one query token begin.
inline int32_t biasOf(const int8_t* token, uint32_t dim, uint32_t bits) {
  if (bits == 8) return 0;
  int32_t sum = 0;
  for (uint32_t d = 0; d < dim; ++d) sum += token[d];
  return -componentMost(bits) * sum;
}

/// All chunks: rows one after the other. `starts` [chunks + 1] counts rows. Every chunk has at least one row.
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
  const int32_t* biases;
  uint32_t queries;
  uint32_t blocks;
  uint32_t stride;
};

/// `Steps` * stepDims(Bits) dimensions. `AtOnce` blocks share what is read of the documents.
template <class Warp, uint32_t Bits, uint32_t Steps, uint32_t AtOnce>
class WarpProgram {
  using U32 = typename Warp::U32;
  using F32 = typename Warp::F32;
  using I32 = typename Warp::I32;
  /// Words that a lane reads of a row in a step, and words that it multiplies then.
  static constexpr uint32_t storedWords = Bits == 8 ? 4 : Bits, words = Bits == 8 ? 4 : 8;
  static constexpr uint32_t step = stepDims(Bits), dim = Steps * step, rowBytes = dim * Bits / 8;
  /// 2u of four codes.
  static constexpr uint32_t codeMask = 0x01010101u * uint32_t(2 * componentMost(Bits));
  using Stored = typename Warp::template Words<storedWords>;

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

  /// Rows g and g + 8 of a tile, this lane's words of each step.
  struct Tile {
    Stored upper[Steps];
    Stored lower[Steps];
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
    for (uint32_t at = 0; at < Steps; ++at) {
      const int8_t* vectors = documents_.vectors + span.first * rowBytes + at * (rowBytes / Steps);
      tile.upper[at] = Warp::template stream<storedWords>(vectors, upper * rowBytes + place_ * (4 * storedWords));
      tile.lower[at] = Warp::template stream<storedWords>(vectors, lower * rowBytes + place_ * (4 * storedWords));
    }
    tile.upperScale = Warp::half(documents_.scales + span.first, upper);
    tile.lowerScale = Warp::half(documents_.scales + span.first, lower);
    return tile;
  }

  /// Four factors of the products: word `at` in the order of dimensions.
  MAXSIMD_LANE static U32 factors(const Stored& stored, uint32_t at) {
    if constexpr (Bits == 8) return stored.words[at];
    const U32& codes = stored.words[at % storedWords];
    const uint32_t shift = at / storedWords * Bits;
    return (shift == 0 ? codes << 1u : codes >> (shift - 1)) & codeMask;
  }

  /// Multiplies a tile with a block of tokens. Words of the tile are unpacked once, for all tokens.
  MAXSIMD_LANE void raise(const Tile& tile, uint32_t block, Best& best) const {
    const int8_t* vectors = queries_.vectors + uint64_t(block) * blockTokens * dim;
    I32 products[blockTiles][4];
    for (uint32_t n = 0; n < blockTiles; ++n) {
      for (uint32_t column = 0; column < 2; ++column) {
        const U32 token = place_ * 2u + (block * blockTokens + n * tileTokens + column);
        products[n][column] = products[n][column + 2] = Bits == 8 ? Warp::i32(0) : Warp::read(queries_.biases, token);
      }
    }
    MAXSIMD_UNROLL
    for (uint32_t at = 0; at < Steps; ++at) {
      MAXSIMD_UNROLL
      for (uint32_t word = 0; word < words; word += 4) {
        U32 upper[4], lower[4];
        for (uint32_t of = 0; of < 4; ++of) {
          upper[of] = factors(tile.upper[at], word + of);
          lower[of] = factors(tile.lower[at], word + of);
        }
        MAXSIMD_UNROLL
        for (uint32_t n = 0; n < blockTiles; ++n) {
          const U32 token = group_ + n * tileTokens;
          const auto query = Warp::keep(vectors, token * dim + place_ * (4 * words) + (at * step + 4 * word));
          for (uint32_t of = 0; of < 4; of += 2) {
            Warp::multiply(products[n], upper[of], lower[of], upper[of + 1], lower[of + 1], query.words[of],
                           query.words[of + 1]);
          }
        }
      }
    }
    for (uint32_t n = 0; n < blockTiles; ++n) {
      for (uint32_t column = 0; column < 2; ++column) {
        const F32 upper = Warp::product(Warp::toFloat(products[n][column]), tile.upperScale);
        const F32 lower = Warp::product(Warp::toFloat(products[n][column + 2]), tile.lowerScale);
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
