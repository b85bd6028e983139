--- The process of the daemon: its start, its pipes and its end. This module does not know JSON-RPC.

local errors = require('treelined.errors')
local lines = require('treelined.lines')
local uv = vim.uv or vim.loop

local M = {}

--- The most bytes of stderr that an error quotes, from the end.
local MAX_STDERR_BYTES = 4096

--- How long to wait for the rest of the output after the process has ended, in milliseconds.
local DRAIN_MS = 1000

--- How long the daemon may take to end after SIGTERM, in milliseconds. The daemon itself waits 5 s for running
--- summaries.
local TERMINATE_MS = 6000

--- A running daemon. All callbacks run in the main loop, in the order of their events.
---@class treelined.Process
---@field pid integer
---@field package handle userdata
---@field package stdin userdata
---@field package over boolean
local Process = {}
Process.__index = Process

---@class treelined.ProcessOptions
---@field command string
---@field args string[]
---@field cwd? string
---@field env? table<string, string> added to Neovim's environment
---@field on_line fun(line: string)
---@field on_arrival? fun(line: string) called when the line arrives, as a |lua-loop-callbacks|
---@field on_log? fun(text: string) called with each piece of stderr
---@field on_end fun(why: treelined.Error) called once, after the last line

local function environment(extra)
  if not extra then
    return nil
  end
  local list = {}
  for name, value in pairs(vim.tbl_extend('force', vim.fn.environ(), extra)) do
    list[#list + 1] = name .. '=' .. value
  end
  return list
end

local function after(ms, callback)
  local timer = assert(uv.new_timer())
  timer:start(ms, 0, function()
    timer:close()
    callback()
  end)
  return timer
end

local function stop(timer)
  if timer and not timer:is_closing() then
    timer:close()
  end
end

local function close(handle)
  if handle and not handle:is_closing() then
    handle:close()
  end
end

--- Returns the daemon's program for callers that set no `command`.
---@return string
function M.default_command()
  local given = vim.env.TREELINED_BIN
  return given and given ~= '' and given or 'treelined'
end

--- Explains why the daemon did not start. If the program is missing, says where it was searched for and how to install
--- it.
---@param options treelined.ProcessOptions
---@param said string
---@return string
local function why_not_started(options, said)
  local why = ('cannot start %s: %s'):format(options.command, said)
  if not said:find('ENOENT', 1, true) then
    return why
  elseif options.cwd and vim.fn.isdirectory(options.cwd) == 0 then
    return ('%s: there is no folder %s to start it in'):format(why, options.cwd)
  end
  local path = (options.env or {}).PATH or vim.env.PATH or ''
  local place = options.command:find('/', 1, true) and '' or (' on the PATH (%s)'):format(path)
  if options.command == vim.env.TREELINED_BIN then
    place = place .. '; $TREELINED_BIN names it'
  end
  return why
    .. (': there is no such program%s. Install it with `cargo install --path .` in '):format(place)
    .. "treelined's repository, or name it in setup({ command = '/path/to/treelined' }) "
    .. 'or in $TREELINED_BIN'
end

--- Starts a daemon.
---@param options treelined.ProcessOptions
---@return treelined.Process|nil
---@return treelined.Error|nil
function M.start(options)
  local stdin, stdout, stderr = uv.new_pipe(false), uv.new_pipe(false), uv.new_pipe(false)
  local self = setmetatable({ stdin = stdin, over = false }, Process)
  local words, code, signal = '', nil, nil
  local open = 2
  local drain

  local function finish()
    if self.over then
      return
    end
    self.over = true
    stop(drain)
    for _, handle in ipairs({ stdin, stdout, stderr, self.handle }) do
      close(handle)
    end
    local why = 'the daemon has ended'
    if signal and signal ~= 0 then
      why = why .. ' by signal ' .. signal
    elseif code ~= 0 then
      why = why .. ' with exit code ' .. code
    end
    local said = vim.trim(words)
    why = why .. (said == '' and '' or ': ' .. said)
    local details = { exitCode = code, signal = signal, stderr = words }
    vim.schedule(function()
      options.on_end(errors.new('disconnected', why, details))
    end)
  end

  local function maybe_finish()
    if code and open == 0 then
      finish()
    elseif code and not drain then
      -- A child of the daemon may keep the output open, so this does not wait for its end.
      drain = after(DRAIN_MS, finish)
    end
  end

  local ok, handle, pid = pcall(uv.spawn, options.command, {
    args = options.args,
    cwd = options.cwd,
    env = environment(options.env),
    stdio = { stdin, stdout, stderr },
    hide = true,
  }, function(exit_code, exit_signal)
    code, signal = exit_code, exit_signal
    maybe_finish()
  end)
  if not (ok and handle) then
    for _, pipe in ipairs({ stdin, stdout, stderr }) do
      close(pipe)
    end
    return nil, errors.new('disconnected', why_not_started(options, tostring(ok and pid or handle)))
  end
  self.handle, self.pid = handle, pid

  local function read(pipe, on_data, on_eof)
    pipe:read_start(function(_, data)
      if data then
        on_data(data)
      else
        close(pipe)
        open = open - 1
        on_eof()
        maybe_finish()
      end
    end)
  end
  -- Neovim runs scheduled functions in order, so the lines stay in order.
  local push = lines.splitter(function(line)
    if options.on_arrival then
      options.on_arrival(line)
    end
    vim.schedule(function()
      options.on_line(line)
    end)
  end)
  read(stdout, push, function()
    -- A daemon that has closed its stdout cannot answer, so it is killed.
    if not code then
      after(DRAIN_MS, function()
        self:kill('sigkill')
      end)
    end
  end)
  read(stderr, function(data)
    words = (words .. data):sub(-MAX_STDERR_BYTES)
    if options.on_log then
      vim.schedule(function()
        options.on_log(data)
      end)
    end
  end, function() end)
  return self, nil
end

--- Queues a line for the daemon. A failed write is not reported here: `on_end` reports the end of the daemon.
---@param line string
function Process:write(line)
  if not self.stdin:is_closing() then
    self.stdin:write(line .. '\n')
  end
end

--- Returns the number of queued bytes that are not yet written to the pipe.
---@return integer
function Process:queued()
  return self.stdin:is_closing() and 0 or self.stdin:get_write_queue_size()
end

---@param signal string
function Process:kill(signal)
  if not self.over then
    self.handle:kill(signal)
  end
end

--- Closes the daemon's stdin after the queued lines. Sends SIGTERM if the daemon has not ended after `timeout_ms`, and
--- SIGKILL if it still does not end.
---@param timeout_ms integer
function Process:close(timeout_ms)
  if self.over or self.stdin:is_closing() then
    return
  end
  self.stdin:shutdown(function()
    close(self.stdin)
  end)
  after(timeout_ms, function()
    self:kill('sigterm')
  end)
  after(timeout_ms + TERMINATE_MS, function()
    self:kill('sigkill')
  end)
end

return M
