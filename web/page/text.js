// What the page says, in English and Chinese, and the engine's own sentences in the page's language.
import {chineseSentences} from './sentences_zh.js';

const words = {
  en: {
    skip: 'Skip to the answer', language: 'Language', inputs: 'The job',
    tagline: 'How much GPU memory does it need, before it runs? The layers are run, not estimated by rules of thumb.',
    dark: 'Dark', light: 'Light', model: 'Model', gpu: 'GPU', training: 'Training', parallel: 'GPUs and sharding',
    modelSearch: 'Search models', gpuSearch: 'Search GPUs', noMatch: 'nothing has this name',
    browse: 'Choose files', dropHint: 'or drop them here: config.json, a DeepSpeed, accelerate, axolotl or TrainingArguments file, a job file, a shell script, a trace, a log with an out-of-memory message.',
    remove: 'Remove', pasteTitle: 'Paste a command, a configuration or an error message', pasteLabel: 'Text', read: 'Read it',
    fromFiles: 'from your files', loading: 'The engine is loading…', working: 'Computing…',
    fits: 'It fits', tight: 'It is tight', does_not_fit: 'It does not fit', undecided: 'Undecided', unknown: 'No GPU is chosen',
    short_fits: 'fits', short_tight: 'tight', short_does_not_fit: 'no', short_undecided: 'undecided',
    refused: 'This cannot be answered', ofAvailable: 'of {} available on {}', left: '{} left', over: '{} over',
    probability: 'probability of fitting {}', interval: '{} interval: {} to {}', comfortable: 'comfortable on a GPU with {}',
    allocated: 'allocated', reserved: 'reserved', parametersLine: '{} parameters, {} trainable', hostMemory: 'host memory {}',
    peakTitle: 'What the peak is made of', component: 'Component', memory: 'Memory', share: 'Share', source: 'Source', devicePeak: 'device peak',
    available: 'available {}', capacity: 'capacity {}', intervalMark: '{} interval',
    adviceTitle: 'Changes that save memory', adviceHint: 'Cheapest first. A click applies a change to the job.',
    apply: 'Apply', applied: 'Applied: {}', undo: 'Undo', saves: 'saves {}', then: 'then {}', enough: 'enough', notEnough: 'not enough alone', time: 'time ×{}',
    more: '{} more changes', combination: 'Cheapest combination that fits', noCombination: 'No combination of changes makes it fit.', searching: 'Trying changes…',
    timelineTitle: 'Memory during loading and two iterations',
    timelineHint: 'Areas: live tensors, one step per allocation, not to scale in time. Line: reserved by the caching allocator. Move the pointer over it, or use the arrow keys.',
    point: 'allocation {} of {}', totalAllocated: 'allocated {}', totalReserved: 'reserved {}', asTable: 'As a table', phase: 'Phase', iteration: 'Iteration',
    curvesTitle: 'How the peak grows', batchAxis: 'batch size', lengthAxis: 'sequence length', imageAxis: 'image size', fitsUpTo: 'fits up to {}', fitsNone: 'does not fit at {}', fitsAll: 'fits up to {} at least',
    now: 'now', peakAxis: 'device peak, GiB',
    gpusTitle: 'GPUs it fits on', gpusOf: '{} of {} GPUs', choose: 'Choose {}',
    gpuName: 'GPU', peak: 'Peak', headroom: 'Left', verdict: 'Verdict',
    liveTitle: 'This machine', noLive: 'No GPU was found on this machine.', used: 'used {} of {}', calibrations: 'Calibrations',
    remarksTitle: 'Assumed, not modelled, not read', warning: 'warning', notModelled: 'not modelled', assumed: 'assumed', unread: 'not read',
    unreadKey: '{}: {}', concerns: 'may change {}', harmless: 'changes nothing here', calibration: 'calibration', nothingAssumed: 'Nothing had to be assumed.',
    exportTitle: 'Take it with you', yaml: 'Job file', json: 'Result (JSON)', command: 'Command line', link: 'Link', saveAs: 'Save as {}',
    copied: 'Copied.', copy: 'Copy', linkTooLong: 'The files are too large for a link; share the job file instead.',
    commandOfFiles: 'Run it in the folder of your files.',
    allocationsAxis: 'allocations in order, not to scale in time', on: 'on', off: 'off',
    calibrationNone: 'none for this GPU; published figures of the current PyTorch are used', calibration_calibrated: '{}, measured on {}',
    calibration_stale: '{}, measured on {}, now stale', calibration_published: '{}, from published measurements',
    usedMemory: 'used', usedOf: 'used of {}; {} are free', minutesAgo: '−{} min', mostUsed: 'at most {}', processes: 'Processes on {}', pid: 'PID', program: 'Program', notReadable: 'not readable',
    noProcesses: 'No process is on it.', useGpu: 'Does the job fit on {} now?', name: 'Name', device: 'Device', created: 'Created', samples: 'Samples', heldOut: 'Held-out error',
    noCalibrations: 'This machine’s database has none; memfathom calibrate measures a GPU.', publishedToo: '{} published calibrations are inside the program.',
    privacy: 'Everything is computed in this page; nothing is sent anywhere.', privacyServed: 'Everything is computed on this machine.',
    batch_size: 'Batch size per GPU', sequence_length: 'Sequence length', image_size: 'Image size', mode: 'Mode', precision: 'Precision', optimizer: 'Optimizer',
    lora: 'LoRA rank (0: full training)', quantization: 'Quantized weights', gradient_checkpointing: 'Gradient checkpointing', attention: 'Attention',
    gradient_accumulation_steps: 'Gradient accumulation', num_gpus: 'GPUs', sharding: 'Sharding', offload: 'Offload to the host', gpu_memory: 'or its memory, GiB', fused_loss: 'Fused loss',
    new_tokens: 'New tokens', auto: 'as the model has it',
    oomTitle: 'The out-of-memory message', oomUse: 'Use this GPU’s memory', fileRead: '{} was read.',
    tooLarge: '{} has {}; at most {} are read.',
  },
  zh: {
    skip: '跳到结果', language: '语言', inputs: '任务',
    tagline: '运行之前就知道需要多少显存：逐层模拟执行，而不是套用经验公式。',
    dark: '深色', light: '浅色', model: '模型', gpu: '显卡', training: '训练', parallel: '多卡与分片',
    modelSearch: '搜索模型', gpuSearch: '搜索显卡', noMatch: '没有这个名称',
    browse: '选择文件', dropHint: '或拖放到这里：config.json、DeepSpeed、accelerate、axolotl、TrainingArguments 配置，任务文件，shell 脚本，trace，含显存不足报错的日志。',
    remove: '移除', pasteTitle: '粘贴命令、配置或报错', pasteLabel: '文本', read: '读取',
    fromFiles: '来自你的文件', loading: '正在加载引擎……', working: '计算中……',
    fits: '放得下', tight: '勉强', does_not_fit: '放不下', undecided: '无法判定', unknown: '未指定显卡',
    short_fits: '放得下', short_tight: '勉强', short_does_not_fit: '放不下', short_undecided: '无法判定',
    refused: '无法回答', ofAvailable: '可用 {}（{}）', left: '剩余 {}', over: '超出 {}',
    probability: '放得下的概率 {}', interval: '{} 区间：{} 至 {}', comfortable: '显存 {} 的显卡可从容运行',
    allocated: '已分配', reserved: '已保留', parametersLine: '参数 {}，其中可训练 {}', hostMemory: '主机内存 {}',
    peakTitle: '峰值的组成', component: '组成', memory: '显存', share: '占比', source: '来源', devicePeak: '显卡峰值',
    available: '可用 {}', capacity: '容量 {}', intervalMark: '{} 区间',
    adviceTitle: '能节省显存的修改', adviceHint: '代价小的在前。点击即可应用到任务。',
    apply: '应用', applied: '已应用：{}', undo: '撤销', saves: '节省 {}', then: '修改后 {}', enough: '足够', notEnough: '单独还不够', time: '时间 ×{}',
    more: '另外 {} 项修改', combination: '代价最小且放得下的组合', noCombination: '没有任何组合能放得下。', searching: '正在尝试各种修改……',
    timelineTitle: '加载与两次迭代期间的显存',
    timelineHint: '色块：存活的张量，每次分配一步，横轴不按时间比例。线：缓存分配器保留的显存。移动指针或用方向键查看。',
    point: '第 {} 次分配，共 {} 次', totalAllocated: '已分配 {}', totalReserved: '已保留 {}', asTable: '以表格显示', phase: '阶段', iteration: '迭代',
    curvesTitle: '峰值如何增长', batchAxis: 'batch 大小', lengthAxis: '序列长度', imageAxis: '图像大小', fitsUpTo: '最大 {}', fitsNone: '{} 也放不下', fitsAll: '至少到 {} 都放得下',
    now: '当前', peakAxis: '显卡峰值，GiB',
    gpusTitle: '放得下的显卡', gpusOf: '{1} 种显卡中的 {0} 种', choose: '选择 {}',
    gpuName: '显卡', peak: '峰值', headroom: '剩余', verdict: '结论',
    liveTitle: '这台机器', noLive: '这台机器上没有找到显卡。', used: '已用 {}，共 {}', calibrations: '校准',
    remarksTitle: '假设、未计入、未读懂', warning: '警告', notModelled: '未计入', assumed: '假设', unread: '未读懂',
    unreadKey: '{}：{}', concerns: '可能影响{}', harmless: '在此不影响结果', calibration: '校准', nothingAssumed: '没有需要假设的内容。',
    exportTitle: '导出', yaml: '任务文件', json: '结果（JSON）', command: '命令行', link: '链接', saveAs: '保存为 {}',
    copied: '已复制。', copy: '复制', linkTooLong: '文件太大，无法放进链接；请分享任务文件。',
    commandOfFiles: '请在文件所在的文件夹中运行。',
    allocationsAxis: '按分配先后排列，不按时间比例', on: '开启', off: '关闭',
    calibrationNone: '这块显卡没有校准；使用当前 PyTorch 的公开数据', calibration_calibrated: '{}，测量于 {}',
    calibration_stale: '{}，测量于 {}，已过期', calibration_published: '{}，来自公开的测量',
    usedMemory: '已用', usedOf: '已用，共 {}；空闲 {}', minutesAgo: '−{} 分钟', mostUsed: '最多 {}', processes: '{} 上的进程', pid: 'PID', program: '程序', notReadable: '无法读取',
    noProcesses: '上面没有进程。', useGpu: '任务现在能放进 {} 吗？', name: '名称', device: '设备', created: '创建于', samples: '样本数', heldOut: '留出误差',
    noCalibrations: '这台机器的数据库中没有校准；memfathom calibrate 可测量显卡。', publishedToo: '程序内置 {} 个公开校准。',
    privacy: '全部在本页面内计算，不会发送任何数据。', privacyServed: '全部在这台机器上计算。',
    batch_size: '每张卡的 batch 大小', sequence_length: '序列长度', image_size: '图像大小', mode: '模式', precision: '精度', optimizer: '优化器',
    lora: 'LoRA rank（0：全量训练）', quantization: '权重量化', gradient_checkpointing: '梯度检查点', attention: '注意力',
    gradient_accumulation_steps: '梯度累积', num_gpus: '显卡数', sharding: '分片', offload: 'offload 到主机', gpu_memory: '或显存大小，GiB', fused_loss: '融合损失',
    new_tokens: '生成 token 数', auto: '按模型默认',
    oomTitle: '显存不足的报错', oomUse: '使用这块显卡的显存', fileRead: '已读取 {}。',
    tooLarge: '{} 有 {}，最多读取 {}。',
  },
};

