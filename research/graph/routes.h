// Ways from query tokens to their nearest centroids.
#pragma once

#include "centroids.h"

#include <memory>

namespace research {

/// The `several` centroids found for each token, in no order.
using Found = std::vector<std::vector<uint32_t>>;

/// Products with all centroids, as a search makes them: similarities in blocks, a byte each in a table, then the
/// highest bytes of each token. `table` stays for what a search does next.
Found byProducts(const maxsimd::Kernel& kernel, const Centroids& centroids, const int8_t* tokens, uint32_t count,
                 uint32_t several, std::vector<uint8_t>& table);

/// The centroids of the `probed` nearest groups of each token; tokens that share a group are compared together.
Found byTree(const maxsimd::Kernel& kernel, const Centroids& centroids, const int8_t* tokens, uint32_t count,
             uint32_t several, uint32_t probed);

/// The nearest centroid of each of many token vectors among those of their eight nearest groups, as an index assigns them.
Found assignByTree(const maxsimd::Kernel& kernel, const Centroids& centroids, const int8_t* rows, uint32_t count);

/// USearch's hierarchical graph over the centroids, whose vectors stay where they are.
class Graph {
 public:
  Graph(const maxsimd::Kernel& kernel, const Centroids& centroids, uint32_t connectivity, uint32_t expansion);
  ~Graph();
  Found search(const maxsimd::Kernel& kernel, const int8_t* tokens, uint32_t count, uint32_t several,
               uint32_t expansion) const;
  size_t bytes() const;

 private:
  struct Index;
  std::unique_ptr<Index> index_;
  const Centroids& centroids_;
};

}  // namespace research
