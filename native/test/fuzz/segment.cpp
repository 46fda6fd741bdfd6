#include "store/inspection.h"
#include "test/fuzz/stage.h"

namespace maxsimd::test {
namespace {

constexpr uint32_t dim = FuzzStage::dim;

void mendRecords(Bytes& bytes) {
  for (uint64_t at = sizeof(FileHeader); at + sizeof(RecordHeader) <= bytes.size();) {
    const RecordView view = viewRecord(bytes.data() + at, bytes.size() - at, dim);
    if (view.bytes == nullptr) return;
    const RecordLayout& layout = view.layout;
    put(bytes, at + offsetof(RecordHeader, dataCrc),
        crc32c(view.bytes + layout.vectors, layout.bytes - layout.vectors));
    constexpr size_t metaCrc = offsetof(RecordHeader, metaCrc);
    const uint32_t header = crc32c(view.bytes, metaCrc);
    put(bytes, at + metaCrc, crc32c(view.bytes + sizeof(RecordHeader), layout.vectors - sizeof(RecordHeader), header));
    at += layout.bytes;
  }
}

void mendFooter(Bytes& bytes) {
  if (bytes.size() < sizeof(FileHeader) + sizeof(FileTrailer)) return;
  const uint64_t trailer = bytes.size() - sizeof(FileTrailer);
  const auto offset = get<uint64_t>(bytes, trailer + offsetof(FileTrailer, footerOffset));
  if (offset <= trailer)
    put(bytes, trailer + offsetof(FileTrailer, footerCrc), crc32c(bytes.data() + offset, trailer - offset));
  mendHeader(bytes, trailer);
}

/// Calls everything that an open index offers. Every exception must be an `Error`.
void use(FuzzStage& stage, Index& index, bool isSealed) {
  const auto segment = index.snapshot().front().segment;
  const uint32_t records = segment->recordCount();
  std::vector<Index::LifespanChange> born;
  std::vector<uint32_t> numbers;
  for (uint32_t r = 0; r < records; ++r) {
    born.push_back({FuzzStage::id, r});
    numbers.push_back(r);
    const RecordEntry& entry = segment->record(r);
    for (uint32_t c = entry.firstChunk; c < entry.firstChunk + entry.chunks; ++c) CHECK(segment->chunkRows(c) > 0);
  }
  index.publish(1, born, {});
  for (const bool isFiltered : {false, true}) {
    IndexSearch request = stage.request(Plan::exact);
    if (isFiltered) request.terms = {term(1)};
    reads([&] {
      for (const auto& found : search(index, stage.pool, request).results) {
        const auto is = [&](uint32_t r) { return segment->record(r).versionId == found.versionId; };
        CHECK(std::any_of(numbers.begin(), numbers.end(), is));
      }
    });
  }
  if (isSealed) reads([&] { index.buildPostings(FuzzStage::id, {}); });
  for (const uint32_t r : numbers) reads([&] { index.verifyRecord(FuzzStage::id, r); });
}

}  // namespace

bool fuzzSegment(std::span<const uint8_t> given) {
  static FuzzStage stage;
  FuzzInput input(given);
  const bool isSealed = input.take(1) % 2 == 0, isExpectedSealed = input.take(1) % 4 != 3;
  const auto recordsReferenced = uint32_t(input.take(1) % (FuzzStage::records + 2));
  const bool leavesHeader = input.leavesDamaged(), leavesRecords = input.leavesDamaged(),
             leavesFooter = input.leavesDamaged();
  const Bytes& whole = isSealed ? stage.sealed : stage.active;
  Bytes bytes = whole;
  input.change(bytes);
  if (!leavesHeader && bytes.size() >= sizeof(FileHeader)) mendHeader(bytes, 0);
  if (!leavesRecords) mendRecords(bytes);
  if (isSealed && !leavesFooter) mendFooter(bytes);
  writeFile(stage.path, bytes);
  reads([&] { inspectSegment(stage.path, recordsReferenced, {0, UINT64_MAX}); });
  Index index(stage.kernel, {dim, 0});
  const bool isOpen = reads([&] { index.openSegment(FuzzStage::id, stage.path, recordsReferenced, isExpectedSealed); });
  if (isOpen) use(stage, index, index.segments().front().counts.sealed);
  return isOpen && bytes != whole;
}

}  // namespace maxsimd::test
