#include "codes/codes.h"

#include "codes/codebook_file.h"
#include "kernels/dispatch.h"
#include "store/derived_file.h"

#include <algorithm>
#include <cstring>
#include <exception>

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

/// Codebooks of more centroids have codes of three bytes, and their files another version.
static constexpr uint32_t narrowCentroidsMax = 65536;
static constexpr uint32_t narrowVersion = 3, wideVersion = 4;

static constexpr uint32_t codeBytesFor(uint32_t centroids) { return centroids > narrowCentroidsMax ? 3 : 2; }
static constexpr uint32_t versionFor(uint32_t centroids) {
  return centroids > narrowCentroidsMax ? wideVersion : narrowVersion;
}

/// Byte offsets of the sections from the end of the header.
struct CodesLayout {
  uint64_t rowOffsets, listOffsets;
  /// The first section behind the directory.
  uint64_t codes;
  uint64_t details, lists, bytes;
  uint64_t blocks, codeBytes, rowBytes;

  explicit CodesLayout(const CodesHeader& header) {
    const uint64_t offsets = alignSection((uint64_t(header.chunks) + 1) * 4);
    blocks = (uint64_t(header.chunks) + ChunkCodes::blockChunks - 1) / ChunkCodes::blockChunks;
    codeBytes = codeBytesFor(header.centroids);
    rowBytes = subspacesOf(header.dim) / 2;
    rowOffsets = offsets;
    listOffsets = rowOffsets + offsets;
    codes = listOffsets + alignSection(blocks * (uint64_t(header.centroids) + 1) * 4);
    details = codes + alignSection(header.codes * codeBytes);
    lists = details + alignSection(header.codes + uint64_t(header.rows) * rowBytes);
    bytes = lists + alignSection(uint64_t(header.codes) * 2);
  }
};

namespace {

constexpr DerivedFormat formatOf(uint32_t version) {
  return {0x44434d495358414dull /* "MAXSIMCD" */, version, "codes", narrowVersion};
}
/// At most, of any dimension: code, run, codewords and list entry of a token vector, and offsets where it is a chunk.
constexpr uint64_t buildBytesPerRow = 48;
/// Token vectors assigned at a time, across records.
constexpr uint32_t batchRows = 16 << 10;

/// What is wrong with the file's header, or empty.
std::string readHeader(const File& file, uint64_t bytes, CodesHeader& header) {
  const std::string damage = readDerivedHeader(file, bytes, formatOf(wideVersion), header);
  if (!damage.empty()) return damage;
  if (header.dim < 1 || header.dim > dimMax || header.centroids < 1 || header.centroids > centroidsMax ||
      header.version != versionFor(header.centroids)) {
    return "impossible counts in its header";
  }
  return bytes == sizeof header + CodesLayout(header).bytes ? "" : "not as long as its header says";
}

/// The components of the rows of records one after the other, in batches; `whole` is called with full batches and the rest.
class RowBatches {
 public:
  RowBatches(const Segment& segment, const Deadline& deadline)
      : segment_(segment),
        deadline_(deadline),
        dim_(segment.dim()),
        vectors_(size_t(batchRows) * dim_ + readPaddingBytes),
        scales_(batchRows) {}

  template <typename Whole>
  void forEach(const Whole& whole) {
    const auto mapping = segment_.mappingInOrder();
    uint32_t filled = 0;
    for (uint32_t number = 0; number < segment_.recordCount(); ++number) {
      const bool intact = segment_.dataIntact(*mapping, number);
      // Nobody sees a dead one: zeros stand for it.
      if (!intact && segment_.lifespan(number).alive()) throw segment_.unread(*mapping, number);
      const RecordView view = segment_.view(*mapping, number);
      const int8_t* vectors = view.vectors();
      const uint16_t* scales = view.scales();
      uint32_t left = segment_.record(number).rows;
      while (left > 0) {
        const uint32_t taken = std::min(left, batchRows - filled);
        if (intact) {
          unpackRows(vectors, segment_.shape(), taken, vectors_.data() + size_t(filled) * dim_);
          std::copy_n(scales, taken, scales_.begin() + filled);
        } else {
          std::memset(vectors_.data() + size_t(filled) * dim_, 0, size_t(taken) * dim_);
          std::fill_n(scales_.begin() + filled, taken, uint16_t(0));
        }
        vectors += taken * segment_.shape().bytes();
        scales += taken;
        left -= taken;
        filled += taken;
        if (filled == batchRows) {
          deadline_.check();
          whole(vectors_.data(), scales_.data(), filled);
          filled = 0;
        }
      }
    }
    if (filled > 0) whole(vectors_.data(), scales_.data(), filled);
    segment_.requireRead(*mapping);
  }

