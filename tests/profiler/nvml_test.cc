#include "profiler/nvml.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "core/error.h"
#include "profiler/gpu_meter.h"
#include "tests/support/temporary_directory.h"

namespace memfathom {
namespace {

using namespace literals;
using ::testing::HasSubstr;

class NvmlLibraryTest : public testing::Test {
 protected:
  NvmlLibraryTest() { setenv("MEMFATHOM_NVML", MEMFATHOM_FAKE_NVML, 1); }
  ~NvmlLibraryTest() override {
    for (const char* name :
         {"MEMFATHOM_NVML", "MEMFATHOM_FAKE_CARDS", "MEMFATHOM_FAKE_DIVIDED",
          "MEMFATHOM_FAKE_SHARED", "MEMFATHOM_FAKE_ONLY_OLD", "MEMFATHOM_FAKE_FORBIDDEN",
          "MEMFATHOM_FAKE_SECRETIVE", "MEMFATHOM_FAKE_CONTAINER", "MEMFATHOM_FAKE_PROCESSES",
          "CUDA_VISIBLE_DEVICES"})
      unsetenv(name);
  }
  // The error for a missing GPU.
  std::string refusal_of(int index) {
    try {
      Nvml::open(&why_)->status(index);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
      return error.what();
    }
    return "none";
  }
  std::string why_;
};

TEST_F(NvmlLibraryTest, ReportsAGpuAndItsProcesses) {
  const std::unique_ptr<Nvml> nvml = Nvml::open(&why_);
  ASSERT_NE(nvml, nullptr) << why_;
  EXPECT_EQ(nvml->device_count(), 1);
  const GpuStatus status = nvml->status(0);
  EXPECT_EQ(status.name, "Pretend H100");
  EXPECT_EQ(status.driver, "580.1");
  EXPECT_EQ(status.total, 80_GiB);
  EXPECT_EQ(status.reserved, 1_GiB);
  EXPECT_TRUE(status.ecc);
  EXPECT_FALSE(status.mig);
  const GpuProcess other{7, "python", std::nullopt};
  const GpuProcess self{getpid(), "", 2_GiB};
  EXPECT_THAT(status.processes, testing::ElementsAre(other, self));
}

TEST_F(NvmlLibraryTest, NamesTheExistingGpusWhenOneDoesNotExist) {
  EXPECT_EQ(refusal_of(1), "cuda:1 does not exist; there is cuda:0");
  setenv("MEMFATHOM_FAKE_CARDS", "4", 1);
  EXPECT_EQ(refusal_of(4), "cuda:4 does not exist; there are cuda:0 to cuda:3");
  setenv("CUDA_VISIBLE_DEVICES", "2", 1);
  EXPECT_EQ(refusal_of(1),
            "cuda:1 does not exist; there is cuda:0 (CUDA_VISIBLE_DEVICES is \"2\")");
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  EXPECT_THAT(refusal_of(0), HasSubstr("there is no GPU"));
}

TEST_F(NvmlLibraryTest, CountsTheGpusVisibleToCuda) {
  setenv("MEMFATHOM_FAKE_CARDS", "4", 1);
  const std::unique_ptr<Nvml> nvml = Nvml::open(&why_);
  EXPECT_EQ(nvml->device_count(), 4);
  setenv("CUDA_VISIBLE_DEVICES", "2,0", 1);
  EXPECT_EQ(nvml->device_count(), 2);
  setenv("CUDA_VISIBLE_DEVICES", "2,9,0", 1);
  EXPECT_EQ(nvml->device_count(), 1) << "a GPU that is not there ends the list";
  setenv("CUDA_VISIBLE_DEVICES", "GPU-3,GPU-10000000-aaaa", 1);
  EXPECT_EQ(nvml->device_count(), 2) << "the beginning of a UUID is enough";
}

// A user of one instance may not ask for the processes of the whole GPU, nor use its memory.
TEST_F(NvmlLibraryTest, UsesTheFirstMigInstanceOfAPartitionedGpu) {
  setenv("MEMFATHOM_FAKE_DIVIDED", "1", 1);
  const std::unique_ptr<Nvml> nvml = Nvml::open(&why_);
  for (const char* visible : {"0", "GPU-0", "MIG-00000000-aaaa"}) {
    setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    const GpuStatus status = nvml->status(0);
    EXPECT_EQ(status.total, 10_GiB) << visible;
    EXPECT_TRUE(status.mig) << visible;
    EXPECT_TRUE(status.ecc) << visible;
    EXPECT_EQ(status.processes.size(), 2U) << visible;
  }
}

TEST_F(NvmlLibraryTest, MeasuresAGpuWithoutDedicatedMemoryThroughCuda) {
  setenv("MEMFATHOM_FAKE_SHARED", "1", 1);
  const std::unique_ptr<MemoryMeter> meter = make_gpu_meter(0, [] { return false; });
  EXPECT_EQ(meter->metric(), "mem-get-info");
  EXPECT_EQ(meter->used(), Bytes{}) << "asking would make a context";
}

// GB10 under driver 580 refuses both functions; nvidia-smi prints "Not Supported".
TEST_F(NvmlLibraryTest, AGpuWithoutDedicatedMemoryHasTheSystems) {
  setenv("MEMFATHOM_FAKE_SHARED", "1", 1);
  const std::unique_ptr<Nvml> nvml = Nvml::open(&why_);
  EXPECT_EQ(nvml->device_used(0), std::nullopt);
  const GpuStatus status = nvml->status(0);
  EXPECT_TRUE(status.shares_system_memory);
  EXPECT_EQ(status.total, Bytes{sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)});
  EXPECT_GT(status.free, Bytes{});
  EXPECT_EQ(status.used + status.free, status.total);
  EXPECT_EQ(status.reserved, std::nullopt);
  EXPECT_EQ(status.driver, "580.1");
}

TEST_F(NvmlLibraryTest, AGpuWhoseMemoryOnlyTheOlderFunctionTellsHasItsOwn) {
  setenv("MEMFATHOM_FAKE_ONLY_OLD", "1", 1);
  const GpuStatus status = Nvml::open(&why_)->status(0);
  EXPECT_FALSE(status.shares_system_memory);
  EXPECT_EQ(status.total, 80_GiB);
  EXPECT_EQ(status.used, 4_GiB);
  EXPECT_EQ(status.reserved, std::nullopt);
}

// As on some integrated GPUs: NVML knows what a process uses and not what the GPU does.
TEST_F(NvmlLibraryTest, ReadsAProcessOfAGpuThatDoesNotReportItself) {
  setenv("MEMFATHOM_FAKE_SHARED", "1", 1);
  const std::unique_ptr<MemoryMeter> meter = make_gpu_meter(0, [] { return true; });
  EXPECT_EQ(meter->used(), 2_GiB);
  EXPECT_EQ(meter->metric(), "nvml-process");
}

// The sampler reads every 5 ms: the GPU is looked up once, and names are not asked for.
TEST_F(NvmlLibraryTest, AMeterLooksItsGpuUpOnce) {
  setenv("MEMFATHOM_FAKE_CARDS", "4", 1);
  setenv("CUDA_VISIBLE_DEVICES", "GPU-3", 1);
  const std::unique_ptr<MemoryMeter> meter = make_gpu_meter(0, [] { return true; });
  const auto lookups = [] {
    const std::unique_ptr<void, int (*)(void*)> library(dlopen(MEMFATHOM_FAKE_NVML, RTLD_NOW),
                                                        dlclose);
    return reinterpret_cast<int (*)()>(dlsym(library.get(), "fake_nvml_lookups"))();
  };
  const int before = lookups();
  EXPECT_GT(before, 0);
  for (int i = 0; i < 100; ++i) meter->used();
  EXPECT_EQ(lookups(), before);
}

// They were longer for a while, under the same name and version.
TEST_F(NvmlLibraryTest, ReadsTheProcessEntriesOfDriver535) {
  setenv("MEMFATHOM_NVML", MEMFATHOM_FAKE_NVML_535, 1);
  const GpuProcess other{7, "python", std::nullopt};
  const GpuProcess self{getpid(), "", 2_GiB};
  EXPECT_THAT(Nvml::open(&why_)->processes(0), testing::ElementsAre(other, self));
}

// As under Slurm: NVML counts what belongs to another job, CUDA does not.
TEST_F(NvmlLibraryTest, DoesNotCountInaccessibleGpus) {
  setenv("MEMFATHOM_FAKE_CARDS", "4", 1);
  setenv("MEMFATHOM_FAKE_FORBIDDEN", "02", 1);
  const std::unique_ptr<Nvml> nvml = Nvml::open(&why_);
  EXPECT_EQ(nvml->device_count(), 2);
  EXPECT_EQ(nvml->status(1).name, "Pretend H100");
  EXPECT_EQ(refusal_of(2), "cuda:2 does not exist; there are cuda:0 to cuda:1");
  setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
  EXPECT_EQ(nvml->device_count(), 2);
}

TEST_F(NvmlLibraryTest, ReadsTheDeviceGrowthWhereProcessesAreHidden) {
  setenv("MEMFATHOM_FAKE_SECRETIVE", "1", 1);
  const std::unique_ptr<MemoryMeter> meter = make_gpu_meter(0, [] { return true; });
  EXPECT_EQ(meter->used(), Bytes{});
  EXPECT_EQ(meter->metric(), "nvml-device");
}

// Drivers 535.113.01 to 560.35.03 in a container: this process is listed with 0 bytes.
TEST_F(NvmlLibraryTest, ReadsTheDeviceGrowthWhereAContainersProcessIsListedWithoutItsMemory) {
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "processes").string();
  std::ofstream(file) << "7 100 0\n";
  setenv("MEMFATHOM_FAKE_CONTAINER", "1", 1);
  setenv("MEMFATHOM_FAKE_PROCESSES", file.c_str(), 1);
  const std::unique_ptr<MemoryMeter> meter = make_gpu_meter(0, [] { return false; });
  EXPECT_EQ(meter->used(), Bytes{});
  std::ofstream(file) << "7 100 0\nself 700 0\n";
  EXPECT_EQ(meter->used(), 700_MiB);
  EXPECT_EQ(meter->metric(), "nvml-device");
  EXPECT_EQ(meter->disturbance(), "");
  std::ofstream(file) << "7 100 0\nself 700 0\n8 50 0\n";
  EXPECT_EQ(meter->used(), 750_MiB) << "the other process's memory cannot be told apart";
  EXPECT_EQ(meter->disturbance(), "process 8 started using the device");
}

