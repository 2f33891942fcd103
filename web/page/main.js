// The page: a state, one question after the other about it, and what they answer on the screen.
import {showAdvice, showComponents, showFailure, showGpus, showOom, showRemarks, showVerdict} from './answer.js';
import {drawCurve, drawPeak, drawTimeline} from './charts.js';
import {Combobox} from './combobox.js';
import {Controls} from './controls.js';
import {computeCurves} from './curves.js';
import {byId, html} from './dom.js';
import {EngineError, openEngine} from './engine.js';
import {chartButtons, showExport} from './export.js';
import {readFile, readText} from './files.js';
import {formatBytes, formatCount} from './format.js';
import {emptyState, fromFragment, requestOf, toFragment, valueAt, withKeys} from './job.js';
import {watchMachine} from './live.js';
import {currentLanguage, say, setLanguage} from './text.js';

let engine;
const opened = openEngine();
let state = emptyState();
let answer = null;      // of the state that is shown
let asked = 0;          // counts questions
let answered = 0;       // the question that is shown
let isAsking = false;
let isStale = false;
let gpus = [];
let curves = [];
let oom = null;
let advice = null;
let sayLiveAnew = () => {};

const controls = new Controls((entries) => change(withKeys(state, entries)));
const modelBox = new Combobox(byId('model'), 'modelSearch', chooseModel);
const gpuBox = new Combobox(byId('gpu'), 'gpuSearch', (name) => change(withKeys(state, [['target.gpu', name]])));

function chooseModel(name) {
  // What was set for lengths and images belongs to the model before.
  const set = Object.fromEntries(Object.entries(state.set).filter(([key]) => !/^training\.(image_size|num_frames|new_tokens)$/.test(key)));
  change({job: {model: {preset: name}}, files: [], command: null, set});
}

function change(next) {
  state = next;
  asked += 1;
  isStale = true;
  byId('verdict').classList.add('stale');
  byId('verdict').setAttribute('aria-busy', 'true');
  byId('drop-problem').hidden = true;
  engine?.dropLongQuestions();
  if (engine && !isAsking) ask();
}

// Asks until the answer belongs to the state: while a slider moves, states in between are skipped.
async function ask() {
  isAsking = true;
  while (isStale) {
    isStale = false;
    const question = asked;
    try {
      const request = requestOf(state, {suggest: false, document: true, yaml: true, timeline: true});
      const result = await engine.ask('estimate', request);
      answer = result;
      answered = question;
      advice = null;
      gpus = [];
      show();
      if (question === asked) afterwards(question);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      if (question === asked) failed(error.message);
    }
  }
  isAsking = false;
}

// A job that cannot be answered has no figures: those of the job before it disappear.
function failed(sentence) {
  showFailure(byId('verdict'), sentence);
  byId('answer').classList.add('refused');
  document.body.dataset.shown = `refused-${asked}`;
  showSummary('refused', say('refused'), '');
}

// What stays on a narrow screen while the answer is out of sight, and the name of the browser's tab.
function showSummary(status, words, figures) {
  byId('summary').hidden = false;
  byId('summary').className = status;
  byId('summary').replaceChildren(html('b', {}, words), html('span', {}, figures));
  document.title = `${words}${figures === '' ? '' : ` · ${figures}`} · memfathom`;
}

// What takes longer: advice, other GPUs, curves. All stop when the job changes.
async function afterwards(question) {
  const isCurrent = () => question === asked;
  const shownState = state;
  toFragment(shownState).then((fragment) => { if (isCurrent() && fragment !== null) history.replaceState(null, '', fragment); });
  await new Promise((resolve) => { setTimeout(resolve, 120); });  // a slider that still moves asks nothing more
  if (!isCurrent()) return;
  try {
    if (answer.verdict.status === 'does_not_fit' || answer.verdict.status === 'tight') {
      const found = await engine.ask('recommend', requestOf(shownState), 'slow');
      if (!isCurrent()) return;
      advice = {suggestions: found.suggestions ?? [], combination: (found.configurations ?? []).find(({name}) => name === 'balanced') ?? null};
      showAdvicePanel();
    }
    const list = await engine.ask('gpus', requestOf(shownState), 'slow');
    if (!isCurrent()) return;
    gpus = list.gpus;
    showGpuPanel();
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
  }
  curves = [];
  await computeCurves(engine, shownState, answer.document, isCurrent, (index, curve) => {
    if (curve === null) curves.length = index;
    else curves[index] = curve;
    showCurves();
  });
  if (isCurrent()) document.body.dataset.settled = String(question);
}

