// The peak over batch size and over length, and where it stops fitting: a few estimates on either side of the job's own value.
import {requestOf, valueAt, withKeys} from './job.js';

const quantities = [
  {path: 'training.batch_size', title: 'batchAxis', absent: 1, most: 4096},
  {path: 'training.sequence_length', title: 'lengthAxis', most: 262144},
  {path: 'training.image_size', title: 'imageAxis', most: 4096},
];

async function estimated(engine, state, path, value) {
  try {
    const {totals, verdict} = await engine.ask('estimate', requestOf(withKeys(state, [[path, value]]), {suggest: false}), 'slow');
    const fits = verdict.status === 'unknown' || verdict.status === 'undecided' ? null : verdict.status !== 'does_not_fit';
    return {value, peak: totals.device_peak_bytes, low: totals.device_low_bytes, high: totals.device_high_bytes, fits, available: verdict.available_bytes ?? null};
  } catch {
    return null;  // a length beyond the model's positions, for example
  }
}

// The largest value that fits between a fitting and a failing one, to about six percent.
async function boundary(engine, state, path, fitting, failing, points, isCurrent) {
  let low = fitting;
  let high = failing;
  const grain = path === 'training.batch_size' ? 1 : path === 'training.image_size' ? 16 : 64;
  for (let i = 0; i < 6 && high - low > Math.max(grain, 0.06 * low) && isCurrent(); ++i) {
    const middle = Math.round((low + high) / 2 / grain) * grain;
    if (middle <= low || middle >= high) break;
    const point = await estimated(engine, state, path, middle);
    if (point === null) break;
    points.push(point);
    if (point.fits) low = middle;
    else high = middle;
  }
  return low;
}

async function curveOf(engine, state, quantity, now, isCurrent) {
  const points = [];
  const first = Math.max(1, now / 8);
  let largest = null;
  let failing = null;
  for (let value = first; value <= Math.min(quantity.most, now * 16) && isCurrent(); value *= 2) {
    const point = await estimated(engine, state, quantity.path, Math.round(value));
    if (point === null) break;
    points.push({...point, isRound: true});
    if (point.fits) largest = point.value;
    if (point.fits === false && failing === null) failing = point.value;
    if (value > now && (failing !== null ? point.value > 2 * failing || value >= 2 * now : value >= 8 * now)) break;
  }
  if (points.length < 2) return null;
  let note = null;  // a key of text.js and its value
  if (largest !== null && failing !== null) note = ['fitsUpTo', await boundary(engine, state, quantity.path, largest, failing, points, isCurrent)];
  else if (failing !== null) note = ['fitsNone', points[0].value];
  else if (largest !== null) note = ['fitsAll', largest];
  points.sort((a, b) => a.value - b.value);
  return {quantity: quantity.title, points, now, available: points[0].available, note};
}

// Calls `show(index, curve)` as each becomes known; stops when `isCurrent()` does not hold any more.
export async function computeCurves(engine, state, document, isCurrent, show) {
  let index = 0;
  for (const quantity of quantities) {
    const now = valueAt(document, quantity.path) ?? quantity.absent;
    if (typeof now !== 'number' || !isCurrent()) continue;
    const curve = await curveOf(engine, state, quantity, now, isCurrent);
    if (curve !== null && isCurrent()) show(index++, curve);
  }
  if (isCurrent()) show(index, null);
}
