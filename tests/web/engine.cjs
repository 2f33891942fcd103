// The engine of the page in node: open(folder) gives ask(method, request) and batch(lines).
const fs = require('fs');
const path = require('path');

exports.open = async (folder) => {
  const module = await WebAssembly.compile(fs.readFileSync(path.join(folder, 'memfathom.wasm')));
  const engine = await require(path.join(path.resolve(folder), 'memfathom.js'))({
    instantiateWasm: (imports, done) => {
      WebAssembly.instantiate(module, imports).then((instance) => done(instance, module));
      return {};
    },
  });
  const text = (string) => {
    const size = engine.lengthBytesUTF8(string) + 1;
    const pointer = engine._malloc(size);
    engine.stringToUTF8(string, pointer, size);
    return pointer;
  };
  const answered = (call) => {
    const place = engine._malloc(4);
    engine.HEAP32[place >> 2] = 0;
    const status = call(place);
    const pointer = engine.HEAP32[place >> 2];
    const answer = pointer === 0 ? '' : engine.UTF8ToString(pointer);
    engine._memfathom_free(pointer);
    engine._free(place);
    return {status, answer};
  };
  const place = engine._malloc(4);
  const opened = answered((result) => engine._memfathom_open(text('{}'), place, result));
  if (opened.status !== 0) throw new Error(opened.answer);
  const session = engine.HEAP32[place >> 2];
  return {
    ask: (method, request) => {
      const pointer = text(request);
      const answer = answered((result) => engine[`_memfathom_${method}`](session, pointer, result));
      engine._free(pointer);
      return answer;
    },
    batch: (lines) => {
      const pointer = text(lines);
      const {answer} = answered((result) => engine._memfathom_estimate_batch(session, pointer, 0, result));
      engine._free(pointer);
      return answer;
    },
    memory: () => engine.HEAP32.length * 4,
  };
};
