#include "codes/codes.h"

#include "codes/codebook_file.h"
#include "kernels/dispatch.h"
#include "store/derived_file.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace maxsimd {
struct CodesHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t crc;
  uint64_t segmentId;
  uint32_t dim;
  uint32_t centroids;
  uint32_t chunks;
  uint32_t codes;
  uint32_t rows;
  uint32_t directoryCrc;
  uint32_t restCrc;
  uint32_t zero;
  uint64_t codebookHash;
};
static_assert(sizeof(CodesHeader) == 64);

/// Byte offsets of the sections from the end of the header.
struct CodesLayout {
  uint64_t rowOffsets, listOffsets;
  /// The first section after the directory.
  uint64_t codes;
  uint64_t residuals, lists, bytes;
  uint64_t blocks;

  explicit CodesLayout(const CodesHeader& header) {
    const uint64_t offsets = alignSection((uint64_t(header.chunks) + 1) * 4);
    blocks = (uint64_t(header.chunks) + ChunkCodes::blockChunks - 1) / ChunkCodes::blockChunks;
    rowOffsets = offsets;
    listOffsets = rowOffsets + offsets;
    codes = listOffsets + alignSection(blocks * (uint64_t(header.centroids) + 1) * 4);
    residuals = codes + alignSection(uint64_t(header.codes) * 4);
    lists = residuals + alignSection(uint64_t(header.rows) * residualBytes);
    bytes = lists + alignSection(uint64_t(header.codes) * 2);
  }
};

namespace {

constexpr DerivedFormat codesFormat{0x44434d495358414dull /* "MAXSIMCD" */, 5, "codes"};
constexpr uint32_t centroidMask = (1u << centroidBits) - 1;
/// Number of token vectors that are assigned to centroids together.
constexpr uint32_t batchRows = 16 << 10;

/// Reads the header. Returns the damage that it finds, or nothing.
std::string readHeader(const File& file, uint64_t bytes, CodesHeader& header) {
  const std::string damage = readDerivedHeader(file, bytes, codesFormat, header);
  if (!damage.empty()) return damage;
  if (header.dim < 1 || header.dim > dimMax || header.centroids < 1 || header.centroids > centroidsMax)
    return "impossible counts in its header";
  return bytes == sizeof header + CodesLayout(header).bytes ? "" : "not as long as its header says";
}

struct CodesOfChunks {
  std::vector<uint32_t> offsets{0}, rowOffsets{0};
  std::vector<uint32_t> codes;
  std::vector<uint8_t> residuals;

  /// Adds the next chunk. `centroids` has the centroid of each of its token vectors, `bytes` their codewords.
  void add(std::span<const uint32_t> centroids, const uint8_t* bytes) {
    std::vector<uint32_t> order(centroids.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return centroids[a] < centroids[b]; });
    for (const uint32_t row : order) {
      if (codes.size() == offsets.back() || (codes.back() & centroidMask) != centroids[row])
        codes.push_back(centroids[row]);
      if (codes.back() >> centroidBits == runMost) continue;
      codes.back() += 1u << centroidBits;
      residuals.insert(residuals.end(), bytes + row * residualBytes, bytes + (row + 1) * residualBytes);
    }
    offsets.push_back(uint32_t(codes.size()));
    rowOffsets.push_back(uint32_t(residuals.size() / residualBytes));
  }
};

