#include "values/column_file.h"

#include "values/field_tokens.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

namespace maxsimd {
namespace {

constexpr DerivedFormat columnFormat{0x4c434d495358414dull /* "MAXSIMCL" */, 1, "columns"};
constexpr std::string_view endingStart = ".columns-";
constexpr size_t hashDigits = 16;
constexpr size_t bufferBytes = size_t(256) << 10;

struct ColumnHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t crc;
  uint64_t segmentId;
  uint32_t records;
  uint32_t footerCrc;
  uint32_t bodyCrc;
  uint32_t fieldBytes;
  uint32_t blocks;
  uint32_t dateZones;
  uint64_t blockBytes;
  uint32_t entries;
  uint32_t items;
};
static_assert(sizeof(ColumnHeader) == 64);

/// Byte offsets of the sections, counted from the end of the header.
struct ColumnLayout {
  uint64_t blockStarts, dateZones, known, present, field;
  uint64_t bytes;

  explicit ColumnLayout(const ColumnHeader& header) {
    blockStarts = alignSection(header.blockBytes);
    dateZones = blockStarts + alignSection(uint64_t(header.blocks) * sizeof(uint64_t));
    known = dateZones + alignSection(uint64_t(header.dateZones) * sizeof(DateZone));
    present = known + alignSection(Bitmap::wordsFor(header.records) * sizeof(uint64_t));
    field = present + (present - known);
    bytes = field + alignSection(header.fieldBytes);
  }
};

/// Reads the header. Returns what is wrong with it, or an empty string.
std::string readHeader(const File& file, uint64_t bytes, ColumnHeader& header) {
  const std::string damage = readDerivedHeader(file, bytes, columnFormat, header);
  if (!damage.empty()) return damage;
  const bool isLong = header.blockBytes <= bytes && bytes == sizeof header + ColumnLayout(header).bytes;
  return isLong ? "" : "not as long as its header says";
}

std::string nameIn(const File& file, const ColumnHeader& header) {
  std::string name(header.fieldBytes, '\0');
  file.read(sizeof header + ColumnLayout(header).field, name.data(), name.size());
  return name;
}

bool belongsTo(const ColumnHeader& header, const SegmentIdentity& segment) {
  return header.segmentId == segment.segmentId && header.records == segment.records &&
         header.footerCrc == segment.footerCrc;
}

template <typename T>
std::vector<T> valuesOf(std::span<const T> section) {
  return {section.begin(), section.end()};
}

/// Whether every block begins within the blocks, and the zones name blocks. Readers check the rest as they read.
bool isSound(const RunIndex& index) {
  const auto isPlaced = [&index](uint64_t start) { return start % 4 == 0 && start < index.bytes; };
  return index.bytes % 4 == 0 && (index.blocks.empty() ? index.bytes == 0 : index.blocks.front() == 0) &&
         std::ranges::all_of(index.blocks, isPlaced) &&
         std::ranges::adjacent_find(index.blocks, std::ranges::greater_equal()) == index.blocks.end() &&
         std::ranges::all_of(index.dates, [&](const DateZone& zone) { return zone.block < index.blocks.size(); });
}

/// Reads the whole body and compares its checksum; nothing if it is damaged. The file has the length that its header
/// requires.
std::optional<StoredColumn> readBody(const File& file, const ColumnHeader& header) {
  const auto mapping = file.map(file.size());
  const auto body = mapping->whole().subspan(sizeof header);
  if (checksumOf(body) != header.bodyCrc) return std::nullopt;
  const ColumnLayout layout(header);
  const uint64_t words = Bitmap::wordsFor(header.records);
  RunIndex index{valuesOf(section<uint64_t>(body, layout.blockStarts, header.blocks)),
                 valuesOf(section<DateZone>(body, layout.dateZones, header.dateZones)), header.entries, header.items,
                 header.blockBytes};
  const auto name = section<char>(body, layout.field, header.fieldBytes);
  StoredColumn column{std::string(name.begin(), name.end()),
                      Bitmap(header.records, section<uint64_t>(body, layout.known, words)),
                      Bitmap(header.records, section<uint64_t>(body, layout.present, words)), nullptr};
  if (!isSound(index) || mapping->failure()) return std::nullopt;
  column.run = std::make_shared<const ValueRun>(std::move(index), mapping, sizeof header);
  return column;
}

/// Collects small writes, and their checksum.
class BufferedWrites {
 public:
  BufferedWrites(File& file, uint64_t offset) : file_(file), offset_(offset) {}

  void add(std::span<const uint8_t> bytes) {
    checksum_ = crc32c(bytes.data(), bytes.size(), checksum_);
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    if (buffer_.size() >= bufferBytes) flush();
  }
  template <typename T>
  void addSection(std::span<const T> values) {
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes());
    add(bytes);
    pad(bytes.size());
  }
  void pad(uint64_t sectionBytes) {
    static constexpr uint8_t zeros[sectionAlignment] = {};
    add(std::span(zeros, alignSection(sectionBytes) - sectionBytes));
  }
  void flush() {
    file_.write(offset_, buffer_.data(), buffer_.size());
    offset_ += buffer_.size();
    buffer_.clear();
  }
  uint32_t checksum() const { return checksum_; }

