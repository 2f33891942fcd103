// The answer as text and tables: verdict, components, advice, GPUs, remarks. Exact bytes stand in data-bytes.
import {colourOf} from './charts.js';
import {html, svg, table} from './dom.js';
import {formatBytes, formatCount, formatPercent} from './format.js';
import {flattened} from './job.js';
import {componentName, jobLine, say, translated} from './text.js';

const shownAdvice = 4;
const signs = {fits: '✓', tight: '!', does_not_fit: '✕', undecided: '?', unknown: '·'};

export function bytesElement(tag, bytes, attributes = {}) {
  return html(tag, {'data-bytes': bytes, title: `${bytes} B`, ...attributes}, formatBytes(bytes));
}

export function showVerdict(host, answer) {
  const {verdict, totals} = answer;
  const status = verdict.status;
  host.className = `panel verdict ${status}`;
  host.setAttribute('aria-busy', 'false');
  const available = verdict.available_bytes;
  const headroom = verdict.headroom_bytes;
  const details = [say('interval', formatPercent(totals.interval), formatBytes(totals.device_low_bytes), formatBytes(totals.device_high_bytes))];
  if (headroom !== null && headroom !== undefined) details.unshift(say(headroom >= 0 ? 'left' : 'over', formatBytes(Math.abs(headroom))));
  if (typeof verdict.probability_fits === 'number') details.push(say('probability', formatPercent(verdict.probability_fits)));
  if (totals.comfortable_bytes) details.push(say('comfortable', formatBytes(totals.comfortable_bytes)));
  const figures = html('p', {class: 'figures'},
    html('span', {}, `${say('reserved')} `, bytesElement('b', totals.reserved_peak_bytes, {id: 'reserved-peak'})),
    html('span', {}, `${say('allocated')} `, bytesElement('b', totals.allocated_peak_bytes, {id: 'allocated-peak'})));
  if (answer.parameters) figures.append(html('span', {}, say('parametersLine', formatCount(answer.parameters.total), formatCount(answer.parameters.trainable))));
  if (totals.host_node_bytes) figures.append(html('span', {}, say('hostMemory', formatBytes(totals.host_node_bytes))));
  host.replaceChildren(
    html('p', {class: 'status', id: 'status', 'data-status': status}, html('span', {class: 'sign', 'aria-hidden': 'true'}, signs[status]), html('strong', {}, say(status))),
    html('p', {class: 'big'}, bytesElement('span', totals.device_peak_bytes, {id: 'device-peak'}),
      available ? html('small', {}, ` ${say('ofAvailable', formatBytes(available), verdict.card ?? say('gpu'))}`) : null),
    html('p', {}, details.join(' · ')), figures, html('p', {class: 'dim', id: 'job-line'}, jobLine(answer.job ?? '')));
}

export function showFailure(host, sentence) {
  host.className = 'panel verdict refused';
  host.setAttribute('aria-busy', 'false');
  host.replaceChildren(html('p', {class: 'status', id: 'status', 'data-status': 'refused'}, html('span', {class: 'sign', 'aria-hidden': 'true'}, '✕'), html('strong', {}, say('refused'))), html('p', {}, sentence));
}

function swatch(name) {
  return svg('svg', {width: 12, height: 12, class: 'swatch', 'aria-hidden': 'true'}, svg('rect', {width: 12, height: 12, rx: 3, fill: colourOf(name)}));
}

// A share as a number over a bar of its length.
function shareCell(name, share) {
  const width = 64;
  return html('span', {class: 'share'}, svg('svg', {width, height: 6, 'aria-hidden': 'true'},
    svg('rect', {width, height: 6, rx: 3, class: 'track'}), svg('rect', {width: (width * Math.max(0, Math.min(1, share))).toFixed(1), height: 6, rx: 3, fill: colourOf(name)})), html('span', {}, formatPercent(share)));
}

export function showComponents(host, answer) {
  const whole = answer.totals.device_peak_bytes;
  const lines = [...answer.components].sort((a, b) => b.bytes - a.bytes);
  const rows = lines.map(({name, module, bytes, source}) => [
    html('span', {class: 'component', 'data-component': name}, swatch(name), module ? `${componentName(name)} (${module})` : componentName(name)),
    bytesElement('span', bytes), shareCell(name, bytes / whole), translated(source)]);
  rows.push([html('b', {}, say('devicePeak')), bytesElement('b', whole), '100 %', '']);
  host.replaceChildren(table(say('peakTitle'), [say('component'), say('memory'), say('share'), say('source')], rows, [1, 2]));
}

// "a -> b" with an arrow.
function changeName(change) {
  return translated(change).replaceAll('->', '→');
}

