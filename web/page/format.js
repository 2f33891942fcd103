// Numbers as the page shows them: sizes by powers of 1024, as the program prints them.

const units = [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]];

export function formatBytes(bytes) {
  for (const [name, size] of units) {
    if (Math.abs(bytes) >= size) return `${(bytes / size).toFixed(2)} ${name}`;
  }
  return `${bytes} B`;
}

// "24" of a 24 GiB axis, "0.5"; at most two digits after the point.
export function formatNumber(value) {
  return String(Math.round(value * 100) / 100);
}

export function formatCount(count) {
  for (const [name, size] of [['T', 1e12], ['B', 1e9], ['M', 1e6], ['K', 1e3]]) {
    if (count >= size) return `${(count / size).toPrecision(3)} ${name}`;
  }
  return String(count);
}

export function formatPercent(share) {
  if (share > 0 && share < 0.0005) return '< 0.1 %';
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
}
