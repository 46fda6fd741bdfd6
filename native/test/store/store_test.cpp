// Segment files: written, opened again, torn, damaged, sealed.
#include "kernels/dispatch.h"
#include "files/crc32c.h"
#include "files/error.h"
#include "store/inspection.h"
#include "store/segment.h"
#include "test/sample.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace maxsimd::test {
namespace {

constexpr uint32_t dim = 24;

std::vector<uint8_t> readFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void writeFile(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), long(bytes.size()));
}

const Checkpoint uninterrupted = [] {};

struct Sample {
  Clusters clusters;
  std::vector<std::vector<uint8_t>> records;

  Sample(Random& random, uint32_t count) : clusters(random, dim, 40) {
    for (uint32_t r = 0; r < count; ++r) {
      const auto parts = randomRecord(random, clusters, 100 + r, {between(random, 1, 9), between(random, 1, 5)},
                                      {term(uint8_t(r % 3)), term(9)});
      records.push_back(assembleRecord(parts, dim));
    }
  }
};

/// The segment holds exactly the first `count` records of the sample.
void checkHolds(const Segment& segment, const Sample& sample, uint32_t count) {
  CHECK(segment.recordCount() == count);
  const auto mapping = segment.mapping();
  for (uint32_t r = 0; r < count; ++r) {
    CHECK(segment.metaIntact(*mapping, r) && segment.dataIntact(*mapping, r));
    const RecordView view = segment.view(*mapping, r);
    CHECK(std::memcmp(view.bytes, sample.records[r].data(), sample.records[r].size()) == 0);
    const RecordEntry& entry = segment.record(r);
    CHECK(entry.versionId == 100 + r);
    for (uint32_t c = 0; c < entry.chunks; ++c) {
      CHECK(segment.chunkRows(entry.firstChunk + c) == view.chunkRows()[c]);
    }
  }
  for (uint8_t t = 0; t < 3; ++t) {
    std::vector<uint32_t> expected;
    for (uint32_t r = t; r < count; r += 3) expected.push_back(r);
    const std::vector<Term> terms{term(t), term(9)};
    CHECK(segment.recordsMatching(terms, count, uninterrupted) == expected);
  }
  const std::vector<Term> none{term(77)};
  CHECK(segment.recordsMatching(none, count, uninterrupted).empty());
}

std::shared_ptr<Segment> writeAll(const Sample& sample, const std::string& path) {
  auto segment = Segment::create(7, path, dim);
  for (const auto& record : sample.records) segment->append(record);
  segment->sync();
  return segment;
}

const Case reopen("store", "an active segment reopens with what was appended and goes on", [](Random& random) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("7.seg");
  const Sample sample(random, 12);
  {
    const auto segment = Segment::create(7, path, dim);
    for (int r = 0; r < 8; ++r) CHECK(segment->append(sample.records[r]) == uint32_t(r));
    segment->sync();
  }
  const auto segment = Segment::open(7, path, dim, 6, false);  // two records nobody references
  checkHolds(*segment, sample, 6);
  for (int r = 6; r < 12; ++r) CHECK(segment->append(sample.records[r]) == uint32_t(r));
  checkHolds(*segment, sample, 12);
  CHECK_ERROR(Segment::create(7, path, dim), ErrorCode::io);
  CHECK_ERROR(Segment::open(8, path, dim, 0, false), ErrorCode::corrupt);
  CHECK_ERROR(Segment::open(7, path, dim + 1, 0, false), ErrorCode::invalidArgument);
  CHECK_ERROR(Segment::open(7, directory.file("absent.seg"), dim, 0, false), ErrorCode::io);
});

