-- memfathom fleet install-filter: refuses jobs that cannot fit on the GPUs they ask for.
-- Fails open: an unknown job, an error or no answer within the limit lets the job through, with a note in the log.

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

-- Slurm's number for "not set" depends on the width of the field.
local function number(value)
  return type(value) == "number" and value < 65534 and string.format("%d", value) or nil
end

local function judged(job)
  local resources = {}
  for _, name in ipairs({"tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket"}) do
    if job[name] then table.insert(resources, job[name]) end
  end
  local wanted = table.concat(resources, ",")
  if not wanted:find("gpu", 1, true) then return "allow" end
  if job.script and #job.script > max_text then return "note", "the script is larger than 256 KiB; it is let through" end
  local variable = job.environment and job.environment["MEMFATHOM_JOB"] or nil
  return ask('{"mode": "enforce", "probability": ' .. probability .. ', "gpus": ' .. quoted(gpus)
    .. ', "comment": ' .. quoted(job.comment) .. ', "job": ' .. quoted(variable)
    .. ', "per_node": ' .. quoted(job.tres_per_node) .. ', "per_job": ' .. quoted(job.tres_per_job)
    .. ', "per_task": ' .. quoted(job.tres_per_task) .. ', "nodes": ' .. quoted(number(job.max_nodes) or number(job.min_nodes))
    .. ', "tasks": ' .. quoted(number(job.num_tasks)) .. ', "tasks_per_node": ' .. quoted(number(job.ntasks_per_node))
    .. ', "user": ' .. quoted(job.user_id and string.format("%d", job.user_id))
     .. ', "resources": ' .. quoted(wanted)
    .. ', "work_dir": ' .. quoted(job.work_dir) .. ', "name": ' .. quoted(job.name) .. ', "script": ' .. quoted(job.script) .. '}')
end

function slurm_job_submit(job, partitions, uid)
  local done, decision, sentence = pcall(judged, job)
  if not done or decision == nil then
    slurm.log_info("memfathom: no answer within %s s; a job of user %s is let through", limit, tostring(uid))
    return slurm.SUCCESS
  end
  if decision == "refuse" then
    slurm.log_user("memfathom: %s", sentence or "the job does not fit")
    return slurm.ERROR
  end
  if decision == "note" then slurm.log_info("memfathom: %s", sentence or "") end
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
  return slurm.SUCCESS
end