CodesOfChunks assignAll(const Segment& segment, const Codebook& codebook, const Deadline& deadline) {
  const auto [rowsMost, chunks] = std::pair(segment.counts().rows, segment.counts().chunks);
  if (rowsMost > UINT32_MAX) throw Error(ErrorCode::invalidArgument, "segment holds too many token vectors");
  CodesOfChunks all;
  // Room for the largest possible number at once. Pages that are not used take no memory, and growing by doubling would
  // take half as much again.
  all.codes.reserve(rowsMost);
  all.residuals.reserve(rowsMost * residualBytes);
  const auto mapping = segment.mappingInOrder();
  const RowShape shape = segment.shape();
  std::vector<int8_t> vectors;
  std::vector<uint16_t> scales;
  std::vector<uint32_t> codes;
  std::vector<uint8_t> bytes;
  for (uint32_t chunk = 0, first = 0; chunk < chunks; ++chunk) {
    const ChunkEntry& entry = segment.chunk(chunk);
    const bool intact = segment.dataIntact(*mapping, entry.record);
    // No search sees a dead record, so a damaged one gets zeros.
    if (!intact && segment.lifespan(entry.record).alive()) throw segment.unread(*mapping, entry.record);
    const size_t before = scales.size(), rows = segment.chunkRows(chunk);
    scales.resize(before + rows);
    vectors.resize(scales.size() * shape.dim + readPaddingBytes);
    if (intact) {
      const RecordView view = segment.view(*mapping, entry.record);
      unpackRows(view.vectors() + entry.firstRow * shape.bytes(), shape, rows, vectors.data() + before * shape.dim);
      std::copy_n(view.scales() + entry.firstRow, rows, scales.begin() + long(before));
    }
    if (scales.size() < batchRows && chunk + 1 < chunks) continue;
    deadline.check();
    codes.resize(scales.size());
    bytes.resize(scales.size() * residualBytes);
    codebook.assign(vectors.data(), uint32_t(scales.size()), codes.data());
    codebook.encode(vectors.data(), scales.data(), uint32_t(scales.size()), codes.data(), bytes.data());
    for (size_t row = 0; first <= chunk; row += segment.chunkRows(first++))
      all.add(std::span(codes).subspan(row, segment.chunkRows(first)), bytes.data() + row * residualBytes);
    vectors.clear();
    scales.clear();
  }
  segment.requireRead(*mapping);
  return all;
}

struct Lists {
  /// [blocks][centroids + 1]
  std::vector<uint32_t> offsets;
  std::vector<uint16_t> chunks;
};

/// Makes the lists of each block by a counting sort of its codes.
Lists invert(const CodesOfChunks& all, uint32_t centroids) {
  Lists lists;
  lists.chunks.resize(all.codes.size());
  const auto chunks = uint32_t(all.offsets.size() - 1);
  for (uint32_t first = 0; first < chunks; first += ChunkCodes::blockChunks) {
    const uint32_t last = uint32_t(std::min<uint64_t>(uint64_t(first) + ChunkCodes::blockChunks, chunks));
    const size_t start = lists.offsets.size();
    lists.offsets.resize(start + centroids + 1, 0);
    uint32_t* offsets = lists.offsets.data() + start;
    for (uint32_t c = all.offsets[first]; c < all.offsets[last]; ++c) ++offsets[(all.codes[c] & centroidMask) + 1];
    offsets[0] = all.offsets[first];
    for (uint32_t k = 0; k < centroids; ++k) offsets[k + 1] += offsets[k];
    std::vector<uint32_t> next(offsets, offsets + centroids);
    for (uint32_t chunk = first; chunk < last; ++chunk) {
      for (uint32_t c = all.offsets[chunk]; c < all.offsets[chunk + 1]; ++c)
        lists.chunks[next[all.codes[c] & centroidMask]++] = uint16_t(chunk - first);
    }
  }
  return lists;
}

/// Whether the offsets go from `first` to `last` and never descend.
bool ascends(std::span<const uint32_t> offsets, uint64_t first, uint64_t last) {
  return offsets.front() == first && offsets.back() == last && std::is_sorted(offsets.begin(), offsets.end());
}

}  // namespace

ChunkCodes::~ChunkCodes() {
  if (isHeld_) Memory::ofProcess().letGo(*mapping_);
}

