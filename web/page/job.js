// The job as the page holds it: where it starts (a model's name, or files), and the keys that were set over it. Everything else
// is the engine's: it completes the job, and the controls show what it answered.

export function emptyState() {
  return {
    job: {model: {preset: 'llama-2-7b'}}, files: [], command: null,
    set: {'training.batch_size': 4, 'training.sequence_length': 2048, 'training.precision': 'bf16', 'training.lora.rank': 16,
          'target.gpu': 'rtx-4090'},
  };
}

// {"training": {"lora": {"rank": 4}}} as [["training.lora.rank", 4]].
export function flattened(patch, prefix = '') {
  return Object.entries(patch).flatMap(([key, value]) =>
    value !== null && typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length > 0
      ? flattened(value, `${prefix}${key}.`)
      : [[prefix + key, value]]);
}

// The value at "training.lora.rank"; undefined if there is none.
export function valueAt(document, path) {
  return path.split('.').reduce((node, key) => (node !== null && typeof node === 'object' && Object.hasOwn(node, key) ? node[key] : undefined), document);
}

// Sets keys, and drops those that contradict them: an older key below or above a new one, and the other ways to name a GPU.
export function withKeys(state, entries) {
  const set = {...state.set};
  for (const [key, value] of entries) {
    for (const other of Object.keys(set)) {
      if (other.startsWith(`${key}.`) || key.startsWith(`${other}.`)) delete set[other];
    }
    if (key === 'target.gpu') delete set['target.memory'];
    if (key === 'target.memory') delete set['target.gpu'];
    if (key === 'target.gpu' || key === 'target.memory') delete set['target.used_by_others'];
    set[key] = value;
  }
  return {...state, set};
}

// The job with the keys set over it, as one document: files that come later win over it.
export function merged(state) {
  const document = structuredClone(state.job ?? {});
  for (const [path, value] of Object.entries(state.set)) {
    const keys = path.split('.');
    const last = keys.pop();
    let node = document;
    for (const key of keys) {
      if (!Object.hasOwn(node, key) || node[key] === null || typeof node[key] !== 'object') node[key] = {};
      node = node[key];
    }
    node[last] = value;
  }
  return document;
}

// A request of the C interface (include/memfathom/memfathom.h).
export function requestOf(state, further = {}) {
  const request = {set: state.set, ...further};
  if (state.job) request.job = state.job;
  if (state.files.length > 0) request.files = state.files.map(({name, text}) => ({name, text}));
  if (state.command) request.command = state.command;
  return request;
}

function quoted(value) {
  const word = String(value);
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

// The command that gives the same answer in a terminal; files are meant to be in its folder.
export function commandLine(state) {
  const parts = ['memfathom', 'estimate'];
  const keys = new Map([...flattened(state.job ?? {}), ...Object.entries(state.set)]);
  for (const [key, value] of keys) {
    if (key === 'model.preset') parts.push('--model', quoted(value));
    else if (key === 'target.gpu') parts.push('--gpu', quoted(value));
    else parts.push('--set', quoted(`${key}=${typeof value === 'string' ? value.replace(/^.*\/files\//, '') : JSON.stringify(value)}`));
  }
  if (state.files.length > 0) parts.push('--from', ...state.files.map(({name}) => quoted(name)));
  if (state.command) parts.push('--', state.command.trim());
  return parts.join(' ');
}

async function transformed(bytes, stream) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

const maxLinkBytes = 24 * 1024;

// The state as a fragment, "#1" + base64url of its deflated JSON; null if it is too long for a link.
export async function toFragment(state) {
  if (valueAt(state.job, 'model.trace')) return null;
  const text = new TextEncoder().encode(JSON.stringify(state));
  const packed = await transformed(text, new CompressionStream('deflate-raw'));
  if (packed.length > maxLinkBytes) return null;
  const base64 = btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join(''));
  return `#1${base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`;
}

function isText(value) {
  return typeof value === 'string';
}

// The state of a fragment; null if it is none of ours. A link may come from anybody: only what the page itself writes is taken.
export async function fromFragment(fragment) {
  if (!fragment.startsWith('#1') || fragment.length > 2 * maxLinkBytes) return null;
  try {
    const base64 = fragment.slice(2).replaceAll('-', '+').replaceAll('_', '/');
    const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const read = JSON.parse(new TextDecoder().decode(await transformed(packed, new DecompressionStream('deflate-raw'))));
    const state = {job: read.job?.model ? read.job : null, files: [], command: isText(read.command) ? read.command : null, set: {}};
    for (const file of Array.isArray(read.files) ? read.files : []) {
      if (isText(file.name) && isText(file.text)) state.files.push({name: file.name, text: file.text});
    }
    for (const [key, value] of Object.entries(read.set ?? {})) {
      if (/^[a-z][a-z_0-9]*(\.[a-z0-9][a-z_0-9]*)*$/.test(key)) state.set[key] = value;
    }
    return state.job || state.files.length > 0 || state.command ? state : null;
  } catch {
    return null;
  }
}
