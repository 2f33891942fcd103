// A field that searches a list (the ARIA combobox pattern): type to filter, arrows to move, Enter to choose, Escape to leave.
import {html} from './dom.js';
import {say} from './text.js';

const maxShown = 60;

// Every word that was typed must occur, in any order.
function matches(option, words) {
  const text = `${option.name} ${option.description}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

export class Combobox {
  // `choose(name)` is called when an option is chosen.
  constructor(host, labelKey, choose) {
    const id = host.id;
    this.labelKey = labelKey;
    this.choose = choose;
    this.options = [];
    this.shown = [];
    this.active = -1;
    this.value = '';
    this.label = html('label', {for: `${id}-input`, class: 'hidden'});
    this.input = html('input', {
      id: `${id}-input`, type: 'text', role: 'combobox', 'aria-autocomplete': 'list', 'aria-expanded': 'false', 'aria-controls': `${id}-list`,
      onfocus: () => this.input.select(), oninput: () => this.open(this.input.value), onkeydown: (event) => this.key(event),
      onclick: () => this.open(''), onblur: () => this.close(),
    });
    this.list = html('ul', {id: `${id}-list`, role: 'listbox', hidden: true});
    host.append(this.label, this.input, this.list);
  }

  // `options`: [{name, description}].
  fill(options) {
    this.options = options;
  }

  show(value) {
    this.value = value;
    if (document.activeElement !== this.input || this.list.hidden) this.input.value = value;
    this.label.textContent = say(this.labelKey);
    this.input.placeholder = say(this.labelKey);
    this.list.setAttribute('aria-label', say(this.labelKey));
  }

  open(typed) {
    const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
    this.shown = this.options.filter((option) => matches(option, words)).slice(0, maxShown);
    this.active = this.shown.length > 0 && typed !== '' ? 0 : -1;
    this.draw();
  }

  draw() {
    const rows = this.shown.map((option, index) => html('li', {
      role: 'option', id: `${this.list.id}-${index}`, 'aria-selected': index === this.active ? 'true' : 'false',
      // mousedown comes before the field loses its focus and closes the list
      onmousedown: (event) => { event.preventDefault(); this.take(index); },
    }, html('span', {}, option.name), html('small', {}, option.description)));
    if (rows.length === 0) rows.push(html('li', {class: 'dim', role: 'option', 'aria-disabled': 'true'}, say('noMatch')));
    this.list.replaceChildren(...rows);
    this.list.hidden = false;
    this.input.setAttribute('aria-expanded', 'true');
    if (this.active >= 0) {
      this.input.setAttribute('aria-activedescendant', `${this.list.id}-${this.active}`);
      rows[this.active].scrollIntoView({block: 'nearest'});
    } else {
      this.input.removeAttribute('aria-activedescendant');
    }
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute('aria-expanded', 'false');
    this.input.removeAttribute('aria-activedescendant');
    this.input.value = this.value;
  }

  take(index) {
    const option = this.shown[index];
    if (!option) return;
    this.value = option.name;
    this.close();
    this.choose(option.name);
  }

  key(event) {
    const isOpen = !this.list.hidden;
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      if (!isOpen) return this.open('');
      const step = event.key === 'ArrowDown' ? 1 : -1;
      this.active = (this.active + step + this.shown.length) % Math.max(1, this.shown.length);
      return this.draw();
    }
    if (event.key === 'Enter') {
      event.preventDefault();
      if (isOpen) this.take(this.active);
    } else if (event.key === 'Escape' && isOpen) {
      event.stopPropagation();
      this.close();
    }
    return undefined;
  }
}
