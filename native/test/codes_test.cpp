// Codebooks against brute force, damaged code files, and live chunks against the lives themselves.
#include "engine/codebook_fit.h"
#include "engine/codes.h"
#include "engine/live_chunks.h"
#include "engine/nearest.h"
#include "kernels/dispatch.h"
#include "test/sample.h"

#include <fstream>

namespace maxsimd::test {
namespace {

constexpr uint32_t dim = 32;

std::shared_ptr<Segment> sealedSegment(Random& random, const Clusters& clusters, const std::string& path, uint32_t records) {
  auto segment = Segment::create(7, path, dim);
  for (uint32_t r = 0; r < records; ++r) {
    std::vector<uint32_t> chunkRows(between(random, 1, 4));
    for (auto& rows : chunkRows) rows = between(random, 1, 70);
    segment->append(assembleRecord(randomRecord(random, clusters, r, chunkRows), dim));
  }
  segment->seal();
  return segment;
}

ChunkCodes::Intern keepAll() {
  return [](Codebook codebook) { return std::make_shared<const Codebook>(std::move(codebook)); };
}

Codebook fitted(const Kernel& kernel, const Segment& segment, uint32_t count) {
  const TokenSample sample = sampleTokenVectors(segment, count * sampleRowsPerCentroid, {});
  return Codebook(kernel, fitCodebook(kernel, dim, sample, count, {}));
}

const Case assigned("codes", "token vectors get a centroid about as near as the nearest of all", [](Random& random) {
  const TemporaryDirectory directory;
  const Clusters clusters(random, dim, 60);
  const Kernel& kernel = *findKernel("auto");
  const auto segment = sealedSegment(random, clusters, directory.file("7.seg"), 150);
  const Codebook codebook = fitted(kernel, *segment, 256);
  CHECK(codebook.count() <= 256 && codebook.count() >= 200);
  const TokenSample sample = sampleTokenVectors(*segment, 3000, {});
  const uint32_t rows = sample.rows;
  const std::vector<int8_t>& vectors = sample.vectors;
  CHECK(rows == 3000);
  std::vector<uint16_t> codes(rows);
  codebook.assign(vectors.data(), rows, codes.data());
  const CodebookData& data = codebook.data();
  uint32_t same = 0;
  double cosine = 0;
  for (uint32_t r = 0; r < rows; ++r) {
    float best = -INFINITY, own = 0, norm = 0;
    uint32_t nearest = 0;
    for (uint32_t k = 0; k < data.count(); ++k) {
      float dot = 0;
      for (uint32_t d = 0; d < dim; ++d) dot += float(vectors[r * dim + d]) * float(data.centroids[k * dim + d]);
      dot *= halfToFloat(data.scales[k]);
      if (k == codes[r]) own = dot;
      if (dot > best) best = dot, nearest = k;
    }
    for (uint32_t d = 0; d < dim; ++d) norm += float(vectors[r * dim + d]) * float(vectors[r * dim + d]);
    cosine += double(own) / std::sqrt(double(norm)) / rows;
    same += uint32_t(nearest == codes[r]);
    CHECK(own <= best * 1.0001f && own > best * 0.5f);
  }
  std::printf("  nearest of all: %.3f, mean cosine %.3f\n", double(same) / rows, cosine);
  CHECK(same > rows * 9 / 10);
  CHECK(cosine > 0.8);
});

const Case described("codes", "codes and lists say the same, and what assigning each chunk alone says", [](Random& random) {
  const TemporaryDirectory directory;
  const Clusters clusters(random, dim, 60);
  const Kernel& kernel = *findKernel("auto");
  const auto segment = sealedSegment(random, clusters, directory.file("7.seg"), 700);
  const Codebook codebook = fitted(kernel, *segment, 128);
  const auto built = ChunkCodes::build(*segment, kernel, codebook, keepAll(), {});
  const auto codes = ChunkCodes::open(*segment, kernel, keepAll());
  CHECK(codes != nullptr && codes->codebook().hash() == codebook.hash() && codes->chunks() == segment->counts().chunks);
  const auto mapping = segment->mapping();
  std::vector<std::vector<uint16_t>> inLists(codes->chunks());
  for (uint32_t k = 0; k < codebook.count(); ++k) {
    CHECK(codes->listLengths()[k] == codes->list(0, k).size());
    for (const uint16_t chunk : codes->list(0, k)) inLists[chunk].push_back(uint16_t(k));
  }
  for (uint32_t c = 0; c < codes->chunks(); ++c) {
    const ChunkEntry& entry = segment->chunk(c);
    std::vector<uint16_t> own(segment->chunkRows(c));
    codebook.assign(segment->view(*mapping, entry.record).vectors() + size_t(entry.firstRow) * dim, uint32_t(own.size()), own.data());
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    CHECK(std::equal(own.begin(), own.end(), codes->of(c).begin(), codes->of(c).end()));
    CHECK(own == inLists[c]);
  }
});

const Case damaged("codes", "a damaged, cut, foreign or later codes file is ignored", [](Random& random) {
  const TemporaryDirectory directory;
  const Clusters clusters(random, dim, 20);
  const Kernel& kernel = *findKernel("auto");
  const auto segment = sealedSegment(random, clusters, directory.file("7.seg"), 20);
  ChunkCodes::build(*segment, kernel, fitted(kernel, *segment, 64), keepAll(), {});
  const std::string path = ChunkCodes::pathOf(*segment);
  std::vector<char> whole;
  {
    std::ifstream file(path, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(file), {});
  }
  const auto opensWith = [&](const std::vector<char>& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), long(bytes.size()));
    return ChunkCodes::open(*segment, kernel, keepAll()) != nullptr;
  };
  CHECK(opensWith(whole));
  for (int round = 0; round < 60; ++round) {
    std::vector<char> bytes = whole;
    const uint32_t at = round < 20 ? uint32_t(random() % 64) : uint32_t(random() % bytes.size());
    bytes[at] = char(bytes[at] ^ (1 << (random() % 8)));
    CHECK(!opensWith(bytes));
  }
  for (const size_t bytes : {size_t(0), size_t(63), size_t(64), whole.size() - 64, whole.size() - 1}) {
    CHECK(!opensWith({whole.begin(), whole.begin() + long(bytes)}));
  }
  CHECK(opensWith(whole));
});