 private:
  const Segment& segment_;
  const Deadline& deadline_;
  const uint32_t dim_;
  std::vector<int8_t> vectors_;
  std::vector<uint16_t> scales_;
};

/// Codes one after the other as a file has them.
class PackedCodes {
 public:
  explicit PackedCodes(uint32_t codeBytes) : codeBytes_(codeBytes) {}

  void reserve(uint64_t codes) { bytes_.reserve(codes * codeBytes_); }
  void add(uint32_t code) {
    for (uint32_t b = 0; b < codeBytes_; ++b) bytes_.push_back(uint8_t(code >> 8 * b));
  }
  uint32_t operator[](size_t place) const {
    uint32_t code = 0;
    for (uint32_t b = 0; b < codeBytes_; ++b) code |= uint32_t(bytes_[place * codeBytes_ + b]) << 8 * b;
    return code;
  }
  size_t size() const { return bytes_.size() / codeBytes_; }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  const uint32_t codeBytes_;
  std::vector<uint8_t> bytes_;
};

struct CodesOfChunks {
  explicit CodesOfChunks(uint32_t codeBytes) : codes(codeBytes) {}

  std::vector<uint32_t> offsets{0};
  PackedCodes codes;
  std::vector<uint32_t> rowOffsets{0};
  std::vector<uint8_t> details;
};

/// The token vectors of one chunk until all of them are there.
class ChunkInMaking {
 public:
  explicit ChunkInMaking(uint32_t rowBytes) : rowBytes_(rowBytes) {}

  uint32_t rows() const { return uint32_t(codes_.size()); }

  void add(const uint32_t* codes, const uint8_t* bytes, uint32_t rows) {
    codes_.insert(codes_.end(), codes, codes + rows);
    bytes_.insert(bytes_.end(), bytes, bytes + size_t(rows) * rowBytes_);
  }

  void finish(CodesOfChunks& all) {
    order_.resize(codes_.size());
    for (uint32_t r = 0; r < order_.size(); ++r) order_[r] = r;
    std::sort(order_.begin(), order_.end(),
              [&](uint32_t a, uint32_t b) { return codes_[a] != codes_[b] ? codes_[a] < codes_[b] : a < b; });
    const size_t first = all.codes.size();
    uint64_t rows = all.rowOffsets.back();
    uint32_t last = 0;
    runs_.clear();
    kept_.clear();
    for (const uint32_t row : order_) {
      if (runs_.empty() || last != codes_[row]) {
        last = codes_[row];
        all.codes.add(last);
        runs_.push_back(0);
      }
      if (runs_.back() == UINT8_MAX) continue;
      ++runs_.back();
      kept_.insert(kept_.end(), bytes_.begin() + long(size_t(row) * rowBytes_),
                   bytes_.begin() + long(size_t(row + 1) * rowBytes_));
      ++rows;
    }
    if (first + runs_.size() > UINT32_MAX || rows > UINT32_MAX)
      throw Error(ErrorCode::invalidArgument, "segment holds too many token vectors");
    all.details.insert(all.details.end(), runs_.begin(), runs_.end());
    all.details.insert(all.details.end(), kept_.begin(), kept_.end());
    all.offsets.push_back(uint32_t(all.codes.size()));
    all.rowOffsets.push_back(uint32_t(rows));
    codes_.clear();
    bytes_.clear();
  }

