// Inside a Web Worker: calls the C interface. The code of emscripten stands before this one and defines memfathomEngine.
/* global memfathomEngine */

let engine;
let session;

// Hands a text to the engine, and frees it after `use`.
function withText(text, use) {
  if (text === null) return use(0);
  const size = engine.lengthBytesUTF8(text) + 1;
  const pointer = engine._malloc(size);
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
  engine.HEAP32[place >> 2] = 0;
  const status = call(place);
  const text = engine.HEAP32[place >> 2];
  const answer = text === 0 ? '' : engine.UTF8ToString(text);
  engine._memfathom_free(text);
  engine._free(place);
  if (status !== 0) throw new Error(answer === '' ? 'the engine has no memory left for this job' : JSON.parse(answer).error);
  return answer;
}

async function open(module) {
  engine = await memfathomEngine({
    instantiateWasm: (imports, done) => {
      WebAssembly.instantiate(module, imports).then((instance) => done(instance, module));
      return {};
    },
  });
  engine.FS.mkdir('/files');
  const place = engine._malloc(4);
  withText('{}', (options) => answered((result) => engine._memfathom_open(options, place, result)));
  session = engine.HEAP32[place >> 2];
  engine._free(place);
  return engine.UTF8ToString(engine._memfathom_version());
}

function ask(method, request) {
  if (method === 'models') return answered((result) => engine._memfathom_models(session, result));
  return withText(request, (text) => answered((result) => engine[`_memfathom_${method}`](session, text, result)));
}

onmessage = async ({data}) => {
  try {
    let result = null;
    if (data.wasm) result = await open(data.wasm);
    else if (data.path) engine.FS.writeFile(data.path, data.bytes);
    else result = ask(data.method, data.request);
    postMessage({id: data.id, result});
  } catch (error) {
    postMessage({id: data.id, failure: error.message});
  }
};