std::shared_ptr<const ChunkCodes> ChunkCodes::open(const Segment& segment, const Kernel& kernel, const Intern& intern) {
  try {
    const File file = File::openReadOnly(pathOf(segment));
    const uint64_t bytes = file.size();
    CodesHeader header;
    if (!readHeader(file, bytes, header).empty()) return nullptr;
    if (header.segmentId != segment.id() || header.dim != segment.dim() || header.chunks != segment.counts().chunks)
      return nullptr;
    std::shared_ptr<ChunkCodes> opened(new ChunkCodes(segment.owner()));
    opened->mapping_ = file.map(bytes);
    opened->directoryShare_.resize(CodesLayout(header).codes + uint64_t(header.centroids) * 4);
    if (!opened->readDirectory(file, CodesLayout(header), header)) return nullptr;
    opened->codebook_ = intern(header.codebookHash, [&] {
      return loadCodebook(codebookPath(segment.path(), header.codebookHash), kernel, segment.dim(), header.codebookHash,
                          segment.owner());
    });
    if (opened->codebook_ == nullptr || opened->codebook_->count() != header.centroids) return nullptr;
    Memory::ofProcess().hold(*opened->mapping_);
    opened->isHeld_ = true;
    return opened;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::noMemory) throw;
    return nullptr;
  }
}

/// Copies the directory from the file. Returns false if it is damaged. The file must be as long as the header says.
bool ChunkCodes::readDirectory(const File& file, const CodesLayout& layout, const CodesHeader& header) {
  const auto body = mapping_->whole().subspan(sizeof header);
  directory_.resize(layout.codes);
  file.read(sizeof header, directory_.data(), directory_.size());
  const std::span<const uint8_t> directory(directory_);
  if (header.directoryCrc != checksumOf(directory)) return false;
  // The checksum shows that `build` wrote these offsets. They are checked all the same, because a wrong one would lead
  // outside the mapping.
  const uint64_t blockOffsets = uint64_t(header.centroids) + 1;
  codeOffsets_ = section<uint32_t>(directory, 0, uint64_t(header.chunks) + 1);
  rowOffsets_ = section<uint32_t>(directory, layout.rowOffsets, uint64_t(header.chunks) + 1);
  listOffsets_ = section<uint32_t>(directory, layout.listOffsets, layout.blocks * blockOffsets);
  codes_ = section<uint32_t>(body, layout.codes, header.codes);
  residuals_ = section<uint8_t>(body, layout.residuals, layout.lists - layout.residuals).data();
  lists_ = section<uint16_t>(body, layout.lists, header.codes);
  if (!ascends(codeOffsets_, 0, header.codes) || !ascends(rowOffsets_, 0, header.rows)) return false;
  for (uint64_t block = 0; block < layout.blocks; ++block) {
    const auto offsets = listOffsets_.subspan(block * blockOffsets, blockOffsets);
    const uint64_t last = std::min<uint64_t>((block + 1) * blockChunks, header.chunks);
    if (!ascends(offsets, codeOffsets_[block * blockChunks], codeOffsets_[last])) return false;
  }
  return true;
}

std::shared_ptr<const ChunkCodes> ChunkCodes::build(const Segment& segment, const Kernel& kernel,
                                                    const Codebook& codebook, const Intern& intern,
                                                    const Deadline& deadline) {
  const CodesOfChunks all = assignAll(segment, codebook, deadline);
  const Lists lists = invert(all, codebook.count());
  CodesHeader header{};
  header.segmentId = segment.id();
  header.dim = segment.dim();
  header.centroids = codebook.count();
  header.chunks = uint32_t(all.offsets.size() - 1);
  header.codes = uint32_t(all.codes.size());
  header.rows = all.rowOffsets.back();
  header.codebookHash = codebook.hash();
  const CodesLayout layout(header);
  // The sections are written from where they lie. A copy would double the memory of a build.
  SectionParts body;
  body.add<uint32_t>(all.offsets);
  body.add<uint32_t>(all.rowOffsets);
  body.add<uint32_t>(lists.offsets);
  if (body.bytes() != layout.codes) throw std::logic_error("this is a bug: a directory is not where it was planned");
  header.directoryCrc = body.takeChecksum();
  body.add<uint32_t>(all.codes);
  body.add<uint8_t>(all.residuals);
  body.add<uint16_t>(lists.chunks);
  if (body.bytes() != layout.bytes) throw std::logic_error("this is a bug: codes are not where they were planned");
  header.restCrc = body.takeChecksum();
  // The codebook is saved first, so that the codes in a file always name a codebook that exists.
  saveCodebook(codebookPath(segment.path(), codebook.hash()), kernel, codebook);
  saveDerived(pathOf(segment), codesFormat, header, body.parts());
  auto opened = open(segment, kernel, intern);
  if (!opened) throw std::logic_error("this is a bug: codes just saved cannot be opened");
  return opened;
}

