// The controls of a job: each shows one key of the completed job and sets it. A table, so that a new key is one row.
import {html} from './dom.js';
import {valueAt} from './job.js';
import {componentName, say} from './text.js';

// Values of a slider: powers of two with steps between them.
function steps(from, to, between) {
  const values = [];
  for (let value = from; value <= to; value *= 2) {
    for (let i = 0; i < between; ++i) {
      const next = Math.round(value * (1 + i / between));
      if (next <= to && values.at(-1) !== next) values.push(next);
    }
  }
  return values;
}

const yesNo = ['false', 'true'];
const rows = {
  'training-controls': [
    {key: 'mode', path: 'training.mode', choices: ['train', 'inference', 'generate'], absent: 'train'},
    {key: 'batch_size', path: 'training.batch_size', values: steps(1, 1024, 4), absent: 1},
    {key: 'sequence_length', path: 'training.sequence_length', values: steps(64, 131072, 4), hiddenIf: (job) => valueAt(job, 'training.image_size') !== undefined},
    {key: 'image_size', path: 'training.image_size', values: steps(32, 2048, 4), shownIf: (job) => typeof valueAt(job, 'training.image_size') === 'number'},
    {key: 'new_tokens', path: 'training.new_tokens', values: steps(1, 65536, 2), shownIf: (job) => valueAt(job, 'training.mode') === 'generate', absent: 128},
    {key: 'precision', path: 'training.precision', choices: ['fp32', 'bf16', 'fp16', 'amp-bf16', 'amp-fp16'], absent: 'fp32'},
    {key: 'optimizer', path: 'training.optimizer', choices: ['sgd', 'sgd-momentum', 'adam', 'adamw', 'adamw-fused', 'adamw-8bit', 'adafactor', 'lion', 'rmsprop', 'adagrad'], absent: 'adamw',
     read: (job) => { const value = valueAt(job, 'training.optimizer'); return value?.name ?? value; }},
    {key: 'lora', path: 'training.lora.rank', values: [0, ...steps(1, 512, 2)], absent: 0,
     write: (value) => (value === 0 ? [['training.lora', null]] : [['training.lora.rank', value]])},
    {key: 'quantization', path: 'training.quantization', choices: ['none', 'int8', 'nf4', 'nf4-double', 'fp8'], absent: 'none',
     read: (job) => { const value = valueAt(job, 'training.quantization'); return value?.method ?? value; }},
    {key: 'gradient_checkpointing', path: 'training.gradient_checkpointing', choices: ['none', 'full', 'selective'], absent: 'none',
     read: (job) => { const value = valueAt(job, 'training.gradient_checkpointing'); return value === true ? 'full' : value === false ? 'none' : value; }},
    {key: 'attention', path: 'training.attention', choices: ['sdpa', 'flash', 'efficient', 'math', 'eager'], absent: 'sdpa'},
    {key: 'gradient_accumulation_steps', path: 'training.gradient_accumulation_steps', values: steps(1, 256, 2), absent: 1},
    {key: 'fused_loss', path: 'training.fused_loss', choices: yesNo, absent: 'false', read: (job) => String(valueAt(job, 'training.fused_loss') ?? false), write: (value) => [['training.fused_loss', value === 'true']]},
  ],
  'parallel-controls': [
    {key: 'num_gpus', path: 'parallel.num_gpus', values: steps(1, 1024, 2), absent: 1},
    {key: 'sharding', choices: ['none', 'ZeRO-1', 'ZeRO-2', 'ZeRO-3', 'FSDP', 'FSDP hybrid'], absent: 'none', read: shardingOf, write: sharded},
    {key: 'offload', choices: ['none', 'optimizer', 'optimizer + parameters', 'activations'], absent: 'none', read: offloadOf, write: offloaded},
  ],
  'gpu-controls': [
    {key: 'gpu_memory', values: [4, 6, 8, 10, 11, 12, 16, 20, 22, 24, 32, 40, 48, 64, 80, 96, 128, 141, 192, 288], absent: 24,
     read: (job) => { const size = valueAt(job, 'target.memory'); return size === undefined ? undefined : Number.parseFloat(size); },
     write: (value) => [['target.memory', `${value}GiB`]]},
  ],
};