const Case fewBits("store", "a segment has rows of the bits that it was made with", [](Random& random) {
  const TemporaryDirectory directory;
  for (const uint32_t bits : {1, 2, 4}) {
    const RowShape shape(dim, bits);
    const std::string path = directory.file(std::to_string(bits) + ".seg");
    const Clusters clusters(random, dim, 4, bits);
    std::vector<std::vector<uint8_t>> records;
    {
      const auto segment = Segment::create(7, path, shape);
      for (uint64_t r = 0; r < 3; ++r) {
        records.push_back(assembleRecord(randomRecord(random, clusters, r, {2, 3}), shape));
        segment->append(records.back());
      }
      segment->seal();
    }
    CHECK(readFile(path)[8] == formatVersion);
    for (const RowShape other : {RowShape(dim), RowShape(dim, bits == 2 ? 4 : 2)}) {
      CHECK_ERROR(Segment::open(7, path, other, 3, true), ErrorCode::invalidArgument);
    }
    const auto segment = Segment::open(7, path, shape, 3, true);
    for (uint32_t r = 0; r < 3; ++r) CHECK(segment->read(*segment->mapping(), r) == records[r]);
    const SegmentInspection found = inspectSegment(path, 3, {0, UINT64_MAX});
    CHECK(found.shape == shape && found.recordsVerified == 3 && found.damaged.empty());
  }
});

const Case growth("store", "an old mapping stays readable while the file grows", [](Random& random) {
  const TemporaryDirectory directory;
  const Sample sample(random, 3);
  const auto segment = Segment::create(7, directory.file("7.seg"), dim);
  segment->append(sample.records[0]);
  const auto before = segment->mapping();
  CHECK(segment->counts().fileBytes <= 512 << 10);
  while (segment->mapping() == before) segment->append(sample.records[1]);
  CHECK(std::memcmp(segment->view(*before, 0).bytes, sample.records[0].data(), sample.records[0].size()) == 0);
  const auto mapping = segment->mapping();
  const RecordEntry& last = segment->record(segment->recordCount() - 1);
  CHECK(last.offset + sample.records[1].size() + readPaddingBytes <= mapping->bytes());
});

/// Whether opening reports one of the referenced records as damaged.
bool isFoundDamaged(const std::string& path, uint32_t recordsReferenced) {
  try {
    const auto segment = Segment::open(7, path, dim, recordsReferenced, false);
    for (uint32_t r = 0; r < recordsReferenced; ++r) {
      if (segment->knownDamaged(r)) return true;
    }
    return false;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) throw;
    return true;
  }
}

const Case torn("store", "a record torn at any byte is found damaged if referenced and cut if not", [](Random& random) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("7.seg");
  const Sample sample(random, 3);
  uint64_t start;
  {
    const auto segment = writeAll(sample, path);
    start = segment->record(2).offset;
  }
  const std::vector<uint8_t> whole = readFile(path);
  for (uint64_t cut = start; cut < start + sample.records[2].size(); ++cut) {
    // After a crash: the rest of the record was never written.
    std::vector<uint8_t> bytes = whole;
    std::fill(bytes.begin() + long(cut), bytes.end(), uint8_t(0));
    if (bytes == whole) continue;  // only padding is missing
    writeFile(path, bytes);
    CHECK(isFoundDamaged(path, 3));
    // The file ends there.
    bytes.resize(cut);
    writeFile(path, bytes);
    CHECK(isFoundDamaged(path, 3));
    const auto segment = Segment::open(7, path, dim, 2, false);
    CHECK(segment->append(sample.records[2]) == 2);
    if (cut % 97 == 0) checkHolds(*segment, sample, 3);
  }
});

const Case flipped("store", "a flipped bit in a referenced record is found at open", [](Random& random) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("7.seg");
  const Sample sample(random, 3);
  uint64_t end;
  {
    const auto segment = writeAll(sample, path);
    end = segment->record(2).offset + sample.records[2].size();
  }
  const std::vector<uint8_t> whole = readFile(path);
  for (int round = 0; round < 300; ++round) {
    std::vector<uint8_t> bytes = whole;
    const uint64_t at = random() % end;
    bytes[at] ^= uint8_t(1 << random() % 8);
    writeFile(path, bytes);
    try {
      CHECK(isFoundDamaged(path, 3));
    } catch (const Error& error) {
      CHECK(at < 16 && error.code() == ErrorCode::unsupportedVersion);
    }
  }
});

