#include "codes/codebook_file.h"

#include "store/derived_file.h"

#include <cinttypes>
#include <cstdio>

namespace maxsimd {
namespace {

constexpr DerivedFormat codebookFormat{0x42434d495358414dull /* "MAXSIMCB" */, 1, "codebook"};

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
  uint8_t zero[20];
};
static_assert(sizeof(CodebookHeader) == 64);

/// Byte offsets of the sections from the end of the header.
struct CodebookLayout {
  uint64_t scales, groups, groupScales, groupStarts, codewords, bytes;
  uint64_t codewordFloats;

  explicit CodebookLayout(const CodebookHeader& header) {
    const auto vectors = [&](uint64_t count) { return alignSection(count * header.dim + readPaddingBytes); };
    const auto halves = [](uint64_t count) { return alignSection((count + readPaddingBytes) * 2); };
    codewordFloats = uint64_t(subspacesOf(header.dim)) * maxsimd::codewords * subspaceDimOf(header.dim);
    scales = vectors(header.centroids);
    groups = scales + halves(header.centroids);
    groupScales = groups + vectors(header.groups);
    groupStarts = groupScales + halves(header.groups);
    codewords = groupStarts + alignSection((uint64_t(header.groups) + 1) * 4);
    bytes = codewords + alignSection(codewordFloats * sizeof(float));
  }
};

/// Nothing if the file is of another format, damaged or of another length than its header says.
std::optional<CodebookHeader> headerOf(const File& file) {
  CodebookHeader header;
  const uint64_t bytes = file.size();
  if (!readDerivedHeader(file, bytes, codebookFormat, header).empty()) return std::nullopt;
  if (header.dim < 1 || header.dim > dimMax) return std::nullopt;
  if (header.centroids < 1 || header.centroids > centroidsMax) return std::nullopt;
  if (header.groups < 1 || header.groups > header.centroids) return std::nullopt;
  if (bytes != sizeof header + CodebookLayout(header).bytes) return std::nullopt;
  return header;
}

template <typename T>
std::vector<T> copyOf(std::span<const uint8_t> body, uint64_t offset, uint64_t count) {
  const auto values = section<T>(body, offset, count);
  return {values.begin(), values.end()};
}

CodebookHeader headerFor(const Codebook& codebook) {
  const CodebookData& data = codebook.data();
  CodebookHeader header{};
  header.hash = codebook.hash();
  header.dim = data.dim;
  header.centroids = data.count();
  header.groups = data.groupCount();
  header.share = data.share;
  header.fittedRows = data.fittedRows;
  return header;
}

}  // namespace

uint64_t codebookFileBytes(const Codebook& codebook) {
  return sizeof(CodebookHeader) + CodebookLayout(headerFor(codebook)).bytes;
}

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
  if (loadCodebook(path, kernel, data.dim, codebook.hash())) return;
  const CodebookHeader header = headerFor(codebook);
  const CodebookLayout layout(header);
  std::vector<uint8_t> body(layout.bytes);
  putSection(body, 0, data.centroids);
  putSection(body, layout.scales, data.scales);
  putSection(body, layout.groups, data.groups);
  putSection(body, layout.groupScales, data.groupScales);
  putSection(body, layout.groupStarts, data.groupStarts);
  putSection(body, layout.codewords, data.codewords);
  saveDerived(path, codebookFormat, header, {body});
}

std::optional<Codebook> loadCodebook(const std::string& path, const Kernel& kernel, uint32_t dim, uint64_t hash) {
  try {
    const File file = File::openReadOnly(path);
    const auto header = headerOf(file);
    if (!header || header->dim != dim || header->hash != hash) return std::nullopt;
    const CodebookLayout layout(*header);
    std::vector<uint8_t> body(layout.bytes);
    file.read(sizeof(CodebookHeader), body.data(), body.size());
    CodebookData data;
    data.dim = dim;
    data.centroids = copyOf<int8_t>(body, 0, size_t(header->centroids) * dim + readPaddingBytes);
    data.scales = copyOf<uint16_t>(body, layout.scales, header->centroids + readPaddingBytes);
    data.groups = copyOf<int8_t>(body, layout.groups, size_t(header->groups) * dim + readPaddingBytes);
    data.groupScales = copyOf<uint16_t>(body, layout.groupScales, header->groups + readPaddingBytes);
    data.groupStarts = copyOf<uint32_t>(body, layout.groupStarts, size_t(header->groups) + 1);
    data.share = header->share;
    data.fittedRows = header->fittedRows;
    data.codewords = copyOf<float>(body, layout.codewords, layout.codewordFloats);
    if (data.count() != header->centroids) return std::nullopt;
    Codebook codebook(kernel, std::move(data));
    if (codebook.hash() != hash) return std::nullopt;
    return codebook;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::noMemory) throw;
    return std::nullopt;
  }
}

}  // namespace maxsimd
