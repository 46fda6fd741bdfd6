// Fuzzes the files beside a segment: postings, codes, codebooks, columns.
#include "codes/codebook_file.h"
#include "codes/codes.h"
#include "test/fuzz/stage.h"
#include "values/field_values.h"

#include <array>

namespace maxsimd::test {
namespace {

constexpr uint32_t dim = FuzzStage::dim;
constexpr uint64_t headerBytes = 64;

/// The CRC-32C of the sections up to `end`, or up to the end of the file.
uint32_t checksumUntil(const Bytes& bytes, uint64_t end) {
  return crc32c(bytes.data() + headerBytes, std::min<uint64_t>(end, bytes.size()) - headerBytes);
}

void mendPostings(Bytes& bytes) {
  if (bytes.size() < headerBytes) return;
  const uint64_t terms = get<uint32_t>(bytes, 28);
  const uint64_t offsets = headerBytes + alignSection(terms * termBytes),
                 crcs = offsets + alignSection((terms + 1) * 4);
  const uint64_t lists = crcs + alignSection(terms * 4);
  for (uint64_t t = 0; t < terms && lists <= bytes.size(); ++t) {
    const uint64_t first = lists + get<uint32_t>(bytes, offsets + t * 4) * uint64_t(4);
    const uint64_t last = lists + get<uint32_t>(bytes, offsets + t * 4 + 4) * uint64_t(4);
    if (first <= last && last <= bytes.size()) put(bytes, crcs + t * 4, crc32c(bytes.data() + first, last - first));
  }
  put(bytes, 40, checksumUntil(bytes, lists));
  mendHeader(bytes, 0);
}

void mendCodes(Bytes& bytes) {
  if (bytes.size() < headerBytes) return;
  const uint64_t centroids = get<uint32_t>(bytes, 28), chunks = get<uint32_t>(bytes, 32);
  const uint64_t blocks = (chunks + ChunkCodes::blockChunks - 1) / ChunkCodes::blockChunks;
  const uint64_t offsets = 2 * alignSection((chunks + 1) * 4);
  const uint64_t end =
      std::min<uint64_t>(headerBytes + offsets + alignSection(blocks * (centroids + 1) * 4), bytes.size());
  put(bytes, 44, checksumUntil(bytes, end));
  put(bytes, 48, crc32c(bytes.data() + end, bytes.size() - end));
  mendHeader(bytes, 0);
}

void mendColumn(Bytes& bytes) {
  if (bytes.size() < headerBytes) return;
  put(bytes, 32, checksumUntil(bytes, bytes.size()));
  mendHeader(bytes, 0);
}

/// A file as the fuzzed bytes change it, with its checksums mended unless they say that it stays damaged.
template <typename Mend>
Bytes changed(std::span<const uint8_t> given, const Bytes& whole, const Mend& mend) {
  FuzzInput input(given);
  const bool leavesDamaged = input.leavesDamaged();
  Bytes bytes = whole;
  input.change(bytes);
  if (!leavesDamaged) mend(bytes);
  return bytes;
}

/// Writes changed bytes into the file. Returns whether they pass for intact.
template <typename Inspect>
bool takes(const std::string& path, const Bytes& bytes, const Bytes& whole, const Inspect& inspect) {
  writeFile(path, bytes);
  bool isIntact = false;
  reads([&] { isIntact = bytes != whole && inspect(path, true).damage.empty(); });
  return isIntact;
}

}  // namespace

bool fuzzPostings(std::span<const uint8_t> given) {
  static FuzzStage stage;
  static const Bytes whole = readFile(stage.postings);
  const Bytes bytes = changed(given, whole, mendPostings);
  const bool isTaken = takes(stage.postings, bytes, whole, inspectPostings);
  const auto segment = Segment::open(FuzzStage::id, stage.path, dim, FuzzStage::records, true);
  for (const auto& terms : {std::vector{term(1)}, std::vector{term(9), term(0)}, std::vector{term(5)}}) {
    const auto found = segment->recordsMatching(terms, FuzzStage::records, [] {});
    for (const uint32_t record : found) CHECK(record < FuzzStage::records);
    CHECK(std::is_sorted(found.begin(), found.end()));
  }
  return isTaken;
}

bool fuzzCodes(std::span<const uint8_t> given) {
  static FuzzStage stage;
  static const Bytes whole = readFile(stage.codes);
  const Bytes bytes = changed(given, whole, mendCodes);
  const bool isTaken = takes(stage.codes, bytes, whole, inspectCodes);
  stage.searchByCodes();
  return isTaken;
}

bool fuzzCodebookFile(std::span<const uint8_t> given) {
  static FuzzStage stage;
  static const Bytes whole = readFile(stage.codebook);
  const Bytes bytes = changed(given, whole, [](Bytes& file) {
    if (file.size() >= headerBytes) mendHeader(file, 0);
  });
  const bool isTaken = takes(stage.codebook, bytes, whole, inspectCodes);
  stage.searchByCodes();
  return isTaken;
}

bool fuzzColumn(std::span<const uint8_t> given) {
  static FuzzStage stage;
  static const Bytes whole = readFile(stage.column);
  const Bytes bytes = changed(given, whole, mendColumn);
  const bool isTaken = takes(stage.column, bytes, whole, inspectColumn);
  const auto stored = openColumn(stage.columnPlace(), FuzzStage::field);
  if (!stored) return isTaken;
  const FieldColumn column(*stored);
  for (const Compared compared : {Compared::values, Compared::dates, Compared::items, Compared::presence}) {
    Bitmap records(FuzzStage::records);
    const std::string low = compared == Compared::dates ? *dateKeyOfText("2024-01-02") : valueKey("1");
    column.addTo(records, compared, {low, std::string(1, char(0xff)), false, true});
    CHECK(records.size() == FuzzStage::records);
  }
  for (ValueRun::Cursor value(*stored->run); !value.atEnd(); value.next()) {
    fullKeyBytes(value.key());
    if (!value.key().empty() && !isCut(value.key())) tokenOfKey(value.key());
  }
  std::vector<uint8_t> copied;
  RunWriter writer([&copied](std::span<const uint8_t> part) { copied.insert(copied.end(), part.begin(), part.end()); });
  mergeRuns(std::array{RunSource{stored->run, {}}}, writer);
  CHECK(writer.finish().bytes == copied.size());
  return isTaken;
}

/// A codebook of any content, under its right hash, with as many centroids as the segment's codes use.
bool fuzzCodebook(std::span<const uint8_t> given) {
  static FuzzStage stage;
  static const Bytes wholeCodes = readFile(stage.codes);
  static const CodebookData sound =
      loadCodebook(stage.codebook, stage.kernel, dim, get<uint64_t>(wholeCodes, 56))->data();
  FuzzInput input(given);
  CodebookData data = sound;
  for (uint64_t groups = input.take(1) % 4; groups > 0; --groups) {
    // One more, or one less.
    const uint64_t place = input.take(1) % (data.groupStarts.size() + 1), start = input.take(1);
    if (place < data.groupStarts.size()) data.groupStarts[place] = uint32_t(start);
  }
  const auto change = [&input](auto& values) {
    Bytes bytes(values.size() * sizeof values[0]);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    for (uint64_t changes = input.take(1) % 4; changes > 0; --changes) {
      const uint64_t at = input.take(2) % bytes.size(), value = input.take(4);
      std::memcpy(bytes.data() + at, &value, std::min<size_t>(4, bytes.size() - at));
    }
    std::memcpy(values.data(), bytes.data(), bytes.size());
  };
  change(data.centroids);
  change(data.scales);
  change(data.groups);
  change(data.groupScales);
  change(data.directions);
  change(data.directionScales);
  change(data.codewords);
  const auto share = uint32_t(input.take(4));
  if (share != 0) std::memcpy(&data.share, &share, sizeof share);
  return reads([&] {
    const Codebook codebook(stage.kernel, std::move(data));
    const std::string path = codebookPath(stage.path, codebook.hash());
    saveCodebook(path, stage.kernel, codebook);
    Bytes codes = wholeCodes;
    put(codes, 56, codebook.hash());
    mendHeader(codes, 0);
    writeFile(stage.codes, codes);
    inspectCodes(stage.codes, true);
    stage.searchByCodes();
    // Use it as a build does.
    const auto segment = Segment::open(FuzzStage::id, stage.path, dim, FuzzStage::records, true);
    const auto mapping = segment->mapping();
    for (uint32_t r = 0; r < FuzzStage::records; ++r) {
      const RecordView record = segment->view(*mapping, r);
      const uint32_t rows = segment->record(r).rows;
      std::vector<uint32_t> assigned(rows);
      codebook.assign(record.vectors(), rows, assigned.data());
      for (const uint32_t code : assigned) CHECK(code < codebook.count());
      std::vector<uint8_t> residuals(size_t(rows) * residualBytes);
      codebook.encode(record.vectors(), record.scales(), rows, assigned.data(), residuals.data());
    }
    std::filesystem::remove(path);
  });
}

}  // namespace maxsimd::test