const Case sealing("store", "a sealed segment reopens without reading its records", [](Random& random) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("7.seg");
  const Sample sample(random, 20);
  {
    const auto segment = writeAll(sample, path);
    segment->seal();
    checkHolds(*segment, sample, 20);
    CHECK(segment->sealed() && segment->counts().fileBytes == std::filesystem::file_size(path));
    CHECK_ERROR(segment->append(sample.records[0]), ErrorCode::invalidArgument);
    CHECK_ERROR(segment->seal(), ErrorCode::invalidArgument);
  }
  const auto segment = Segment::open(7, path, dim, 20, true);
  CHECK(segment->sealed());
  checkHolds(*segment, sample, 20);
  CHECK_ERROR(Segment::open(7, path, dim, 21, true), ErrorCode::corrupt);

  // Damage in a record is reported when the record is read, damage in the footer when the segment is opened.
  const std::vector<uint8_t> whole = readFile(path);
  std::vector<uint8_t> bytes = whole;
  const RecordEntry damagedRecord = segment->record(5);
  bytes[damagedRecord.offset + sample.records[5].size() - 100] ^= 1;
  writeFile(path, bytes);
  const auto damaged = Segment::open(7, path, dim, 20, true);
  CHECK(!damaged->dataIntact(*damaged->mapping(), 5));
  CHECK(damaged->dataIntact(*damaged->mapping(), 4) && damaged->dataIntact(*damaged->mapping(), 6));
  const uint64_t footer = segment->record(19).offset + sample.records[19].size();
  for (int round = 0; round < 200; ++round) {
    bytes = whole;
    const uint64_t at = footer + random() % (whole.size() - footer);
    bytes[at] ^= uint8_t(1 << random() % 8);
    writeFile(path, bytes);
    // A segment noted as sealed is refused and left unchanged.
    try {
      Segment::open(7, path, dim, 20, true);
      CHECK(false);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupportedVersion);
    }
    CHECK(readFile(path) == bytes);
    // Otherwise the footer is ignored, and the records are read one by one.
    checkHolds(*Segment::open(7, path, dim, 20, false), sample, 20);
  }
});

const Case unnoted("store", "a segment whose seal was not noted is active, and is sealed again", [](Random& random) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("7.seg");
  const Sample sample(random, 20);
  writeAll(sample, path)->seal();
  const std::vector<uint8_t> whole = readFile(path);
  const auto segment = Segment::open(7, path, dim, 20, false);
  CHECK(!segment->sealed() && !std::filesystem::exists(SealedPostings::pathOf(path)));
  // Nothing of the footer remains after the records.
  CHECK_ERROR(Segment::open(7, path, dim, 20, true), ErrorCode::corrupt);
  segment->seal();
  CHECK(readFile(path) == whole && Segment::open(7, path, dim, 20, true)->sealed());
});

const Case crashWhileSealing("store", "a crash while sealing leaves an active segment", [](Random& random) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("7.seg");
  const Sample sample(random, 5);
  uint64_t end;
  {
    const auto segment = writeAll(sample, path);
    end = segment->record(4).offset + sample.records[4].size();
    segment->seal();
  }
  const std::vector<uint8_t> whole = readFile(path);
  for (uint64_t cut = end; cut < whole.size() - 57; cut += 13) {
    std::vector<uint8_t> bytes = whole;
    std::fill(bytes.begin() + long(cut), bytes.end(), uint8_t(0));
    bytes.resize(bytes.size() + 4096);
    writeFile(path, bytes);
    const auto segment = Segment::open(7, path, dim, 5, false);
    CHECK(!segment->sealed());
    CHECK(!std::filesystem::exists(SealedPostings::pathOf(path)));
    checkHolds(*segment, sample, 5);
    if (cut % 7 == 0) segment->seal();
  }
});

