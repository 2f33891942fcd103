// node compare_engines.cjs ENGINE_FOLDER MEMFATHOM JOBS: the same jobs through the program and through the page's engine must give
// the same bytes. Prints both times; the first difference ends it with 1.
const {execFileSync} = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const {performance} = require('perf_hooks');
const {open} = require('./engine.cjs');

async function main() {
  const [folder, program, file] = process.argv.slice(2);
  if (!fs.existsSync(path.join(folder, 'memfathom.wasm'))) {
    console.log(`left out: ${folder} has no memfathom.wasm; scripts/build-web makes it`);
    process.exit(77);
  }
  const jobs = fs.readFileSync(file, 'utf8').trim().split('\n');
  // An empty home and no cuDNN to ask: no database, no cache, fitted workspaces, as in a page.
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'memfathom-web-'));
  const environment = {PATH: process.env.PATH, HOME: home, LC_ALL: 'C.UTF-8', MEMFATHOM_CUDNN_PLANNER: '/nonexistent'};
  const run = (words) => {
    try {
      return execFileSync(program, words, {env: environment, maxBuffer: 2 ** 30, stdio: ['ignore', 'pipe', 'ignore']}).toString();
    } catch (error) {
      if (error.status === 2 || error.status === 3) return error.stdout.toString();  // lines that are errors
      throw error;
    }
  };
  let start = performance.now();
  const native = run(['estimate', '--batch', file, '--format', 'json']).trimEnd().split('\n');
  const nativeTime = performance.now() - start;
  fs.rmSync(home, {recursive: true});
  const engine = await open(folder);
  start = performance.now();
  const page = [];
  for (let i = 0; i < jobs.length; i += 50) page.push(...engine.batch(jobs.slice(i, i + 50).join('\n')).trimEnd().split('\n'));
  const pageTime = performance.now() - start;
  if (native.length !== jobs.length || page.length !== jobs.length)
    throw new Error(`${jobs.length} jobs, ${native.length} answers of the program, ${page.length} of the engine`);
  // The sentence of an error names the file and line that a job came from, which a page has not.
  const comparable = (line) => line.replace(/"error":"[^"]*?(line \d+|request:\d+|:\d+): /, '"error":"');
  let different = 0;
  let errors = 0;
  native.forEach((line, i) => {
    errors += line.includes('memfathom.error/1') ? 1 : 0;
    if (comparable(line) === comparable(page[i])) return;
    different += 1;
    if (different > 3) return;
    let at = 0;
    while (line[at] === page[i][at]) at += 1;
    console.log(`${jobs[i]}\n  program: ...${line.slice(Math.max(0, at - 80), at + 80)}\n  engine:  ...${page[i].slice(Math.max(0, at - 80), at + 80)}`);
  });
  console.log(`${jobs.length} jobs, ${errors} of them errors, ${different} differ; program ${(nativeTime / 1000).toFixed(1)} s on all cores, engine ${(pageTime / 1000).toFixed(1)} s on one; ${engine.memory() >> 20} MiB`);
  process.exit(different === 0 ? 0 : 1);
}

main().catch((error) => { console.log(error.message); process.exit(1); });
