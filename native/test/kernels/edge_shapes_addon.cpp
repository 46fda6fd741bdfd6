// The edge shapes as an addon of Node, for the unit test. It shares the compiled kernels of the service's own addon.
#include "test/kernels/edge_shapes.h"

#include <napi.h>

#include <stdexcept>

namespace maxsimd::test {

void fail(const char* file, int line, const std::string& message) {
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + message);
}

namespace {

Napi::Object outcome(Napi::Env env, const std::string& name, bool emulated, const std::vector<std::string>& faults) {
  Napi::Object object = Napi::Object::New(env);
  Napi::Array lines = Napi::Array::New(env);
  for (const std::string& line : faults) lines.Set(lines.Length(), line);
  object.Set("name", name);
  object.Set("emulated", emulated);
  object.Set("faults", lines);
  return object;
}

Napi::Array outcomesOf(Napi::Env env, const std::vector<TestedKernel>& kernels, Random& random) {
  Napi::Array outcomes = Napi::Array::New(env);
  for (const TestedKernel& tested : kernels) {
    const auto faults = faultsOf(tested, random);
    outcomes.Set(outcomes.Length(), outcome(env, tested.kernel->name, tested.emulated, faults));
  }
  return outcomes;
}

/// Takes a seed. Returns what each kernel, each set of loops and each faulty kernel did wrong.
Napi::Value run(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Random random(uint64_t(info[0].As<Napi::Number>().Int64Value()));
  Napi::Object all = Napi::Object::New(env);
  all.Set("kernels", outcomesOf(env, testedKernels(), random));
  all.Set("faulty", outcomesOf(env, faultyKernels(), random));
  Napi::Array others = Napi::Array::New(env);
  for (const CodeLoops* loops : testedLoops())
    others.Set(others.Length(),
               outcome(env, std::string("loops over codes, ") + loops->name, false, faultsOfLoops(*loops, random)));
  for (const RowLoops* loops : testedRowLoops())
    others.Set(others.Length(),
               outcome(env, std::string("loops over rows, ") + loops->name, false, faultsOfRowLoops(*loops, random)));
  others.Set(others.Length(), outcome(env, "stored rows", false, faultsOfRows(random)));
  all.Set("others", others);
  return all;
}

}  // namespace

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  exports.Set("run", Napi::Function::New(env, run, "run"));
  return exports;
}

}  // namespace maxsimd::test

using maxsimd::test::initialise;
NODE_API_MODULE(kernel_shapes, initialise)
