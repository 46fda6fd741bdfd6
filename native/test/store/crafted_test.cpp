// Files made to mislead their readers: any value in any field, with corrected checksums. Each file is refused or read,
// and no reader touches memory outside it.
#include "codes/codes.h"
#include "search/search.h"
#include "kernels/dispatch.h"
#include "store/inspection.h"
#include "store/segment.h"
#include "test/crafted.h"
#include "test/sample.h"

namespace maxsimd::test {
namespace {

constexpr uint32_t dim = 8;
constexpr uint32_t records = 4;

/// Values that make sums and products of sizes overflow, for a file of this length.
std::vector<uint64_t> extremes(uint64_t bytes) {
  std::vector<uint64_t> values{0, 1, 64, bytes, bytes - 64, bytes - 128};
  for (const int power : {26, 31, 32, 63}) values.push_back(uint64_t(1) << power);
  for (const uint64_t off : {1, 64, 128}) values.push_back(-off);
  return values;
}

/// A field of a file: its offset and size.
struct Field {
  uint64_t at;
  uint32_t size;
};

void putField(Bytes& bytes, const Field& field, uint64_t value) {
  if (field.size == 8) put(bytes, field.at, value);
  else if (field.size == 4) put(bytes, field.at, uint32_t(value));
  else put(bytes, field.at, uint16_t(value));
}

/// Puts every extreme value into every field and into every two fields. `mend` corrects the checksums, `look` reads the
/// file.
template <typename Mend, typename Look>
void tryAll(const Bytes& whole, const std::vector<Field>& fields, const Mend& mend, const Look& look) {
  const auto values = extremes(whole.size());
  for (size_t a = 0; a < fields.size(); ++a) {
    for (const uint64_t first : values) {
      Bytes bytes = whole;
      putField(bytes, fields[a], first);
      Bytes mended = bytes;
      mend(mended);
      look(mended);
      for (size_t b = a + 1; b < fields.size(); ++b) {
        for (const uint64_t second : values) {
          mended = bytes;
          putField(mended, fields[b], second);
          mend(mended);
          look(mended);
        }
      }
    }
  }
}

/// Reads everything that readers of an open segment use.
void readThrough(const Segment& segment) {
  const auto mapping = segment.mapping();
  std::vector<uint8_t> sum;
  for (uint32_t r = 0; r < segment.recordCount(); ++r) {
    segment.metaIntact(*mapping, r);
    segment.dataIntact(*mapping, r);
    const RecordEntry& entry = segment.record(r);
    for (uint32_t c = entry.firstChunk; c < entry.firstChunk + entry.chunks; ++c) CHECK(segment.chunkRows(c) > 0);
    if (!segment.dataIntact(*mapping, r)) continue;
    for (uint32_t c = 0; c < entry.chunks; ++c) {
      if (const auto place = segment.view(*mapping, r).placeOf(c)) sum.assign(place->rows.begin(), place->rows.end());
    }
  }
  const std::vector<Term> terms{term(1)};
  segment.recordsMatching(terms, segment.recordCount(), [] {});
}

struct Files {
  const TemporaryDirectory directory;
  const std::string path = directory.file("7.seg");
  Bytes active, sealed;

  explicit Files(Random& random) {
    const Clusters clusters(random, dim, 5);
    const auto segment = Segment::create(7, path, dim);
    for (uint32_t r = 0; r < records; ++r)
      segment->append(assembleRecord(randomRecord(random, clusters, r, {2, 3}, {term(uint8_t(r % 2))}), dim));
    active = readFile(path);
    segment->seal();
    sealed = readFile(path);
  }

