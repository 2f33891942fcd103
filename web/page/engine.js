// The engine behind the page: in two Web Workers (the page that stands alone) or behind `memfathom serve`. Both answer the same
// questions: ask('estimate', request) resolves to the result of the C interface, or throws EngineError with its sentence.

export class EngineError extends Error {}

// One worker: one question at a time, in order.
class WorkerLane {
  constructor(url, wasm) {
    this.worker = new Worker(url);
    this.waiting = new Map();
    this.next = 1;
    this.worker.onmessage = ({data}) => {
      const {resolve, reject} = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.failure !== undefined) reject(new EngineError(data.failure));
      else resolve(data.result);
    };
    this.worker.onerror = (event) => {
      for (const {reject} of this.waiting.values()) reject(new EngineError(event.message));
      this.waiting.clear();
    };
    this.ready = this.send({wasm});
  }

  send(message) {
    const id = this.next++;
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
    this.isServed = false;
  }

  async lane(name) {
    this[name] ??= this.open();
    await this[name].ready;
    return this[name];
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
    return path;
  }
}

class ServedEngine {
  constructor() {
    this.isServed = true;
  }

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