 private:
  const uint32_t rowBytes_;
  std::vector<uint32_t> codes_;
  std::vector<uint8_t> bytes_;
  std::vector<uint32_t> order_;
  std::vector<uint8_t> runs_, kept_;
};

CodesOfChunks assignAll(const Segment& segment, const Codebook& codebook, const Deadline& deadline) {
  CodesOfChunks all(codeBytesFor(codebook.count()));
  // At once, and at most: what is not used is never touched, and growing by doubling would hold half as much again.
  const uint64_t rowsMost = segment.counts().rows;
  all.codes.reserve(rowsMost);
  all.details.reserve(rowsMost * (1 + codebook.data().rowBytes()));
  const uint32_t chunks = segment.counts().chunks, rowBytes = codebook.data().rowBytes();
  std::vector<uint32_t> codes(batchRows);
  std::vector<uint8_t> bytes(size_t(batchRows) * rowBytes);
  ChunkInMaking chunk(rowBytes);
  uint32_t number = 0;
  RowBatches(segment, deadline).forEach([&](const int8_t* vectors, const uint16_t* scales, uint32_t rows) {
    codebook.assign(vectors, rows, codes.data());
    codebook.encode(vectors, scales, rows, codes.data(), bytes.data());
    for (uint32_t row = 0; row < rows;) {
      const uint32_t left = segment.chunkRows(number) - chunk.rows();
      const uint32_t taken = std::min(left, rows - row);
      chunk.add(codes.data() + row, bytes.data() + size_t(row) * rowBytes, taken);
      row += taken;
      if (taken < left) continue;
      chunk.finish(all);
      ++number;
    }
  });
  if (number != chunks) throw std::logic_error("this is a bug: chunks without codes");
  return all;
}

struct Lists {
  /// [blocks][centroids + 1]
  std::vector<uint32_t> offsets;
  std::vector<uint16_t> chunks;
};

/// A counting sort of each block's codes.
Lists invert(const CodesOfChunks& all, uint32_t centroids) {
  Lists lists;
  lists.chunks.resize(all.codes.size());
  const auto chunks = uint32_t(all.offsets.size() - 1);
  for (uint32_t first = 0; first < chunks; first += ChunkCodes::blockChunks) {
    const uint32_t last = uint32_t(std::min<uint64_t>(uint64_t(first) + ChunkCodes::blockChunks, chunks));
    const size_t start = lists.offsets.size();
    lists.offsets.resize(start + centroids + 1, 0);
    uint32_t* offsets = lists.offsets.data() + start;
    for (uint32_t c = all.offsets[first]; c < all.offsets[last]; ++c) ++offsets[all.codes[c] + 1];
    offsets[0] = all.offsets[first];
    for (uint32_t k = 0; k < centroids; ++k) offsets[k + 1] += offsets[k];
    std::vector<uint32_t> next(offsets, offsets + centroids);
    for (uint32_t chunk = first; chunk < last; ++chunk) {
      for (uint32_t c = all.offsets[chunk]; c < all.offsets[chunk + 1]; ++c) {
        lists.chunks[next[all.codes[c]]++] = uint16_t(chunk - first);
      }
    }
  }
  return lists;
}

bool ascends(std::span<const uint32_t> offsets, uint64_t first, uint64_t last) {
  return offsets.front() == first && offsets.back() == last && std::is_sorted(offsets.begin(), offsets.end());
}

}  // namespace

ChunkCodes::~ChunkCodes() {
  if (isHeld_) Memory::ofProcess().letGo(*mapping_);
}

uint64_t ChunkCodes::buildBytes(uint64_t rows) { return rows * buildBytesPerRow; }

void ChunkCodes::loadCodes(uint32_t chunk) const {
  const auto own = of(chunk);
  loadLines(own.first, own.sizeBytes());
}

void ChunkCodes::loadRuns(uint32_t chunk) const {
  loadCodes(chunk);
  loadLines(runs(chunk), of(chunk).count);
}

