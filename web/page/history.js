// A chart of used memory over the last minutes.
import {svg} from './dom.js';
import {formatBytes} from './format.js';
import {byteGrid, chart, label, line, text} from './plot.js';
import {say} from './text.js';

const minute = 60_000;
export const shownMinutes = 5;

// `readings`: [{time, used}] in milliseconds and bytes, ascending; the last one is "now". `total`: the GPU's memory.
export function drawHistory(host, readings, total) {
  const width = Math.max(260, host.clientWidth);
  const frame = {left: 44, right: width - 12, top: 24, bottom: 130, most: 1.05 * total};
  const now = readings.at(-1).time;
  frame.x = (time) => frame.right - (frame.right - frame.left) * Math.min(1, (now - time) / (shownMinutes * minute));
  frame.y = (bytes) => frame.bottom - (frame.bottom - frame.top) * Math.min(bytes, frame.most) / frame.most;
  const parts = byteGrid(frame, say('usedMemory'));
  const at = ({time, used}) => `${frame.x(time).toFixed(1)} ${frame.y(used).toFixed(1)}`;
  const path = `M${readings.map(at).join('L')}`;
  parts.push(svg('path', {class: 'band', d: `${path}V${frame.bottom}H${frame.x(readings[0].time).toFixed(1)}Z`}), svg('path', {class: 'curve', fill: 'none', d: path}));
  parts.push(svg('circle', {class: 'under', cx: frame.x(now).toFixed(1), cy: frame.y(readings.at(-1).used).toFixed(1), r: 3.5, 'data-bytes': readings.at(-1).used}));
  parts.push(line(frame.left, frame.y(total), frame.right, frame.y(total), 'limit'), text(frame.right, frame.y(total) - 5, 'end', say('capacity', formatBytes(total)), {class: 'limit-text'}));
  for (let ago = shownMinutes; ago >= 0; --ago)
    parts.push(label(frame.x(now - ago * minute), frame.bottom + 17, ago === 0 ? say('now') : say('minutesAgo', ago), width));
  const most = Math.max(...readings.map(({used}) => used));
  host.replaceChildren(chart(width, 154, `${say('used', formatBytes(readings.at(-1).used), formatBytes(total))}; ${say('mostUsed', formatBytes(most))}`, ...parts));
}
