// The emulated device as a library that an engine loads.
#include "test/device/emulated_library.h"

extern "C" __attribute__((visibility("default"))) const maxsimd::DeviceLibrary* maxsimdDeviceLibrary() {
  return &maxsimd::test::emulatedLibrary();
}
