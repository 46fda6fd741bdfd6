// The constants of candidate generation and of codebooks. Recall is measured on live searches and kept by `breadth`
// (IndexSearch), so none of them has to be right for a text. Those without another source are starting values:
// `npm run bench -- frontier` over real text of both default models shows what they give (docs/benchmarks.md).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace maxsimd {

struct SearchTuning {
  /// Chunks that are ranked by residual codes for each candidate. These leave room for the error of residual codes.
  static constexpr double shortlistPerCandidate = 3;
  /// Likewise, for each unit of sqrt(candidates x chunks): what nearly ties with the last candidate grows with both.
  static constexpr double shortlistPerRoot = 0.35;

  /// Lists know a chunk by some of its codes only. So they leave this many times the shortlist to a look at all codes, and
  /// the lists of each query token meet as many chunks.
  static constexpr double listedPerShortlisted = 3;
  /// A chunk on none of a token's lists counts as this part of the least entry that is on one. WARP (arXiv 2501.17788)
  /// takes the least entry itself, which ranks chunks with many tokens unmet too high.
  static constexpr double unmetPart = 0.8;
  /// A visit of a list, and the look at all codes that follows, take as long as the scan of this many codes; choosing lists
  /// takes as long as this many for each centroid. They decide between lists and a scan of all codes (12,296 and 300,000 chunks).
  static constexpr double codesPerVisit = 6, codesPerCentroid = 2;
  /// One centroid in so many estimates which entries are worth collecting.
  static constexpr uint32_t sampledEvery = 16;

  /// Token vectors whose centroid is so many standard deviations of a residual below the best of their chunk are passed
  /// over: a half of a long chunk at 2, three quarters at 1.
  static constexpr float residualMargin = 1.4f;

  /// Centroids for each unit of sqrt(token vectors). 2,048 instead of 512 for 37,000 token vectors of 384 dimensions halve
  /// what residual codes miss; an index of a million keeps 8,192.
  static constexpr double centroidsPerRoot = 8;
  /// Token vectors that place a centroid. k-means gains little beyond 40 (FAISS uses 39 to 256).
  static constexpr uint32_t fitRowsPerCentroid = 48;
  /// Token vectors that place the groups of centroids, and the codewords: a thousand a codeword. The share of a
  /// codebook is measured on them, too. The number is no power of two, unlike the sample that places centroids, so few token
  /// vectors are in both: a codebook would look better on those that it was fitted to.
  static constexpr uint32_t fitRows = 16'000;
  /// Rounds of k-means. Later rounds move few rows.
  static constexpr uint32_t fitRounds = 8;
  /// Groups whose centroids a token vector is compared with: at least 9 in 10 find the nearest of all (codes_test.cpp).
  static constexpr uint32_t probedGroups = 8;

  /// Chunks that codes leave to residual codes.
  static uint32_t shortlist(uint32_t candidateK, uint64_t chunks, double breadth) {
    const double wanted = breadth * (shortlistPerCandidate * candidateK +
                                     shortlistPerRoot * std::sqrt(double(candidateK) * double(chunks)));
    return uint32_t(std::min(std::max(wanted, double(candidateK)), double(chunks)));
  }
  /// Centroids for an index of so many token vectors: a power of two.
  static uint32_t centroids(uint64_t rows) {
    return uint32_t(1) << uint32_t(
               std::lround(std::log2(centroidsPerRoot * std::sqrt(double(std::max<uint64_t>(1, rows))))));
  }
};

}  // namespace maxsimd
