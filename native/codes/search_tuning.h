// Constants of candidate generation and of codebooks.
//
// None of them has to fit a certain text: recall is measured on live searches, and `breadth` (IndexSearch) corrects it.
// Constants that name no source are starting values. `npm run bench -- frontier` shows the recall and the time that
// they give over real text (docs/benchmarks.md).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace maxsimd {

struct SearchTuning {
  /// Length of the shortlist for each candidate. The shortlist is ranked by residual codes, and several chunks for each
  /// candidate leave room for the error of that ranking.
  static constexpr double shortlistPerCandidate = 3;
  /// Length of the shortlist for each unit of sqrt(candidates x chunks). The number of chunks that nearly tie with the
  /// last candidate grows with both.
  static constexpr double shortlistPerRoot = 0.35;

  /// A walk of lists meets only some codes of a chunk, so its ranking is rough. It therefore keeps this many times the
  /// length of the shortlist, and the chunks that it keeps are then scored by all their codes. Each query token walks
  /// enough lists to meet as many chunks. Below 1.5 recall falls.
  static constexpr double listedPerShortlisted = 1.5;
  /// A chunk that is on none of a token's lists is taken to have this part of the token's least walked entry. WARP
  /// (arXiv 2501.17788) takes that entry itself, which ranks chunks too high that are on the lists of few tokens.
  static constexpr double unmetPart = 0.8;
  /// Costs that decide between lists and a scan of all codes, in codes scanned. `codesPerVisit` is the cost of one
  /// entry of a list, with the scoring of its chunk by all codes. `codesPerCentroid` is the cost of choosing lists, for
  /// each centroid. Measured with 12,296 and with 300,000 chunks.
  static constexpr double codesPerVisit = 6, codesPerCentroid = 2;
  /// One centroid in this many is sampled to estimate which entries are among the highest of a token.
  static constexpr uint32_t sampledEvery = 16;

  /// A token vector is passed over if its centroid scores below the best of its chunk by more than this many standard
  /// deviations of a residual. At 2 that passes over half of a long chunk, at 1 three quarters.
  static constexpr float residualMargin = 1.4f;

  /// Centroids for each unit of sqrt(token vectors). An index of a million token vectors has 8,192. For 37,000 token
  /// vectors of 384 dimensions it gives 2,048, and residual codes miss half as much as with 512.
  static constexpr double centroidsPerRoot = 8;
  /// Token vectors in the sample for each centroid. k-means gains little beyond 40 (FAISS uses 39 to 256).
  static constexpr uint32_t fitRowsPerCentroid = 48;
  /// Token vectors in the smaller sample, which places the groups of centroids and the codewords: a thousand for each
  /// codeword. The share of a codebook is measured on it too. A codebook looks better on vectors that it was fitted to,
  /// so the two samples should have few in common. They have: the sample that places centroids is a power of two, and
  /// this number is not.
  static constexpr uint32_t fitRows = 16'000;
  /// Directions of residuals that codewords describe (residual_directions.h). With them the error of a similarity is .77
  /// of what it is with codewords for all of 384 dimensions of 2 bits. 64 and 128 directions give the same.
  static constexpr uint32_t directions = 96;
  /// Residuals from which the directions are computed, and rounds of orthogonal iteration.
  static constexpr uint32_t directionRows = 8'000, directionRounds = 20;
  /// Rounds of k-means. Further rounds move few rows.
  static constexpr uint32_t fitRounds = 8;
  /// A token vector is compared with the centroids of this many nearest groups. At least 9 in 10 find the nearest of
  /// all centroids in this way (codes_test.cpp).
  static constexpr uint32_t probedGroups = 8;

  /// Length of the shortlist: the number of chunks that are ranked by residual codes.
  static uint32_t shortlist(uint32_t candidateK, uint64_t chunks, double breadth) {
    const double wanted = breadth * (shortlistPerCandidate * candidateK +
                                     shortlistPerRoot * std::sqrt(double(candidateK) * double(chunks)));
    return uint32_t(std::min(std::max(wanted, double(candidateK)), double(chunks)));
  }
  /// Number of centroids for an index of `rows` token vectors: a power of two.
  static uint32_t centroids(uint64_t rows) {
    return uint32_t(1) << uint32_t(
               std::lround(std::log2(centroidsPerRoot * std::sqrt(double(std::max<uint64_t>(1, rows))))));
  }
};

}  // namespace maxsimd
