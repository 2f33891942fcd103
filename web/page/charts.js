// Charts as SVG, drawn at the width they are shown in: labels keep their size on a phone. Colours are those of `memfathom report`.
import {html, svg} from './dom.js';
import {formatBytes, formatPercent} from './format.js';
import {byteGrid, chart, label, line, text, textWidth} from './plot.js';
import {componentName, say, translated} from './text.js';

// From bottom to top: what stays first, what comes and goes last.
const components = [
  ['parameters', '#4477aa'], ['adapter_parameters', '#88aacc'], ['buffers', '#99bbdd'], ['optimizer_state', '#228833'],
  ['gradients', '#77bb55'], ['kv_cache', '#ccbb44'], ['inputs', '#ddcc77'], ['activations', '#ee8866'], ['logits_loss', '#ee6677'],
  ['temporaries', '#aa3377'], ['workspace_cublas', '#882255'], ['workspace_cudnn', '#882255'], ['workspace_cufft', '#882255'],
  ['communication', '#44aa99'], ['allocator_slack', '#bbbbbb'], ['context', '#999999'], ['framework', '#777777'], ['unaccounted', '#555555'],
];
const order = new Map(components.map(([name], index) => [name, index]));

export function colourOf(name) {
  return components[order.get(name) ?? components.length - 1][1];
}

// One line per component, modules added up, in the order of the stack.
function stacked(answer) {
  const sums = new Map();
  for (const {name, bytes} of answer.components) sums.set(name, (sums.get(name) ?? 0) + bytes);
  return [...sums].filter(([, bytes]) => bytes > 0).sort(([a], [b]) => order.get(a) - order.get(b));
}

export function drawPeak(host, answer) {
  const width = Math.max(280, host.clientWidth);
  const {totals, verdict} = answer;
  const most = Math.max(totals.device_high_bytes, totals.device_peak_bytes, verdict.capacity_bytes ?? 0);
  const x = (bytes) => 4 + (width - 8) * bytes / most;
  const parts = [];
  let at = 0;
  for (const [name, bytes] of stacked(answer)) {
    const words = `${componentName(name)}: ${formatBytes(bytes)}`;
    const wide = x(at + bytes) - x(at);
    parts.push(svg('rect', {x: x(at).toFixed(1), y: 30, width: Math.max(0.5, wide - 1).toFixed(1), height: 44, rx: 2, fill: colourOf(name)}, svg('title', {}, words)));
    at += bytes;
  }
  const level = formatPercent(totals.interval);
  if (totals.device_high_bytes > totals.device_low_bytes) {
    const low = x(totals.device_low_bytes);
    const high = x(totals.device_high_bytes);
    parts.push(line(low, 86, high, 86, 'ink'), line(low, 80, low, 92, 'ink'), line(high, 80, high, 92, 'ink'));
    parts.push(label((low + high) / 2, 108, say('interval', level, formatBytes(totals.device_low_bytes), formatBytes(totals.device_high_bytes)), width));
  }
  if (verdict.available_bytes) {
    const limit = x(verdict.available_bytes);
    if (verdict.capacity_bytes > verdict.available_bytes)
      parts.unshift(svg('rect', {x: limit.toFixed(1), y: 24, width: Math.max(0, x(verdict.capacity_bytes) - limit).toFixed(1), height: 56, class: 'beyond'}));
    parts.push(line(limit, 20, limit, 80, 'limit'), label(limit, 14, say('available', formatBytes(verdict.available_bytes)), width, {class: 'limit-text'}));
  }
  const description = `${say('peakTitle')}: ${stacked(answer).map(([name, bytes]) => `${componentName(name)} ${formatBytes(bytes)}`).join(', ')}`;
  host.replaceChildren(chart(width, 114, description, ...parts));
}

function areaPath(frame, low, high) {
  let path = `M${frame.x(0).toFixed(1)} ${frame.y(high[0]).toFixed(1)}`;
  for (let i = 0; i < high.length; ++i) path += `V${frame.y(high[i]).toFixed(1)}H${frame.x(i + 1).toFixed(1)}`;
  for (let i = low.length - 1; i >= 0; --i) path += `V${frame.y(low[i]).toFixed(1)}H${frame.x(i).toFixed(1)}`;
  return `${path}Z`;
}

function phaseName(phase) {
  const name = translated(phase.name);
  return phase.iteration === 0 ? name : `${name} ${phase.iteration}`;
}

