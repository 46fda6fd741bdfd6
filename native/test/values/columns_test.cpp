// Compares columns, in memory and in files, with plain lists of values.
#include "files/error.h"
#include "test/crafted.h"
#include "test/values/random_column.h"
#include "values/column_file.h"

#include <filesystem>

namespace maxsimd::test {
namespace {

const IsNeeded always = [](uint32_t) { return true; };

std::vector<RunSource> sourcesOf(const FieldColumn& column) {
  std::vector<RunSource> sources;
  for (const auto& run : column.runs()) sources.push_back({run, {}});
  return sources;
}

void save(const ColumnPlace& place, const std::string& field, const FieldColumn& column) {
  Bitmap known = column.known(), present = column.present();
  known.resize(place.segment.records);
  present.resize(place.segment.records);
  saveColumn(place, field, known, present, sourcesOf(column));
}

const Case ranges("values", "a column finds what a scan of its values finds", [](Random& random) {
  const RandomColumn made(random, between(random, 1, uint32_t(rounds(30'000))), 500);
  const uint32_t records = made.records();
  CHECK(made.column.runs().size() <= 16);
  CHECK(made.column.isComplete(records, always) && !made.column.isComplete(records + 1, always));
  CHECK(made.column.isComplete(records + 1, [&](uint32_t record) { return record < records; }));
  made.check(random, made.column);
});

const Case stored("values", "a file holds what its column holds, in few bytes", [](Random& random) {
  const TemporaryDirectory directory;
  const RandomColumn made(random, between(random, 1, uint32_t(rounds(30'000))), 5'000, 300);
  // Records of the segment that the column does not know.
  const uint32_t records = made.records() + between(random, 0, 100);
  const ColumnPlace place{directory.file("7.seg"), {7, records, 99}};
  CHECK(!openColumn(place, "tag"));
  save(place, "tag", made.column);
  auto column = openColumn(place, "tag");
  CHECK(column && column->known.size() == records && isSame(made.column.known(), column->known));
  CHECK(column->known.count() == made.records() && fieldOfColumn(place, columnEnding("tag")) == "tag");
  const FieldColumn opened(std::move(*column));
  CHECK(opened.runs().size() == 1 && opened.runs().front()->isMapped() && !opened.isUnsaved() && !opened.failed());
  made.check(random, opened);
  const auto [valueBytes, items] = made.size();
  const uint64_t bytes = std::filesystem::file_size(place.segmentPath + columnEnding("tag"));
  // The header and the padding of sections are 500 bytes at most.
  CHECK(bytes <= valueBytes + 8 * items + records / 4 + 500);
  const auto found = inspectColumn(place.segmentPath + columnEnding("tag"), true);
  CHECK(found.field == "tag" && found.items == items && found.damage.empty());
});

const Case spilled("values", "a column whose runs are in a file without a name is the same", [](Random& random) {
  const TemporaryDirectory directory;
  const RandomColumn made(random, uint32_t(rounds(5'000)), 1'000);
  const ColumnPlace place{directory.file("7.seg"), {7, made.records(), 99}};
  const FieldColumn spilled = made.column.spilled(place, "tag");
  CHECK(spilled.isUnsaved() && spilled.runs().size() == 1 && spilled.bytes() < made.column.bytes());
  made.check(random, spilled);
  CHECK(columnEndings(place.segmentPath).empty() && std::filesystem::is_empty(directory.file("")));
  save(place, "tag", spilled);
  made.check(random, FieldColumn(*openColumn(place, "tag")));
});

const Case manyPlaces("values", "a value that very many records have takes several entries", [](Random&) {
  const TemporaryDirectory directory;
  const auto records = uint32_t(rounds(100'000));
  std::vector<ValueRun::Value> values;
  for (uint32_t record = 0; record < records; ++record) values.push_back({valueKey("true"), {record, false}});
  values.push_back({valueKey("1"), {0, true}});
  const auto run = ValueRun::of(std::move(values));
  CHECK(run->items() == records + 1 && run->entries() <= 2 + records / 16'384);
  Bitmap found(records);
  run->addTo(found, Compared::values, {valueKey("true"), valueKey("true"), false, false});
  CHECK(found.count() == records);
});

const Case refused("values", "a file that was changed, cut or belongs to another segment is not used", [](Random& random) {
  const TemporaryDirectory directory;
  const RandomColumn made(random, 200, 50);
  const ColumnPlace place{directory.file("7.seg"), {7, made.records(), 99}};
  save(place, "tag", made.column);
  const std::string path = place.segmentPath + columnEnding("tag");
  const Bytes whole = readFile(path);
  for (int round = 0; round < rounds(500); ++round) {
    Bytes bytes = whole;
    const size_t at = random() % bytes.size();
    if (between(random, 0, 9) == 0) bytes.resize(at);
    else bytes[at] ^= uint8_t(between(random, 1, 255));
    writeFile(path, bytes);
    CHECK(!openColumn(place, "tag"));
  }
  writeFile(path, whole);
  CHECK(openColumn(place, "tag") && !openColumn(place, "tags"));
  for (const SegmentIdentity other : {SegmentIdentity{8, made.records(), 99}, {7, made.records() + 1, 99},
                                      {7, made.records(), 98}}) {
    CHECK(!openColumn({place.segmentPath, other}, "tag"));
    CHECK(!fieldOfColumn({place.segmentPath, other}, columnEnding("tag")));
  }
});

const Case unreadable("values", "a column whose file cannot be read any more is made again", [](Random& random) {
  const TemporaryDirectory directory;
  const RandomColumn made(random, 5'000, 1'000);
  const ColumnPlace place{directory.file("7.seg"), {7, made.records(), 99}};
  save(place, "tag", made.column);
  FieldValues values(nobody());
  values.keepFiles(place);
  const std::vector<std::string> fields{"tag"};
  CHECK(values.lacking(fields, made.records(), always).empty());
  const auto column = values.complete("tag", made.records(), always);
  CHECK(column != nullptr);
  std::filesystem::resize_file(place.segmentPath + columnEnding("tag"), 0);
  Bitmap found(made.records());
  column->addTo(found, Compared::values, {"", otherKeys.data(), false, true});
  CHECK(found.count() == 0 && column->failed());
  CHECK(values.complete("tag", made.records(), always) == nullptr);
  CHECK(values.lacking(fields, made.records(), always).size() == made.records());
  CHECK_ERROR(save(place, "other", *column), ErrorCode::io);
  CHECK(columnEndings(place.segmentPath).size() == 1);
});

const Case fewRuns("values", "a column that is spilled again and again has few runs", [](Random& random) {
  const TemporaryDirectory directory;
  constexpr uint32_t parts = 50, partRecords = 10;
  const ColumnPlace place{directory.file("7.seg"), {7, parts * partRecords, 99}};
  const RandomColumn made(random, parts * partRecords, parts * partRecords);
  FieldColumn column;
  for (uint32_t part = 0; part < parts; ++part) {
    std::vector<std::string> tokens;
    for (uint32_t n = 0; n < partRecords; ++n) tokens.push_back(made.stored[part * partRecords + n].token());
    std::vector<FieldColumn::RecordValue> values;
    for (uint32_t n = 0; n < partRecords; ++n) values.push_back({part * partRecords + n, tokens[n]});
    column = column.with(values).spilled(place, "tag");
    CHECK(column.runs().size() <= 17 && column.unfiledBytes() == 0);
  }
  made.check(random, column);
});

const Case oneFails("values", "what can be saved is saved, and a failure is told if nothing can", [](Random&) {
  const TemporaryDirectory directory;
  const ColumnPlace place{directory.file("7.seg"), {7, 1, 99}};
  const std::vector<std::string> both{"a", "b"}, a{"a"};
  const std::vector<uint32_t> records{0};
  FieldValues values(nobody());
  values.keepFiles(place);
  values.add(both, records, std::vector<std::string>{R"({"a":1,"b":2})"});
  std::filesystem::create_directory(place.segmentPath + columnEnding("a"));
  CHECK(values.save(both).written == std::vector{columnEnding("b")});
  CHECK_ERROR(values.save(a), ErrorCode::io);
  std::filesystem::remove(place.segmentPath + columnEnding("a"));
  CHECK(values.save(both).written == std::vector{columnEnding("a")});
});

const Case kept("values", "columns are saved once, and the files used longest ago are surplus", [](Random&) {
  const TemporaryDirectory directory;
  const ColumnPlace place{directory.file("7.seg"), {7, 20, 99}};
  const std::vector<std::string> year{"year"}, objects(17, R"({"year":1})"), more(2, R"({"year":2})");
  std::vector<uint32_t> first, second{17, 18};
  for (uint32_t record = 0; record < 17; ++record) first.push_back(record);
  FieldValues values(nobody());
  values.add(year, first, objects);
  CHECK(values.save(year).written.empty());
  values.keepFiles(place);
  CHECK(values.save(year).written == std::vector{columnEnding("year")} && values.save(year).written.empty());
  values.add(year, second, more);
  CHECK(values.save(year).written.empty() && values.lacking(year, 19, always).empty());
  FieldValues again(nobody());
  again.keepFiles(place);
  CHECK(again.lacking(year, 19, always) == second && again.reclaimableBytes() < 1'000);
  const std::vector<uint32_t> third{17, 18, 19};
  again.add(year, third, std::vector<std::string>(3, "{}"));
  CHECK(again.save(year).written.size() == 1);
  again.drop();
  CHECK(again.complete("year", 20, always) == nullptr && again.lacking(year, 20, always).empty());
  FieldValues::Saved saved;
  for (size_t n = 0; n < FieldValues::columnsMax; ++n) {
    const std::vector<std::string> field{"f" + std::to_string(n)};
    again.add(field, first, objects);
    saved = again.save(field);
    CHECK(saved.surplus.size() == size_t(n + 1 == FieldValues::columnsMax));
  }
  CHECK(saved.surplus.front() == columnEnding("year"));
});

const Case manyFields("values", "a request has the columns of all its fields, however many, from files too", [](Random&) {
  const TemporaryDirectory directory;
  std::vector<std::string> fields;
  for (size_t n = 0; n < FieldValues::columnsMax + 8; ++n) fields.push_back("f" + std::to_string(n));
  const std::vector<uint32_t> records{0, 1};
  for (int restart = 0; restart < 2; ++restart) {
    FieldValues values(nobody());
    values.keepFiles({directory.file("7.seg"), {7, 2, 99}});
    if (!values.lacking(fields, 2, always).empty()) values.add(fields, records, std::vector<std::string>(2, R"({"f0":1})"));
    values.save(fields);
    for (const std::string& field : fields) CHECK(values.complete(field, 2, always) != nullptr);
    CHECK(values.lacking(fields, 2, always).empty());
  }
});

const Case copied("values", "a merge copies the values of the records that it keeps", [](Random& random) {
  for (int round = 0; round < rounds(20); ++round) {
    const TemporaryDirectory directory;
    const RandomColumn one(random, between(random, 1, 500), 100), two(random, between(random, 1, 500), 100);
    const std::vector<std::string> fields{"tag"};
    std::vector<FieldValues::Source> sources;
    ValuePlaces expected;
    uint32_t records = 0;
    uint64_t id = 1;
    for (const RandomColumn* made : {&one, &two}) {
      const ColumnPlace place{directory.file(std::to_string(id) + ".seg"), {id, made->records(), 9}};
      ++id;
      save(place, "tag", made->column);
      auto values = std::make_shared<FieldValues>(nobody());
      values->keepFiles(place);
      std::vector<uint32_t> numbers;
      for (uint32_t record = 0; record < made->records(); ++record) {
        numbers.push_back(between(random, 0, 2) > 0 ? records++ : RunSource::left);
      }
      for (const auto& [key, places] : made->expected) {
        for (const ValuePlace place : places) {
          const uint32_t number = numbers[place.record()];
          if (number != RunSource::left) expected[key].emplace_back(number, place.inArray());
        }
      }
      sources.push_back({std::move(values), std::move(numbers)});
    }
    for (auto& [key, places] : expected) std::sort(places.begin(), places.end());
    FieldValues target(nobody());
    CHECK(target.copy(sources).written.empty());
    // The last record comes from a segment without a column.
    target.keepFiles({directory.file("3.seg"), {3, records + 1, 9}});
    if (records == 0) continue;
    CHECK(target.copy(sources).written == std::vector{columnEnding("tag")});
    CHECK(target.copy(sources).written.empty());
    CHECK(target.lacking(fields, records + 1, always) == std::vector{records});
    CHECK(valuesOf(*target.complete("tag", records, always)) == expected);
  }
});

const Case bounded("values", "making a column takes little memory", [](Random&) {
  const TemporaryDirectory directory;
  const auto parts = uint32_t(rounds(60));
  constexpr uint32_t partRecords = 5'000;
  FieldValues values(nobody());
  values.keepFiles({directory.file("7.seg"), {7, parts * partRecords, 99}});
  const std::vector<std::string> fields{"a", "b"};
  for (uint32_t part = 0; part < parts; ++part) {
    std::vector<uint32_t> records;
    std::vector<std::string> objects;
    for (uint32_t n = 0; n < partRecords; ++n) {
      records.push_back(part * partRecords + n);
      const std::string number = std::to_string(records.back() * 7919ull % 1'000'003);
      objects.push_back(R"({"a":"text that is rather long )" + number + R"(","b":)" + number + "}");
    }
    values.add(fields, records, objects);
    CHECK(values.reclaimableBytes() < (size_t(16) << 20));
  }
  CHECK(values.save(fields).written.size() == 2 && values.reclaimableBytes() < (size_t(1) << 20));
  CHECK(values.lacking(fields, parts * partRecords, always).empty());
});

}  // namespace
}  // namespace maxsimd::test
