// node time_engines.cjs ENGINE_FOLDER MEMFATHOM: a 7B LoRA estimate in the program's library and in the page's engine, side by side.
// Both are asked 21 times in one process after a first time; the medians are compared. The program's times come from `--batch` with
// many lines minus one with few, on one core.
const {execFileSync} = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const {performance} = require('perf_hooks');
const {open} = require('./engine.cjs');

function median(times) {
  return [...times].sort((a, b) => a - b)[times.length >> 1];
}

async function main() {
  const [folder, program] = process.argv.slice(2);
  // Another length each time, so that no cache answers.
  const job = (i) => JSON.stringify({model: {preset: 'llama-2-7b'}, training: {batch_size: 4, sequence_length: 1024 + 8 * i, precision: 'bf16', lora: {rank: 16}}, target: {gpu: 'a100-80gb'}});
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'memfathom-time-'));
  const run = (count) => {
    fs.writeFileSync(path.join(home, 'jobs'), Array.from({length: count}, (_, i) => job(i)).join('\n'));
    const start = performance.now();
    execFileSync('taskset', ['-c', '0', program, 'estimate', '--batch', path.join(home, 'jobs'), '--format', 'json'], {env: {PATH: process.env.PATH, HOME: home}, stdio: 'ignore'});
    return performance.now() - start;
  };
  run(1);
  const native = median(Array.from({length: 7}, () => (run(22) - run(1)) / 21));
  fs.rmSync(home, {recursive: true});
  let start = performance.now();
  const engine = await open(folder);
  engine.ask('estimate', job(100));
  const first = performance.now() - start;
  const times = [];
  for (let i = 0; i < 21; ++i) {
    start = performance.now();
    const {status, answer} = engine.ask('estimate', job(i));
    times.push(performance.now() - start);
    if (status !== 0) throw new Error(answer);
  }
  const page = median(times);
  console.log(`7B LoRA: program ${native.toFixed(1)} ms, engine ${page.toFixed(1)} ms, ${(page / native).toFixed(1)} times; engine opened and first answer ${first.toFixed(0)} ms`);
}

main().catch((error) => { console.log(error.message); process.exit(1); });
