--- A connection to one daemon: calls with deadlines, notifications, and answers to questions.

local errors = require('treelined.errors')
local json = require('treelined.json')
local process = require('treelined.process')
local protocol = require('treelined.protocol')
local uv = vim.uv or vim.loop

local M = {}

--- Default deadline of calls, in milliseconds.
local TIMEOUT_MS = 30000

--- The default deadline of calls that wait for people or models, or read many files. A question stays open for at most
--- 10 minutes.
local WAITING_TIMEOUT_MS = 660000

local WAITING = {
  archive_branch = true,
  ask_user = true,
  choose = true,
  compact = true,
  continue_session = true,
  export_session = true,
  fork_session = true,
  import_sessions = true,
  merge_branch = true,
  navigate_tree = true,
  pop = true,
  run_command = true,
}

local ASK_KINDS = { 'select', 'confirm', 'input', 'editor' }

--- How long a daemon may take to end after its stdin is closed, in milliseconds.
local CLOSE_MS = 10000

--- How long Neovim waits for the daemon when Neovim ends, in milliseconds.
local FLUSH_MS = 1000

---@class treelined.ClientOptions
---@field command? string program of the daemon; default $TREELINED_BIN, else `treelined`
---@field args? string[] further arguments of the daemon
---@field session_dir? string session directory
---@field summarizer? string summarizer, for instance `outline`
---@field cwd? string working directory of the daemon
---@field env? table<string, string> added to Neovim's environment
---@field shared? boolean use the daemon that all clients of the session directory share, and start it if necessary
---@field socket? string the socket of another shared daemon to use
---@field client_info? treelined.ClientInfo
---@field answers? table<string, treelined.Answerer> by name of the event; the daemon waits for each
---@field on_failure? treelined.OnFailure the answer if an answerer fails or Neovim dies; default `cancel`
---@field ui? treelined.AskKind[] kinds of questions to the person; default all, if `answers` has `user_asked`
---@field summary_deltas? boolean whether the daemon sends `summary_delta`
---@field progress? boolean whether the daemon sends `progress`
---@field opt_out? string[] notifications not to send; those that answerers need are sent anyway
---@field timeout_ms? integer deadline of calls; default 30 s, or 11 min if they wait for people and models
---@field on_log? fun(text: string) called with the daemon's log
---@field on_error? fun(message: string) called with errors of handlers and answerers; default `vim.notify`
---@field on_end? fun(why: treelined.Error) called when the daemon has ended
---@field package on_arrival? fun(line: string) called with each line when it arrives, while Neovim waits for a key too

--- Called with each question. Must call `question.reply` once, at once or later.
---@alias treelined.Answerer fun(event: table, question: treelined.Question)

---@class treelined.Question
---@field over boolean whether another client has answered, the time is up, or the operation has ended
---@field on_over? fun() called when it is over without a reply; dismiss prompts here
---@field reply fun(result?: treelined.EventAnswer) answers the question; no result means no opinion
---@field fail fun(why: string) reports that the answerer has failed: the answer is `on_failure`, or a command fails
---@field extend fun(ms: integer, callback?: treelined.Callback) keeps the question open for `ms` milliseconds from now

---@alias treelined.Callback fun(err: treelined.Error|nil, result: any)

---@class treelined.CallOptions
---@field timeout_ms? integer

---@class treelined.Client: treelined.Methods
---@field server treelined.InitializeResult the daemon's answer to `initialize`
---@field pid integer
---@field over treelined.Error|nil why the connection has ended
---@field package process treelined.Process
---@field package options treelined.ClientOptions
---@field package pending table<integer, {method: string, callback: treelined.Callback, timer: userdata}>
---@field package handlers table<string, {[1]: fun(params: table, name: string)}[]>
---@field package questions table<string, treelined.Question>
---@field package last_id integer
---@field package ended boolean
local Client = {}
Client.__index = Client

--- Calls a function of the user, and reports its errors.
---@return boolean ok
---@return string|nil why the error, without the traceback
function Client:guard(what, callback, ...)
  local why
  local ok, trace = xpcall(callback, function(err)
    why = type(err) == 'string' and err or vim.inspect(err)
    return debug.traceback(why)
  end, ...)
  if not ok then
    self:report(('treelined: %s failed: %s'):format(what, trace))
  end
  return ok, why
end

---@param message string
function Client:report(message)
  if self.options.on_error then
    self.options.on_error(message)
  else
    vim.notify(message, vim.log.levels.ERROR)
  end
end