// Phases as marks below the plot; a name that does not fit its space is left out.
function phaseMarks(timeline, frame) {
  const parts = [];
  let begin = 0;
  for (let i = 1; i <= timeline.points.length; ++i) {
    if (i < timeline.points.length && timeline.points[i].phase === timeline.points[begin].phase) continue;
    const x1 = frame.x(begin);
    const x2 = frame.x(i);
    const words = phaseName(timeline.phases[timeline.points[begin].phase]);
    parts.push(line(x1, frame.top, x1, frame.bottom + 6, 'mark'));
    if (x2 - x1 > textWidth(words) + 6) parts.push(text((x1 + x2) / 2, frame.bottom + 20, 'middle', words));
    begin = i;
  }
  return parts;
}

// What is alive at a point, largest first, with the sums.
function pointCard(timeline, index) {
  const point = timeline.points[index];
  const rows = timeline.components
    .map((name, component) => [name, point.live[component]])
    .filter(([, bytes]) => bytes > 0)
    .sort((a, b) => b[1] - a[1])
    .map(([name, bytes]) => html('li', {},
      svg('svg', {width: 10, height: 10, 'aria-hidden': 'true'}, svg('rect', {width: 10, height: 10, rx: 2, fill: colourOf(name)})),
      html('span', {}, componentName(name)), html('b', {}, formatBytes(bytes))));
  return [
    html('p', {}, html('b', {}, phaseName(timeline.phases[point.phase])), ` · ${say('point', index + 1, timeline.points.length)}`),
    html('p', {}, `${say('totalAllocated', formatBytes(point.allocated_bytes))} · ${say('totalReserved', formatBytes(point.reserved_bytes))}`),
    html('ul', {}, ...rows)];
}

export function drawTimeline(host, answer) {
  const {timeline, verdict} = answer;
  const width = Math.max(280, host.clientWidth);
  if (timeline.points.length === 0) {
    host.replaceChildren();
    return;
  }
  const frame = {left: 44, right: width - 6, top: 18, bottom: 250};
  const reserved = Math.max(...timeline.points.map((point) => point.reserved_bytes));
  frame.most = 1.05 * Math.max(reserved, verdict.available_bytes && verdict.available_bytes < 1.6 * reserved ? verdict.available_bytes : 0, 1);
  frame.x = (index) => frame.left + (frame.right - frame.left) * index / timeline.points.length;
  frame.y = (bytes) => frame.bottom - (frame.bottom - frame.top) * bytes / frame.most;
  const parts = byteGrid(frame, say('memory'));
  let low = timeline.points.map(() => 0);
  const names = [...timeline.components].sort((a, b) => order.get(a) - order.get(b));
  for (const name of names) {
    const component = timeline.components.indexOf(name);
    const high = low.map((bytes, i) => bytes + timeline.points[i].live[component]);
    parts.push(svg('path', {d: areaPath(frame, low, high), fill: colourOf(name)}, svg('title', {}, componentName(name))));
    low = high;
  }
  const path = timeline.points.map((point, i) =>
    `${i === 0 ? `M${frame.x(0).toFixed(1)} ${frame.y(point.reserved_bytes).toFixed(1)}` : `V${frame.y(point.reserved_bytes).toFixed(1)}`}H${frame.x(i + 1).toFixed(1)}`);
  parts.push(svg('path', {d: path.join(''), class: 'ink', fill: 'none'}));
  if (verdict.available_bytes && verdict.available_bytes <= frame.most) {
    const y = frame.y(verdict.available_bytes);
    parts.push(line(frame.left, y, frame.right, y, 'limit'), text(frame.right - 2, y - 5, 'end', say('available', formatBytes(verdict.available_bytes)), {class: 'limit-text'}));
  }
  parts.push(...phaseMarks(timeline, frame), text(frame.right, frame.bottom + 40, 'end', say('allocationsAxis')));
  const cursor = line(0, frame.top, 0, frame.bottom, 'cursor');
  cursor.setAttribute('visibility', 'hidden');
  const card = html('div', {class: 'card', hidden: true, role: 'status'});
  const picture = chart(width, 296, `${say('timelineTitle')}: ${say('totalAllocated', formatBytes(answer.totals.allocated_peak_bytes))}, ${say('totalReserved', formatBytes(answer.totals.reserved_peak_bytes))}`, ...parts, cursor);
  picture.setAttribute('tabindex', '0');
  let shown = timeline.points.reduce((best, point, i) => (point.allocated_bytes > timeline.points[best].allocated_bytes ? i : best), 0);
  const show = (index) => {
    shown = Math.min(Math.max(index, 0), timeline.points.length - 1);
    const x = frame.x(shown + 0.5);
    cursor.setAttribute('x1', x);
    cursor.setAttribute('x2', x);
    cursor.setAttribute('visibility', 'visible');
    card.replaceChildren(...pointCard(timeline, shown));
    card.hidden = false;
    card.style.left = `${Math.min(Math.max(0, x - 110), Math.max(0, width - 230))}px`;
  };
  const hide = () => {
    cursor.setAttribute('visibility', 'hidden');
    card.hidden = true;
  };
  picture.addEventListener('pointermove', (event) => {
    const inside = event.clientX - picture.getBoundingClientRect().left - frame.left;
    show(Math.floor(timeline.points.length * inside / (frame.right - frame.left)));
  });
  picture.addEventListener('pointerleave', hide);
  picture.addEventListener('blur', hide);
  picture.addEventListener('focus', () => { if (picture.matches(':focus-visible')) show(shown); });
  picture.addEventListener('keydown', (event) => {
    const steps = {ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -timeline.points.length, End: timeline.points.length};
    if (event.key === 'Escape') hide();
    if (!(event.key in steps)) return;
    event.preventDefault();
    show(shown + steps[event.key]);
  });
  host.replaceChildren(picture, card);
}

