// Runs every target with the inputs that libFuzzer kept, each of which reaches code that no other reaches. An input is
// one line in hexadecimal.
#include "test/fuzz/targets.h"

namespace maxsimd::test {
namespace {

std::vector<Bytes> corpusOf(const std::string& name) {
  std::ifstream file(std::string(MAXSIMD_FUZZ_CORPUS) + "/" + name + ".txt");
  CHECK(file.is_open());
  std::vector<Bytes> inputs;
  for (std::string line; std::getline(file, line);) {
    Bytes& input = inputs.emplace_back();
    for (size_t at = 0; at + 1 < line.size(); at += 2)
      input.push_back(uint8_t(std::stoul(line.substr(at, 2), nullptr, 16)));
  }
  return inputs;
}

const Case replay("fuzz", "what libFuzzer kept for each target is read as it should be", [](Random&) {
  for (const FuzzTarget& target : fuzzTargets) {
    const auto inputs = corpusOf(target.name);
    CHECK(!inputs.empty());
    size_t taken = 0;
    for (const Bytes& input : inputs) taken += target.run(input);
    std::printf("fuzz: %s: %zu inputs, %zu get past the checksums\n", target.name, inputs.size(), taken);
    // A codebook's name is the hash of its content.
    CHECK(taken > 0 || target.run == fuzzCodebookFile);
  }
});

}  // namespace
}  // namespace maxsimd::test