---@param message table
---@return {field: string, reason: string}|nil why it cannot be sent
function Client:send(message)
  -- The id comes first, so that the daemon finds it even in a message that is too large.
  local params, why = json.encode(message.params or vim.empty_dict())
  if not params then
    return why
  end
  local id = message.id and ('"id":%d,'):format(message.id) or ''
  self.process:write(
    ('{"jsonrpc":"2.0",%s"method":%s,"params":'):format(id, json.encode(message.method))
      .. params
      .. '}'
  )
end

--- Removes a call from the pending ones, and returns it.
function Client:settle(id)
  local call = self.pending[id]
  self.pending[id] = nil
  if call and not call.timer:is_closing() then
    call.timer:close()
  end
  return call
end

--- Calls a method with the params of the protocol. The callback runs once, in the main loop, with an error or the
--- result. If the response is late, the error has the kind `timeout`.
---@param method string
---@param params? table
---@param callback? treelined.Callback
---@param options? treelined.CallOptions
---@return integer id for `cancel`
function Client:request(method, params, callback, options)
  callback = callback or function() end
  self.last_id = self.last_id + 1
  local id = self.last_id
  local function fail(err)
    vim.schedule(function()
      self:guard('the callback of ' .. method, callback, err)
    end)
    return id
  end
  if self.over then
    return fail(self.over)
  end
  local why = self:send({ id = id, method = method, params = params })
  if why then
    local text = ('%s: %s %s'):format(method, why.field, why.reason)
    return fail(errors.new('invalidParams', text, why))
  end
  local timeout_ms = (options or {}).timeout_ms
    or self.options.timeout_ms
    or (WAITING[method] and WAITING_TIMEOUT_MS or TIMEOUT_MS)
  local timer = assert(uv.new_timer())
  self.pending[id] = { method = method, callback = callback, timer = timer }
  timer:start(
    timeout_ms,
    0,
    vim.schedule_wrap(function()
      -- The callback of the response may already be scheduled.
      if self:settle(id) then
        self:cancel(id)
        local text = ('%s: no answer within %d ms'):format(method, timeout_ms)
        local details = { timeoutMs = timeout_ms }
        local err = errors.new('timeout', text, details, { retryable = true })
        self:guard('the callback of ' .. method, callback, err)
      end
    end)
  )
  return id
end

--- Calls a method and waits for the response. Scheduled callbacks run during the wait. It must not be called from
--- `vim.loop` callbacks.
---@param method string
---@param params? table
---@param options? treelined.CallOptions
---@return any result nil if it failed
---@return treelined.Error|nil
function Client:request_sync(method, params, options)
  local done, err, result
  local id = self:request(method, params, function(...)
    err, result = ...
    done = true
  end, options)
  -- The call has its own deadline, so the wait needs none.
  local _, why = vim.wait(2 ^ 31 - 1, function()
    return done
  end, 5)
  if not done then
    self:cancel(id)
    err = errors.new('cancelled', method .. ': interrupted' .. (why == -2 and ' by a key' or ''))
  end
  return result, err
end

for name, method in pairs(protocol.methods) do
  Client[name] = function(self, params, callback, options)
    return self:request(method, params, callback, options)
  end
end

--- Asks the daemon to cancel a call. The daemon decides: a navigation returns `cancelled = true`, another waiting call
--- fails with `cancelled`, and a call that has already taken effect returns its usual result.
---@param id integer
function Client:cancel(id)
  if not self.over then
    self:send({ method = '$/cancel_request', params = { requestId = id } })
  end
end

