"""The parts of profiler/pytorch_probe that need no torch, with a pretend libnvidia-ml (tests/profiler/fake_nvml.cc).

    MEMFATHOM_NVML=FAKE python3 pytorch_probe_test.py PROBE
"""
import contextlib
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

PROBE = sys.argv.pop(1)
GIB = 1 << 30


sys.path.insert(0, os.path.dirname(PROBE))
from pytorch_probe import cupti, device, environment as environments, meters, nvml, ranks  # noqa: E402


def run_probe(request, **options):
    """As profiler/pytorch_probe.cc starts it: boot.py, then every module as name and text."""
    texts = {path.name: path.read_text() for path in sorted(pathlib.Path(PROBE).glob("*.py"))}
    words = [sys.executable, "-c", texts.pop("boot.py")]
    for name, text in texts.items():
        words += [name, text]
    return subprocess.run(words, input=request, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@contextlib.contextmanager
def environment(**variables):
    """Of C's getenv too, which the pretend library asks."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


class NvmlTest(unittest.TestCase):
    def test_reads_the_gpu_and_its_processes(self):
        gpu = nvml.Nvml(0)
        self.assertEqual(gpu.driver(), "580.1")
        self.assertEqual(gpu.used(), 3 * GIB)
        self.assertEqual(gpu.processes(), {7: None, os.getpid(): 2 * GIB})
        self.assertTrue(gpu.mode("nvmlDeviceGetEccMode"))
        self.assertFalse(gpu.mode("nvmlDeviceGetMigMode"))

    def test_reads_the_memory_that_only_the_older_function_tells(self):
        with environment(MEMFATHOM_FAKE_ONLY_OLD="1"):
            self.assertEqual(nvml.Nvml(0).used(), 4 * GIB)
        with environment(MEMFATHOM_FAKE_SHARED="1"):
            self.assertIsNone(nvml.Nvml(0).used())

    def test_a_missing_gpu_is_an_os_error(self):
        self.assertRaises(OSError, nvml.Nvml, 1)

    def test_the_gpu_is_the_one_visible_to_cuda(self):
        with environment(MEMFATHOM_FAKE_CARDS="4"):
            cards = [nvml.Nvml(index).device.value for index in range(4)]
        for visible, wanted in (("2,0", 2), ("GPU-30000000-aaaa", 3), ("GPU-1", 1), (" 3 ,1", 3)):
            with environment(MEMFATHOM_FAKE_CARDS="4", CUDA_VISIBLE_DEVICES=visible):
                self.assertEqual(nvml.Nvml(0).device.value, cards[wanted], visible)
        for visible in ("", "-1", "nonsense", "GPU-9"):
            with environment(MEMFATHOM_FAKE_CARDS="4", CUDA_VISIBLE_DEVICES=visible):
                self.assertRaises(OSError, nvml.Nvml, 0)
        with environment(CUDA_VISIBLE_DEVICES="0"):
            self.assertRaises(OSError, nvml.Nvml, 1)

    def test_uses_the_first_mig_instance(self):
        for visible in ("0", "MIG-00000000-aaaa"):
            with environment(MEMFATHOM_FAKE_DIVIDED="1", CUDA_VISIBLE_DEVICES=visible):
                gpu = nvml.Nvml(0)
                self.assertTrue(gpu.mode("nvmlDeviceGetMigMode"))
                self.assertEqual(gpu.processes(), {7: None, os.getpid(): 2 * GIB})

    def test_the_meter_reads_this_process_alone(self):
        with tempfile.NamedTemporaryFile("w") as file:
            meter = self.meter_with(file, "7 1024 0")
            self.assertEqual(meter.metric(), "nvml-device")
            file.write("\nself 2048 0")
            file.flush()
            with environment(MEMFATHOM_FAKE_PROCESSES=file.name):
                self.assertEqual(meter.used(), 2 * GIB)
            os.unlink(file.name + ".read")
        self.assertEqual(meter.metric(), "nvml-process")
        self.assertEqual(meter.disturbed, "")

    def test_a_container_s_process_without_its_memory_is_read_as_the_device_growth(self):
        with tempfile.NamedTemporaryFile("w") as file, environment(MEMFATHOM_FAKE_CONTAINER="1"):
            meter = self.meter_with(file, "7 1024 0")
            file.write("\nself 2048 0")
            file.flush()
            with environment(MEMFATHOM_FAKE_PROCESSES=file.name):
                self.assertEqual(meter.used(), 2 * GIB)
                self.assertEqual((meter.metric(), meter.disturbed), ("nvml-device", ""))
                file.write("\n8 1024 0")
                file.flush()
                self.assertEqual(meter.used(), 3 * GIB)
            self.assertEqual(meter.disturbed, "process 8 started using the device")
            os.unlink(file.name + ".read")

    def test_other_processes_do_not_disturb_the_figure_of_this_one(self):
        with tempfile.NamedTemporaryFile("w") as file:
            meter = self.meter_with(file, "7 1024 0")
            file.write("\nself 2048 0\n8 1024 0")
            file.flush()
            with environment(MEMFATHOM_FAKE_PROCESSES=file.name):
                self.assertEqual(meter.used(), 2 * GIB)
            os.unlink(file.name + ".read")
        self.assertEqual((meter.metric(), meter.disturbed), ("nvml-process", ""))

    @staticmethod
    def meter_with(file, processes):
        file.write(processes)
        file.flush()
        with environment(MEMFATHOM_FAKE_PROCESSES=file.name):
            return meters.NvmlMeter(nvml.Nvml(0), meters.MemGetInfoMeter(0))

    def test_ignores_a_host_process_with_the_same_pid(self):
        meter = meters.NvmlMeter(nvml.Nvml(0), meters.MemGetInfoMeter(0))
        self.assertEqual(meter.used(), 0)
        self.assertEqual(meter.metric(), "nvml-device")

    def test_reads_the_device_growth_where_processes_are_hidden(self):
        with environment(MEMFATHOM_FAKE_SECRETIVE="1"):
            meter = device.Device("cuda:0").meter
            self.assertEqual(meter.used(), 0)
            self.assertEqual(meter.metric(), "nvml-device")

    def test_reads_the_process_entries_of_driver_535(self):
        with environment(MEMFATHOM_NVML=os.environ["MEMFATHOM_FAKE_NVML_535"]):
            self.assertEqual(nvml.Nvml(0).processes(), {7: None, os.getpid(): 2 * GIB})

    def test_the_meter_under_every_driver_branch(self):
        """The same situations as DriverTest of nvml_test.cc."""
        libraries = {"580": os.environ["MEMFATHOM_NVML"]}
        libraries.update((name, os.environ["MEMFATHOM_FAKE_NVML_" + name]) for name in ("530", "535", "550"))
        of_process = [("bare", name) for name in libraries] + [("mig", name) for name in libraries] + [("container", "580")]
        of_gpu = [("container", "530"), ("container", "535"), ("container", "550"), ("wsl", "550"), ("wsl", "580"),
                  ("vgpu", "530"), ("vgpu", "550"), ("vgpu", "580")]
        for place, name in of_process + of_gpu:
            divided = {"MEMFATHOM_FAKE_DIVIDED": "1"} if place == "mig" else {}
            with self.subTest(place=place, driver=name), tempfile.NamedTemporaryFile("w") as file, \
                    environment(MEMFATHOM_NVML=libraries[name], MEMFATHOM_FAKE_PLACE=place, **divided):
                meter = self.meter_with(file, "7 100 0")
                file.write("\nself 700 0\n8 50 0")
                file.flush()
                with environment(MEMFATHOM_FAKE_PROCESSES=file.name):
                    used = meter.used()
                if os.path.exists(file.name + ".read"):
                    os.unlink(file.name + ".read")
                whole = (place, name) in of_gpu
                self.assertEqual((used >> 20, meter.metric()), (750, "nvml-device") if whole else (700, "nvml-process"))

    def test_reads_a_process_of_a_gpu_that_does_not_report_itself(self):
        with environment(MEMFATHOM_FAKE_SHARED="1"), tempfile.NamedTemporaryFile("w") as file:
            meter = self.meter_with(file, "7 1024 0")
            self.assertEqual(meter.metric(), "mem-get-info")
            file.write("\nself 2048 0")
            file.flush()
            with environment(MEMFATHOM_FAKE_PROCESSES=file.name):
                self.assertEqual(meter.used(), 2 * GIB)
            os.unlink(file.name + ".read")
        self.assertEqual(meter.metric(), "nvml-process")

    def test_does_not_count_inaccessible_gpus(self):
        with environment(MEMFATHOM_FAKE_CARDS="4"):
            cards = [nvml.Nvml(index).device.value for index in range(4)]
        with environment(MEMFATHOM_FAKE_CARDS="4", MEMFATHOM_FAKE_FORBIDDEN="02"):
            self.assertEqual([nvml.Nvml(index).device.value for index in range(2)], [cards[1], cards[3]])
            self.assertRaises(OSError, nvml.Nvml, 2)
            with environment(CUDA_VISIBLE_DEVICES="GPU-3"):
                self.assertEqual(nvml.Nvml(0).device.value, cards[3])

    def test_another_process_disturbs(self):
        meter = meters.NvmlMeter(nvml.Nvml(0), meters.MemGetInfoMeter(0))
        meter.compare({7: None, 8: GIB})
        self.assertEqual(meter.disturbed, "process 8 started using the device")


@unittest.skipUnless("MEMFATHOM_FAKE_CUPTI" in os.environ, "CUPTI's headers were not found when the tests were built")
class CuptiTest(unittest.TestCase):
    """The same situations as DriverActivityTest of driver_activity_test.cc."""
    MIB = 1 << 20

    def setUp(self):
        path = os.environ["MEMFATHOM_FAKE_CUPTI"]
        self.library = ctypes.CDLL(path)
        os.environ["MEMFATHOM_CUPTI"] = path

    def note(self, operation, address, size, source=b"/cuda/libcudnn.so.9"):
        self.library.fake_cupti_note(operation, 3, ctypes.c_uint64(address), ctypes.c_uint64(size), source)

    def record_some(self, gpu=0):
        activity = cupti.Activity(gpu)
        activity.mark()
        self.note(1, 100, self.MIB)
        self.note(1, 200, 2 * self.MIB)
        self.note(2, 100, 0)
        self.note(1, 300, 3 * self.MIB, b"/cuda/libcufft.so.12")
        activity.mark()
        return activity.finish()

    def test_records_operations_with_times_and_modules(self):
        self.note(1, 50, self.MIB)  # before the recording
        driver = self.record_some()
        self.assertEqual((driver["missing"], driver["dropped"]), ("", 0))
        self.assertEqual([record[1:3] + record[4:] for record in driver["records"]],
                         [[True, 3, 100, self.MIB], [True, 3, 200, 2 * self.MIB], [False, 3, 100, 0], [True, 3, 300, 3 * self.MIB]])
        self.assertEqual(driver["modules"][driver["records"][3][3]], "/cuda/libcufft.so.12")
        times = [record[0] for record in driver["records"]]
        self.assertTrue(driver["marks"][0] < times[0] < times[3] < driver["marks"][1])
        json.dumps(driver)

    def test_reads_every_buffer_also_on_another_thread(self):
        for settings in ({"FAKE_CUPTI_CAPACITY": "1"}, {"FAKE_CUPTI_CAPACITY": "1", "FAKE_CUPTI_THREAD": "1"}):
            with environment(**settings):
                self.assertEqual(len(self.record_some()["records"]), 4)

    def test_records_of_older_versions_have_no_module(self):
        with environment(FAKE_CUPTI_VERSION="23"):
            driver = self.record_some()
        self.assertEqual([record[3] for record in driver["records"]], [-1] * 4)
        self.assertEqual(driver["records"][3][5], 3 * self.MIB)

    def test_stream_ordered_memory_is_that_of_a_pool(self):
        activity = cupti.Activity(0)
        self.library.fake_cupti_note(1, 0x103, ctypes.c_uint64(100), ctypes.c_uint64(self.MIB), None)
        self.assertEqual([record[2] for record in activity.finish()["records"]], [8])

    def test_other_gpus_are_not_recorded(self):
        self.assertEqual(self.record_some(gpu=1)["records"], [])

    def test_says_why_nothing_is_recorded(self):
        for settings, why in (({"FAKE_CUPTI_REFUSES": "35"},
                               "CUPTI cannot record memory operations: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"),
                              ({"FAKE_CUPTI_REFUSES": "33"}, "CUPTI cannot record memory operations: an unknown error"),
                              ({"FAKE_CUPTI_VERSION": "140000"}, "CUPTI has version 140000"),
                              ({"MEMFATHOM_CUPTI": "/nowhere/libcupti.so"}, "cannot be loaded"),
                              ({"MEMFATHOM_CUPTI": os.environ["MEMFATHOM_NVML"]}, "lacks a function")):
            with self.subTest(settings), environment(**settings):
                driver = self.record_some()
                self.assertIn(why, driver["missing"])
                self.assertEqual(driver["records"], [])

    def test_counts_dropped_and_incomplete_records(self):
        with environment(FAKE_CUPTI_DROPS="5"):
            self.assertEqual(self.record_some()["dropped"], 5)
        with environment(FAKE_CUPTI_INVALID="1"):
            driver = self.record_some()
        self.assertEqual((len(driver["records"]), driver["dropped"]), (3, 1))

    def test_every_reading_is_marked(self):
        stages = meters.Stages(meters.RssMeter())
        activity = cupti.Activity(0)
        stages.follow(activity)
        stages.read("context")
        self.assertEqual(len(activity.finish()["marks"]), len(stages.readings))


class RanksTest(unittest.TestCase):
    @staticmethod
    def result(*readings, **more):
        names = ("baseline", "context", "warmup", "communicator", "second_communicator")
        stages = [{"stage": name, "device_used_bytes": reading} for name, reading in zip(names, readings)]
        return {"stages": stages, "allocated": 5, "reserved": 20, "metric": "nvml-process", "disturbed": "", "missing": {}, **more}

    def test_the_sample_has_the_largest_reading_of_all_ranks(self):
        sample = ranks.merged([self.result(0, 10, 12, 30, 34), self.result(0, 11, 12, 28, 35, reserved=24)])
        self.assertEqual([one["device_used_bytes"] for one in sample["stages"]], [0, 11, 12, 30, 35])
        self.assertEqual((sample["reserved_peak_bytes"], sample["device_peak_bytes"]), (24, 59))
        self.assertEqual((sample["status"], sample["status_note"]), ("ok", ""))

    def test_says_what_was_not_measured(self):
        sample = ranks.merged([self.result(0, 10, 12, 30, 34, missing={"fsdp": "no fully_shard"})] * 2)
        self.assertEqual(sample["status_note"], "fsdp is not measured: no fully_shard")

    def test_a_rank_that_failed_fails_the_sample_by_its_name(self):
        with self.assertRaisesRegex(RuntimeError, "rank 1: RuntimeError: torch sees no GPU"):
            ranks.merged([self.result(0, 1, 2, 3, 4), {"failure": "RuntimeError: torch sees no GPU"}])
        with self.assertRaisesRegex(RuntimeError, "rank 1 reached other stages"):
            ranks.merged([self.result(0, 1, 2, 3, 4), self.result(0, 1, 2)])

    def test_a_disturbed_rank_disturbs_the_sample(self):
        sample = ranks.merged([self.result(0, 1, 2, 3, 4), self.result(0, 1, 2, 3, 4, disturbed="process 8 started")])
        self.assertEqual((sample["status"], sample["status_note"]), ("disturbed", "process 8 started"))

    def test_a_rank_that_ends_without_an_answer_is_named(self):
        with unittest.mock.patch.object(ranks, "run_rank", lambda *_: os._exit(3)):
            with self.assertRaisesRegex(RuntimeError, "rank 0 of 2 ended without an answer"):
                ranks.results_of({"ranks": 2}, "cpu")

    def test_every_rank_has_a_gpu_of_its_own(self):
        self.assertEqual([ranks.device_of("cuda:2", rank) for rank in range(3)], ["cuda:2", "cuda:3", "cuda:4"])
        self.assertEqual(ranks.device_of("cpu", 5), "cpu")


class ProtocolTest(unittest.TestCase):
    def test_names_the_cudnn_that_torch_loaded(self):
        with tempfile.NamedTemporaryFile("w") as maps:
            maps.write("7f00-7f01 r-xp 00000000 08:01 12 /opt/my venv/nvidia/cudnn/lib/libcudnn.so.9\n"
                       "7f02-7f03 r-xp 00000000 08:01 13 /opt/my venv/nvidia/cudnn/lib/libcudnn_ops.so.9\n"
                       "7f04-7f05 rw-p 00000000 00:00 0\n")
            maps.flush()
            self.assertEqual(environments.loaded_library("cudnn", maps.name), "/opt/my venv/nvidia/cudnn/lib/libcudnn.so.9")
            self.assertEqual(environments.loaded_library("cufft", maps.name), "")

    def test_says_when_cuda_loads_kernels(self):
        class Driver:
            def __init__(self, mode, code=0):
                self.mode, self.code = mode, code

            def cuModuleGetLoadingMode(self, mode):
                mode._obj.value = self.mode
                return self.code

        self.assertEqual(environments.module_loading(lambda name: Driver(1)), "eager")
        self.assertEqual(environments.module_loading(lambda name: Driver(2)), "lazy")
        self.assertEqual(environments.module_loading(lambda name: Driver(2, code=3)), "")
        self.assertEqual(environments.module_loading(lambda name: object()), "", "a driver before 11.7")

    def test_resident_memory_is_read_from_proc(self):
        stages = meters.Stages(meters.RssMeter())
        kept = b"x" * (64 << 20)
        stages.read("tensors")
        self.assertGreater(stages.peak(), len(kept) // 2)

    def test_the_sampler_goes_on_after_a_refused_reading(self):
        class Meter:
            readings, last = 0, threading.Event()

            def used(self):
                self.readings += 1
                if self.readings == 2:
                    raise nvml.NvmlRefusal("nvmlDeviceGetMemoryInfo_v2", 999)
                if self.readings == 3:
                    self.last.set()
                return self.readings

        meter = Meter()
        stages = meters.Stages(meter)
        stages.thread.start()
        self.assertTrue(meter.last.wait(30))
        stages.done.set()
        stages.thread.join()
        self.assertGreaterEqual(stages.peak(), 2)

    def test_modules_of_the_current_directory_are_not_imported(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("json", "ctypes", "gc", "importlib", "os", "platform", "pytorch_probe", "re", "threading", "time", "torch"):
                with open(os.path.join(folder, name + ".py"), "w") as planted:
                    planted.write("open('imported', 'w')\n")
            run = run_probe("{}", cwd=folder)
            self.assertEqual(run.returncode, 1)
            self.assertFalse(os.path.exists(os.path.join(folder, "imported")), run.stderr)

    def test_a_failure_is_one_sentence_and_no_answer(self):
        request = json.dumps({"device": "virtual:blue", "workload": ""})
        run = run_probe(request)
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stdout, "")
        self.assertEqual(run.stderr, "PyTorch is measured on cpu or cuda:N, not on virtual:blue\n")


unittest.main()
