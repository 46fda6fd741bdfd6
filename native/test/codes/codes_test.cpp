// Codebooks against brute force, damaged code files, and live chunks against the lifespans themselves.
#include "codes/codebook_file.h"
#include "codes/codebook_fit.h"
#include "codes/codes.h"
#include "codes/search_tuning.h"
#include "index/index.h"
#include "index/live_chunks.h"
#include "runtime/query.h"
#include "candidates/query_tables.h"
#include "search/search.h"
#include "kernels/dispatch.h"
#include "test/sample.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <map>

namespace maxsimd::test {
namespace {

constexpr uint32_t dim = 32;

std::shared_ptr<Segment> sealedSegment(Random& random, const Clusters& clusters, const std::string& path,
                                       uint32_t records) {
  auto segment = Segment::create(7, path, dim);
  for (uint32_t r = 0; r < records; ++r) {
    std::vector<uint32_t> chunkRows(between(random, 1, 4));
    for (auto& rows : chunkRows) rows = between(random, 1, 70);
    segment->append(assembleRecord(randomRecord(random, clusters, r, chunkRows), dim));
  }
  segment->seal();
  return segment;
}

double variance(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double value : values) sum += value, squares += value * value;
  const auto count = double(values.size());
  return squares / count - (sum / count) * (sum / count);
}

ChunkCodes::Intern keepAll() {
  return [](uint64_t, const ChunkCodes::Load& load) {
    std::optional<Codebook> loaded = load();
    return loaded ? std::make_shared<const Codebook>(std::move(*loaded)) : nullptr;
  };
}

Codebook fitted(const Kernel& kernel, const std::shared_ptr<const Segment>& segment, uint32_t count) {
  const TokenSample sample = sampleTokenVectors({&segment, 1}, count * SearchTuning::fitRowsPerCentroid, {});
  return Codebook(kernel, fitCodebook(kernel, dim, sample, sample, count, {}));
}

const Case assigned("codes", "token vectors get a centroid about as near as the nearest of all", [](Random& random) {
  const TemporaryDirectory directory;
  const Clusters clusters(random, dim, 60);
  const Kernel& kernel = *findKernel("auto");
  const auto segment = sealedSegment(random, clusters, directory.file("7.seg"), 150);
  const Codebook codebook = fitted(kernel, segment, 256);
  CHECK(codebook.count() <= 256 && codebook.count() >= 200);
  const std::shared_ptr<const Segment> readable = segment;
  const TokenSample sample = sampleTokenVectors({&readable, 1}, 3000, {});
  const uint32_t rows = sample.rows;
  const std::vector<int8_t>& vectors = sample.vectors;
  CHECK(rows == 3000);
  std::vector<uint32_t> codes(rows);
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

const Case finer("codes", "with codewords the approximate MaxSim follows the exact one more closely",
                 [](Random& random) {
                   const TemporaryDirectory directory;
                   const Clusters clusters(random, dim, 60);
                   const Kernel& kernel = *findKernel("auto");
                   Pool pool(2);
                   const auto segment = sealedSegment(random, clusters, directory.file("7.seg"), 300);
                   const auto codes = ChunkCodes::build(*segment, kernel, fitted(kernel, segment, 128), keepAll(), {});
                   const auto mapping = segment->mapping();
                   double coarse = 0, fine = 0;
                   for (int round = 0; round < 10; ++round) {
                     std::vector<float> vectors, offsets;
                     for (uint32_t i = 0; i < 20; ++i) {
                       const auto vector = clusters.near(random, uint32_t(random() % 60));
                       for (const float component : vector) vectors.push_back(component * (0.2f + 0.1f * float(i % 5)));
                       offsets.push_back(0.05f * float(i));
                     }
                     const Query query(kernel, vectors, offsets, dim);
                     const Codebook* const codebook = &codes->codebook();
                     QueryTables tables(kernel, vectors, offsets, dim, {&codebook, 1}, pool);
                     tables.addAll();
                     const CodebookTable& table = tables.of(0);
                     const ResidualTable& residual = table.residual;
                     std::vector<double> byCodes, byBoth;
                     for (uint32_t c = 0; c < codes->chunks(); ++c) {
                       const ChunkEntry& entry = segment->chunk(c);
                       const RecordView view = segment->view(*mapping, entry.record);
                       const Chunk chunk{view.vectors() + size_t(entry.firstRow) * dim, view.scales() + entry.firstRow,
                                         segment->chunkRows(c)};
                       float exact;
                       kernel.maxsim(query.packed(), &chunk, 1, &exact);
                       const uint32_t entries = kernel.loops->sumOfMaxima(residual, codes->of(c));
                       const uint32_t steps = kernel.loops->sumOfResidualMaxima(residual, codes->coded(c));
                       byCodes.push_back(double(tables.base() + tables.step() * float(entries)) - double(exact));
                       byBoth.push_back(double(table.residualBase + table.residualStep * float(steps)) - double(exact));
                     }
                     coarse += variance(byCodes);
                     fine += variance(byBoth);
                   }
                   std::printf("  variance of the error: %.2f by codes, %.2f with codewords\n", coarse, fine);
                   CHECK(fine < coarse * 0.4);
                 });

/// A codebook with more centroids than two bytes can number. They are token vectors of the clusters, grouped in their
/// order.
Codebook wideCodebook(const Kernel& kernel, Random& random, const Clusters& clusters) {
  constexpr uint32_t count = 65'536 + 999, groups = 64;
  CodebookData data;
  data.dim = dim;
  const auto fill = [&](std::vector<int8_t>& vectors, std::vector<uint16_t>& scales, uint32_t rows) {
    vectors.resize(size_t(rows) * dim + readPaddingBytes);
    scales.resize(rows + readPaddingBytes);
    for (uint32_t k = 0; k < rows; ++k) {
      float scale;
      quantise(clusters.near(random, uint32_t(random() % clusters.centres.size())), vectors.data() + size_t(k) * dim,
               &scale);
      scales[k] = floatToHalf(scale);
    }
  };
  fill(data.centroids, data.scales, count);
  fill(data.groups, data.groupScales, groups);
  for (uint32_t g = 0; g <= groups; ++g) data.groupStarts.push_back(uint32_t(uint64_t(g) * count / groups));
  data.codewords.resize(size_t(subspaces) * codewords * data.subspaceDim());
  for (float& value : data.codewords) value = float(int32_t(random() % 201) - 100) / 500.0f;
  return Codebook(kernel, std::move(data));
}

/// Checks that codes and lists of the segment agree with each other, and with assigning each chunk alone.
void checkCodes(const Kernel& kernel, const Segment& segment, const Codebook& codebook) {
  ChunkCodes::build(segment, kernel, codebook, keepAll(), {});
  const auto codes = ChunkCodes::open(segment, kernel, keepAll());
  CHECK(codes != nullptr && codes->codebook().data().centroids == codebook.data().centroids &&
        codes->chunks() == segment.counts().chunks);
  CHECK(inspectCodes(ChunkCodes::pathOf(segment), true).damage.empty());
  const auto mapping = segment.mapping();
  std::vector<std::vector<uint32_t>> inLists(codes->chunks());
  for (uint32_t k = 0; k < codebook.count(); ++k) {
    for (const uint16_t chunk : codes->list(0, k)) inLists[chunk].push_back(k);
  }
  for (uint32_t c = 0; c < codes->chunks(); ++c) {
    const ChunkEntry& entry = segment.chunk(c);
    std::vector<uint32_t> own(segment.chunkRows(c));
    codebook.assign(segment.view(*mapping, entry.record).vectors() + size_t(entry.firstRow) * dim, uint32_t(own.size()),
                    own.data());
    std::map<uint32_t, uint32_t> runs;
    for (const uint32_t code : own) ++runs[code];
    const auto of = codes->of(c);
    CHECK(of.size() == runs.size() && of.size() == inLists[c].size() && codes->coded(c).rows == own.size());
    size_t k = 0;
    for (const auto& [code, run] : runs) {
      CHECK(inLists[c][k] == code && of[k] == (code | run << centroidBits));
      ++k;
    }
  }
}

const Case described("codes", "codes and lists say the same, and what assigning each chunk alone says",
                     [](Random& random) {
                       const TemporaryDirectory directory;
                       const Clusters clusters(random, dim, 60);
                       const Kernel& kernel = *findKernel("auto");
                       const auto segment = sealedSegment(random, clusters, directory.file("7.seg"), 700);
                       checkCodes(kernel, *segment, fitted(kernel, segment, 128));
                     });

const Case sized("codes", "centroids grow with the root of the token vectors", [](Random&) {
  CHECK(SearchTuning::centroids(1) == 8 && SearchTuning::centroids(36'000) == 2048);
  CHECK(SearchTuning::centroids(1'000'000) == 8192 && SearchTuning::centroids(48'000'000) == 65'536);
  CHECK(SearchTuning::centroids(1ull << 36) == centroidsMax);
});

const Case wide("codes", "searches with more than 65,536 centroids find what they find exactly", [](Random& random) {
  const TemporaryDirectory directory;
  const Clusters clusters(random, dim, 60);
  const Kernel& kernel = *findKernel("auto");
  const auto segment = sealedSegment(random, clusters, directory.file("7.seg"), 200);
  checkCodes(kernel, *segment, wideCodebook(kernel, random, clusters));

  Pool pool(2);
  Index index(kernel, {dim, 0});
  index.openSegment(7, segment->path(), segment->recordCount(), true);
  CHECK(index.segments().front().centroids > 65'536);
  std::vector<Index::LifespanChange> born;
  for (uint32_t r = 0; r < segment->recordCount(); ++r) born.push_back({7, r});
  index.publish(1, born, {});
  const std::vector<float> query = clusters.near(random, 5);
  const auto found = [&](Plan plan) {
    const IndexSearch request = searchOf(query, 1, 1, 100, plan);
    return search(index, pool, request).results.front();
  };
  for (const Plan plan : {Plan::codes, Plan::lists}) {
    CHECK(found(plan).versionId == found(Plan::exact).versionId && found(plan).score == found(Plan::exact).score);
  }
});

const Case formats("codes", "a codebook without directions is written as earlier releases read it", [](Random& random) {
  const TemporaryDirectory directory;
  const Clusters clusters(random, dim, 20);
  const Kernel& kernel = *findKernel("auto");
  const std::shared_ptr<const Segment> segment = sealedSegment(random, clusters, directory.file("7.seg"), 20);
  const TokenSample sample = sampleTokenVectors({&segment, 1}, 500, {});
  for (const bool directions : {false, true}) {
    const Codebook codebook(kernel, fitCodebook(kernel, dim, sample, sample, 16, {}, directions));
    const std::string path = codebookPath(segment->path(), codebook.hash());
    saveCodebook(path, kernel, codebook);
    std::ifstream file(path, std::ios::binary);
    std::array<uint32_t, 13> words{};
    file.read(reinterpret_cast<char*>(words.data()), sizeof words);
    CHECK(words[2] == (directions ? 3u : 2u) && words[12] == (directions ? dim : 0u));
    const auto loaded = loadCodebook(path, kernel, dim, codebook.hash());
    CHECK(loaded && loaded->data().directions == codebook.data().directions &&
          loaded->data().codewords == codebook.data().codewords);
  }
});

/// Reads and changes the bytes of a segment's file of codes.
class CodesFile {
 public:
  explicit CodesFile(std::string path) : path_(std::move(path)) {
    std::ifstream file(path_, std::ios::binary);
    whole_.assign(std::istreambuf_iterator<char>(file), {});
  }

  const std::vector<char>& whole() const { return whole_; }
  const std::string& path() const { return path_; }
  /// The end of the directory. The codes of the first chunk follow it.
  size_t directoryEnd(const ChunkCodes& codes) const {
    const auto* own = reinterpret_cast<const char*>(codes.of(0).data());
    const auto found = std::search(whole_.begin(), whole_.end(), own, own + codes.of(0).size_bytes());
    return size_t(found - whole_.begin());
  }
  void write(const std::vector<char>& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc).write(bytes.data(), long(bytes.size()));
  }

 private:
  const std::string path_;
  std::vector<char> whole_;
};

const Case damaged("codes", "a cut, foreign or later codes file, or a damaged directory, is ignored",
                   [](Random& random) {
                     const TemporaryDirectory directory;
                     const Clusters clusters(random, dim, 20);
                     const Kernel& kernel = *findKernel("auto");
                     const auto segment = sealedSegment(random, clusters, directory.file("7.seg"), 20);
                     const auto built = ChunkCodes::build(*segment, kernel, fitted(kernel, segment, 64), keepAll(), {});
                     const CodesFile file(ChunkCodes::pathOf(*segment));
                     const auto opensWith = [&](const std::vector<char>& bytes) {
                       file.write(bytes);
                       return ChunkCodes::open(*segment, kernel, keepAll()) != nullptr;
                     };
                     CHECK(opensWith(file.whole()));
                     const size_t end = file.directoryEnd(*built);
                     CHECK(end > 64 && end < file.whole().size());
                     for (int round = 0; round < 60; ++round) {
                       std::vector<char> bytes = file.whole();
                       const size_t at = round < 20 ? random() % 64 : random() % end;
                       bytes[at] = char(bytes[at] ^ (1 << (random() % 8)));
                       CHECK(!opensWith(bytes));
                     }
                     for (const size_t bytes :
                          {size_t(0), size_t(63), size_t(64), file.whole().size() - 64, file.whole().size() - 1}) {
                       CHECK(!opensWith({file.whole().begin(), file.whole().begin() + long(bytes)}));
                     }
                     CHECK(opensWith(file.whole()));
                   });

const Case scrambled("codes", "codes full of nonsense lead nowhere outside and are detected", [](Random& random) {
  const TemporaryDirectory directory;
  const Clusters clusters(random, dim, 20);
  const Kernel& kernel = *findKernel("auto");
  Pool pool(2);
  Index index(kernel, {dim, 0});
  const std::string path = directory.file("7.seg");
  index.createSegment(7, path);
  std::vector<Index::LifespanChange> born;
  for (uint32_t r = 0; r < 300; ++r)
    born.push_back({7, index.append(7, randomRecord(random, clusters, r, {between(random, 1, 40)}))});
  index.publish(1, born, {});
  index.seal(7);
  index.buildCodes(7, {});
  const CodesFile file(path + ".codes");
  const size_t directoryEnd = file.directoryEnd(*index.snapshot().front().codes);
  for (int round = 0; round < 10; ++round) {
    std::vector<char> bytes = file.whole();
    for (size_t at = directoryEnd; at < bytes.size(); ++at) bytes[at] = char(round == 0 ? 0xff : random());
    file.write(bytes);
    CHECK(inspectCodes(file.path(), false).damage.empty());
    CHECK(!inspectCodes(file.path(), true).damage.empty());
    Index other(kernel, {dim, 0});
    other.openSegment(7, path, 300, true);
    CHECK(other.segments().front().centroids > 0);
    other.publish(1, born, {});
    std::vector<float> query(size_t(5) * dim);
    for (float& component : query) component = float(int32_t(random() % 201) - 100) / 100.0f;
    for (const Plan plan : {Plan::codes, Plan::lists, Plan::graph}) {
      const IndexSearch request = searchOf(query, 5, 10, 50, plan);
      CHECK(search(other, pool, request).results.size() >= 10);
    }
  }
});

const Case newest("codes", "a codebook that was fitted later on fewer token vectors is newer", [](Random& random) {
  const TemporaryDirectory directory;
  const Kernel& kernel = *findKernel("auto");
  Index index(kernel, {dim, 0}), reopened(kernel, {dim, 0});
  std::vector<Index::LifespanChange> died;
  for (const uint64_t id : {1, 2}) {
    const Clusters clusters(random, dim, 20);
    const std::string path = directory.file(std::to_string(id) + ".seg");
    index.createSegment(id, path);
    std::vector<Index::LifespanChange> born;
    const uint32_t records = id == 1 ? 100 : 50;
    for (uint32_t r = 0; r < records; ++r)
      born.push_back({id, index.append(id, randomRecord(random, clusters, r, {20}))});
    index.publish(id, born, died);
    died = born;
    index.seal(id);
    CHECK(index.buildCodes(id, {}).fitted);
    reopened.openSegment(id, path, records, true);
  }
  for (const Index* each : {&index, &reopened}) {
    for (const SegmentInfo& segment : each->segments()) CHECK(segment.codesOutdated == (segment.id == 1));
  }
});

const Case shared("codes", "segments share one codebook file, and a damaged one is written anew", [](Random& random) {
  const TemporaryDirectory directory;
  const Clusters clusters(random, dim, 20);
  const Kernel& kernel = *findKernel("auto");
  Index index(kernel, {dim, 0});
  std::vector<std::string> paths;
  for (uint64_t id = 1; id <= 3; ++id) {
    paths.push_back(directory.file(std::to_string(id) + ".seg"));
    index.createSegment(id, paths.back());
    std::vector<Index::LifespanChange> born;
    for (uint32_t r = 0; r < 100; ++r)
      born.push_back({id, index.append(id, randomRecord(random, clusters, r, {between(random, 1, 40)}))});
    index.publish(id, born, {});
    index.seal(id);
  }
  for (const uint64_t id : {1, 2, 3}) CHECK(index.buildCodes(id, {}).fitted == (id == 1));
  const std::string codebook = index.segments().front().codebook;
  for (const SegmentInfo& segment : index.segments()) CHECK(segment.codebook == codebook);
  const auto damageOf = [&](size_t s) { return inspectCodes(paths[s] + ".codes", true).damage; };
  const auto openedAnew = [&](std::vector<size_t> segments) {
    Index other(kernel, {dim, 0});
    uint32_t coded = 0;
    for (const size_t s : segments) coded += uint32_t(other.openSegment(s + 1, paths[s], 100, true).centroids > 0);
    return coded;
  };
  CHECK(openedAnew({0, 1, 2}) == 3);

  const CodesFile file(directory.file(codebook));
  for (int round = 0; round < 40; ++round) {
    std::vector<char> bytes = file.whole();
    const size_t at = random() % bytes.size();
    bytes[at] = char(bytes[at] ^ (1 << (random() % 8)));
    if (round < 5) bytes.resize(at);
    file.write(bytes);
    // Zeros between sections have no meaning, so damage there is not found.
    CHECK(openedAnew({1, 2}) == (damageOf(1).empty() ? 2 : 0));
    CHECK(round >= 5 || !damageOf(1).empty());
  }
  std::vector<char> bytes = file.whole();
  bytes[100] = char(~bytes[100]);
  file.write(bytes);
  CHECK(!damageOf(1).empty() && !damageOf(2).empty());
  index.buildCodes(2, {});
  CHECK(damageOf(1).empty() && damageOf(2).empty() && openedAnew({0, 1, 2}) == 3);
  std::filesystem::remove(file.path());
  CHECK(!damageOf(1).empty() && openedAnew({0, 1, 2}) == 0);
});

const Case live("codes", "live chunks are those the lifespans show, whatever was asked before", [](Random& random) {
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
        segment->setLifespan(record, ++generation, generationNever);
        tracker.note(generation, record);
        break;
      }
      case 2:
        if (records > 0) {
          const auto record = uint32_t(random() % records);
          if (segment->lifespan(record).died() != generationNever || segment->lifespan(record).born() > generation)
            break;
          segment->setLifespan(record, segment->lifespan(record).born(), ++generation);
          tracker.note(generation, record);
        }
        break;
      case 3:
        if (random() % 20 != 0) break;
        // Deaths in loaded lifespans were noted by another tracker, or by none.
        for (uint32_t r = 0; r < records && r < 3; ++r) {
          const uint32_t record = records - 1 - r;
          if (segment->lifespan(record).alive())
            segment->setLifespan(record, segment->lifespan(record).born(), ++generation);
        }
        tracker.reset(generation);
        break;
      default: {
        const uint64_t asked = generation - std::min<uint64_t>(generation, random() % 3);
        const auto known = tracker.at(asked, records, tracker.epoch());
        uint32_t count = 0;
        uint64_t rows = 0;
        for (uint32_t r = 0; r < records; ++r) {
          const RecordEntry& entry = segment->record(r);
          const bool visible = segment->lifespan(r).visibleAt(asked);
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
