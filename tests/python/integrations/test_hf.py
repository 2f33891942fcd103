"""transformers' Trainer and TRL's SFTTrainer on the CPU, with the real libraries."""

import tempfile
import unittest

import memfathom
from common import HOPELESS, CountingMeter, database, observations, samples, tiny_config, tiny_model
from memfathom.hf import MemoryCallback
from transformers import Trainer, TrainingArguments


def arguments(folder, **more):
    return TrainingArguments(
        output_dir=folder,
        max_steps=2,
        per_device_train_batch_size=2,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        **more,
    )


class TrainerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def train(self, callback, model=None, **more):
        Trainer(
            model or tiny_model(), arguments(self.folder, **more), train_dataset=samples(), callbacks=[callback]
        ).train()

    def test_estimates_compares_and_stores(self):
        meter = CountingMeter()
        with database() as db:
            callback = MemoryCallback(db=db, meter=meter, sequence_length=16, gpu="rtx-4090")
            with self.assertLogs("memfathom", "INFO") as log:
                self.train(callback)
            self.assertEqual(observations(db), 2)  # allocated and reserved
        self.assertEqual(callback.estimate.verdict.status, "fits")
        self.assertIn("batch 2 of 16 tokens", callback.estimate.job)
        self.assertEqual(callback.estimate.parameters, tiny_model().num_parameters())
        self.assertEqual((meter.resets, meter.reads), (1, 3))
        self.assertTrue(any("after the first step" in line for line in log.output), log.output)

    def test_no_key_of_training_arguments_is_in_doubt(self):
        callback = MemoryCallback(record=False, sequence_length=16, gpu="rtx-4090")
        self.train(callback)
        self.assertEqual([one for one in callback.estimate.unread if one.concerns], [])

    def test_a_hopeless_job_is_stopped_with_advice_before_its_first_step(self):
        meter = CountingMeter()
        with self.assertRaisesRegex(memfathom.DoesNotFitError, "does not fit.*(Advice|memfathom.recommend)"):
            self.train(MemoryCallback(meter=meter, on_misfit="stop", **HOPELESS))
        self.assertEqual(meter.reads, 0)

    def test_a_hopeless_job_warns_by_default(self):
        with self.assertWarns(memfathom.MemoryWarning):
            self.train(MemoryCallback(record=False, **HOPELESS))

    def test_without_a_gpu_it_estimates_only(self):
        with database() as db:
            callback = MemoryCallback(db=db, sequence_length=16)
            self.train(callback)
            self.assertFalse(db.exists())
        self.assertIsNotNone(callback.estimate)

    def test_adapters_are_part_of_the_job(self):
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(tiny_model(), LoraConfig(r=4, target_modules=["c_attn"]))
        callback = MemoryCallback(record=False, sequence_length=16, gpu="rtx-4090")
        self.train(callback, model)
        self.assertEqual(callback.estimate.trainable_parameters, model.num_parameters(only_trainable=True))

    def test_trls_trainer_takes_the_callback(self):
        from datasets import Dataset
        from trl import SFTConfig, SFTTrainer

        config = SFTConfig(
            output_dir=self.folder,
            max_steps=2,
            per_device_train_batch_size=2,
            max_length=16,
            use_cpu=True,
            bf16=False,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
        )
        meter = CountingMeter()
        with database() as db:
            callback = MemoryCallback(db=db, meter=meter, gpu="rtx-4090")
            data = Dataset.from_list([{"input_ids": one["input_ids"]} for one in samples()])
            from tokenizers import Tokenizer, models
            from transformers import PreTrainedTokenizerFast

            words = {str(number): number for number in range(64)}
            tokenizer = PreTrainedTokenizerFast(
                tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="0")),
                unk_token="0",
                pad_token="0",
                eos_token="1",
            )
            SFTTrainer(
                tiny_model(), config, train_dataset=data, processing_class=tokenizer, callbacks=[callback]
            ).train()
            self.assertEqual(observations(db), 2)
        self.assertIn("of 16 tokens", callback.estimate.job)


class ObjectsTest(unittest.TestCase):
    def test_the_real_objects_are_read(self):
        from peft import LoraConfig

        with tempfile.TemporaryDirectory() as folder:
            args = arguments(folder, gradient_checkpointing=True, gradient_accumulation_steps=4)
            estimate = memfathom.estimate(
                [tiny_config(), args, LoraConfig(r=4, target_modules=["c_attn"], task_type="CAUSAL_LM")],
                sequence_length=16,
            )
        self.assertIn("LoRA", estimate.job)
        self.assertEqual([one for one in estimate.unread if one.concerns], [])
        self.assertEqual(memfathom.estimate(tiny_model(), sequence_length=16).parameters, tiny_model().num_parameters())


if __name__ == "__main__":
    unittest.main()
