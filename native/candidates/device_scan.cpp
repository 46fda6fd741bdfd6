#include "candidates/device_scan.h"

#include "candidates/index_search.h"
#include "device/residents.h"

namespace maxsimd {
namespace {

/// A scan on the device has a fixed cost: 1/8 of the time in which the CPU scans `exactTokenVectorsMax` token vectors
/// (docs/benchmarks.md). Smaller sets are left to the CPU.
constexpr uint64_t partOfExactScan = 8;

}  // namespace

std::vector<ScoredChunk> scanOnDevice(const Index& index, const IndexSearch& request, const Query& query,
                                      const std::vector<Selection>& selections, std::vector<bool>& scored) {
  std::vector<ScoredChunk> best;
  Residents* const residents = index.residents();
  if (residents == nullptr || request.plan != Plan::automatic) return best;
  const auto isWorthIt = [&](uint64_t rows) { return rows * partOfExactScan >= index.options().exactTokenVectorsMax; };
  std::vector<Residents::Scan> scans;
  std::vector<uint32_t> scanned;
  uint64_t rows = 0;
  for (uint32_t s = 0; s < selections.size(); ++s) {
    const LiveChunks& live = *selections[s].chunks;
    if (live.count == 0) continue;
    auto resident = residents->of(selections[s].snapshot.segment, isWorthIt(live.rows));
    // The sizes differ if the segment was not sealed yet when its live chunks were counted. A later search can use it.
    if (resident == nullptr || live.chunks.size() != resident->chunks()) continue;
    rows += live.rows;
    scans.push_back({std::move(resident), live.chunks.words()});
    scanned.push_back(s);
  }
  if (scans.empty() || !isWorthIt(rows)) return best;
  request.deadline.check();
  const PackedQuery& packed = query.packed();
  const auto found = residents->best(scans, {packed.dim, query.quantised().data(), packed.scales, packed.offsets,
                                             packed.tokens, request.grouped ? request.candidateK : request.wanted()});
  if (!found) return best;
  for (const uint32_t s : scanned) scored[s] = true;
  for (const auto& [scan, chunk, score] : *found) best.push_back({{scanned[scan], chunk}, score});
  return best;
}

}  // namespace maxsimd