std::shared_ptr<const ChunkCodes> ChunkCodes::open(const Segment& segment, const Kernel& kernel, const Intern& intern) {
  try {
    const File file = File::openReadOnly(pathOf(segment));
    const uint64_t bytes = file.size();
    CodesHeader header;
    if (!readHeader(file, bytes, header).empty()) return nullptr;
    if (header.segmentId != segment.id() || header.dim != segment.dim() || header.chunks != segment.counts().chunks)
      return nullptr;
    std::shared_ptr<ChunkCodes> opened(new ChunkCodes);
    opened->mapping_ = file.map(bytes);
    opened->directoryShare_.resize(CodesLayout(header).codes + uint64_t(header.centroids) * 4);
    if (!opened->readDirectory(file, CodesLayout(header), header)) return nullptr;
    opened->codebook_ = intern(header.codebookHash, [&] {
      return loadCodebook(codebookPath(segment.path(), header.codebookHash), kernel, segment.dim(),
                          header.codebookHash);
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

/// False if it is damaged; the file is as long as the header says.
bool ChunkCodes::readDirectory(const File& file, const CodesLayout& layout, const CodesHeader& header) {
  const auto body = mapping_->whole().subspan(sizeof header);
  directory_.resize(layout.codes);
  file.read(sizeof header, directory_.data(), directory_.size());
  const std::span<const uint8_t> directory(directory_);
  if (header.directoryCrc != checksumOf(directory)) return false;
  // What the checksum covers was written by `build`, but a wrong offset would lead outside the mapping.
  const uint64_t blockOffsets = uint64_t(header.centroids) + 1;
  codeOffsets_ = section<uint32_t>(directory, 0, uint64_t(header.chunks) + 1);
  codes_ = section<uint8_t>(body, layout.codes, layout.details - layout.codes).data();
  codeBytes_ = uint32_t(layout.codeBytes);
  lists_ = section<uint16_t>(body, layout.lists, header.codes);
  listOffsets_ = section<uint32_t>(directory, layout.listOffsets, layout.blocks * blockOffsets);
  rowOffsets_ = section<uint32_t>(directory, layout.rowOffsets, uint64_t(header.chunks) + 1);
  details_ = section<uint8_t>(body, layout.details, layout.lists - layout.details).data();
  rowBytes_ = uint32_t(layout.rowBytes);
  if (!ascends(codeOffsets_, 0, header.codes) || !ascends(rowOffsets_, 0, header.rows)) return false;
  listLengths_.assign(header.centroids, 0);
  for (uint64_t block = 0; block < layout.blocks; ++block) {
    const auto offsets = listOffsets_.subspan(block * blockOffsets, blockOffsets);
    const uint64_t last = std::min<uint64_t>((block + 1) * blockChunks, header.chunks);
    if (!ascends(offsets, codeOffsets_[block * blockChunks], codeOffsets_[last])) return false;
    for (uint32_t k = 0; k < header.centroids; ++k) listLengths_[k] += offsets[k + 1] - offsets[k];
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
  // Written from where they lie: they are most of the memory of a build.
  SectionParts body;
  body.add<uint32_t>(all.offsets);
  body.add<uint32_t>(all.rowOffsets);
  body.add<uint32_t>(lists.offsets);
  if (body.bytes() != layout.codes) throw std::logic_error("this is a bug: a directory is not where it was planned");
  header.directoryCrc = body.takeChecksum();
  body.add<uint8_t>(all.codes.bytes());
  body.add<uint8_t>(all.details);
  body.add<uint16_t>(lists.chunks);
  if (body.bytes() != layout.bytes) throw std::logic_error("this is a bug: codes are not where they were planned");
  header.restCrc = body.takeChecksum();
  // The codebook first: codes that are in place name one that is there.
  saveCodebook(codebookPath(segment.path(), codebook.hash()), kernel, codebook);
  saveDerived(pathOf(segment), formatOf(versionFor(header.centroids)), header, body.parts());
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
  // Before the rest, which takes time: a codebook may go when newer codes take the place of these.
  if (!loadCodebook(codebookPath(path, header.codebookHash), *findKernel("scalar"), header.dim, header.codebookHash)) {
    found.damage = "its codebook is missing, damaged or another one";
    return found;
  }
  const CodesLayout layout(header);
  const auto mapping = file.map(bytes);
  const auto body = mapping->whole().subspan(sizeof header);
  if (checksumOf(section<uint8_t>(body, 0, layout.codes)) != header.directoryCrc)
    found.damage = "damaged directory";
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
  const auto wanted = uint32_t(std::min<uint64_t>(total, rowsMax));
  TokenSample sample;
  // At once: growing by doubling takes a third more.
  sample.vectors.reserve(wanted * dim + readPaddingBytes);
  sample.scales.reserve(wanted + readPaddingBytes);
  std::exception_ptr damage;
  uint64_t before = 0;
  for (const auto& segment : segments) {
    const uint64_t end = before + segment->counts().rows;
    try {
      RowBatches(*segment, deadline).forEach([&](const int8_t* vectors, const uint16_t* scales, uint32_t count) {
        // Row i of the sample is row i * total / wanted of all.
        uint64_t i = (before * wanted + total - 1) / total;
        for (uint64_t row; (row = i * total / wanted) < before + count; ++i) {
          if (row < before) continue;
          const int8_t* vector = vectors + (row - before) * dim;
          sample.vectors.insert(sample.vectors.end(), vector, vector + dim);
          sample.scales.push_back(scales[row - before]);
        }
        before += count;
      });
    } catch (const UnreadRecord& error) {
      if (error.code() != ErrorCode::corrupt) throw;
      damage = std::current_exception();
    }
    before = end;
  }
  if (sample.scales.empty() && damage) std::rethrow_exception(damage);
  sample.rows = uint32_t(sample.scales.size());
  sample.vectors.resize(sample.vectors.size() + readPaddingBytes);
  sample.scales.resize(sample.scales.size() + readPaddingBytes);
  return sample;
}

}  // namespace maxsimd
