// The machine behind `memfathom serve`: the used memory of its GPUs over the last minutes, their processes, and its calibrations.
import {bytesElement} from './answer.js';
import {byId, html, table} from './dom.js';
import {formatBytes, formatCount, formatPercent} from './format.js';
import {drawHistory, shownMinutes} from './history.js';
import {say, translated} from './text.js';

const period = 2000;

// What stands for one GPU; it is filled anew at each reading, so that a focus inside it stays.
function newCard(use) {
  const card = {readings: [], title: html('h3'), used: html('p', {class: 'used'}), chart: html('div', {class: 'chart'}), processes: html('div', {class: 'scroll'}),
    button: html('button', {type: 'button', onclick: () => use(card.device)})};
  card.element = html('article', {class: 'machine-gpu'}, card.title, card.used, card.chart, card.processes, html('p', {}, card.button));
  return card;
}

function processTable(device) {
  const rows = device.processes.map(({pid, name, used_bytes: used}) => [String(pid), name || '–', used === null ? say('notReadable') : bytesElement('span', used)]);
  return rows.length > 0 ? table(say('processes', device.name), [say('pid'), say('program'), say('memory')], rows, [2]) : html('p', {class: 'dim'}, say('noProcesses'));
}

function showCard(card, device, now) {
  const {used_bytes: used, total_bytes: total, free_bytes: free} = device.memory;
  card.device = device;
  card.title.textContent = `${device.name} · ${device.gpu || device.architecture}`;
  card.title.dataset.device = device.name;
  if (used === null) {
    card.used.textContent = device.problem ?? say('notReadable');
  } else {
    card.readings.push({time: now, used});
    while (now - card.readings[0].time > shownMinutes * 60_000) card.readings.shift();
    card.used.replaceChildren(bytesElement('b', used), ` ${say('usedOf', formatBytes(total), formatBytes(free ?? total - used))}`);
    drawHistory(card.chart, card.readings, total);
  }
  card.processes.replaceChildren(processTable(device));
  card.button.textContent = say('useGpu', device.name);
  card.button.hidden = used === null;
}

// Calibrations of this machine's database; the published ones are inside the program and only counted.
function calibrationsTable(list) {
  const own = list.filter(({status}) => status !== 'published');
  const rows = own.map((one) => [one.name, one.device, translated(one.status), one.created.slice(0, 10), formatCount(one.samples), typeof one.held_out_median_error === 'number' ? formatPercent(one.held_out_median_error) : '–']);
  return [html('h3', {}, say('calibrations')),
    rows.length > 0 ? html('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': say('calibrations')},
      table(say('calibrations'), [say('name'), say('device'), say('verdict'), say('created'), say('samples'), say('heldOut')], rows, [4, 5])) : html('p', {class: 'dim'}, say('noCalibrations')),
    html('p', {class: 'dim'}, say('publishedToo', list.length - own.length))];
}

// `use(device)` makes a GPU's free memory the target of the job.
export function watchMachine(engine, section, use) {
  const cards = new Map();
  const update = async () => {
    const status = await engine.ask('status');
    const gpus = status.devices.filter((device) => device.name.startsWith('cuda'));
    section.hidden = false;
    byId('live-problem').textContent = gpus.length > 0 ? '' : `${say('noLive')} ${status.notes.map((note) => note.replace(/^no GPU: /, '')).join(' ')}`;
    const now = performance.now();
    const elements = gpus.map((device) => {
      if (!cards.has(device.name)) cards.set(device.name, newCard(use));
      return cards.get(device.name).element;
    });
    if (elements.length !== byId('live').children.length || elements.some((element) => !element.isConnected)) byId('live').replaceChildren(...elements);
    for (const device of gpus) showCard(cards.get(device.name), device, now);
  };
  const calibrations = async () => byId('live-calibrations').replaceChildren(...calibrationsTable((await engine.ask('calibrations')).calibrations));
  let slow = 0;
  const again = async () => {
    try {
      await update();
      if (slow++ % 15 === 0) await calibrations();
    } catch (error) {
      section.hidden = false;
      byId('live-problem').textContent = error.message;
    }
    setTimeout(again, document.hidden ? 5 * period : period);
  };
  again();
  return () => { slow = 0; };  // say everything anew, in another language
}
