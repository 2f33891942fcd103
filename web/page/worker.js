// Inside a Web Worker: calls the C interface. The code of emscripten stands before this one and defines memfathomEngine.
/* global memfathomEngine */

let engine;
let session;
const noMemory = 'the job needs more memory than a page may have (4 GiB); memfathom estimate may answer it';

// The engine's own sentence.
class Refusal extends Error {
  constructor(sentence, isMemory) {
    super(sentence);
    this.isMemory = isMemory;
  }
}

// Hands a text to the engine, and frees it after `use`.
function withText(text, use) {
  if (text === null) return use(0);
  const size = engine.lengthBytesUTF8(text) + 1;
  const pointer = engine._malloc(size) >>> 0;  // addresses above 2 GiB come as negative numbers
  if (pointer === 0) throw new Refusal(noMemory, true);
  engine.stringToUTF8(text, pointer, size);
  try {
    return use(pointer);
  } finally {
    engine._free(pointer);
  }
}

// Calls `call(result)`, which returns a status; the text at `result` is the answer, or an error object.
function answered(call) {
  const place = engine._malloc(4);
  engine.HEAP32[place >>> 2] = 0;
  const status = call(place);
  const text = engine.HEAP32[place >>> 2] >>> 0;
  const answer = text === 0 ? '' : engine.UTF8ToString(text);
  engine._memfathom_free(text);
  engine._free(place);
  if (status !== 0) throw new Refusal(answer === '' ? noMemory : JSON.parse(answer).error, answer === '');
  return answer;
}

// An engine that failed in the middle of a question, or whose memory grew beyond this, is given up for a new one.
const maxKeptBytes = 2 ** 30;
let module;
const files = new Map();

async function open() {
  engine = await memfathomEngine({
    instantiateWasm: (imports, done) => {
      WebAssembly.instantiate(module, imports).then((instance) => done(instance, module));
      return {};
    },
  });
  engine.FS.mkdir('/files');
  for (const [path, bytes] of files) engine.FS.writeFile(path, bytes);
  const place = engine._malloc(4);
  withText('{}', (options) => answered((result) => engine._memfathom_open(options, place, result)));
  session = engine.HEAP32[place >>> 2];
  engine._free(place);
  return engine.UTF8ToString(engine._memfathom_version());
}

function ask(method, request) {
  if (method === 'models') return answered((result) => engine._memfathom_models(session, result));
  return withText(request, (text) => answered((result) => engine[`_memfathom_${method}`](session, text, result)));
}

// A file replaces the one before it: a job has one trace.
function keep(path, bytes) {
  for (const old of files.keys()) engine.FS.unlink(old);
  files.clear();
  files.set(path, bytes);
  engine.FS.writeFile(path, bytes);
}

async function answer(data) {
  if (data.wasm) module = data.wasm;
  if (!engine) await open();
  if (data.wasm) return engine.UTF8ToString(engine._memfathom_version());
  if (data.path) return keep(data.path, data.bytes);
  return ask(data.method, data.request);
}

let queue = Promise.resolve();

async function reply({data}) {
  try {
    const result = await answer(data) ?? null;
    if (engine.HEAP32.length * 4 > maxKeptBytes) engine = null;
    postMessage({id: data.id, result});
  } catch (error) {
    const failure = error instanceof Refusal ? error.message : `the engine failed at this job (${error.message}); memfathom estimate may answer it`;
    if (!(error instanceof Refusal) || error.isMemory) engine = null;
    postMessage({id: data.id, failure});
  }
}

// One after the other, also while an engine opens.
onmessage = (event) => { queue = queue.then(() => reply(event)); };
