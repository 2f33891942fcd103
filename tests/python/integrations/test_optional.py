"""pandas and matplotlib, where they are installed."""

import unittest

import matplotlib
import memfathom

matplotlib.use("Agg")


class OptionalTest(unittest.TestCase):
    def setUp(self):
        self.estimate = memfathom.estimate(model="gpt2", sequence_length=256, gpu="rtx-4090")

    def test_components_are_a_data_frame(self):
        frame = self.estimate.to_pandas()
        self.assertEqual(int(frame["bytes"].sum()), self.estimate.device_peak)
        table = memfathom.compare(model="gpt2", sequence_length=256, strategies=["bf16"]).to_pandas()
        self.assertEqual(list(table["strategy"]), ["baseline", "bf16"])

    def test_components_are_a_bar(self):
        axes = self.estimate.plot()
        self.assertEqual(len(axes.patches), len(self.estimate.components))
        self.assertAlmostEqual(sum(one.get_width() for one in axes.patches), self.estimate.device_peak.gib)


if __name__ == "__main__":
    unittest.main()
