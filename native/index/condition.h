// What a `where` asks of a document's metadata, over the records of a segment at once.
//
// A condition comes as bytes, in postfix order: each step is put on a stack of sets of records, or takes from it. Integers
// are of two bytes, little-endian; a text is its length and its bytes, JSON tokens as they stand in requests.
//
//   1 terms     count, then so many terms of 16 bytes: records that carry any of them
//   2 range     flags (1 byte: 1 = above low, 2 = low itself, 4 = below high, 8 = high itself), field, low, high: records
//               whose value of the field lies there; of the type of the bounds that are given, at least one
//   3 all       count: of so many sets what is in all of them; of none every record
//   4 any       count: what is in any of them; of none no record
//   5 not       what is not in the set
//
// No more than `conditionSetsMax` sets may be on the stack: with them, and some sets of terms that are made together, a
// search holds a fixed number of bitmaps of a segment's records, however many values are compared.
//
// Terms are looked up where filters look (postings, or the records). Ranges are looked up in the values of the segment
// (field_values.h): where those are not known of a record that the generation sees, that is an error, `values_missing`.
#pragma once

#include "index/field_values.h"
#include "index/index.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace maxsimd {

/// More than a condition has whose JSON nests as deep as requests may.
constexpr size_t conditionSetsMax = 32;

struct Condition {
  enum class Kind : uint8_t { terms = 1, range = 2, all = 3, any = 4, negation = 5 };
  struct Step {
    Kind kind;
    std::vector<Term> terms = {};
    std::string field = {};
    KeyRange range = {};
    /// Sets that it takes from the stack.
    size_t count = 0;
  };
  std::vector<Step> steps;
  /// Those that ranges ask for, distinct and ascending.
  std::vector<std::string> fields;
};

/// `invalid_argument` if the bytes are no condition.
Condition readCondition(std::span<const uint8_t> bytes);

/// The records of a segment at a generation that meet it. Those that are damaged are among them, as with filters.
Bitmap recordsMeeting(const Condition& condition, const SegmentSnapshot& snapshot, uint64_t generation,
                      const Checkpoint& checkpoint);

}  // namespace maxsimd