// Peaks over a quantity: [{value, peak, low, high, fits}], ascending. `quantity` and `note` are keys of text.js, the note with a value.
export function drawCurve(host, {quantity, points, now, available, note: remark}) {
  const title = say(quantity);
  const note = remark === null ? '' : say(...remark);
  const width = Math.max(260, host.clientWidth);
  const frame = {left: 44, right: width - 12, top: 40, bottom: 190};
  const largest = Math.max(...points.map((point) => point.high));
  frame.most = 1.08 * Math.min(largest, Math.max(4 * (available ?? largest), points[0].high));
  const first = Math.log2(points[0].value);
  const span = Math.max(Math.log2(points.at(-1).value) - first, 1e-9);
  frame.x = (value) => frame.left + (frame.right - frame.left) * (Math.log2(value) - first) / span;
  frame.y = (bytes) => frame.bottom - (frame.bottom - frame.top) * Math.min(bytes, frame.most) / frame.most;
  const parts = byteGrid(frame, say('devicePeak'));
  const at = (point, key) => `${frame.x(point.value).toFixed(1)} ${frame.y(point[key]).toFixed(1)}`;
  parts.push(svg('path', {class: 'band', d: `M${points.map((point) => at(point, 'high')).join('L')}L${[...points].reverse().map((point) => at(point, 'low')).join('L')}Z`}));
  parts.push(svg('path', {class: 'curve', fill: 'none', d: `M${points.map((point) => at(point, 'peak')).join('L')}`}));
  if (available && available <= frame.most) {
    const y = frame.y(available);
    parts.push(line(frame.left, y, frame.right, y, 'limit'));
  }
  for (const point of points) {
    const current = point.value === now;
    parts.push(svg('circle', {cx: frame.x(point.value).toFixed(1), cy: frame.y(point.peak).toFixed(1), r: current ? 5.5 : 3, class: point.fits === false ? 'over' : 'under', 'data-value': point.value, 'data-bytes': point.peak},
      svg('title', {}, `${title} ${point.value}: ${formatBytes(point.peak)} (${formatBytes(point.low)} – ${formatBytes(point.high)})`)));
    if (current) parts.push(label(frame.x(point.value), frame.y(point.peak) - 10, say('now'), width));
  }
  let last = -Infinity;
  for (const point of points) {
    const words = String(point.value);
    const x = frame.x(point.value);
    if (!point.isRound || x - last < 8 + textWidth(words)) continue;
    parts.push(label(x, frame.bottom + 17, words, width));
    last = x;
  }
  parts.push(text(frame.right, frame.bottom + 34, 'end', title, {class: 'axis'}));
  parts.push(text(frame.right, 28, 'end', note, {class: 'note'}));
  const description = `${title}: ${points.map((point) => `${point.value} ${formatBytes(point.peak)}`).join(', ')}. ${note}`;
  host.replaceChildren(chart(width, 230, description, ...parts));
}

// A chart by itself: its colours are written into it, since a file has no style sheet of ours.
export function standalone(picture) {
  const copy = picture.cloneNode(true);
  const originals = [picture, ...picture.querySelectorAll('*')];
  const copies = [copy, ...copy.querySelectorAll('*')];
  originals.forEach((original, index) => {
    const style = getComputedStyle(original);
    for (const property of ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'font-size', 'font-family', 'font-weight', 'opacity', 'paint-order', 'stroke-linejoin'])
      copies[index].setAttribute(property, style.getPropertyValue(property));
    copies[index].removeAttribute('class');
  });
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  const paper = svg('rect', {width: '100%', height: '100%', fill: getComputedStyle(document.body).backgroundColor});
  copy.prepend(paper);
  return new XMLSerializer().serializeToString(copy);
}