const Case live("codes", "live chunks are those the lives show, whatever was asked before", [](Random& random) {
  const TemporaryDirectory directory;
  const Clusters clusters(random, dim, 5);
  const auto segment = Segment::create(7, directory.file("7.seg"), dim);
  LiveTracker tracker(segment);
  uint64_t generation = 1;
  for (int step = 0; step < 600; ++step) {
    const uint32_t records = segment->recordCount();
    switch (random() % 6) {
      case 0:
      case 1: {
        const uint32_t record = segment->append(assembleRecord(randomRecord(random, clusters, 1, {2, 1}), dim));
        segment->life(record).setBorn(++generation);
        tracker.note(generation, record);
        break;
      }
      case 2:
        if (records > 0) {
          const auto record = uint32_t(random() % records);
          if (segment->life(record).died() != generationNever || segment->life(record).born() > generation) break;
          segment->life(record).setDied(++generation);
          tracker.note(generation, record);
        }
        break;
      case 3:
        if (random() % 20 == 0) tracker.reset();
        break;
      default: {
        const uint64_t asked = generation - std::min<uint64_t>(generation, random() % 3);
        const auto known = tracker.at(asked, records);
        uint32_t count = 0;
        uint64_t rows = 0;
        for (uint32_t r = 0; r < records; ++r) {
          const RecordEntry& entry = segment->record(r);
          const bool visible = segment->life(r).visibleAt(asked);
          for (uint32_t c = entry.firstChunk; c < entry.firstChunk + entry.chunks; ++c) {
            CHECK((c < known->chunks.size() && known->chunks.test(c)) == visible);
          }
          count += visible ? entry.chunks : 0;
          rows += visible ? entry.rows : 0;
        }
        CHECK(known->count == count && known->rows == rows);
      }
    }
  }
});

}  // namespace
}  // namespace maxsimd::test