CodesInspection inspectCodes(const std::string& path, bool verify) {
  const File file = File::openReadOnly(path);
  const uint64_t bytes = file.size();
  CodesHeader header;
  if (auto damage = readHeader(file, bytes, header); !damage.empty()) return {0, 0, damage};
  CodesInspection found{header.centroids, header.codes, ""};
  if (!verify) return found;
  // The codebook is checked first, because the rest takes time. Meanwhile newer codes may replace these, and the
  // codebook may go.
  if (!loadCodebook(codebookPath(path, header.codebookHash), *findKernel("scalar"), header.dim, header.codebookHash)) {
    found.damage = "its codebook is missing, damaged or another one";
    return found;
  }
  const CodesLayout layout(header);
  const auto mapping = file.map(bytes);
  const auto body = mapping->whole().subspan(sizeof header);
  if (checksumOf(section<uint8_t>(body, 0, layout.codes)) != header.directoryCrc) found.damage = "damaged directory";
  else if (checksumOf(section<uint8_t>(body, layout.codes, layout.bytes - layout.codes)) != header.restCrc)
    found.damage = "damaged";
  if (mapping->failure()) found.damage = "cannot be read";
  return found;
}

TokenSample sampleTokenVectors(std::span<const std::shared_ptr<const Segment>> segments, uint32_t rowsMax,
                               const Deadline& deadline) {
  uint64_t total = 0;
  for (const auto& segment : segments) total += segment->counts().rows;
  const size_t dim = segments.empty() ? 0 : segments.front()->dim();
  const uint64_t wanted = std::min<uint64_t>(total, rowsMax);
  TokenSample sample;
  // Room for all at once, because growing by doubling takes a third more memory.
  sample.vectors.reserve(wanted * dim + readPaddingBytes);
  sample.scales.reserve(wanted + readPaddingBytes);
  std::optional<UnreadRecord> damage;
  // Row i of the sample is row i * total / wanted of all rows. Chunks that have none of these rows are not read.
  uint64_t i = 0, end = 0;
  for (const auto& segment : segments) {
    // A sparse sample uses the mapping without read-ahead, because the system would read pages that nobody needs.
    const auto mapping = wanted * 100 < total ? segment->mapping() : segment->mappingInOrder();
    const RowShape shape = segment->shape();
    const uint32_t chunks = segment->counts().chunks;
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
      const uint64_t before = std::exchange(end, end + segment->chunkRows(chunk));
      if (i * total / wanted >= end) continue;
      deadline.check();
      const ChunkEntry& entry = segment->chunk(chunk);
      const bool intact = segment->dataIntact(*mapping, entry.record);
      if (!intact && segment->lifespan(entry.record).alive()) {
        damage = segment->unread(*mapping, entry.record);
        if (damage->code() != ErrorCode::corrupt) throw *damage;
      }
      for (uint64_t row; (row = i * total / wanted) < end; ++i) {
        if (!intact) continue;
        const RecordView view = segment->view(*mapping, entry.record);
        const size_t at = entry.firstRow + (row - before);
        sample.vectors.resize(sample.vectors.size() + dim);
        unpackRows(view.vectors() + at * shape.bytes(), shape, 1, sample.vectors.data() + sample.vectors.size() - dim);
        sample.scales.push_back(view.scales()[at]);
      }
    }
    segment->requireRead(*mapping);
  }
  if (sample.scales.empty() && damage) throw *damage;
  sample.rows = uint32_t(sample.scales.size());
  sample.vectors.resize(sample.vectors.size() + readPaddingBytes);
  sample.scales.resize(sample.scales.size() + readPaddingBytes);
  return sample;
}

}  // namespace maxsimd
