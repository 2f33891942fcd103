// A C++ program of somebody else: every question of the public headers, for the job file that it is
// given.
#include <memfathom/session.h>
#include <memfathom/trace.h>

#include <iostream>
#include <sstream>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const memfathom::Session session;
  const memfathom::Job job = memfathom::Job::from_files({argv[1]});
  const memfathom::Estimate estimate = session.estimate(job, {.explain = true});
  memfathom::Bytes sum;
  for (const memfathom::Component& component : estimate.components) sum += component.bytes;
  if (sum != estimate.totals.device_peak || estimate.explanations.empty()) return 1;
  std::cout << "device peak " << estimate.totals.device_peak.count() << " bytes\n";

  memfathom::Job larger = job;
  larger.set("training.batch_size", 64);
  if (session.estimate(larger).totals.device_peak <= estimate.totals.device_peak) return 1;
  if (session.recommend(larger).configurations.empty()) return 1;
  if (session.compare(job, {.strategies = {"checkpointing"}}).strategies.size() != 2) return 1;
  if (session.models().empty() || session.gpus().size() <= session.gpus(larger).size()) return 1;
  const auto batch = session.estimate_batch(
      {{{"model", {{"preset", "gpt2"}}}, {"training", {{"sequence_length", 128}}}},
       {{"modell", 1}}});
  if (batch.size() != 2 || batch[0].error || !batch[1].error) return 1;
  try {
    session.estimate(memfathom::Job("model: {preset: nonsense}"));
    return 1;
  } catch (const memfathom::Error& error) {
    if (error.kind() != memfathom::ErrorKind::kInput) return 1;
  }
  std::ostringstream text;
  memfathom::TraceWriter trace(text);
  trace.alloc(1, memfathom::Bytes(512));
  trace.free(1);
  return text.str().empty() ? 1 : 0;
}