function apply(entries, words) {
  const before = state;
  change(withKeys(state, entries));
  byId('export-note').replaceChildren();
  byId('applied')?.remove();
  byId('verdict').after(html('p', {id: 'applied', role: 'status', class: 'applied'}, `${say('applied', words)} `, html('button', {type: 'button', class: 'link', onclick: () => { byId('applied').remove(); change(before); }}, say('undo'))));
}

function showAdvicePanel() {
  const needed = answer.verdict.status === 'does_not_fit' || answer.verdict.status === 'tight';
  byId('advice-section').hidden = !needed;
  if (needed) showAdvice(byId('advice'), advice?.suggestions ?? [], advice ? advice.combination : undefined, apply);
}

function showGpuPanel() {
  byId('gpus-section').hidden = gpus.length === 0;
  if (gpus.length > 0)
    showGpus(byId('gpus'), gpus, valueAt(answer.document, 'target.gpu'), gpuBox.options.length, (name) => change(withKeys(state, [['target.gpu', name]])));
}

function showCurves() {
  byId('curves-section').hidden = curves.length === 0;
  const host = byId('curves');
  while (host.children.length > curves.length) host.lastChild.remove();
  while (host.children.length < curves.length) {
    const chart = html('div', {class: 'chart'});
    host.append(html('div', {}, chart, chartButtons(chart, `curve-${host.children.length + 1}`)));
  }
  curves.forEach((curve, index) => drawCurve(host.children[index].firstChild, curve));
}

function showFiles() {
  const names = state.files.map((file) => file.name);
  if (state.command) names.push(say('command'));
  const trace = valueAt(state.job, 'model.trace');
  if (trace) names.push(trace.split('/').pop());
  byId('files').replaceChildren(...names.map((name) => html('li', {}, html('span', {}, name), html('button', {type: 'button', class: 'quiet', 'aria-label': `${say('remove')}: ${name}`, onclick: () => removeFile(name)}, '×'))));
}

function removeFile(name) {
  const files = state.files.filter((file) => file.name !== name);
  if (files.length > 0) change({...state, files});
  else change(valueAt(state.job, 'model.preset') ? {...state, files, command: null} : {...emptyState(), set: {...emptyState().set, ...state.set}});
}

function show() {
  const job = answer.document;
  modelBox.show(valueAt(job, 'model.preset') ?? say('fromFiles'));
  gpuBox.show(valueAt(job, 'target.gpu') ?? (valueAt(job, 'target.memory') ? formatBytes(answer.verdict.capacity_bytes) : ''));
  controls.show(job);
  showFiles();
  byId('answer').classList.remove('refused');
  showVerdict(byId('verdict'), answer);
  const available = answer.verdict.available_bytes;
  showSummary(answer.verdict.status, say(answer.verdict.status), `${formatBytes(answer.totals.device_peak_bytes)}${available ? ` / ${formatBytes(available)}` : ''}`);
  showComponents(byId('components'), answer);
  showRemarks(byId('remarks'), answer);
  showAdvicePanel();
  showGpuPanel();
  drawCharts();
  if (oom) showOom(byId('oom'), oom, useOomMemory);
  if (byId('export').dataset.language !== currentLanguage()) {
    byId('export').dataset.language = currentLanguage();
    showExport(byId('export'), () => ({state, answer}));
    for (const old of document.querySelectorAll('.save')) old.remove();
    for (const id of ['peak', 'timeline']) byId(id).after(chartButtons(byId(id), id));
    byId('curves').replaceChildren();  // with its buttons
  }
  byId('verdict').classList.toggle('stale', answered !== asked);
  document.body.dataset.shown = String(answered);
  document.body.dataset.firstAnswer ??= performance.now().toFixed(0);
}

function drawCharts() {
  drawPeak(byId('peak'), answer);
  drawTimeline(byId('timeline'), answer);
  showCurves();
}

