#include "codes/centroid_graph.h"

#include "codes/codebook.h"
#include "kernels/cache_lines.h"
#include "kernels/half.h"

#include <usearch/index.hpp>

#include <algorithm>
#include <atomic>
#include <new>
#include <numeric>
#include <string_view>
#include <thread>
#include <unordered_map>

namespace maxsimd {
namespace {

namespace usearch = unum::usearch;
using Hnsw = usearch::index_gt<float, uint32_t, uint32_t>;

/// Edges of a centroid. With half as many, finding as much takes 1.7 times as long (decision 0008).
constexpr size_t edgesOfCentroid = 32;
constexpr size_t expansionOfBuild = 128;
/// A walk keeps at least this many of the best centroids that it has met.
constexpr size_t expansionLeast = 96;
/// The deadline is checked once for this many centroids.
constexpr uint32_t addedTogether = 1024;

usearch::index_config_t config() { return {edgesOfCentroid, 2 * edgesOfCentroid}; }

}  // namespace

struct CentroidGraph::Edges {
  const Kernel& kernel;
  const int8_t* vectors;
  const uint16_t* scales;
  const uint32_t dim;
  /// centroids[p] = the centroid at place `p` of the graph.
  const std::vector<uint32_t> centroids;
  Hnsw graph{config()};
  /// Buffers of searches, each used by one thread at a time.
  mutable std::vector<std::atomic_flag> buffers =
      std::vector<std::atomic_flag>(std::max(1u, std::thread::hardware_concurrency()));

  Edges(const Kernel& ownKernel, const CodebookData& data)
      : kernel(ownKernel),
        vectors(data.centroids.data()),
        scales(data.scales.data()),
        dim(data.dim),
        centroids(inOrder(data)) {}

  /// The order in which centroids are added. Centroids that follow each other in the codebook are near each other, and
  /// adding them in that order would make a worse graph. Among equal vectors only the one is added that token vectors
  /// are assigned to, because many equal vectors would have edges to each other alone.
  static std::vector<uint32_t> inOrder(const CodebookData& data) {
    const uint32_t count = data.count();
    auto step = uint32_t(count * 0.618);
    while (std::gcd(step, count) != 1) ++step;
    std::vector<uint32_t> order;
    std::unordered_map<std::string_view, size_t> places;
    for (uint64_t i = 0; i < count; ++i) {
      const auto k = uint32_t(i * step % count);
      const auto* bytes = reinterpret_cast<const char*>(data.centroids.data()) + size_t(k) * data.dim;
      const auto [known, isNew] = places.try_emplace({bytes, data.dim}, order.size());
      if (isNew) {
        order.push_back(k);
        continue;
      }
      uint32_t& other = order[known->second];
      const float own = halfToFloat(data.scales[k]), others = halfToFloat(data.scales[other]);
      if (own > others || (own == others && k < other)) other = k;
    }
    return order;
  }

  const int8_t* vectorAt(size_t place) const { return vectors + size_t(centroids[place]) * dim; }

  // USearch calls these for a distance, which must be less for a nearer centroid: the negative dot product.
  template <typename Entry>
  float operator()(const int8_t* vector, const Entry& entry) const noexcept {
    const size_t place = get_slot(entry);
    return -float(kernel.dot(vector, vectorAt(place), dim)) * halfToFloat(scales[centroids[place]]);
  }
  template <typename Entry>
  float operator()(const Entry& a, const Entry& b) const noexcept {
    return (*this)(vectorAt(get_slot(a)), b) * halfToFloat(scales[centroids[get_slot(a)]]);
  }

  /// USearch calls it with the centroids that it will compare next.
  auto prefetch() const {
    return [this](auto entry, const auto& end) noexcept {
      for (; entry != end; ++entry) prefetchLines(vectorAt(get_slot(entry)), dim);
    };
  }
};

CentroidGraph::CentroidGraph(const Kernel& kernel, const CodebookData& data, const MemoryOwner& owner,
                             const Deadline& deadline)
    : share_(owner), edges_(std::make_unique<Edges>(kernel, data)) {
  const Edges& own = *edges_;
  Hnsw& graph = edges_->graph;
  const size_t count = own.centroids.size();
  // Memory for each centroid: its node on the lowest level, a share of the nodes on higher levels, and a pointer.
  share_.resize((graph.memory_usage_per_node(0) + usearch::default_allocator_entry_bytes() + sizeof(void*)) * count);
  if (!graph.try_reserve({count, own.buffers.size()})) throw std::bad_alloc();
  for (size_t place = 0; place < count; ++place) {
    if (place % addedTogether == 0) deadline.check();
    auto added = graph.add(0, own.vectorAt(place), own, {.expansion = expansionOfBuild}, usearch::dummy_callback_t{},
                           own.prefetch());
    if (added) continue;
    added.error.release();
    throw std::bad_alloc();
  }
}

CentroidGraph::~CentroidGraph() = default;

std::vector<uint32_t> CentroidGraph::nearest(const int8_t* vector, uint32_t wanted) const {
  const Edges& own = *edges_;
  std::vector<uint32_t> found;
  found.reserve(wanted);
  size_t buffer = std::hash<std::thread::id>()(std::this_thread::get_id());
  while (own.buffers[buffer %= own.buffers.size()].test_and_set(std::memory_order_acquire)) ++buffer;
  auto result = own.graph.search(vector, wanted, own, {std::max<size_t>(expansionLeast, wanted), buffer},
                                 usearch::dummy_predicate_t{}, own.prefetch());
  const bool failed = !result;
  result.error.release();
  for (size_t i = 0; i < result.size(); ++i) found.push_back(own.centroids[get_slot(result[i].member)]);
  own.buffers[buffer].clear(std::memory_order_release);
  if (failed) throw std::bad_alloc();
  return found;
}

}  // namespace maxsimd
