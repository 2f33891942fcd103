// The engine behind the page: in two Web Workers (the page that stands alone) or behind `memfathom serve`. Both answer the same
// questions: ask('estimate', request) resolves to the result of the C interface, or throws EngineError with its sentence.

export class EngineError extends Error {}

// Milliseconds after which a question gives way to a newer one.
const patience = 2000;

// One worker: one question at a time, in order.
class WorkerLane {
  constructor(url, wasm) {
    this.worker = new Worker(url);
    this.waiting = new Map();
    this.next = 1;
    this.since = 0;  // when the question that it is at was begun
    this.worker.onmessage = ({data}) => {
      const {resolve, reject} = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      this.since = performance.now();
      if (data.failure !== undefined) reject(new EngineError(data.failure));
      else resolve(data.result);
    };
    this.worker.onerror = (event) => this.refuseAll(event.message);
    this.ready = this.send({wasm});
  }

  refuseAll(sentence) {
    for (const {reject} of this.waiting.values()) reject(new EngineError(sentence));
    this.waiting.clear();
  }

  isLong() {
    return this.waiting.size > 0 && performance.now() - this.since > patience;
  }

  end() {
    this.worker.terminate();
    this.refuseAll('the question was dropped for a newer one');
  }

  send(message) {
    const id = this.next++;
    if (this.waiting.size === 0) this.since = performance.now();
    return new Promise((resolve, reject) => {
      this.waiting.set(id, {resolve, reject});
      this.worker.postMessage({id, ...message});
    });
  }
}

async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
}

class PageEngine {
  // `open()` starts a worker; the second one is started when something may come later, after the first answer.
  constructor(open) {
    this.open = open;
    this.quick = open();
    this.files = new Map();
    this.isServed = false;
  }

  async lane(name) {
    if (!this[name]) {
      this[name] = this.open();
      for (const [path, bytes] of this.files) this[name].send({path, bytes});
    }
    const lane = this[name];
    await lane.ready;
    return lane;
  }

  // The job has changed: what takes long for the job before it ends, and its worker is replaced.
  dropLongQuestions() {
    for (const name of ['quick', 'slow']) {
      if (!this[name]?.isLong()) continue;
      this[name].end();
      this[name] = null;
    }
  }

  // `lane`: 'quick' for what the user waits for, 'slow' for what may come later.
  async ask(method, request, lane = 'quick') {
    const worker = await this.lane(lane);
    return JSON.parse(await worker.send({method, request: request === undefined ? null : JSON.stringify(request)}));
  }

  // Keeps a file where the engine can read it by its path.
  async store(name, bytes) {
    const path = `/files/${name.replaceAll('/', '_')}`;
    for (const name of ['quick', 'slow']) await (await this.lane(name)).send({path, bytes});
    this.files = new Map([[path, bytes]]);  // a job has one trace
    return path;
  }
}

class ServedEngine {
  constructor() {
    this.isServed = true;
  }

  // The server ends what takes long by itself.
  dropLongQuestions() {}

  async fetched(path, options) {
    const token = new URLSearchParams(location.search).get('token');
    const headers = {...options?.headers, ...(token ? {Authorization: `Bearer ${token}`} : {})};
    const response = await fetch(path, {...options, headers});
    const answer = await response.json();
    if (!response.ok) throw new EngineError(answer.error ?? response.statusText);
    return answer;
  }

  ask(method, request) {
    if (request === undefined) return this.fetched(`api/${method}`);
    return this.fetched(`api/${method}`, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(request)});
  }

  async store() {
    throw new EngineError('memfathom serve reads no traces; use memfathom estimate, or the page that stands alone');
  }
}

// The page that stands alone carries the engine's code and its packed module as inert scripts; the served page has neither.
export async function openEngine() {
  const code = document.getElementById('engine-code');
  if (code === null) return new ServedEngine();
  const module = await unpacked(document.getElementById('engine-module').textContent);
  const url = URL.createObjectURL(new Blob([code.textContent], {type: 'text/javascript'}));
  return new PageEngine(() => new WorkerLane(url, module));
}