const Case derivedPostings("store", "filters match the same with damaged, foreign or no postings", [](Random& random) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("7.seg"), file = SealedPostings::pathOf(path);
  const Sample sample(random, 20);
  writeAll(sample, path)->seal();
  const std::vector<uint8_t> whole = readFile(file);
  CHECK(inspectPostings(file, true).damage.empty() && inspectPostings(file, false).terms == 4);
  CHECK(inspectPostings(file, true).postings == 40);
  // Terms 0, 1, 2 and 9. The rest of the last section is padding.
  const uint64_t postingsAt = 64 + alignSection(4 * termBytes) + alignSection(5 * 4) + alignSection(4 * 4);
  CHECK(whole.size() == postingsAt + alignSection(40 * 4));
  const auto checkMended = [&](bool usable) {
    const auto segment = Segment::open(7, path, dim, 20, true);
    if (!usable) CHECK(segment->counts().postingBytes == 0);
    checkHolds(*segment, sample, 20);
    segment->buildPostings(uninterrupted);
    CHECK(segment->counts().postingBytes == whole.size() && readFile(file) == whole);
    checkHolds(*segment, sample, 20);
  };
  CHECK(Segment::open(7, path, dim, 20, true)->counts().postingBytes == whole.size());
  std::filesystem::remove(file);
  checkMended(false);
  for (size_t bytes = 0; bytes < whole.size(); bytes += between(random, 1, 9)) {
    writeFile(file, {whole.begin(), whole.begin() + long(bytes)});
    CHECK(!inspectPostings(file, true).damage.empty());
    checkMended(false);
  }
  for (int round = 0; round < rounds(150); ++round) {
    std::vector<uint8_t> bytes = whole;
    const uint64_t at = random() % (postingsAt + 40 * 4);
    bytes[at] ^= uint8_t(1 << random() % 8);
    writeFile(file, bytes);
    if (at >= 8 && at < 12) {
      CHECK_ERROR(inspectPostings(file, false), ErrorCode::unsupportedVersion);
    } else {
      CHECK(!inspectPostings(file, true).damage.empty());
    }
    // Postings are checked when a filter asks for them. Damaged ones are not used from then on.
    checkMended(at >= postingsAt);
    const auto damaged = [&] {
      writeFile(file, bytes);
      const auto segment = Segment::open(7, path, dim, 20, true);
      checkHolds(*segment, sample, 20);
      return segment->counts().postingBytes;
    };
    CHECK(damaged() == 0);
    std::filesystem::remove(file);
  }
  // An intact file, but of another segment's content.
  const Sample other(random, 20);
  writeAll(other, directory.file("other.seg"))->seal();
  std::filesystem::rename(SealedPostings::pathOf(directory.file("other.seg")), file);
  CHECK(inspectPostings(file, true).damage.empty());
  checkMended(false);
});

const Case several("store", "a filter of several terms matches the records that carry all of them", [](Random& random) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("7.seg");
  const Clusters clusters(random, dim, 4);
  constexpr uint32_t records = 3000;
  // Term t is carried by one record in this many.
  const std::vector<uint32_t> rarities{1, 2, 3, 50, 1000, 100000};
  std::vector<std::vector<Term>> carried(records);
  const auto segment = Segment::create(7, path, dim);
  for (uint32_t r = 0; r < records; ++r) {
    for (uint8_t t = 0; t < rarities.size(); ++t) {
      if (random() % rarities[t] == 0) carried[r].push_back(term(t));
    }
    segment->append(assembleRecord(randomRecord(random, clusters, r, {1}, carried[r]), dim));
  }
  const auto checkAll = [&](const Segment& read) {
    for (uint32_t set = 1; set < 1u << rarities.size(); ++set) {
      std::vector<Term> terms;
      for (uint8_t t = 0; t < rarities.size(); ++t) {
        if (set >> t & 1) terms.push_back(term(t));
      }
      const uint32_t count = between(random, 0, records);
      std::vector<uint32_t> expected;
      for (uint32_t r = 0; r < count; ++r) {
        const auto carries = [&](const Term& one) { return std::count(carried[r].begin(), carried[r].end(), one) > 0; };
        if (std::all_of(terms.begin(), terms.end(), carries)) expected.push_back(r);
      }
      CHECK(read.recordsMatching(terms, count, uninterrupted) == expected);
    }
  };
  checkAll(*segment);
  segment->seal();
  checkAll(*segment);
  std::filesystem::remove(SealedPostings::pathOf(path));
  checkAll(*Segment::open(7, path, dim, records, true));
});

