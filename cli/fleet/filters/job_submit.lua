-- memfathom fleet install-filter: refuses jobs that cannot fit on the GPUs they ask for.
-- Fails open: an unknown job, an error or no answer within the limit lets the job through, with a note in the log.

local program = "@PROGRAM@"
local database = "@DATABASE@"
local limit = "@LIMIT@" -- seconds
local probability = "@PROBABILITY@"
local gpus = "@GPUS@" -- which GPU a gres type is: "a100=a100-80gb,h100=h100-94gb"

local function quoted(text)
  if text == nil then return "null" end
  local escaped = tostring(text):gsub('[%c"\\\127]', function(c) return string.format("\\u%04x", c:byte()) end)
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

local function judged(job)
  local resources = {}
  for _, name in ipairs({"tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket"}) do
    if job[name] then table.insert(resources, job[name]) end
  end
  local wanted = table.concat(resources, ",")
  if not wanted:find("gpu", 1, true) then return "allow" end
  local variable = job.environment and job.environment["MEMFATHOM_JOB"] or nil
  return ask('{"mode": "enforce", "probability": ' .. probability .. ', "gpus": ' .. quoted(gpus)
    .. ', "comment": ' .. quoted(job.comment) .. ', "job": ' .. quoted(variable) .. ', "resources": ' .. quoted(wanted)
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
