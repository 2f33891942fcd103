"""accelerate, and a plain loop, on the CPU."""

import unittest

import memfathom
import torch
from accelerate import Accelerator
from common import HOPELESS, CountingMeter, database, observations, samples, tiny_config, tiny_model
from memfathom.accelerate import attach


class AccelerateTest(unittest.TestCase):
    def train(self, model, optimizer, accelerator):
        for one in samples(3):
            batch = torch.tensor([one["input_ids"]])
            accelerator.backward(model(input_ids=batch, labels=batch).loss)
            optimizer.step()
            optimizer.zero_grad()

    def test_estimates_compares_and_stores(self):
        accelerator = Accelerator(cpu=True)
        model = tiny_model()
        model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters()))
        meter = CountingMeter()
        with database() as db:
            hook = attach(model, db=db, meter=meter, batch_size=1, sequence_length=16, gpu="rtx-4090")
            self.train(model, optimizer, accelerator)
            self.assertIsNotNone(hook.finish())
            self.assertEqual(observations(db), 2)
        self.assertEqual(hook.estimate.parameters, model.num_parameters())
        self.assertEqual((meter.resets, meter.reads), (1, 3))

    def test_a_hopeless_job_is_stopped_before_its_first_forward_pass(self):
        model = tiny_model()
        attach(model, on_misfit="stop", **HOPELESS)
        with self.assertRaisesRegex(memfathom.DoesNotFitError, "does not fit"):
            model(input_ids=torch.tensor([[1, 2]]))

    def test_a_plain_loop_is_watched(self):
        meter = CountingMeter()
        with database() as db:
            with memfathom.watch(tiny_config(), db=db, meter=meter, sequence_length=16, gpu="rtx-4090") as run:
                run.step()
            self.assertEqual(observations(db), 2)
        self.assertIn("observed", run.comparison())


if __name__ == "__main__":
    unittest.main()