TEST_F(NvmlLibraryTest, OtherProcessesDoNotDisturbTheFigureOfThisOne) {
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "processes").string();
  std::ofstream(file) << "7 100 0\n";
  setenv("MEMFATHOM_FAKE_PROCESSES", file.c_str(), 1);
  const std::unique_ptr<MemoryMeter> meter = make_gpu_meter(0, [] { return false; });
  std::ofstream(file) << "self 700 0\n8 50 0\n";
  EXPECT_EQ(meter->used(), 700_MiB);
  EXPECT_EQ(meter->metric(), "nvml-process");
  EXPECT_EQ(meter->disturbance(), "");
}

TEST_F(NvmlLibraryTest, IgnoresAHostProcessWithOurProcessId) {
  const std::unique_ptr<MemoryMeter> meter = make_gpu_meter(0, [] { return false; });
  EXPECT_EQ(meter->used(), Bytes{}) << "the GPU's rise, of which there is none";
  EXPECT_EQ(meter->metric(), "nvml-device");
}

TEST_F(NvmlLibraryTest, MeterReadsOnlyThisProcess) {
  const std::unique_ptr<MemoryMeter> meter = make_gpu_meter(0, [] { return true; });
  EXPECT_EQ(meter->used(), 2_GiB);
  EXPECT_EQ(meter->metric(), "nvml-process");
  EXPECT_EQ(meter->disturbance(), "");
}

