// What was dropped or pasted: which kind of text it is, and the state of the page that it makes.
import {EngineError} from './engine.js';
import {formatBytes} from './format.js';
import {merged, requestOf, valueAt} from './job.js';
import {say} from './text.js';

const maxTextBytes = 16 * 2 ** 20;
const maxTraceBytes = 256 * 2 ** 20;

function isTrace(name, bytes) {
  const isPacked = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const isPickle = bytes[0] === 0x80;
  return isPacked || isPickle || /\.jsonl$/i.test(name);
}

function isOomMessage(text) {
  return /out of memory|OutOfMemory|RESOURCE_EXHAUSTED|ALLOC_FAILED|No available memory for the cache blocks/i.test(text);
}

// Words of a shell that start a training, or its options; a configuration has neither.
function isCommand(name, text) {
  if (/\.(sh|bash|slurm|sbatch)$/i.test(name) || text.startsWith('#!')) return true;
  return /^\s*(\w+=\S+\s+)*(torchrun|accelerate|deepspeed|python3?|axolotl|llamafactory-cli|swift|tune|litgpt|srun|memfathom)\s/m.test(text) && !/^\s*[{[]/.test(text);
}

// The first state that the engine answers; else the error of the first one.
async function firstAnswered(engine, candidates) {
  let failure = null;
  for (const candidate of candidates) {
    try {
      await engine.ask('estimate', requestOf(candidate, {suggest: false}));
      return candidate;
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      failure = failure ?? error;
    }
  }
  throw failure;
}

// A file that describes a model replaces the model; one that does not (a DeepSpeed file) joins it. What files say wins over what
// was chosen before, but for the GPU.
async function withFiles(engine, state, files, command) {
  const target = Object.fromEntries(Object.entries(state.set).filter(([key]) => key.startsWith('target.')));
  const alone = {job: null, files, command, set: target};
  // A config.json describes a model alone: lengths and the rest stay as they were chosen.
  const trained = {...alone, set: state.set};
  const together = {...alone, job: merged({...state, set: Object.fromEntries(Object.entries(state.set).filter(([key]) => !key.startsWith('target.')))})};
  const chosen = await firstAnswered(engine, [alone, trained, together]);
  // A job file that names a GPU of its own is taken with it.
  const answer = await engine.ask('estimate', requestOf({...chosen, set: {}}, {suggest: false, document: true})).catch(() => null);
  return answer && valueAt(answer.document, 'target') ? {...chosen, set: {}} : chosen;
}

// {state} that the text makes, or {oom}: the figures of an error message.
export async function readText(engine, state, name, text) {
  if (isCommand(name, text)) return {state: await withFiles(engine, state, [], text)};
  if (isOomMessage(text)) return {oom: await engine.ask('oom', {text})};
  const files = [...state.files.filter((file) => file.name !== name), {name, text}];
  return {state: await withFiles(engine, state, files, null)};
}

export async function readFile(engine, state, file) {
  const bytes = new Uint8Array(await file.slice(0, maxTraceBytes + 1).arrayBuffer());
  const trace = isTrace(file.name, bytes);
  const limit = trace ? maxTraceBytes : maxTextBytes;
  if (bytes.length > limit) throw new EngineError(say('tooLarge', file.name, formatBytes(file.size), formatBytes(limit)));
  if (!trace) return readText(engine, state, file.name, new TextDecoder().decode(bytes));
  const path = await engine.store(file.name, bytes);
  const target = Object.fromEntries(Object.entries(state.set).filter(([key]) => key.startsWith('target.')));
  return {state: {job: {model: {trace: path}}, files: [], command: null, set: target}};
}
