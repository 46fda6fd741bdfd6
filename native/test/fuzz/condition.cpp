// Fuzzes bytes from requests and from the catalog: conditions, and the text of metadata.
#include "index/condition.h"
#include "values/json_values.h"
#include "test/fuzz/targets.h"

namespace maxsimd::test {

bool fuzzCondition(std::span<const uint8_t> given) {
  const std::string_view text{reinterpret_cast<const char*>(given.data()), given.size()};
  for (const JsonMember& member : membersOf(text)) {
    CHECK(stringOf(member.name).size() <= 3 * member.name.size());
    const std::string key = valueKey(member.value);
    CHECK(key >= numberKeys && fullKeyBytes(cutKey(key)) == key.size());
    if (!isCut(key)) CHECK(tokenOfKey(key).empty() == member.value.empty());
  }
  try {
    const Condition condition = readCondition(given);
    size_t sets = 0;
    for (const Condition::Step& step : condition.steps) {
      CHECK(step.count <= sets);
      sets = sets - step.count + 1;
      CHECK(sets <= conditionSetsMax);
    }
    CHECK(sets == 1);
    return true;
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalidArgument);
    return false;
  }
}

}  // namespace maxsimd::test