--- Calls a handler for each notification.
---@param name string for instance `session_tree`, or `*` for all
---@param handler fun(params: table, name: string)
---@return fun() stop
function Client:on(name, handler)
  local handlers = self.handlers[name] or {}
  self.handlers[name] = handlers
  -- Each registration is a new table, so that the same function can be registered twice.
  local entry = { handler }
  handlers[#handlers + 1] = entry
  return function()
    for index, other in ipairs(handlers) do
      if other == entry then
        table.remove(handlers, index)
        return
      end
    end
  end
end

function Client:notify(name, params)
  for _, key in ipairs({ name, '*' }) do
    for _, entry in ipairs({ unpack(self.handlers[key] or {}) }) do
      self:guard('a handler of ' .. name, entry[1], params, name)
    end
  end
end

function Client:dismiss(event_id)
  local question = self.questions[event_id]
  self.questions[event_id] = nil
  if question then
    question.over = true
    if question.on_over then
      self:guard('on_over', question.on_over)
    end
  end
end

--- The most characters in the reason of a cancel.
local MOST_REASON = 500

--- Returns an answer. Its reason is cut to the length that the daemon accepts.
local function cut(result)
  local reason, count = type(result) == 'table' and result.reason, 0
  if type(reason) == 'string' then
    for start in reason:gmatch('()[^\128-\191]') do
      count = count + 1
      if count > MOST_REASON then
        return vim.tbl_extend('force', result, { reason = reason:sub(1, start - 1) })
      end
    end
  end
  return result
end

--- Returns the params of `answer_event` for an answerer that has failed (protocol.md §5.3). A command then fails, and
--- a guard does not consent.
function Client:failed(name, event_id, why)
  if name == 'command_invoked' then
    return { eventId = event_id, error = why }
  elseif name == 'user_asked' then
    return { eventId = event_id, result = { dismissed = true } }
  elseif self.options.on_failure == 'proceed' then
    return { eventId = event_id, result = vim.empty_dict() }
  end
  local first = vim.trim(why):match('^[^\r\n]*')
  return { eventId = event_id, result = cut({ cancel = true, reason = first }) }
end

function Client:ask(name, event)
  local event_id = event.eventId
  local question = { over = false }
  self.questions[event_id] = question
  local function answer(params)
    if question.over then
      return
    end
    question.over = true
    self.questions[event_id] = nil
    self:request('answer_event', params, function(err)
      if not err or err.kind == 'eventNotPending' or err.kind == 'disconnected' then
        return
      end
      local why = ('the answer to %s was refused: %s'):format(name, err)
      self:report('treelined: ' .. why)
      -- The daemon refused the answer. It gets another one, so that it does not wait in vain; a cancel stays a cancel.
      local instead = self:failed(name, event_id, why)
      if type(params.result) == 'table' and params.result.cancel then
        instead.result = { cancel = true }
      end
      self:request('answer_event', instead)
    end)
  end
  function question.reply(result)
    if result == nil or (type(result) == 'table' and next(result) == nil) then
      result = name == 'user_asked' and { dismissed = true } or vim.empty_dict()
    end
    answer({ eventId = event_id, result = cut(result) })
  end
  function question.fail(why)
    answer(self:failed(name, event_id, why))
  end
  function question.extend(ms, callback)
    self:request('answer_event', { eventId = event_id, extendMs = ms }, callback)
  end
  local answerer = self.options.answers and self.options.answers[name]
  local ok, why = false, 'nothing answers it'
  if answerer then
    ok, why = self:guard('the answerer of ' .. name, answerer, event, question)
  end
  -- An answerer that fails gets an answer here, so that the daemon does not wait for it.
  if not ok then
    question.fail(why)
  end
end

function Client:receive(line)
  if self.ended then
    return
  end
  local message, why = json.decode(line)
  if type(message) ~= 'table' then
    local id = tonumber(line:match('^{"jsonrpc":"2.0","id":(%d+),'))
    local call = id and self:settle(id)
    if call then
      local text = ('%s: the answer cannot be read: %s'):format(call.method, why)
      self:guard('the callback of ' .. call.method, call.callback, errors.new('unreadable', text))
    elseif id == nil and line:find('^{"jsonrpc":"2.0",') then
      self:report(('treelined: a message of the daemon cannot be read: %s'):format(why))
    elseif id == nil then
      self:fail_as_impostor(line)
    end
    return
  end
  if message.jsonrpc == nil then
    return self:fail_as_impostor(line)
  end
  if message.method then
    local params = message.params or {}
    local event_id = params.eventId
    if message.method == 'event_resolved' and event_id then
      self:dismiss(event_id)
    end
    self:notify(message.method, params)
    -- Without `timeoutMs` the daemon does not wait for an answer.
    if event_id and (params.timeoutMs or 0) > 0 then
      self:ask(message.method, params)
    end
    return
  end
  -- A response to a call that has timed out is ignored.
  local call = message.id and self:settle(message.id)
  if call then
    local err = message.error and errors.answered(call.method, message.error) or nil
    self:guard('the callback of ' .. call.method, call.callback, err, message.result)
  end
end

function Client:fail_as_impostor(line)
  if self.impostor then
    return
  end
  local text = ('the program is not a treelined daemon: it wrote %q'):format(line:sub(1, 200))
  self.impostor = errors.new('disconnected', text)
  self.over = self.impostor
  self.process:kill('sigkill')
end

function Client:disconnect(why)
  if self.impostor then
    self.impostor.details = why.details
    why = self.impostor
  elseif self.over and why.details.exitCode == 0 then
    why.message = self.over.message
  end
  self.over, self.ended = why, true
  local ids = vim.tbl_keys(self.pending)
  table.sort(ids)
  for _, id in ipairs(ids) do
    local call = self:settle(id)
    if call then
      self:guard('the callback of ' .. call.method, call.callback, why)
    end
  end
  for event_id in pairs(self.questions) do
    self:dismiss(event_id)
  end
  if self.options.on_end then
    self:guard('on_end', self.options.on_end, why)
  end
end

--- Ends the connection. The daemon first answers all accepted requests. Later calls fail with `disconnected`.
---@param timeout_ms? integer the time until the daemon gets SIGTERM, and later SIGKILL; default 10 s
function Client:close(timeout_ms)
  self.over = self.over or errors.new('disconnected', 'the client is closed')
  self.process:close(timeout_ms or CLOSE_MS)
end

--- Closes the connection, and waits until the daemon has ended.
---@param timeout_ms? integer see `close`
function Client:close_sync(timeout_ms)
  self:close(timeout_ms)
  vim.wait((timeout_ms or CLOSE_MS) + 10000, function()
    return self.ended
  end, 5)
end

--- Closes the connection, and waits until the daemon has received all messages.
function Client:close_and_flush()
  self:close()
  vim.wait(CLOSE_MS, function()
    return self.ended or self.process:queued() == 0
  end, 5)
  -- The daemon must still read the pipe. If the daemon ends, the wait ends too.
  vim.wait(FLUSH_MS, function()
    return self.ended
  end, 5)
end

--- Starts a daemon and sends `initialize`.
---@param options? treelined.ClientOptions
---@param callback fun(err: treelined.Error|nil, client: treelined.Client|nil)
function M.start(options, callback)
  options = options or {}
  local args = {}
  if options.session_dir then
    vim.list_extend(args, { '--session-dir', options.session_dir })
  end
  if options.summarizer then
    vim.list_extend(args, { '--summarizer', options.summarizer })
  end
  vim.list_extend(args, options.args or {})
  if options.shared or options.socket then
    vim.list_extend(args, { 'connect', '--start' })
  end
  if options.socket then
    vim.list_extend(args, { '--socket', options.socket })
  end

  local self = setmetatable({
    options = options,
    pending = {},
    handlers = {},
    questions = {},
    last_id = 0,
    ended = false,
  }, Client)
  local daemon, failure = process.start({
    command = options.command or process.default_command(),
    args = args,
    cwd = options.cwd,
    env = options.env,
    on_line = function(line)
      self:receive(line)
    end,
    on_arrival = options.on_arrival,
    on_log = options.on_log and function(text)
      self:guard('on_log', options.on_log, text)
    end,
    on_end = function(why)
      self:disconnect(why)
    end,
  })
  if not daemon then
    vim.schedule(function()
      callback(failure, nil)
    end)
    return
  end
  self.process, self.pid = daemon, daemon.pid

  local answers = vim.empty_dict()
  local needed = {}
  for name in pairs(options.answers or {}) do
    if name:find('_before_', 1, true) then
      answers[name] = { onFailure = options.on_failure or 'cancel' }
    end
    -- Without these notifications the answerer would never be called, and the daemon would wait for its answer.
    needed[name], needed.event_resolved = true, true
  end
  local unwanted = vim.tbl_filter(function(name)
    return not needed[name]
  end, options.opt_out or {})
  local some = vim.empty_dict()
  local params = {
    protocolVersion = protocol.version,
    clientInfo = options.client_info or { name = 'treelined.nvim' },
    processId = uv.os_getpid(),
    -- The working directory of a shared daemon may be another one.
    cwd = uv.fs_realpath(options.cwd or uv.cwd()),
    capabilities = {
      answers = answers,
      ui = options.ui or (needed.user_asked and ASK_KINDS or nil),
      optOut = unwanted,
      summaryDeltas = options.summary_deltas and some or nil,
      progress = options.progress and some or nil,
    },
  }
  self:request('initialize', params, function(err, server)
    local spoken = server and server.protocolVersion
    if not err and spoken ~= protocol.version then
      local text = 'the daemon speaks protocol version %s, this client speaks %d'
      local details = { expected = protocol.version, spoken = spoken }
      err =
        errors.new('versionMismatch', text:format(vim.inspect(spoken), protocol.version), details)
    end
    if err then
      self:close()
      return callback(err, nil)
    end
    self.server = server
    callback(nil, self)
  end)
end

--- Starts a daemon, and waits for its answer to `initialize`.
---@param options? treelined.ClientOptions
---@return treelined.Client|nil
---@return treelined.Error|nil
function M.start_sync(options)
  local done, err, client
  M.start(options, function(...)
    err, client = ...
    done = true
  end)
  vim.wait(2 ^ 31 - 1, function()
    return done
  end, 5)
  return client, err
end

return M