  void look(const Bytes& bytes) const {
    writeFile(path, bytes);
    reads([&] { inspectSegment(path, records, {0, UINT64_MAX}); });
    for (const bool sealed : {true, false}) reads([&] { readThrough(*Segment::open(7, path, dim, records, sealed)); });
  }
};

uint64_t trailerAt(const Bytes& bytes) { return bytes.size() - sizeof(FileTrailer); }

void mendFooter(Bytes& bytes) {
  const uint64_t trailer = trailerAt(bytes);
  const auto offset = get<uint64_t>(bytes, trailer + 16);
  if (offset <= trailer) put(bytes, trailer + 56, crc32c(bytes.data() + offset, trailer - offset));
  mendHeader(bytes, trailer);
}

const Case wrappedFooter("crafted", "a footer that would start before its file is refused", [](Random& random) {
  const Files files(random);
  // A length for which the offset wraps to 64 bytes before the start.
  Bytes bytes = files.sealed;
  const uint64_t trailer = trailerAt(bytes);
  put(bytes, trailer + 16, uint64_t(-64));
  put(bytes, trailer + 32, uint32_t(bytes.size() / sizeof(RecordEntry)));
  put(bytes, trailer + 36, uint32_t(0));
  mendHeader(bytes, trailer);
  writeFile(files.path, bytes);
  CHECK_ERROR(Segment::open(7, files.path, dim, 0, true), ErrorCode::corrupt);
  CHECK_ERROR(inspectSegment(files.path, 0, {0, UINT64_MAX}), ErrorCode::corrupt);
});

const Case segmentFields("crafted", "no field of a segment leads outside of it", [](Random& random) {
  const Files files(random);
  const auto look = [&files](const Bytes& bytes) { files.look(bytes); };
  const auto mendFile = [](Bytes& bytes) { mendHeader(bytes, 0); };
  for (const Bytes& whole : {files.active, files.sealed}) tryAll(whole, {{16, 8}, {24, 4}}, mendFile, look);

  const uint64_t trailer = trailerAt(files.sealed), footer = get<uint64_t>(files.sealed, trailer + 16);
  tryAll(files.sealed, {{trailer + 16, 8}, {trailer + 24, 8}, {trailer + 32, 4}, {trailer + 36, 4}, {trailer + 40, 8}},
         mendFooter, look);

  const uint64_t record = footer + sizeof(RecordEntry), chunks = footer + records * sizeof(RecordEntry);
  tryAll(files.sealed,
         {{record, 8}, {record + 16, 4}, {record + 20, 4}, {record + 24, 4}, {record + 28, 4}, {record + 32, 4}},
         mendFooter, look);
  tryAll(files.sealed, {{chunks + 8, 4}, {chunks + 12, 4}, {chunks + 16, 4}}, mendFooter, look);
});

const Case recordFields("crafted", "no field of a record leads outside of its file", [](Random& random) {
  const Files files(random);
  const auto look = [&files](const Bytes& bytes) { files.look(bytes); };
  constexpr uint64_t at = sizeof(FileHeader);
  // Keep the sections where they are: other counts would move them, and the checksum would fail.
  const auto layout = viewRecord(files.sealed.data() + at, files.sealed.size() - at, dim).layout;
  const uint64_t vectors = at + layout.vectors, ranges = at + layout.ranges;
  const auto mend = [=](Bytes& bytes) {
    const uint32_t header = crc32c(bytes.data() + at, 60);
    put(bytes, at + 60, crc32c(bytes.data() + at + 64, vectors - at - 64, header));
  };
  const auto mendData = [=](Bytes& bytes) {
    put(bytes, at + 4, crc32c(bytes.data() + vectors, at + layout.bytes - vectors));
    mend(bytes);
  };
  for (const Bytes& whole : {files.active, files.sealed}) {
    tryAll(whole, {{at + 8, 8}, {at + 24, 4}, {at + 28, 4}, {at + 32, 4}}, mend, look);
    tryAll(whole, {{at + 64, 4}, {at + 68, 4}}, mend, look);
    tryAll(whole, {{at + 36, 4}}, mend, look);
    tryAll(whole, {{ranges, 4}, {ranges + 8, 4}, {ranges + 20, 4}}, mendData, look);
  }
});

const Case postingsFields("crafted", "no field of a file of postings leads outside of it", [](Random& random) {
  const Files files(random);
  const std::string path = SealedPostings::pathOf(files.path);
  const Bytes whole = readFile(path);
  const auto look = [&](const Bytes& bytes) {
    writeFile(path, bytes);
    reads([&] { inspectPostings(path, true); });
    readThrough(*Segment::open(7, files.path, dim, records, true));
  };
  const uint64_t offsets = 64 + alignSection(2 * termBytes), postings = offsets + 2 * 64;
  const auto mend = [&](Bytes& bytes) {
    put(bytes, 40, crc32c(bytes.data() + 64, postings - 64));
    mendHeader(bytes, 0);
  };
  tryAll(whole, {{24, 4}, {28, 4}, {32, 4}}, mend, look);
  tryAll(whole, {{offsets, 4}, {offsets + 4, 4}, {offsets + 8, 4}}, mend, look);
  const auto mendList = [&](Bytes& bytes) {
    put(bytes, offsets + 64, crc32c(bytes.data() + postings, 2 * 4));
    mend(bytes);
  };
  tryAll(whole, {{postings, 4}, {postings + 4, 4}}, mendList, look);
});

const Case codesFields("crafted", "no field of codes or of a codebook leads outside of them", [](Random& random) {
  const TemporaryDirectory directory;
  const Clusters clusters(random, dim, 5);
  const Kernel& kernel = *findKernel("auto");
  Pool pool(1);
  const std::string path = directory.file("7.seg");
  std::vector<Index::LifespanChange> born;
  std::vector<float> query(dim, 0.1f);
  std::string codebook;
  {
    Index index(kernel, {dim, 0});
    index.createSegment(7, path);
    for (uint32_t r = 0; r < 6; ++r) born.push_back({7, index.append(7, randomRecord(random, clusters, r, {2, 3}))});
    index.seal(7);
    index.buildCodes(7, {});
    codebook = directory.file(index.segments().front().codebook);
  }
  const std::string codes = path + ".codes";
  const auto look = [&](const std::string& file, const Bytes& bytes) {
    writeFile(file, bytes);
    reads([&] { inspectCodes(codes, true); });
    Index index(kernel, {dim, 0});
    index.openSegment(7, path, 6, true);
    index.publish(1, born, {});
    for (const Plan plan : {Plan::codes, Plan::lists, Plan::graph}) {
      const IndexSearch request = searchOf(query, 1, 3, 5, plan);
      CHECK(search(index, pool, request).results.size() == 3);
    }
  };
  const auto lookAtCodes = [&](const Bytes& bytes) { look(codes, bytes); };
  const auto lookAtCodebook = [&](const Bytes& bytes) { look(codebook, bytes); };
  const Bytes wholeCodes = readFile(codes), wholeCodebook = readFile(codebook);

  const auto mendOnly = [](Bytes& bytes) { mendHeader(bytes, 0); };
  tryAll(wholeCodes, {{24, 4}, {28, 4}, {32, 4}, {36, 4}, {40, 4}}, mendOnly, lookAtCodes);
  const auto chunks = get<uint32_t>(wholeCodes, 32), centroids = get<uint32_t>(wholeCodes, 28);
  const uint64_t rows = 64 + alignSection((chunks + 1) * 4), lists = rows + alignSection((chunks + 1) * 4);
  const uint64_t end = lists + alignSection((centroids + 1) * 4);
  const auto mendDirectory = [&](Bytes& bytes) {
    put(bytes, 44, crc32c(bytes.data() + 64, end - 64));
    mendHeader(bytes, 0);
  };
  tryAll(wholeCodes, {{64, 4}, {68, 4}, {64 + chunks * 4, 4}}, mendDirectory, lookAtCodes);
  tryAll(wholeCodes, {{rows + 4, 4}, {rows + chunks * 4, 4}, {lists + 4, 4}, {lists + centroids * 4, 4}}, mendDirectory,
         lookAtCodes);
  writeFile(codes, wholeCodes);

  tryAll(wholeCodebook, {{24, 4}, {28, 4}, {32, 4}}, mendOnly, lookAtCodebook);
});

}  // namespace
}  // namespace maxsimd::test