export const languages = Object.keys(words);
let language = 'en';

export function setLanguage(name) {
  language = languages.includes(name) ? name : 'en';
  document.documentElement.lang = language === 'zh' ? 'zh-CN' : 'en';
}

export function currentLanguage() {
  return language;
}

// {} stands for the next value, {1} for the second one.
function filled(pattern, values) {
  let next = 0;
  return pattern.replace(/\{(\d*)\}/g, (_, index) => values[index === '' ? next++ : Number(index)] ?? '');
}

export function say(key, ...values) {
  return filled(words[language][key] ?? words.en[key] ?? key, values);
}

// What only the page shows of the engine's answers: reasons of the interval, and the parts of the line that describes a job.
const pageSentences = [
  ['memory that real scripts use beyond the replay (references, loading, fragmentation), from published runs', '脚本在回放之外持有、加载的显存和产生的碎片（按公开的运行统计）'],
  ['the constants of this GPU and stack are not measured', '这块显卡和软件栈的常数没有实测'],
  ['two replays with different cuDNN workspaces disagree', '换用其他 cuDNN 工作区的两次回放结果不同'],
  ['sequence lengths are unspecified; if they vary, more is reserved', '没有说明序列长度是否固定：长度不一时会保留更多'],
  ['spread of the memory reported outside the allocator on comparable stacks', '在这样的软件栈上，进程在分配器之外占用的显存（按公开报告）'],
  ['the order of varying lengths decides what is reserved', '长度变化的先后决定保留多少显存'],
  ['measured runs of this kind on this GPU and stack', '同类任务在这块显卡和软件栈上的实测'],
  ['{}: batch {} of {} tokens', '{}：batch {}，每条 {} 个 token'], ['{}: batch {} of {} x {}', '{}：batch {}，{} x {}'], ['{}: batch {}', '{}：batch {}'],
  ['training', '训练'], ['inference', '推理'], ['generation', '生成'], ['{} new tokens', '生成 {} 个 token'], ['{} frames', '{} 帧'], ['LoRA of rank {}', 'rank 为 {} 的 LoRA'],
  ['checkpointing', '梯度检查点'], ['selective checkpointing', '选择性检查点'], ['{} accumulation steps', '累积 {} 步'], ['{} GPUs', '{} 张卡'], ['no optimizer', '无优化器'],
  ['{} tensor-parallel', '张量并行 {}'], ['{} stages', '流水线 {} 级'], ['{} weights', '{} 权重'], ['{} on the host', '{} 在主机上'],
];

