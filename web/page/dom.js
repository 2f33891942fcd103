// Elements by one call. Text is always set as text, never parsed as HTML: names come from files.

const svgNamespace = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(svgNamespace, tag), attributes, children);
}

export function byId(id) {
  return document.getElementById(id);
}

// A table whose numeric columns are aligned to the right. A cell is a text or an element.
export function table(caption, titles, rows, numeric = []) {
  const cell = (tag, value, column) =>
    html(tag, {class: numeric.includes(column) ? 'number' : undefined, scope: tag === 'th' ? 'col' : undefined}, value);
  return html('table', {},
    html('caption', {class: 'hidden'}, caption),
    html('thead', {}, html('tr', {}, ...titles.map((title, column) => cell('th', title, column)))),
    html('tbody', {}, ...rows.map((row) => html('tr', {}, ...row.map((value, column) => cell('td', value, column))))));
}