function adviceCard(suggestion, apply) {
  const fits = suggestion.fits;
  return html('li', {class: fits ? 'enough' : ''},
    html('div', {}, html('b', {}, changeName(suggestion.change)), html('span', {class: 'kind'}, translated(suggestion.kind)),
      html('p', {class: 'dim'}, translated(suggestion.costs)),
      html('p', {}, [say('saves', formatBytes(suggestion.saves_bytes)), say('then', formatBytes(suggestion.device_peak_bytes)),
        say('time', suggestion.time_factor.toFixed(2)), say(fits ? 'enough' : 'notEnough')].join(' · '))),
    html('button', {type: 'button', 'data-patch': suggestion.name, 'aria-label': `${say('apply')}: ${suggestion.change}`,
      onclick: () => apply(flattened(suggestion.patch), changeName(suggestion.change))}, say('apply')));
}

// `combination`: the cheapest configuration that fits, or null; undefined while it is searched for.
export function showAdvice(host, suggestions, combination, apply) {
  const parts = [];
  if (combination) {
    const changes = combination.changes.map(changeName).join('; ');
    parts.push(html('div', {class: 'combination'}, html('div', {}, html('h3', {}, say('combination')), html('ul', {}, ...combination.changes.map((change) => html('li', {}, changeName(change)))),
      html('p', {}, [say('then', formatBytes(combination.device_peak_bytes)), combination.time_factor ? say('time', combination.time_factor.toFixed(2)) : null].filter(Boolean).join(' · '))),
    html('button', {type: 'button', class: 'primary', 'data-patch': 'combination', 'aria-label': `${say('apply')}: ${changes}`, onclick: () => apply(flattened(combination.patch), changes)}, say('apply'))));
  } else {
    parts.push(html('p', {class: 'dim'}, say(combination === null ? 'noCombination' : 'searching')));
  }
  const cards = suggestions.map((suggestion) => adviceCard(suggestion, apply));
  parts.push(html('ul', {class: 'advice'}, ...cards.slice(0, shownAdvice)));
  if (cards.length > shownAdvice) parts.push(html('details', {id: 'more-advice'}, html('summary', {}, say('more', cards.length - shownAdvice)), html('ul', {class: 'advice'}, ...cards.slice(shownAdvice))));
  host.replaceChildren(...parts);
}

// `gpus`: those that it fits on, of `count`.
export function showGpus(host, gpus, chosen, count, choose) {
  const rows = gpus.map((gpu) => [
    html('button', {type: 'button', class: 'link name', 'aria-label': say('choose', gpu.name), 'aria-current': gpu.name === chosen ? 'true' : undefined, onclick: () => choose(gpu.name)}, gpu.name),
    bytesElement('span', gpu.memory_bytes), bytesElement('span', gpu.device_peak_bytes), bytesElement('span', gpu.headroom_bytes),
    html('span', {class: `pill ${gpu.verdict}`}, say(`short_${gpu.verdict}`))]);
  host.replaceChildren(
    html('p', {}, say('gpusOf', gpus.length, count)),
    html('div', {class: 'scroll tall', tabindex: 0, role: 'region', 'aria-label': say('gpusTitle')}, table(say('gpusTitle'), [say('gpuName'), say('memory'), say('peak'), say('headroom'), say('verdict')], rows, [1, 2, 3])));
}

function calibrationWords(calibration) {
  if (!calibration || calibration.status === 'none') return say('calibrationNone');
  return say(`calibration_${calibration.status}`, calibration.name, (calibration.created ?? '').slice(0, 10));
}

export function showRemarks(host, answer) {
  const items = [];
  const add = (key, sentences) => {
    for (const sentence of new Set(sentences ?? [])) items.push(html('li', {class: key}, html('b', {}, say(key)), ' ', translated(sentence)));
  };
  add('warning', answer.warnings);
  for (const {file, key, concerns, value} of answer.unread ?? [])
    items.push(html('li', {class: concerns ? 'warning' : 'unread'}, html('b', {}, say('unread')), ' ', html('code', {}, say('unreadKey', file, value ? `${key} ${value}` : key)), ' ', concerns ? say('concerns', concerns) : say('harmless')));
  add('notModelled', answer.not_modelled);
  add('assumed', answer.assumptions);
  items.push(html('li', {}, html('b', {}, say('calibration')), ` ${calibrationWords(answer.calibration)}`));
  const reasons = (answer.uncertainty ?? []).map(({text}) => html('li', {}, html('b', {}, '±'), ' ', translated(text)));
  host.replaceChildren(html('ul', {class: 'remarks'}, ...items, ...reasons));
}

export function showOom(host, oom, use) {
  const rows = Object.entries(oom).filter(([key, value]) => key.endsWith('_bytes') && value !== null)
    .map(([key, value]) => [key.replace(/_bytes$/, '').replaceAll('_', ' '), bytesElement('span', value)]);
  host.hidden = false;
  host.replaceChildren(html('h3', {}, say('oomTitle')), table(say('oomTitle'), ['', say('memory')], rows, [1]),
    html('ul', {}, ...oom.advice.map((sentence) => html('li', {}, sentence))),
    oom.capacity_bytes ? html('button', {type: 'button', id: 'oom-use', onclick: use}, say('oomUse')) : null);
}