// A driver branch and where it runs (fake_nvml.cc says what each tells, and by which source).
struct Situation {
  const char* name;
  const char* library;
  const char* place;
  const char* metric;
};

class DriverTest : public NvmlLibraryTest, public testing::WithParamInterface<Situation> {
 protected:
  DriverTest() {
    setenv("MEMFATHOM_NVML", GetParam().library, 1);
    setenv("MEMFATHOM_FAKE_PLACE", GetParam().place, 1);
    if (std::string_view(GetParam().place) == "mig") setenv("MEMFATHOM_FAKE_DIVIDED", "1", 1);
    setenv("MEMFATHOM_FAKE_PROCESSES", file_.c_str(), 1);
    processes("7 100 0\n");
  }
  ~DriverTest() override { unsetenv("MEMFATHOM_FAKE_PLACE"); }
  void processes(const char* lines) const { std::ofstream(file_) << lines; }
  bool tells_processes() const { return std::string_view(GetParam().metric) == "nvml-process"; }

  const TemporaryDirectory directory_;
  const std::string file_ = (directory_.path() / "processes").string();
};

TEST_P(DriverTest, AMeterReadsWhatThisProcessAdded) {
  const std::unique_ptr<MemoryMeter> meter = make_gpu_meter(0, [] { return false; });
  EXPECT_EQ(meter->used(), Bytes{}) << "there is no context yet";
  processes("7 100 0\nself 300 0\n");
  EXPECT_EQ(meter->used(), 300_MiB);
  processes("7 100 0\nself 700 0\n");
  EXPECT_EQ(meter->used(), 700_MiB);
  EXPECT_EQ(meter->metric(), GetParam().metric);
  EXPECT_EQ(meter->disturbance(), "");
}

