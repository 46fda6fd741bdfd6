#include "engine/list_scan.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace maxsimd {
namespace {

/// Selected chunks below which all codes are scanned.
constexpr uint32_t listsChunksMin = 50'000;
/// Chunks met per query token, were all chunks selected: as many again for each that the filter takes away.
constexpr uint64_t visitsPerToken = 16'384;
/// List entries cost about as much as this many codes do in a scan.
constexpr uint64_t visitCost = 4;
constexpr uint32_t levels = 256;

struct Probe {
  uint16_t centroid;
  /// Above the least level looked at for this token.
  uint8_t gain;
};

/// The lists a token walks, best first: enough to meet `visits` chunks.
std::vector<std::vector<Probe>> chooseProbes(const ChunkCodes& codes, const Codebook::Table& table, uint64_t visits) {
  const std::span<const uint32_t> lengths = codes.listLengths();
  const auto count = uint32_t(lengths.size());
  std::vector<std::array<uint64_t, levels>> met(table.tokens);
  for (auto& token : met) token.fill(0);
  for (uint32_t k = 0; k < count; ++k) {
    const uint8_t* row = table.levels.data() + size_t(k) * table.tokensPadded;
    for (uint32_t i = 0; i < table.tokens; ++i) met[i][row[i]] += lengths[k];
  }
  std::vector<uint8_t> least(table.tokens);
  for (uint32_t i = 0; i < table.tokens; ++i) {
    uint32_t level = levels - 1;
    for (uint64_t sum = met[i][level]; sum < visits && level > 1;) sum += met[i][--level];
    least[i] = uint8_t(level);
  }
  std::vector<std::vector<Probe>> probes(table.tokens);
  for (uint32_t k = 0; k < count; ++k) {
    if (lengths[k] == 0) continue;
    const uint8_t* row = table.levels.data() + size_t(k) * table.tokensPadded;
    for (uint32_t i = 0; i < table.tokens; ++i) {
      // A gain of at least 1 for being met at all.
      if (row[i] >= least[i]) probes[i].push_back({uint16_t(k), uint8_t(row[i] - least[i] + 1)});
    }
  }
  for (auto& token : probes) {
    std::sort(token.begin(), token.end(), [](const Probe& a, const Probe& b) {
      return a.gain != b.gain ? a.gain > b.gain : a.centroid < b.centroid;
    });
  }
  return probes;
}

/// What the chunks of one block gain: the sum in the low bits, above it the last token that added to it.
class Gains {
 public:
  static constexpr uint32_t sumBits = 18;
  static constexpr uint32_t sumMask = (1u << sumBits) - 1;

  Gains() : gains_(ChunkCodes::blockChunks) {}

  void collect(const ChunkCodes& codes, uint32_t block, const std::vector<std::vector<Probe>>& probes) {
    std::fill(gains_.begin(), gains_.end(), 0u);
    for (uint32_t i = 0; i < probes.size(); ++i) {
      const uint32_t stamp = (i + 1) << sumBits;
      for (const Probe& probe : probes[i]) {
        for (const uint16_t chunk : codes.list(block, probe.centroid)) {
          const uint32_t gain = gains_[chunk];
          if ((gain & ~sumMask) != stamp) gains_[chunk] = stamp | ((gain & sumMask) + probe.gain);
        }
      }
    }
  }

  uint32_t sum(uint32_t chunk) const { return gains_[chunk] & sumMask; }

 private:
  std::vector<uint32_t> gains_;
};
static_assert(uint64_t(queryTokensMax) * levels <= Gains::sumMask &&
              (queryTokensMax + 1) < (1u << (32 - Gains::sumBits)));

struct Survivor {
  uint32_t sum;
  uint32_t chunk;
};

}  // namespace

bool worthLists(const Selection& selection, uint32_t survivors) {
  const ChunkCodes& codes = *selection.snapshot.codes;
  const uint64_t selected = selection.chunks->count;
  if (selected < listsChunksMin || selected <= survivors) return false;
  const uint64_t all = codes.chunks();
  const uint64_t visits = visitsPerToken * all / selected;
  // Per query token of a full table row of 32: a scan takes one step per code, whatever the tokens.
  return visits * visitCost * 32 < codes.codeCount() * selected / all;
}

std::vector<uint32_t> surviveLists(const Selection& selection, const Codebook::Table& table, uint32_t count, Pool& pool,
                                   const Deadline& deadline) {
  const ChunkCodes& codes = *selection.snapshot.codes;
  const Bitmap& selected = selection.chunks->chunks;
  const uint64_t visits = visitsPerToken * codes.chunks() / std::max(1u, selection.chunks->count);
  const auto probes = chooseProbes(codes, table, visits);
  std::vector<std::vector<Survivor>> parts(codes.blocks());
  pool.parallelFor(parts.size(), [&](size_t b) {
    deadline.check();
    thread_local Gains gains;
    gains.collect(codes, uint32_t(b), probes);
    const auto first = uint32_t(b) * ChunkCodes::blockChunks;
    std::vector<uint32_t> histogram(size_t(table.tokens) * levels + 1);
    uint32_t most = 0;
    selected.forEach(first, first + ChunkCodes::blockChunks, [&](uint32_t chunk) {
      const uint32_t sum = gains.sum(chunk - first);
      ++histogram[sum];
      most = std::max(most, sum);
    });
    uint32_t least = most;
    std::vector<Survivor> survivors;
    for (uint32_t kept = histogram[most]; kept < count && least > 1;) kept += histogram[--least];
    selected.forEach(first, first + ChunkCodes::blockChunks, [&](uint32_t chunk) {
      const uint32_t sum = gains.sum(chunk - first);
      if (sum >= least && sum > 0) survivors.push_back({sum, chunk});
    });
    parts[b] = std::move(survivors);
  });
  std::vector<Survivor> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  if (all.size() > count) {
    std::nth_element(all.begin(), all.begin() + count, all.end(), [](const Survivor& a, const Survivor& b) {
      return a.sum != b.sum ? a.sum > b.sum : a.chunk < b.chunk;
    });
    all.resize(count);
  }
  std::vector<uint32_t> chunks;
  for (const Survivor& one : all) chunks.push_back(one.chunk);
  std::sort(chunks.begin(), chunks.end());
  return chunks;
}

}  // namespace maxsimd
