"""Shows answers on pseudo terminals of 80 and 120 columns: no line is wider, and no word is broken.

    terminal_width.py MEMFATHOM EXAMPLES
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unicodedata

HOME = tempfile.TemporaryDirectory()  # removed at exit
ENVIRONMENT = {"PATH": os.environ.get("PATH", ""), "HOME": HOME.name, "TERM": "xterm", "MEMFATHOM_NVML": "/nonexistent",
               "MEMFATHOM_DB": HOME.name + "/store", "LC_ALL": "C.UTF-8"}
COLOUR = re.compile(r"\x1b\[\d+m")


def shown(command, columns, **variables):
    """What the command writes to a terminal of so many columns, without colours."""
    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=inside, stderr=subprocess.DEVNULL,
                               env={**ENVIRONMENT, **variables})
    os.close(inside)
    written = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        written += part
    process.wait()
    os.close(terminal)
    return COLOUR.sub("", written.decode().replace("\r\n", "\n"))


def piped(command, **variables):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          env={**ENVIRONMENT, **variables}).stdout


def width(line):
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in line)
    return len(line) + wide - sum(unicodedata.combining(c) > 0 or c == "\ufe0f" for c in line)


def words(text):
    """Without rules, and without the colon that a heading gets below its row."""
    return {word.rstrip(":") for word in text.split() if set(word) != {"-"}}


def ascii_words(text):
    """Names, keys, numbers and commands within a Chinese text, whose own lines may break anywhere."""
    return set(re.findall(r"[A-Za-z0-9_][A-Za-z0-9_.:/%-]*[A-Za-z0-9_%]", text))


def check(holds, sentence):
    if not holds:
        sys.exit(f"terminal_width: {sentence}")


# A training command and a file with keys that nothing reads, which the answer names.
COMMAND = ["accelerate", "launch", "--num_processes", "8", "train.py", "--model_name_or_path", "Qwen/Qwen2.5-7B", "--bf16", "--use_lora", "True",
           "--unheard_of_quantization_of_the_embeddings", "int3", "--per_device_train_batch_size", "2", "--another_setting_of_no_size", "3"]


def foreign_file():
    path = os.path.join(HOME.name, "axolotl.yml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("base_model: meta-llama/Llama-4-Scout-17B-16E\nmicro_batch_size: 1\nsequence_len: 2048\ngradient_checkpoint: true\n"
                   "quantize_the_experts_in_some_way: int3\nlora_something_of_a_long_name: 8\n")
    return path


def zh(command):
    at = command.index("--") if "--" in command else len(command)
    return [*command[:at], "--lang", "zh", *command[at:]]


def main():
    program, examples = sys.argv[1:]
    job = f"{examples}/llama-2-7b-lora.yaml"
    full = ["--model", "llama-2-7b", "--batch-size", "4", "--sequence-length", "2048", "--gpu", "rtx-4090"]
    for arguments in (["estimate", job], ["estimate", job, "--explain"], ["estimate", *full],
                      ["recommend", *full, "--frontier"], ["compare", *full, "--strategies", "baseline,checkpointing,lora,zero2"],
                      ["gpus", "--fits", job], ["models"], ["--help"], ["estimate", "--from", foreign_file(), "--gpu", "h100-80gb"],
                      ["estimate", "--gpu", "h100-80gb", "--", *COMMAND]):
        command = [program, *arguments]
        whole, whole_chinese = piped(command), piped(zh(command))
        check(whole, f"{arguments} prints nothing")
        for columns in (80, 120):
            text = shown(command, columns)
            for line in text.splitlines():
                check(width(line) <= columns, f"{arguments} at {columns} columns: {width(line)} columns in {line!r}")
            check(words(text) == words(whole), f"{arguments} at {columns} columns: {sorted(words(text) ^ words(whole))}")
            chinese = shown(zh(command), columns)
            broken = ascii_words(chinese) ^ ascii_words(whole_chinese)
            check(not broken, f"{arguments} --lang zh at {columns} columns: {sorted(broken)}")
            for line in chinese.splitlines():
                check(width(line) <= columns, f"{arguments} --lang zh at {columns} columns: {width(line)} columns in {line!r}")
    command = [program, "estimate", *full]
    check(max(map(width, piped(command, COLUMNS="80").splitlines())) > 120, "a pipe is wrapped")
    check(max(map(width, shown(command, 200, COLUMNS="80").splitlines())) <= 80, "COLUMNS is not obeyed")
    check(max(map(width, shown([*command, "--format", "json"], 80).splitlines())) > 80, "JSON is wrapped")
    english, chinese = piped([*command, "--format", "json"]), piped([*command, "--format", "json"], LC_ALL="zh_CN.UTF-8")
    check(english == chinese, "JSON depends on the language")
    check("❌ 超限" in piped(command, LC_ALL="zh_CN.UTF-8"), "the environment's language is not obeyed")
    check("❌ 超限" not in piped([*command, "--lang", "en"], LC_ALL="zh_CN.UTF-8"), "--lang does not decide before the environment")
    check("✅ 安全" in piped([program, "estimate", job, "--gpu", "a100-80gb", "--lang", "zh"]), "a job that fits is not 安全")


if __name__ == "__main__":
    main()
