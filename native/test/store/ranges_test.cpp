// Where chunks and rows lie in their texts, in segments of this format and of earlier ones.
#include "store/segment.h"
#include "test/crafted.h"
#include "test/sample.h"

#include <algorithm>

namespace maxsimd::test {
namespace {

constexpr uint32_t dim = 24;

const Case ranges("store", "a segment keeps where its chunks and rows lie in their texts", [](Random& random) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("7.seg");
  const Clusters clusters(random, dim, 4);
  const auto known = randomRecord(random, clusters, 1, {2, 3});
  auto unknown = randomRecord(random, clusters, 2, {4});
  unknown.ranges.clear();
  unknown.places.clear();
  const auto check = [&](const Segment& segment) {
    const auto mapping = segment.mapping();
    for (uint32_t c = 0; c < 2; ++c) {
      const auto place = segment.view(*mapping, 0).placeOf(c);
      CHECK(place && place->start == known.ranges[c].start && place->end == known.ranges[c].end);
      const auto first = known.places.begin() + (c == 0 ? 0 : known.ranges[0].placeBytes);
      CHECK(place->rows.size() == known.ranges[c].placeBytes &&
            std::equal(place->rows.begin(), place->rows.end(), first));
    }
    CHECK(!segment.view(*mapping, 1).placeOf(0));
  };
  {
    const auto segment = Segment::create(7, path, dim);
    segment->append(assembleRecord(known, dim));
    segment->append(assembleRecord(unknown, dim));
    segment->sync();
  }
  const auto segment = Segment::open(7, path, dim, 2, false);
  check(*segment);
  segment->seal();
  check(*segment);
  check(*Segment::open(7, path, dim, 2, true));
});

const Case rangeless("store", "a segment of an earlier format is read, and takes no ranges", [](Random& random) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("7.seg");
  const Clusters clusters(random, dim, 4);
  const auto known = assembleRecord(randomRecord(random, clusters, 1, {2, 3}), dim);
  auto parts = randomRecord(random, clusters, 2, {4});
  parts.ranges.clear();
  parts.places.clear();
  const auto unknown = assembleRecord(parts, dim);
  Segment::create(7, path, dim)->append(unknown);
  auto bytes = readFile(path);
  put(bytes, offsetof(FileHeader, version), rangelessVersion);
  mendHeader(bytes, 0);
  writeFile(path, bytes);
  const auto segment = Segment::open(7, path, dim, 1, false);
  CHECK(!segment->counts().keepsRanges);
  CHECK(segment->read(*segment->mapping(), 0) == unknown);
  CHECK_ERROR(segment->append(known), ErrorCode::invalidArgument);
  CHECK(segment->append(unknown) == 1);
  segment->seal();
  CHECK(Segment::open(7, path, dim, 2, true)->recordCount() == 2);
});

}  // namespace
}  // namespace maxsimd::test