const Case unreadableTerms("store", "postings leave out no record whose terms cannot be read", [](Random& random) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("7.seg"), file = SealedPostings::pathOf(path);
  const Sample sample(random, 6);
  uint64_t termsAt;
  {
    const auto segment = writeAll(sample, path);
    segment->seal();
    const auto mapping = segment->mapping();
    termsAt = uint64_t(segment->view(*mapping, 4).terms() - mapping->base());
  }
  std::vector<uint8_t> bytes = readFile(path);
  bytes[termsAt] ^= 1;
  writeFile(path, bytes);
  std::filesystem::remove(file);
  const auto segment = Segment::open(7, path, dim, 6, true);
  CHECK(segment->dataIntact(*segment->mapping(), 4));
  const std::vector<Term> terms{term(0)};
  CHECK((segment->recordsMatching(terms, 6, uninterrupted) == std::vector<uint32_t>{0, 3, 4}));
  // Scoring it is an error now, as for any damaged record.
  CHECK(!segment->dataIntact(*segment->mapping(), 4) && segment->dataIntact(*segment->mapping(), 3));
  segment->setLifespan(4, 1, generationNever);
  CHECK_ERROR(segment->buildPostings(uninterrupted), ErrorCode::corrupt);
  CHECK(segment->counts().postingBytes == 0 && !std::filesystem::exists(file));
  segment->setLifespan(4, 1, 2);
  segment->buildPostings(uninterrupted);
  CHECK((segment->recordsMatching(terms, 6, uninterrupted) == std::vector<uint32_t>{0, 3}));
  const Checkpoint stop = [] { throw Error(ErrorCode::deadlineExceeded, "stopped"); };
  CHECK_ERROR(segment->buildPostings(stop), ErrorCode::deadlineExceeded);
  std::filesystem::remove(file);
  CHECK_ERROR(Segment::open(7, path, dim, 6, true)->recordsMatching(terms, 6, stop), ErrorCode::deadlineExceeded);
});

const Case unsaved("store", "a segment is not sealed before its postings are saved", [](Random& random) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("7.seg"), file = SealedPostings::pathOf(path);
  const Sample sample(random, 3);
  const auto segment = writeAll(sample, path);
  CHECK_ERROR(segment->buildPostings(uninterrupted), ErrorCode::invalidArgument);
  std::filesystem::create_directory(file);
  CHECK_ERROR(segment->seal(), ErrorCode::io);
  CHECK(!segment->sealed() && !Segment::open(7, path, dim, 3, false)->sealed());
  checkHolds(*segment, sample, 3);
  std::filesystem::remove(file);
  segment->seal();
  CHECK(segment->sealed() && segment->counts().postingBytes > 0);
  checkHolds(*segment, sample, 3);
});

const Case otherVersions("store", "another format is refused, not misread", [](Random& random) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("7.seg");
  const Sample sample(random, 1);
  writeAll(sample, path)->seal();
  const std::vector<uint8_t> sealed = readFile(path);
  for (const size_t version : {size_t(8), sealed.size() - sizeof(FileTrailer) + 8}) {
    for (const uint8_t unknown : {1, 5}) {
      std::vector<uint8_t> bytes = sealed;
      bytes[version] = unknown;
      writeFile(path, bytes);
      CHECK_ERROR(Segment::open(7, path, dim, 1, true), ErrorCode::unsupportedVersion);
      CHECK_ERROR(inspectSegment(path, 1, {0, UINT64_MAX}), ErrorCode::unsupportedVersion);
    }
  }
  writeFile(path, {});
  CHECK_ERROR(Segment::open(7, path, dim, 0, false), ErrorCode::corrupt);
});

const Case poisoned("store", "after a failed sync a segment is never written again", [](Random& random) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("7.seg");
  const Sample sample(random, 2);
  const auto segment = Segment::create(7, path, dim);
  segment->append(sample.records[0]);
  // Replace the segment's descriptor by a pipe: fdatasync fails on it.
  int replaced = -1;
  struct stat wanted{}, status{};
  CHECK(stat(path.c_str(), &wanted) == 0);
  for (int descriptor = 3; descriptor < 256; ++descriptor) {
    if (fstat(descriptor, &status) == 0 && status.st_ino == wanted.st_ino && status.st_dev == wanted.st_dev) {
      replaced = descriptor;
    }
  }
  CHECK(replaced >= 0);
  int pipes[2];
  CHECK(pipe(pipes) == 0);
  CHECK(dup2(pipes[1], replaced) == replaced);
  CHECK_ERROR(segment->sync(), ErrorCode::io);
  CHECK_ERROR(segment->sync(), ErrorCode::io);
  CHECK_ERROR(segment->append(sample.records[1]), ErrorCode::io);
  CHECK_ERROR(segment->seal(), ErrorCode::io);
  close(pipes[0]);
  close(pipes[1]);
});

}  // namespace
}  // namespace maxsimd::test
