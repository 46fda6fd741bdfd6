// A `where` condition, evaluated over all records of a segment at once.
//
// A condition comes as bytes in postfix order. Each step pushes a set of records on a stack, or takes sets from it.
// Integers have two bytes, little-endian. A text is its length and its bytes: a JSON token as it stands in the request.
//
//   1 terms     count, then so many terms of 16 bytes: records that carry any of them
//   2 range     flags (1 byte), field, low, high: records whose value of the field lies in the range. Flags are the sum
//               of 1 = above low, 2 = low itself, 4 = below high, 8 = high itself, and one of
//                 0  values of the type of the bounds (at least one): numbers, strings, or others by their text
//                16  dates
//                32  any item of an array
//                48  any value, without bounds
//                64  strings that begin with the low bound
//   3 all       count: of so many sets what is in all of them; of none every record
//   4 any       count: what is in any of them; of none no record
//   5 not       what is not in the set
//
// At most `conditionSetsMax` sets may be on the stack. So a search holds a fixed number of bitmaps of a segment's
// records, however many values are compared.
//
// Terms are looked up as filters do it, in postings or records. Ranges are looked up in the segment's values
// (field_values.h). If a visible record's value is not there, the evaluation fails with `values_missing`.
#pragma once

#include "values/field_values.h"
#include "index/index.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace maxsimd {

/// More than a condition needs at the deepest nesting that requests may have.
constexpr size_t conditionSetsMax = 32;

struct Condition {
  enum class Kind : uint8_t { terms = 1, range = 2, all = 3, any = 4, negation = 5 };
  struct Step {
    Kind kind;
    std::vector<Term> terms = {};
    /// Where a range looks, and what it compares there.
    std::string field = {};
    Compared compared = Compared::values;
    KeyRange range = {};
    /// How many sets it takes from the stack.
    size_t count = 0;
  };
  std::vector<Step> steps;
  /// The fields of all ranges, distinct and ascending.
  std::vector<std::string> fields;
};

/// Parses a condition; `invalid_argument` if the bytes are none.
Condition readCondition(std::span<const uint8_t> bytes);

/// The records of a segment that meet the condition at a generation. Damaged records are included, as with filters.
Bitmap recordsMeeting(const Condition& condition, const SegmentSnapshot& snapshot, uint64_t generation,
                      const Checkpoint& checkpoint);

}  // namespace maxsimd