function shardingOf(job) {
  const fsdp = valueAt(job, 'parallel.fsdp');
  if (fsdp === 'full' || fsdp === true) return 'FSDP';
  if (fsdp === 'hybrid') return 'FSDP hybrid';
  const stage = valueAt(job, 'parallel.zero_stage');
  return stage ? `ZeRO-${stage}` : 'none';
}

function sharded(value) {
  if (value.startsWith('FSDP')) return [['parallel.zero_stage', 0], ['parallel.fsdp', value === 'FSDP' ? 'full' : 'hybrid']];
  return [['parallel.fsdp', 'none'], ['parallel.zero_stage', value === 'none' ? 0 : Number(value.at(-1))]];
}

function offloadOf(job) {
  const at = (what) => valueAt(job, `parallel.offload.${what}`) === 'cpu';
  if (at('activations')) return 'activations';
  if (at('parameters')) return 'optimizer + parameters';
  return at('optimizer') ? 'optimizer' : 'none';
}

function offloaded(value) {
  return ['optimizer', 'parameters', 'activations'].map((what) => [`parallel.offload.${what}`, value.includes(what) ? 'cpu' : 'none']);
}

// The index of the nearest value of a slider.
function nearest(values, value) {
  return values.reduce((best, one, i) => (Math.abs(one - value) < Math.abs(values[best] - value) ? i : best), 0);
}

export class Controls {
  // `change(entries)`: keys and values that the user set.
  constructor(change) {
    this.change = change;
    this.fields = [];
    for (const [host, list] of Object.entries(rows)) {
      for (const row of list) this.fields.push(this.make(document.getElementById(host), row));
    }
  }

  make(host, row) {
    const id = `control-${row.key}`;
    const name = html('span', {class: 'name'});
    const set = (value) => this.change(row.write ? row.write(value) : [[row.path, value]]);
    if (row.choices) {
      const select = html('select', {id, onchange: () => set(select.value)});
      const field = html('label', {class: 'control', for: id}, name, select);
      host.append(field);
      return {row, field, name, select};
    }
    const slider = html('input', {id, type: 'range', min: 0, max: row.values.length - 1, step: 1,
      oninput: () => { const value = row.values[slider.value]; number.value = value; slider.setAttribute('aria-valuetext', value); set(value); }});
    const number = html('input', {type: 'number', min: row.values[0], max: row.values.at(-1) * 64, step: 1, class: 'value',
      onchange: () => { if (number.checkValidity() && number.value !== '') set(Number(number.value)); }});
    const field = html('div', {class: 'control'}, html('label', {for: id}, name), number, slider);
    host.append(field);
    return {row, field, name, slider, number};
  }

  // Shows the completed job; a control that the user is moving keeps what he set.
  show(job) {
    for (const {row, field, name, select, slider, number} of this.fields) {
      name.textContent = say(row.key);
      const value = (row.read ? row.read(job) : valueAt(job, row.path)) ?? row.absent;
      field.hidden = (row.shownIf && !row.shownIf(job)) || (row.hiddenIf && row.hiddenIf(job)) || false;
      if (select) {
        const choices = row.choices.includes(value) ? row.choices : [...row.choices, String(value)];
        select.replaceChildren(...choices.map((choice) => html('option', {value: choice}, choice === 'true' ? say('on') : choice === 'false' ? say('off') : componentName(choice))));
        select.value = String(value);
        continue;
      }
      number.setAttribute('aria-label', say(row.key));
      if (document.activeElement !== number) number.value = typeof value === 'number' ? value : '';
      if (document.activeElement !== slider && typeof value === 'number') slider.value = nearest(row.values, value);
      slider.setAttribute('aria-valuetext', value ?? say('auto'));
      field.classList.toggle('unset', value === undefined);
    }
  }
}
