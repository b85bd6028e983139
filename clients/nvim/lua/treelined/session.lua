--- The sessions of this Neovim, and the one daemon that has them open.
---
--- This module keeps the leaf of each session, and calls listeners after changes. A session that is not open any more
--- is kept, so that its tree and its draft continue when it is opened again.

local Client = require('treelined.client')
local config = require('treelined.config')
local errors = require('treelined.errors')
local log = require('treelined.log')
local person = require('treelined.person')
local when = require('treelined.when')

local M = {}

---@class treelined.OpenSession
---@field id string
---@field path? string file of the session; nil if it is ephemeral
---@field name? string
---@field cwd string
---@field created? string
---@field first_message string empty if there is no message
---@field read_only boolean
---@field leaf_id? string nil: the position before the first entry
---@field others_leaf_id? string the file's leaf, if other programs have moved it elsewhere; the newest entries, if the
--- file opens beside them
---@field newer_turns? integer user messages there, if the file opens beside them
---@field over? treelined.Error why it is not open any more
---@field navigation_id? string the running navigation, if this Neovim started it
---@field compaction? integer the id of the call that compacts the session
---@field private client treelined.Client
---@field private listeners table[]
local Session = {}
Session.__index = Session

---@type table<string, treelined.OpenSession>
local sessions = {}

---@type treelined.Client|nil
local client = nil

---@type fun(err: treelined.Error|nil, client: treelined.Client|nil)[]|nil
local waiting = nil

--- Events of a session: `changed` (the tree), `renamed`, `summary_delta`, `over`, `reopened`.
---@alias treelined.SessionEvent 'changed'|'renamed'|'summary_delta'|'over'|'reopened'

--- The number of columns to which a first message is cut if it is the title.
local TITLE = 40

function Session:emit(event, params)
  for _, entry in ipairs({ unpack(self.listeners) }) do
    entry[1](event, params)
  end
end

--- Calls a listener with the events of the session.
---@param listener fun(event: treelined.SessionEvent, params: table)
---@return fun() stop
function Session:listen(listener)
  local entry = { listener }
  table.insert(self.listeners, entry)
  return function()
    self.listeners = vim.tbl_filter(function(other)
      return other ~= entry
    end, self.listeners)
  end
end

--- Calls a method on this session.
---@param method string
---@param params? table
---@param callback? treelined.Callback
---@param options? treelined.CallOptions
---@return integer|nil id for `cancel`; nil if the session is not open
function Session:request(method, params, callback, options)
  params = vim.tbl_extend('force', params or {}, { sessionId = self.id })
  if self.over then
    vim.schedule(function()
      if callback then
        callback(self.over, nil)
      end
    end)
    return
  end
  return self.client:request(method, params, callback, options)
end

--- Cancels a call of this session.
---@param id integer
function Session:cancel(id)
  self.client:cancel(id)
end

--- Calls a method on this session and waits for the response.
---@param method string
---@param params? table
---@param options? treelined.CallOptions
---@return any result nil if it failed
---@return treelined.Error|nil
function Session:request_sync(method, params, options)
  if self.over then
    return nil, self.over
  end
  params = vim.tbl_extend('force', params or {}, { sessionId = self.id })
  return self.client:request_sync(method, params, options)
end

--- Returns the name of the summarizer; nil if none is configured.
---@return string|nil
function Session:summarizer()
  return self.client.server and self.client.server.capabilities.summarizer
end

--- Returns the session's title: its name, or its first message, or the time of its creation.
---@return string
function Session:title()
  if self.name and self.name ~= '' then
    return self.name
  elseif self.first_message ~= '' then
    local cut = vim.fn.strcharpart(self.first_message, 0, TITLE)
    return cut == self.first_message and cut or cut .. '…'
  end
  return self.created and when.text(self.created) or self.id
end

local function close(session, why)
  session.over = why
  session.navigation_id, session.compaction = nil, nil
  session:emit('over', { reason = why })
end

local on = {}

function on.session_tree(session, params)
  session.leaf_id, session.others_leaf_id, session.newer_turns = params.newLeafId, nil, nil
  session:emit('changed', params)
end

function on.entries_appended(session, params)
  session.leaf_id = params.leafId
  -- An append of another program moves only the leaf of the file, not the leaf of this Neovim.
  local is_elsewhere = params.origin == 'other' and params.fileLeafId ~= params.leafId
  session.others_leaf_id = is_elsewhere and params.fileLeafId or nil
  session.newer_turns = nil
  session.first_message = params.firstMessage or session.first_message
  session:emit('changed', params)
end

function on.session_compact(session, params)
  session:emit('changed', params)
end

on.branches_changed = on.session_compact
on.session_reordered = on.session_compact

-- The lost notifications may have been about any change.
on.events_lost = on.session_compact

function on.session_info_changed(session, params)
  session.name = params.name
  session:emit('renamed', params)
end

function on.summary_delta(session, params)
  session:emit('summary_delta', params)
end

function on.session_closed(session)
  close(session, errors.new('sessionNotFound', 'the session was closed'))
end

local function hear(params, name)
  local session = sessions[params.sessionId]
  if session and not session.over and on[name] then
    on[name](session, params)
  end
end

local function gone(ended)
  return function(why)
    if client == ended.client then
      client = nil
    end
    for _, session in pairs(sessions) do
      if not session.over and session.client == ended.client then
        close(session, why)
      end
    end
  end
end

