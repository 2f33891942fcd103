// The GPUs of the machine behind `memfathom serve`: used memory over the last minutes, and the calibrations.
import {bytesElement} from './answer.js';
import {html, svg, table} from './dom.js';
import {formatBytes} from './format.js';
import {say} from './text.js';

const period = 2000;
const maxReadings = 150;

function historyChart(readings, total) {
  const x = (i) => (300 * i / (maxReadings - 1)).toFixed(1);
  const y = (bytes) => (58 - 54 * bytes / total).toFixed(1);
  const path = readings.map((bytes, i) => `${i === 0 ? 'M' : 'L'}${x(i)} ${y(bytes)}`).join('');
  return svg('svg', {viewBox: '0 0 300 60', class: 'history', role: 'img', 'aria-label': say('used', formatBytes(readings.at(-1)), formatBytes(total))},
    svg('line', {x1: 0, y1: 4, x2: 300, y2: 4, class: 'limit'}), svg('path', {d: path, class: 'curve', fill: 'none'}));
}

export function watchMachine(engine, section, host) {
  const histories = new Map();
  const update = async () => {
    const status = await engine.ask('status');
    const gpus = status.devices.filter((device) => device.name.startsWith('cuda'));
    section.hidden = false;
    const cards = gpus.map((device) => {
      const readings = histories.get(device.name) ?? [];
      if (device.memory.used_bytes !== null) readings.push(device.memory.used_bytes);
      if (readings.length > maxReadings) readings.shift();
      histories.set(device.name, readings);
      return html('article', {}, html('h3', {}, `${device.name}: ${device.gpu}`),
        readings.length > 0 ? historyChart(readings, device.memory.total_bytes) : null,
        html('p', {}, device.memory.used_bytes === null ? device.problem ?? '' : say('used', formatBytes(device.memory.used_bytes), formatBytes(device.memory.total_bytes))),
        device.processes.length > 0 ? table(device.name, ['pid', '', say('memory')], device.processes.map(({pid, name, used_bytes: used}) => [String(pid), name, used === null ? '–' : bytesElement('span', used)]), [2]) : null);
    });
    const calibrations = status.devices.flatMap((device) => device.calibrations.map((one) => html('li', {}, `${one.name} (${one.status}, ${one.created})`)));
    host.replaceChildren(...(cards.length > 0 ? cards : [html('p', {class: 'dim'}, say('noLive'))]),
      ...(calibrations.length > 0 ? [html('h3', {}, say('calibrations')), html('ul', {}, ...calibrations)] : []));
  };
  const again = () => update().catch((error) => { host.textContent = error.message; }).finally(() => setTimeout(again, document.hidden ? 5 * period : period));
  again();
}
