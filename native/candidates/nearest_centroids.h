// The centroids nearest to each query token, whose lists a search walks.
#pragma once

#include "candidates/shortlist.h"

#include <cstdint>
#include <span>
#include <vector>

namespace maxsimd {

struct Probe {
  uint32_t code;
  /// How much better its chunks are than those on none of the token's lists.
  uint8_t gain;
};
/// The lists that each token walks, best first.
using Probes = std::vector<std::vector<Probe>>;

class NearestCentroids {
 public:
  /// So many that their lists meet about `visits` selected chunks a token, were chunks spread evenly.
  NearestCentroids(const ShortlistSearch& search, float visits);

  const Probes& probesOf(const CodedSegment& coded) const;

 private:
  /// Segments with the same codebook, and what a list of theirs is expected to meet.
  struct Group {
    struct Lengths {
      std::span<const uint32_t> ofLists;
      float selected;
    };
    const CodebookTable* table;
    std::vector<Lengths> segments;
    Probes probes;

    uint32_t centroids() const { return uint32_t(segments.front().ofLists.size()); }
    float met(uint32_t centroid) const;
  };

  std::vector<uint8_t> estimateLeast(const ShortlistSearch& search, float visits) const;
  std::vector<TableHit> hitsOf(const ShortlistSearch& search, const Group& group, const std::vector<uint8_t>& least) const;

  std::vector<Group> groups_;
};

}  // namespace maxsimd