 private:
  File& file_;
  uint64_t offset_;
  uint32_t checksum_ = 0;
  std::vector<uint8_t> buffer_;
};

RunIndex writeRun(BufferedWrites& writes, std::span<const RunSource> runs) {
  RunWriter writer([&writes](std::span<const uint8_t> bytes) { writes.add(bytes); });
  mergeRuns(runs, writer);
  RunIndex index = writer.finish();
  if (std::ranges::any_of(runs, [](const RunSource& source) { return source.run->failed(); })) {
    throw Error(ErrorCode::io, "a file of a column cannot be read");
  }
  return index;
}

std::optional<ColumnHeader> usableHeader(const File& file, const ColumnPlace& place) {
  ColumnHeader header;
  if (!readHeader(file, file.size(), header).empty() || !belongsTo(header, place.segment)) return std::nullopt;
  return header;
}

}  // namespace

std::string columnEnding(const std::string& field) {
  // A byte that no name has.
  const std::string hashed = isPath(field) ? field + '\xff' : field;
  char digits[hashDigits + 1];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hashOf(hashed)));
  return std::string(endingStart) + digits;
}

std::optional<StoredColumn> openColumn(const ColumnPlace& place, const std::string& field) {
  try {
    const File file = File::openReadOnly(place.segmentPath + columnEnding(field));
    const auto header = usableHeader(file, place);
    if (!header) return std::nullopt;
    auto column = readBody(file, *header);
    if (!column || column->field != field) return std::nullopt;
    touchColumn(place, field);
    return column;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void saveColumn(const ColumnPlace& place, const std::string& field, const Bitmap& known, const Bitmap& present,
                std::span<const RunSource> runs) {
  Replacement replacement(place.segmentPath + columnEnding(field));
  BufferedWrites writes(replacement.file(), sizeof(ColumnHeader));
  const RunIndex index = writeRun(writes, runs);
  if (index.entries > UINT32_MAX || index.items > UINT32_MAX) {
    throw Error(ErrorCode::noSpace, "a segment holds too many values of a field for a file");
  }
  writes.pad(index.bytes);
  writes.addSection(std::span(index.blocks));
  writes.addSection(std::span(index.dates));
  writes.addSection(known.words());
  writes.addSection(present.words());
  writes.addSection(std::span<const char>(field));
  writes.flush();
  ColumnHeader header{};
  header.magic = columnFormat.magic;
  header.version = columnFormat.version;
  header.segmentId = place.segment.segmentId;
  header.records = place.segment.records;
  header.footerCrc = place.segment.footerCrc;
  header.bodyCrc = writes.checksum();
  header.fieldBytes = uint32_t(field.size());
  header.blocks = uint32_t(index.blocks.size());
  header.dateZones = uint32_t(index.dates.size());
  header.blockBytes = index.bytes;
  header.entries = uint32_t(index.entries);
  header.items = uint32_t(index.items);
  header.crc = headerChecksum(header);
  replacement.file().write(0, &header, sizeof header);
  replacement.commit();
}

std::shared_ptr<const ValueRun> spilledRun(const ColumnPlace& place, const std::string& field,
                                           std::span<const RunSource> runs) {
  Replacement unnamed(place.segmentPath + columnEnding(field) + ".run");
  BufferedWrites writes(unnamed.file(), 0);
  RunIndex index = writeRun(writes, runs);
  writes.flush();
  auto mapping = unnamed.file().map(index.bytes);
  return std::make_shared<const ValueRun>(std::move(index), std::move(mapping), 0);
}

void touchColumn(const ColumnPlace& place, const std::string& field) {
  // A file system's own clock ticks every few milliseconds, within which many columns are used.
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const timespec times[] = {now, now};
  utimensat(AT_FDCWD, (place.segmentPath + columnEnding(field)).c_str(), times, 0);
}

std::vector<std::string> columnEndings(const std::string& segmentPath) {
  namespace fs = std::filesystem;
  const fs::path segment(segmentPath);
  const std::string start = segment.filename().string() + std::string(endingStart);
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(segment.parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(start) || name.size() != start.size() + hashDigits) continue;
    const auto usedAt = entry.last_write_time(error);
    if (!error) found.emplace_back(usedAt, name.substr(start.size() - endingStart.size()));
  }
  std::ranges::sort(found, std::ranges::greater());
  std::vector<std::string> endings;
  for (auto& [usedAt, ending] : found) endings.push_back(std::move(ending));
  return endings;
}

std::optional<std::string> fieldOfColumn(const ColumnPlace& place, const std::string& ending) {
  try {
    const File file = File::openReadOnly(place.segmentPath + ending);
    const auto header = usableHeader(file, place);
    return header ? std::optional(nameIn(file, *header)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

ColumnInspection inspectColumn(const std::string& path, bool verify) {
  const File file = File::openReadOnly(path);
  ColumnHeader header;
  if (auto damage = readHeader(file, file.size(), header); !damage.empty()) return {"", 0, 0, damage};
  ColumnInspection found{nameIn(file, header), header.entries, header.items, ""};
  if (verify && !readBody(file, header)) found.damage = "damaged";
  return found;
}

}  // namespace maxsimd
