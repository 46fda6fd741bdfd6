#include "codes/codebook_file.h"

#include "store/derived_file.h"

#include <cinttypes>
#include <cstdio>

namespace maxsimd {
namespace {

constexpr DerivedFormat codebookFormat{0x42434d495358414dull /* "MAXSIMCB" */, 3, "codebook", 2};

struct CodebookHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t crc;
  uint64_t hash;
  uint32_t dim;
  uint32_t centroids;
  uint32_t groups;
  float share;
  uint32_t fittedRows;
  uint32_t fitsBefore;
  uint32_t directions;
  uint8_t zero[12];
};
static_assert(sizeof(CodebookHeader) == 64);

/// Calls visit(values) for each section of the file, in order.
template <typename Data, typename Visit>
void forEachSection(Data& data, const Visit& visit) {
  visit(data.centroids);
  visit(data.scales);
  visit(data.groups);
  visit(data.groupScales);
  visit(data.groupStarts);
  visit(data.directions);
  visit(data.directionScales);
  visit(data.codewords);
}

uint64_t bytesOf(const CodebookData& data) {
  uint64_t bytes = sizeof(CodebookHeader);
  forEachSection(data, [&](const auto& values) { bytes += alignSection(values.size() * sizeof values[0]); });
  return bytes;
}

/// Reads the header and makes a codebook of the sizes that it names, filled with zeros. Returns nothing if the file is
/// damaged, of another format, or not as long as its header says.
std::optional<CodebookData> roomFor(const File& file, uint32_t dim, uint64_t hash, uint32_t& centroids) {
  CodebookHeader header;
  const uint64_t bytes = file.size();
  if (!readDerivedHeader(file, bytes, codebookFormat, header).empty()) return std::nullopt;
  if (header.dim != dim || header.hash != hash) return std::nullopt;
  if (header.centroids < 1 || header.centroids > centroidsMax) return std::nullopt;
  if (header.groups < 1 || header.groups > header.centroids) return std::nullopt;
  if (header.directions > dim) return std::nullopt;
  // The file must be at least as long as the centroids alone. So no memory is reserved for a header that claims too
  // much.
  if (bytes < uint64_t(header.centroids) * dim) return std::nullopt;
  CodebookData data;
  data.dim = dim;
  data.share = header.share;
  data.fittedRows = header.fittedRows;
  data.fitsBefore = header.fitsBefore;
  data.centroids.resize(size_t(header.centroids) * dim + readPaddingBytes);
  data.scales.resize(header.centroids + readPaddingBytes);
  data.groups.resize(size_t(header.groups) * dim + readPaddingBytes);
  data.groupScales.resize(header.groups + readPaddingBytes);
  data.groupStarts.resize(header.groups + 1);
  if (header.directions > 0) {
    data.directions.resize(size_t(header.directions) * dim + readPaddingBytes);
    data.directionScales.resize(header.directions + readPaddingBytes);
  }
  data.codewords.resize(size_t(subspaces) * codewords * data.subspaceDim());
  centroids = header.centroids;
  return bytes == bytesOf(data) ? std::optional(std::move(data)) : std::nullopt;
}

}  // namespace

uint64_t codebookFileBytes(const Codebook& codebook) { return bytesOf(codebook.data()); }

std::string codebookName(uint64_t hash) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016" PRIx64, hash);
  return std::string("codebook-") + digits;
}

std::string codebookPath(const std::string& neighbour, uint64_t hash) {
  return neighbour.substr(0, neighbour.rfind('/') + 1) + codebookName(hash);
}

void saveCodebook(const std::string& path, const Kernel& kernel, const Codebook& codebook) {
  const CodebookData& data = codebook.data();
  if (loadCodebook(path, kernel, data.dim, codebook.hash(), codebook.owner())) return;
  CodebookHeader header{};
  header.hash = codebook.hash();
  header.dim = data.dim;
  header.centroids = data.count();
  header.groups = data.groupCount();
  header.directions = data.directions.empty() ? 0 : data.components();
  header.share = data.share;
  header.fittedRows = data.fittedRows;
  header.fitsBefore = data.fitsBefore;
  SectionParts body;
  forEachSection(data, [&]<typename T>(const std::vector<T>& values) { body.add<T>(values); });
  DerivedFormat format = codebookFormat;
  // Releases that know no directions read it.
  if (header.directions == 0) format.version = format.versionOldest;
  saveDerived(path, format, header, body.parts());
}

std::optional<Codebook> loadCodebook(const std::string& path, const Kernel& kernel, uint32_t dim, uint64_t hash,
                                     MemoryOwner owner) {
  try {
    const File file = File::openReadOnly(path);
    uint32_t centroids = 0;
    auto data = roomFor(file, dim, hash, centroids);
    if (!data) return std::nullopt;
    uint64_t offset = sizeof(CodebookHeader);
    forEachSection(*data, [&](auto& values) {
      const uint64_t bytes = values.size() * sizeof values[0];
      file.read(offset, values.data(), bytes);
      offset += alignSection(bytes);
    });
    if (data->count() != centroids) return std::nullopt;
    Codebook codebook(kernel, std::move(*data), std::move(owner));
    if (codebook.hash() != hash) return std::nullopt;
    return codebook;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::noMemory) throw;
    return std::nullopt;
  }
}

}  // namespace maxsimd