TEST_P(DriverTest, AnotherProcessChangesOnlyFiguresOfTheWholeGpu) {
  const std::unique_ptr<MemoryMeter> meter = make_gpu_meter(0, [] { return false; });
  processes("7 100 0\nself 700 0\n8 50 0\n");
  EXPECT_EQ(meter->used(), tells_processes() ? 700_MiB : 750_MiB);
  EXPECT_EQ(meter->metric(), GetParam().metric);
}

TEST_P(DriverTest, AHostProcessWithOurIdIsNotTakenForThisOne) {
  processes("7 100 0\nself 200 0\n");
  const std::unique_ptr<MemoryMeter> meter = make_gpu_meter(0, [] { return false; });
  EXPECT_EQ(meter->used(), Bytes{});
  processes("7 100 0\nself 200 0\n99999 700 0\n");
  EXPECT_EQ(meter->used(), 700_MiB) << "this process under the host's id: the GPU's growth";
  EXPECT_EQ(meter->metric(), "nvml-device");
}

INSTANTIATE_TEST_SUITE_P(
    Drivers, DriverTest,
    testing::Values(Situation{"Bare530", MEMFATHOM_FAKE_NVML_530, "bare", "nvml-process"},
                    Situation{"Bare535", MEMFATHOM_FAKE_NVML_535, "bare", "nvml-process"},
                    Situation{"Bare550", MEMFATHOM_FAKE_NVML_550, "bare", "nvml-process"},
                    Situation{"Bare580", MEMFATHOM_FAKE_NVML, "bare", "nvml-process"},
                    Situation{"Container530", MEMFATHOM_FAKE_NVML_530, "container", "nvml-device"},
                    Situation{"Container535", MEMFATHOM_FAKE_NVML_535, "container", "nvml-device"},
                    Situation{"Container550", MEMFATHOM_FAKE_NVML_550, "container", "nvml-device"},
                    Situation{"Container580", MEMFATHOM_FAKE_NVML, "container", "nvml-process"},
                    Situation{"Mig530", MEMFATHOM_FAKE_NVML_530, "mig", "nvml-process"},
                    Situation{"Mig535", MEMFATHOM_FAKE_NVML_535, "mig", "nvml-process"},
                    Situation{"Mig550", MEMFATHOM_FAKE_NVML_550, "mig", "nvml-process"},
                    Situation{"Mig580", MEMFATHOM_FAKE_NVML, "mig", "nvml-process"},
                    Situation{"Wsl550", MEMFATHOM_FAKE_NVML_550, "wsl", "nvml-device"},
                    Situation{"Wsl580", MEMFATHOM_FAKE_NVML, "wsl", "nvml-device"},
                    Situation{"Vgpu530", MEMFATHOM_FAKE_NVML_530, "vgpu", "nvml-device"},
                    Situation{"Vgpu550", MEMFATHOM_FAKE_NVML_550, "vgpu", "nvml-device"},
                    Situation{"Vgpu580", MEMFATHOM_FAKE_NVML, "vgpu", "nvml-device"}),
    [](const auto& situation) { return std::string(situation.param.name); });

TEST_F(NvmlLibraryTest, RefusesALibraryThatIsNotNvml) {
  setenv("MEMFATHOM_NVML", "/nonexistent.so", 1);
  EXPECT_EQ(Nvml::open(&why_), nullptr);
  EXPECT_THAT(why_, HasSubstr("not installed"));
  setenv("MEMFATHOM_NVML", "libc.so.6", 1);
  EXPECT_EQ(Nvml::open(&why_), nullptr);
  EXPECT_THAT(why_, HasSubstr("older than"));
}

}  // namespace
}  // namespace memfathom
