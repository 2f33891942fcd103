// What all charts are drawn with: texts, lines, and the grid of an axis of bytes.
import {svg} from './dom.js';
import {formatNumber} from './format.js';

const gib = 2 ** 30;

// Round steps that give three to seven grid lines.
function stepFor(most) {
  const unit = 10 ** Math.floor(Math.log10(Math.max(most, 1e-6) / 4));
  return [1, 2, 5, 10].map((factor) => factor * unit).find((step) => most / step <= 6);
}

export function text(x, y, anchor, words, attributes = {}) {
  return svg('text', {x: x.toFixed(1), y: y.toFixed(1), 'text-anchor': anchor, ...attributes}, words);
}

export function line(x1, y1, x2, y2, kind) {
  return svg('line', {x1: x1.toFixed(1), y1: y1.toFixed(1), x2: x2.toFixed(1), y2: y2.toFixed(1), class: kind});
}

// Digits and letters take about 6.8 pixels, Chinese characters 12.
export function textWidth(words) {
  return [...words].reduce((width, character) => width + (character > '\u2e7f' ? 12 : 6.8), 0);
}

// Keeps a centred label inside the chart.
export function label(x, y, words, width, attributes = {}) {
  const half = textWidth(words) / 2;
  return text(Math.min(Math.max(x, half + 2), width - half - 2), y, 'middle', words, attributes);
}

export function chart(width, height, description, ...children) {
  return svg('svg', {viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': description}, ...children);
}

// The grid of a plot whose values are bytes.
export function byteGrid(frame, title = '') {
  const unit = frame.most >= 2 * gib ? gib : 2 ** 20;
  const step = stepFor(frame.most / unit);
  const parts = [text(4, 12, 'start', `${title}${title === '' ? '' : ', '}${unit === gib ? 'GiB' : 'MiB'}`)];
  for (let i = 0; i * step * unit <= frame.most; ++i) {
    const y = frame.y(i * step * unit);
    parts.push(line(frame.left, y, frame.right, y, 'grid'), text(frame.left - 6, y + 4, 'end', formatNumber(i * step)));
  }
  return parts;
}
