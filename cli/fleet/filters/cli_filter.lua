-- memfathom fleet install-filter: explains at submission whether a job fits on the GPUs it asks for.
-- Never refuses and never fails a submission: without an answer within the limit the job goes on, with a note.

local program = "@PROGRAM@"
local database = "@DATABASE@"
local limit = "@LIMIT@" -- seconds
local probability = "@PROBABILITY@"
local gpus = "@GPUS@" -- which GPU a gres type is: "a100=a100-80gb,h100=h100-94gb"

local max_text = 262144 -- bytes; a script that trains is far smaller, and the controller waits

local escapes = {}
for _, byte in ipairs({34, 92, 127}) do escapes[string.char(byte)] = string.format("\\u%04x", byte) end
for byte = 0, 31 do escapes[string.char(byte)] = string.format("\\u%04x", byte) end

local function quoted(text)
  if text == nil then return "null" end
  local escaped = tostring(text):gsub('[%c"\\\127]', escapes)
  return '"' .. escaped .. '"'
end

-- Only the name of the request's file reaches a shell, never what a user wrote.
local function ask(request)
  local name = os.tmpname()
  local file = io.open(name, "w")
  if file == nil then return nil end
  file:write(request)
  file:close()
  local command = "timeout -s KILL " .. limit .. " " .. program .. " --db " .. database .. " fleet admit --limit " .. limit
  local answer = io.popen(command .. " " .. name .. " 2>/dev/null")
  local decision = answer and answer:read("*l")
  local sentence = answer and answer:read("*l")
  if answer then answer:close() end
  os.remove(name)
  return decision, sentence
end

function slurm_cli_setup_defaults(options, early)
  return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
  if options["type"] ~= "sbatch" then return slurm.SUCCESS end
  local function gpus_of(name)
    return options[name] and ("gpu:" .. options[name]) or nil
  end
  local parts = {per_node = options["gres"] or gpus_of("gpus-per-node"), per_job = gpus_of("gpus"), per_task = gpus_of("gpus-per-task")}
  local resources = {}
  for _, gres in pairs(parts) do table.insert(resources, gres) end
  if #resources == 0 then return slurm.SUCCESS end -- no GPU is asked for
  if options["wrap"] and #options["wrap"] > max_text then return slurm.SUCCESS end
  local request = '{"mode": "explain", "probability": ' .. probability .. ', "gpus": ' .. quoted(gpus)
    .. ', "comment": ' .. quoted(options["comment"]) .. ', "export": ' .. quoted(options["export"])
    .. ', "job": ' .. quoted(os.getenv("MEMFATHOM_JOB")) .. ', "resources": ' .. quoted(table.concat(resources, ","))
    .. ', "per_node": ' .. quoted(parts.per_node) .. ', "per_job": ' .. quoted(parts.per_job)
    .. ', "per_task": ' .. quoted(parts.per_task) .. ', "nodes": ' .. quoted(options["nodes"])
    .. ', "tasks": ' .. quoted(options["ntasks"]) .. ', "tasks_per_node": ' .. quoted(options["ntasks-per-node"])
    .. ', "script": ' .. quoted(options["wrap"])
    .. ', "work_dir": ' .. quoted(options["chdir"]) .. ', "options": ' .. quoted(slurm.json_cli_options(options)) .. '}'
  local done, decision, sentence = pcall(ask, request)
  if not done or decision == nil then
    slurm.log_info("memfathom: no answer within %s s; the job is let through", limit)
  elseif sentence then
    slurm.log_info("memfathom: %s", sentence)
  end
  return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job, step)
  return slurm.SUCCESS
end