function useOomMemory() {
  const entries = [['target.memory', `${Math.floor(oom.capacity_bytes / 2 ** 20)}MiB`]];
  if (oom.in_others_bytes) entries.push(['target.used_by_others', `${Math.floor(oom.in_others_bytes / 2 ** 20)}MiB`]);
  change(withKeys(state, entries));
}

// The memory of a GPU of this machine, and what others hold of it now.
function useLiveGpu({memory}) {
  change(withKeys(state, [['target.memory', `${Math.floor(memory.total_bytes / 2 ** 20)}MiB`],
    ['target.used_by_others', `${Math.ceil((memory.used_bytes + (memory.reserved_bytes ?? 0)) / 2 ** 20)}MiB`]]));
  byId('answer').scrollIntoView();
}

async function take(reading) {
  byId('drop').classList.add('busy');
  try {
    const read = await reading;
    if (read.oom) {
      oom = read.oom;
      showOom(byId('oom'), oom, useOomMemory);
    } else {
      change(read.state);
    }
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    byId('drop-problem').textContent = error.message;
    byId('drop-problem').hidden = false;
    byId('drop-problem').scrollIntoView({block: 'nearest'});
  } finally {
    byId('drop').classList.remove('busy');
  }
}

async function takeFiles(files) {
  await opened;
  for (const file of files) await take(readFile(engine, state, file));
}

function showLanguage() {
  for (const element of document.querySelectorAll('[data-text]')) element.textContent = say(element.dataset.text);
  for (const element of document.querySelectorAll('[data-label]')) element.setAttribute('aria-label', say(element.dataset.label));
  if (engine?.isServed) document.querySelector('[data-text=privacy]').textContent = say('privacyServed');
  byId('language').value = currentLanguage();
  showTheme();
  sayLiveAnew();
  if (answer) show();
}

function isDark() {
  return (document.documentElement.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
}

function showTheme() {
  byId('theme').textContent = say(isDark() ? 'light' : 'dark');
  byId('theme').setAttribute('aria-pressed', String(isDark()));
}

function listen() {
  byId('inputs').addEventListener('submit', (event) => event.preventDefault());
  byId('language').addEventListener('change', () => { setLanguage(byId('language').value); showLanguage(); });
  byId('theme').addEventListener('click', () => { document.documentElement.dataset.theme = isDark() ? 'light' : 'dark'; showTheme(); });
  byId('browse').addEventListener('click', () => byId('file').click());
  byId('file').addEventListener('change', () => { takeFiles([...byId('file').files]); byId('file').value = ''; });
  byId('read-paste').addEventListener('click', () => { if (byId('paste').value.trim() !== '') take(readText(engine, state, 'pasted.yaml', byId('paste').value)); });
  for (const kind of ['dragenter', 'dragover']) addEventListener(kind, (event) => { event.preventDefault(); byId('drop').classList.add('over'); });
  for (const kind of ['dragleave', 'drop']) addEventListener(kind, () => byId('drop').classList.remove('over'));
  addEventListener('drop', (event) => { event.preventDefault(); takeFiles([...event.dataTransfer.files]); });
  addEventListener('hashchange', async () => { const linked = await fromFragment(location.hash); if (linked) change(linked); });
  let width = innerWidth;
  addEventListener('resize', () => { if (answer && innerWidth !== width) { width = innerWidth; drawCharts(); } });
}

async function start() {
  setLanguage(navigator.language.startsWith('zh') ? 'zh' : 'en');
  showLanguage();
  listen();
  try {
    [engine, state] = await Promise.all([opened, fromFragment(location.hash).then((linked) => linked ?? emptyState())]);
    change(state);
    const [models, list] = await Promise.all([engine.ask('models'), engine.ask('gpus', {})]);
    modelBox.fill(models.models.map(({name, parameters, description}) => ({name, description: parameters ? `${description} · ${formatCount(parameters)}` : description})));
    gpuBox.fill(list.gpus.map(({name, memory_bytes: memory, product}) => ({name, description: `${product} · ${formatBytes(memory)}`})));
    showLanguage();
    if (engine.isServed) sayLiveAnew = watchMachine(engine, byId('live-section'), useLiveGpu);
  } catch (error) {
    failed(error.message);
  }
}

start();
