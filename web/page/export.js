// What can be taken along: the job file, the result, the command, a link, the charts.
import {standalone} from './charts.js';
import {byId, html} from './dom.js';
import {commandLine, toFragment} from './job.js';
import {say} from './text.js';

function download(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], {type});
  const link = html('a', {href: URL.createObjectURL(blob), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function pngOf(picture) {
  const scale = 2;
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([standalone(picture)], {type: 'image/svg+xml'}));
  await image.decode();
  const canvas = html('canvas', {width: picture.width.baseVal.value * scale, height: picture.height.baseVal.value * scale});
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((resolve) => { canvas.toBlob(resolve, 'image/png'); });
}

// The buttons below a chart, which is an SVG inside `host`.
export function chartButtons(host, name) {
  const picture = () => host.querySelector('svg');
  const button = (kind, save) => html('button', {type: 'button', class: 'quiet', 'data-save': `${name}.${kind}`, 'aria-label': `${say('saveAs', kind.toUpperCase())}: ${name}`, onclick: save}, kind.toUpperCase());
  return html('p', {class: 'save'},
    button('svg', () => download(`memfathom-${name}.svg`, standalone(picture()), 'image/svg+xml')),
    button('png', async () => download(`memfathom-${name}.png`, await pngOf(picture()), 'image/png')));
}

// Shows a text and puts it on the clipboard where the browser allows it.
async function present(text) {
  byId('export-text').textContent = text;
  byId('export-text').hidden = false;
  try {
    await navigator.clipboard.writeText(text);
    byId('export-note').textContent = say('copied');
  } catch {
    byId('export-note').textContent = '';
  }
}

// `current()`: {state, answer, text}, the job that is shown, its result and the result's own text.
export function showExport(host, current) {
  const button = (key, action) => html('button', {type: 'button', id: `export-${key}`, onclick: action}, say(key));
  host.replaceChildren(
    button('yaml', () => { download('job.yaml', current().answer.yaml, 'application/yaml'); return present(current().answer.yaml); }),
    button('json', () => { const text = `${JSON.stringify(current().answer, null, 2)}\n`; download('memfathom.json', text, 'application/json'); return present(text); }),
    button('command', () => present(commandLine(current().state))),
    button('link', async () => {
      const fragment = await toFragment(current().state);
      if (fragment === null) {
        byId('export-note').textContent = say('linkTooLong');
        return;
      }
      history.replaceState(null, '', fragment);
      await present(location.href);
    }));
}