--- Returns the client for the sessions. Starts the daemon if it does not run.
---@param callback fun(err: treelined.Error|nil, client: treelined.Client|nil)
function M.connect(callback)
  if client and not client.over then
    return callback(nil, client)
  elseif waiting then
    waiting[#waiting + 1] = callback
    return
  end
  local settings = config.get()
  waiting = { callback }
  local holder = {}
  Client.start({
    command = settings.command,
    args = settings.args,
    session_dir = settings.session_dir,
    summarizer = settings.summarizer,
    env = settings.env,
    timeout_ms = settings.timeout_ms,
    shared = settings.shared,
    socket = settings.socket,
    on_failure = settings.on_failure,
    answers = vim.tbl_extend('keep', settings.answers or {}, { user_asked = person.answer }),
    on_arrival = person.hear,
    on_log = log.add,
    summary_deltas = true,
    on_end = gone(holder),
  }, function(err, started)
    local callbacks = waiting or {}
    waiting = nil
    if started and started.ended then
      err, started = started.over, nil
    end
    holder.client = started
    client = started
    if started then
      started:on('*', hear)
      started:on('user_notified', person.notify)
    end
    for _, each in ipairs(callbacks) do
      each(err, started)
    end
  end)
end

--- Returns the client for the sessions, or nil if its daemon does not run.
---@return treelined.Client|nil
function M.client()
  return client
end

--- Registers a session that the client has opened, such as a fork.
---@param owner treelined.Client
---@param info treelined.Session
---@return treelined.OpenSession
function M.adopt(owner, info)
  local session = sessions[info.sessionId]
  if not session then
    session = setmetatable({ id = info.sessionId, listeners = {} }, Session)
    sessions[session.id] = session
  end
  local was_over = session.over
  session.client, session.over = owner, nil
  session.path, session.name, session.cwd = info.path, info.name, info.cwd
  session.leaf_id, session.read_only = info.leafId, info.readOnly
  session.created, session.first_message = info.created, info.firstMessage
  if was_over then
    session.others_leaf_id, session.newer_turns = nil, nil
    session:emit('reopened', {})
  end
  return session
end

--- If the file opens beside its newest entries, keeps their tip and their number of turns.
local function note_beside(session, diagnostics)
  for _, found in ipairs(diagnostics or {}) do
    if found.kind == 'leafBesideNewest' then
      session.others_leaf_id, session.newer_turns = found.newestTipId, found.newerTurns
    end
  end
end

local function enter(method, params, callback)
  M.connect(function(err, owner)
    if not owner then
      return callback(err, nil)
    end
    owner:request(method, params, function(failure, result)
      if not result then
        return callback(failure, nil)
      end
      local session = M.adopt(owner, result.session)
      note_beside(session, result.diagnostics)
      callback(nil, session)
    end)
  end)
end

--- The fewest characters of the beginning of an id, and the number of rows in a page of the list.
local FEWEST, PAGE = 4, 1000

--- Finds the session whose id begins with a text.
---@param beginning string
---@param missing treelined.Error the error if there is none
---@param callback fun(err: treelined.Error|nil, row: table|nil)
local function find_by_beginning(beginning, missing, callback)
  local found = {}
  local function read(cursor)
    client:list_sessions({ limit = PAGE, cursor = cursor }, function(err, result)
      if err then
        return callback(err, nil)
      end
      for _, row in ipairs(result.sessions) do
        if vim.startswith(row.sessionId, beginning) then
          found[#found + 1] = row
        end
      end
      if #found > 1 then
        local text = 'several sessions begin with "%s", such as %s and %s; type more of the id'
        local why = text:format(beginning, found[1].sessionId, found[2].sessionId)
        callback(errors.new('sessionAmbiguous', why), nil)
      elseif result.nextCursor then
        read(result.nextCursor)
      else
        callback(not found[1] and missing or nil, found[1])
      end
    end)
  end
  read(nil)
end

--- Opens a session by its id, by the beginning of its id (4 characters or more), or by the path of its file.
---@param what string
---@param callback fun(err: treelined.Error|nil, session: treelined.OpenSession|nil)
function M.open(what, callback)
  local is_path = what:find('[/\\]') ~= nil or vim.fn.filereadable(what) == 1
  -- `expand()` is not used: it would run text between backticks in the name of a file.
  local params = is_path and { path = vim.fn.fnamemodify(what, ':p') } or { sessionId = what }
  enter('open_session', params, function(err, session)
    if is_path or not err or err.kind ~= 'sessionNotFound' or #what < FEWEST or not M.client() then
      return callback(err, session)
    end
    find_by_beginning(what, err, function(failure, row)
      if not row then
        return callback(failure, nil)
      end
      enter('open_session', { path = row.path }, callback)
    end)
  end)
end

--- Opens a session again that was closed, or whose daemon has ended.
---@param id string
---@param callback fun(err: treelined.Error|nil, session: treelined.OpenSession|nil)
function M.reopen(id, callback)
  local session = sessions[id]
  if session and not session.over then
    return callback(nil, session)
  end
  M.open(session and session.path or id, callback)
end

--- Creates a session for the working directory.
---@param name? string
---@param callback fun(err: treelined.Error|nil, session: treelined.OpenSession|nil)
function M.create(name, callback)
  enter('create_session', { name = name, cwd = vim.fn.getcwd() }, callback)
end

--- Returns the open session with this id.
---@param id string
---@return treelined.OpenSession|nil
function M.get(id)
  local session = sessions[id]
  return session and not session.over and session or nil
end

--- Returns the session with this id, even if it is not open any more.
---@param id string
---@return treelined.OpenSession|nil
function M.known(id)
  return sessions[id]
end

--- Ends the daemon, which closes all sessions. The daemon first writes all accepted entries.
function M.stop()
  if client then
    client:close()
  end
end

--- Ends the daemon like `stop` when Neovim ends: waits only until the daemon has received all messages.
function M.leave()
  if client then
    client:close_and_flush()
  end
end

return M
