#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/devices/cuda_loader.h"

namespace memfathom {
namespace {

using testing::HasSubstr;

std::string error_of(const std::vector<std::filesystem::path>& places) {
  try {
    load_cuda_module(places);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    return error.what();
  }
  return "";
}

TEST(CudaLoaderTest, ReportsAMissingModuleWithARemedy) {
  const std::string sentence =
      error_of({"/nowhere/libmemfathom_cuda.so", "libmemfathom_cuda_that_does_not_exist.so"});
  EXPECT_THAT(sentence, HasSubstr("/nowhere/libmemfathom_cuda.so was not found"));
  EXPECT_THAT(sentence, HasSubstr("-DMEMFATHOM_CUDA=ON"));
  EXPECT_THAT(sentence, HasSubstr("--device cpu"));
}

TEST(CudaLoaderTest, ReportsTheLinkersReasonForAnInvalidLibrary) {
  EXPECT_THAT(error_of({MEMFATHOM_SOURCE_FILE}), HasSubstr("could not be opened"));
}

TEST(CudaLoaderTest, RefusesALibraryThatIsNotAModule) {
  EXPECT_THAT(error_of({"libm.so.6"}), HasSubstr("libm.so.6 is not a CUDA module of memfathom"));
}

TEST(CudaLoaderTest, RefusesAModuleOfAnotherBuild) {
  EXPECT_THAT(error_of({MEMFATHOM_OTHER_MODULE}),
              HasSubstr("belongs to another build of memfathom"));
}

TEST(CudaLoaderTest, ReadsTheModulePathFromTheEnvironment) {
  setenv("MEMFATHOM_CUDA_MODULE", MEMFATHOM_DOUBLED_MODULE, 1);
  EXPECT_THAT(cuda_module_search_paths(), testing::ElementsAre(MEMFATHOM_DOUBLED_MODULE));
  EXPECT_EQ(open_cuda_device(0)->name(), "cuda:0");
  unsetenv("MEMFATHOM_CUDA_MODULE");
}

TEST(CudaLoaderTest, NumbersGpusByPciBusUnlessTheUserOverridesIt) {
  unsetenv("CUDA_DEVICE_ORDER");
  load_cuda_module({MEMFATHOM_DOUBLED_MODULE});
  EXPECT_STREQ(std::getenv("CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
  setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST", 1);
  load_cuda_module({MEMFATHOM_DOUBLED_MODULE});
  EXPECT_STREQ(std::getenv("CUDA_DEVICE_ORDER"), "FASTEST_FIRST");
  unsetenv("CUDA_DEVICE_ORDER");
}

TEST(CudaLoaderTest, SearchesNextToTheProgramFirst) {
  unsetenv("MEMFATHOM_CUDA_MODULE");
  const auto places = cuda_module_search_paths();
  ASSERT_EQ(places.size(), 3U);
  EXPECT_EQ(places[0],
            std::filesystem::canonical("/proc/self/exe").parent_path() / "libmemfathom_cuda.so");
  EXPECT_THAT(places[1].string(), HasSubstr("lib/memfathom/libmemfathom_cuda.so"));
  EXPECT_EQ(places[2], "libmemfathom_cuda.so");
}

TEST(CudaLoaderTest, ModuleDeviceComputesAndThrowsOurErrors) {
  const CudaModule& module = load_cuda_module({MEMFATHOM_DOUBLED_MODULE});
  const std::unique_ptr<Device> device = module.open(0);
  const auto address = device->memory().allocate(Bytes{512}, 0);
  ASSERT_TRUE(address.has_value());
  const Operand out{reinterpret_cast<void*>(*address), DType::kFp32, {3}, {1}};
  device->run(ElementwiseCall{
      .op = Elementwise::kFill, .out = out, .a = {}, .b = {}, .c = {}, .scalars = {2.5}});
  std::vector<float> values(3);
  device->copy_to_host(values.data(), out.data, Bytes{12});
  EXPECT_THAT(values, testing::ElementsAre(2.5F, 2.5F, 2.5F));
  device->memory().release(*address, Bytes{512});
  try {
    module.open(7);
    FAIL() << "cuda:7 was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr("cuda:7 does not exist"));
  }
}

}  // namespace
}  // namespace memfathom
