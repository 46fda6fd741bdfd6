#include "engine/graph.h"

#include "store/crc32c.h"
#include "store/error.h"
#include "store/file.h"

#include <usearch/index_dense.hpp>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

namespace maxsimd {
namespace {

using unum::usearch::index_dense_config_t;
using unum::usearch::index_dense_gt;
using unum::usearch::index_limits_t;
using unum::usearch::memory_mapped_file_t;
using unum::usearch::metric_kind_t;
using unum::usearch::metric_punned_t;
using unum::usearch::scalar_kind_t;

using UsearchIndex = index_dense_gt<uint64_t, uint32_t>;
using i8 = unum::usearch::i8_t;

constexpr uint64_t graphMagic = 0x52474d495358414dull;  // "MAXSIMGR"
constexpr uint32_t graphVersion = 1;
constexpr size_t crcStart = 16;
/// Marks deleted entries in USearch; no chunk has it.
constexpr uint64_t freeKey = UINT64_MAX;
constexpr size_t connectivity = 16;
constexpr size_t expansionAdd = 128;
constexpr size_t expansionSearch = 64;
/// Chunks inserted between two looks at the deadline.
constexpr uint32_t buildStep = 64;
/// More strays than one chunk in so many: the graph is refused.
constexpr uint32_t strayChunksMin = 20;
constexpr float roundingShare = 1e-4f;

struct GraphHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t crc;
  uint64_t segmentId;
  uint64_t projection;
  uint64_t graphBytes;
  uint32_t chunks;
  uint32_t vectorBytes;
  uint32_t bodyCrc;
  uint32_t strays;
  uint8_t zero[8];
};
static_assert(sizeof(GraphHeader) == 64);

uint32_t headerChecksum(const GraphHeader& header) {
  return crc32c(reinterpret_cast<const uint8_t*>(&header) + crcStart, sizeof header - crcStart);
}

/// int8 components, zeros up to a multiple of 4, then the completing float.
uint32_t vectorBytes(uint32_t dim) { return (dim + 3) / 4 * 4 + sizeof(float); }

struct Metric {
  int32_t (*dot)(const int8_t*, const int8_t*, uint32_t);
  uint32_t dim;
  uint32_t floatOffset;

  static float distance(size_t a, size_t b, size_t self) {
    const auto* metric = reinterpret_cast<const Metric*>(self);
    const auto* x = reinterpret_cast<const int8_t*>(a);
    const auto* y = reinterpret_cast<const int8_t*>(b);
    float completeX, completeY;
    std::memcpy(&completeX, x + metric->floatOffset, sizeof completeX);
    std::memcpy(&completeY, y + metric->floatOffset, sizeof completeY);
    return -(float(metric->dot(x, y, metric->dim)) + completeX * completeY);
  }

