"""Lightning on the CPU."""

import unittest

import lightning
import memfathom
import torch
from common import HOPELESS, CountingMeter, database, observations, samples, tiny_config, tiny_model
from memfathom.lightning import MemoryCallback


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = tiny_model()

    def training_step(self, batch, index):
        return self.model(input_ids=batch, labels=batch).loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


def fit(callback, **more):
    data = torch.utils.data.DataLoader([torch.tensor(one["input_ids"]) for one in samples()], batch_size=2)
    lightning.Trainer(
        max_steps=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[callback],
        **more,
    ).fit(Module(), data)


class LightningTest(unittest.TestCase):
    def test_estimates_compares_and_stores(self):
        meter = CountingMeter()
        with database() as db:
            callback = MemoryCallback(
                tiny_config(), db=db, meter=meter, batch_size=2, sequence_length=16, gpu="rtx-4090"
            )
            fit(callback, gradient_clip_val=1.0)
            self.assertEqual(observations(db), 2)
        self.assertEqual(callback.estimate.verdict.status, "fits")
        self.assertEqual((meter.resets, meter.reads), (1, 3))

    def test_a_hopeless_job_is_stopped_with_advice(self):
        with self.assertRaisesRegex(memfathom.DoesNotFitError, "does not fit"):
            fit(MemoryCallback(tiny_config(), on_misfit="stop", **HOPELESS))


if __name__ == "__main__":
    unittest.main()