const patterns = [...pageSentences, ...chineseSentences].map(([english, chinese]) => ({
  shape: new RegExp(`^${english.split('{}').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('(.+)')}$`),
  chinese,
}));

// A sentence of the engine in the page's language; one that has no translation stays English.
export function translated(sentence) {
  if (language !== 'zh') return sentence;
  for (const {shape, chinese} of patterns) {
    const match = shape.exec(sentence);
    if (match) return filled(chinese, match.slice(1));
  }
  return sentence;
}

// "llama-2-7b, training: batch 4 of 2048 tokens, bf16": each part by itself.
export function jobLine(line) {
  if (language !== 'zh') return line;
  return line.split(', ').map((part) => {
    const known = translated(part);
    const mode = /^(training|inference|generation)(：.*)$/.exec(known);
    return mode ? translated(mode[1]) + mode[2] : known;
  }).join('，');
}

const englishNames = {
  logits_loss: 'logits and loss', workspace_cublas: 'cuBLAS workspace', workspace_cudnn: 'cuDNN workspace', workspace_cufft: 'cuFFT workspace',
  context: 'CUDA context', kv_cache: 'KV cache',
};

// "optimizer_state" as "optimizer state".
export function componentName(name) {
  const known = translated(name);
  return known === name ? englishNames[name] ?? name.replaceAll('_', ' ') : known;
}