  metric_punned_t punned() const {
    return metric_punned_t::stateful(floatOffset + sizeof(float), reinterpret_cast<size_t>(&Metric::distance),
                                     reinterpret_cast<size_t>(this), metric_kind_t::ip_k, scalar_kind_t::i8_k);
  }
};

Error outOfMemory() { return Error(ErrorCode::io, "graph: out of memory", ENOMEM); }

uint64_t strayBytes(uint32_t strays) { return alignSection(uint64_t(strays) * 4); }

std::string graphPath(const Segment& segment) { return segment.path() + ".graph"; }

/// Every chunk's vector in the layout of `Metric`.
std::vector<int8_t> chunkVectors(const Segment& segment, const ChunkProjection& projection, const Deadline& deadline) {
  const uint32_t dim = projection.dim(), stride = vectorBytes(dim);
  const uint32_t chunks = segment.counts().chunks;
  const auto mapping = segment.mapping();
  std::vector<float> projected(size_t(chunks) * dim);
  for (uint32_t c = 0; c < chunks; ++c) {
    if (c % buildStep == 0) deadline.check();
    const ChunkEntry& entry = segment.chunk(c);
    if (!segment.dataIntact(*mapping, entry.record)) {
      throw Error(ErrorCode::corrupt, segment.path() + ": damaged record " + std::to_string(entry.record));
    }
    const RecordView view = segment.view(*mapping, entry.record);
    projection.projectChunk({view.vectors() + size_t(entry.firstRow) * segment.dim(), view.scales() + entry.firstRow,
                             segment.chunkRows(c)},
                            projected.data() + size_t(c) * dim);
  }
  // Centring moves every inner product with a query by the same amount and leaves more steps to the rest.
  std::vector<double> centre(dim, 0.0);
  for (size_t i = 0; i < projected.size(); ++i) centre[i % dim] += projected[i] / chunks;
  float largest = 0.0f;
  for (size_t i = 0; i < projected.size(); ++i) {
    projected[i] -= float(centre[i % dim]);
    largest = std::max(largest, std::abs(projected[i]));
  }
  const float scale = largest > 0.0f ? 127.0f / largest : 0.0f;
  std::vector<int8_t> vectors(size_t(chunks) * stride);
  std::vector<float> squares(chunks, 0.0f);
  float longest = 0.0f;
  for (uint32_t c = 0; c < chunks; ++c) {
    for (uint32_t d = 0; d < dim; ++d) {
      const float value = std::nearbyint(projected[size_t(c) * dim + d] * scale);
      vectors[size_t(c) * stride + d] = int8_t(value);
      squares[c] += value * value;
    }
    longest = std::max(longest, squares[c]);
  }
  for (uint32_t c = 0; c < chunks; ++c) {
    const float complete = std::sqrt(longest - squares[c]);
    std::memcpy(vectors.data() + size_t(c) * stride + stride - sizeof complete, &complete, sizeof complete);
  }
  return vectors;
}

/// Chunks whose vector does not find itself, up to rounding and duplicates.
std::vector<uint32_t> findStrays(const UsearchIndex& index, const std::vector<int8_t>& vectors, uint32_t stride,
                                 const Metric& metric, const Deadline& deadline) {
  const auto chunks = uint32_t(vectors.size() / stride);
  std::vector<uint32_t> strays;
  for (uint32_t c = 0; c < chunks; ++c) {
    if (c % buildStep == 0) deadline.check();
    const int8_t* vector = vectors.data() + size_t(c) * stride;
    const auto found = index.search(reinterpret_cast<const i8*>(vector), 1);
    if (!found) throw outOfMemory();
    const auto at = reinterpret_cast<size_t>(vector);
    const float own = Metric::distance(at, at, reinterpret_cast<size_t>(&metric));
    if (found.size() == 0 || found[0].distance > own + roundingShare * std::abs(own)) strays.push_back(c);
  }
  return strays;
}

void saveDurably(const std::string& path, const GraphHeader& header, const std::vector<uint8_t>& body) {
  const std::string temporary = path + ".tmp";
  unlink(temporary.c_str());
  try {
    File file = File::create(temporary);
    file.write(0, &header, sizeof header);
    file.write(sizeof header, body.data(), body.size());
    file.sync();
    if (std::rename(temporary.c_str(), path.c_str()) != 0) throw Error::fromErrno("rename " + temporary);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  syncDirectoryOf(path);
}

}  // namespace

struct Graph::State {
  GraphHeader header{};
  std::shared_ptr<const Mapping> mapping;
  Metric metric{};
  std::span<const uint32_t> strays;
  UsearchIndex index;
};

Graph::Graph(std::unique_ptr<State> state) : state_(std::move(state)) {}
Graph::~Graph() = default;

uint32_t Graph::chunks() const { return state_->header.chunks; }
uint64_t Graph::bytes() const { return state_->mapping->bytes(); }

std::shared_ptr<const Graph> Graph::open(const Segment& segment, const Kernel& kernel,
                                         const ChunkProjection& projection, uint32_t threads) {
  const std::string path = graphPath(segment);
  if (access(path.c_str(), F_OK) != 0) return nullptr;
  const uint32_t dim = projection.dim();
  auto state = std::make_unique<State>();
  GraphHeader& header = state->header;
  const File file = File::openExisting(path);
  const uint64_t bytes = file.size();
  if (bytes < sizeof header) return nullptr;
  file.read(0, &header, sizeof header);
  if (header.magic != graphMagic || header.version != graphVersion || header.crc != headerChecksum(header) ||
      header.segmentId != segment.id() || header.projection != projection.id() ||
      header.chunks != segment.counts().chunks || header.vectorBytes != vectorBytes(dim) ||
      header.strays > header.chunks || header.graphBytes != bytes - sizeof header - strayBytes(header.strays)) {
    return nullptr;
  }
  state->mapping = file.map(bytes);
  const uint8_t* body = state->mapping->base() + sizeof header;
  if (crc32c(body, bytes - sizeof header) != header.bodyCrc) return nullptr;
  state->strays = {reinterpret_cast<const uint32_t*>(body), header.strays};
  auto* graph = const_cast<uint8_t*>(body) + strayBytes(header.strays);

  state->metric = {kernel.dot, dim, vectorBytes(dim) - uint32_t(sizeof(float))};
  index_dense_config_t config(connectivity, expansionAdd, expansionSearch);
  config.enable_key_lookups = false;
  auto made = UsearchIndex::make(state->metric.punned(), config, freeKey, index_limits_t(0, threads));
  if (!made) return nullptr;
  state->index = std::move(made.index);
  if (!state->index.view(memory_mapped_file_t(reinterpret_cast<unum::usearch::byte_t*>(graph), header.graphBytes))) {
    return nullptr;
  }
  if (state->index.size() != header.chunks || !state->index.try_change_metric(state->metric.punned())) return nullptr;
  return std::shared_ptr<const Graph>(new Graph(std::move(state)));
}

std::shared_ptr<const Graph> Graph::build(const Segment& segment, const Kernel& kernel,
                                          const ChunkProjection& projection, uint32_t threads,
                                          const Deadline& deadline) {
  const uint32_t stride = vectorBytes(projection.dim());
  const std::vector<int8_t> vectors = chunkVectors(segment, projection, deadline);
  const auto chunks = uint32_t(vectors.size() / stride);
  const Metric metric{kernel.dot, projection.dim(), stride - uint32_t(sizeof(float))};
  index_dense_config_t config(connectivity, expansionAdd, expansionSearch);
  config.enable_key_lookups = false;
  auto made = UsearchIndex::make(metric.punned(), config, freeKey, index_limits_t(chunks, 1));
  if (!made) throw outOfMemory();
  UsearchIndex index = std::move(made.index);
  for (uint32_t c = 0; c < chunks; ++c) {
    if (c % buildStep == 0) deadline.check();
    const auto added = index.add(c, reinterpret_cast<const i8*>(vectors.data() + size_t(c) * stride), 0, false);
    if (!added) throw outOfMemory();
  }
  const std::vector<uint32_t> strays = findStrays(index, vectors, stride, metric, deadline);
  if (strays.size() > 1 + chunks / strayChunksMin) {
    throw Error(ErrorCode::io, segment.path() + ": its graph strands " + std::to_string(strays.size()) + " chunks");
  }

  std::vector<uint8_t> body(strayBytes(uint32_t(strays.size())));
  if (!strays.empty()) std::memcpy(body.data(), strays.data(), strays.size() * 4);
  const size_t graphStart = body.size();
  const auto saved = index.save_to_stream([&body](const void* data, size_t bytes) {
    const auto* from = static_cast<const uint8_t*>(data);
    body.insert(body.end(), from, from + bytes);
    return true;
  });
  if (!saved) throw Error(ErrorCode::io, "graph: cannot be serialised");
  GraphHeader header{};
  header.magic = graphMagic;
  header.version = graphVersion;
  header.segmentId = segment.id();
  header.projection = projection.id();
  header.graphBytes = body.size() - graphStart;
  header.chunks = chunks;
  header.vectorBytes = stride;
  header.strays = uint32_t(strays.size());
  header.bodyCrc = crc32c(body.data(), body.size());
  header.crc = headerChecksum(header);
  saveDurably(graphPath(segment), header, body);
  auto opened = open(segment, kernel, projection, threads);
  if (!opened) throw std::logic_error("this is a bug: a graph just saved cannot be opened");
  return opened;
}

std::vector<uint32_t> Graph::nearest(std::span<const float> query, uint32_t count,
                                     const std::vector<bool>& allowed) const {
  std::vector<int8_t> vector(state_->header.vectorBytes);
  float largest = 0.0f;
  for (const float value : query) largest = std::max(largest, std::abs(value));
  const float scale = largest > 0.0f ? 127.0f / largest : 0.0f;
  for (size_t d = 0; d < query.size(); ++d) vector[d] = int8_t(std::nearbyint(query[d] * scale));
  auto found = state_->index.filtered_search(reinterpret_cast<const i8*>(vector.data()), count,
                                             [&allowed](uint64_t chunk) { return bool(allowed[chunk]); });
  if (!found) throw Error(ErrorCode::io, "graph: search failed", ENOMEM);
  std::vector<uint32_t> chunks(found.size());
  for (size_t i = 0; i < found.size(); ++i) chunks[i] = uint32_t(found[i].member.key);
  for (const uint32_t stray : state_->strays) {
    if (allowed[stray]) chunks.push_back(stray);
  }
  std::sort(chunks.begin(), chunks.end());
  chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
  return chunks;
}

}  // namespace maxsimd
