--- Functions that the tests share: for folders, daemons, a conversation, and a Neovim with a screen.

local treelined = require('treelined')
local root = vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h:h')

local M = { root = root, command = vim.env.TREELINED_BIN or 'treelined' }

--- The longest wait for a condition, in milliseconds. The machine may be busy.
local PATIENCE_MS = 60000

---@param condition fun(): any
---@return any what the result of the condition
function M.wait(condition, what)
  local found
  vim.wait(PATIENCE_MS, function()
    found = condition()
    return found
  end, 5)
  return found or error('timeout while waiting for ' .. (what or 'something'), 2)
end

---@param expected any
function M.equal(found, expected, what)
  if not vim.deep_equal(found, expected) then
    local text = '%sfound %s, not %s'
    local prefix = what and what .. ': ' or ''
    error(text:format(prefix, vim.inspect(found), vim.inspect(expected)), 2)
  end
end

function M.matches(text, pattern)
  if not tostring(text):find(pattern) then
    error(('%q does not match %q'):format(tostring(text), pattern), 2)
  end
end

function M.message(id)
  local role = id:sub(1, 1) == 'u' and 'user' or 'assistant'
  return { role = role, content = { { type = 'text', text = 'says ' .. id } } }
end

--- Makes a session with the messages u1 → a1 → u2 → a2. The leaf is a2.
---@return table session
function M.converse(client, params)
  local made = assert(client:request_sync('create_session', params or { name = 'talk' })).session
  for _, id in ipairs({ 'u1', 'a1', 'u2', 'a2' }) do
    local said = { sessionId = made.sessionId, entryId = id, message = M.message(id) }
    assert(client:request_sync('append_message', said))
  end
  return made
end

--- Makes a session of 5,000 entries: 27 times a branch is left, and the next branch begins beside it.
---@return string id
function M.large_tree(client)
  local id = assert(client:request_sync('create_session', { name = 'large' })).session.sessionId
  local entries, fork = {}, nil
  for round = 0, 28 do
    local above = fork
    for _ = 1, round > 0 and round < 28 and 2 or 1 do
      above = fork
      for _ = 1, round < 28 and 90 or 5000 - #entries do
        local name = (#entries % 2 == 0 and 'u' or 'a') .. #entries
        local entry = { type = 'message', id = name, parentId = above, message = M.message(name) }
        entries[#entries + 1], above = entry, name
      end
    end
    fork = above
  end
  assert(client:request_sync('append_entries', { sessionId = id, entries = entries }))
  return id
end

--- Returns whether a process exists.
function M.is_alive(pid)
  return vim.loop.kill(pid, 0) == 0
end

--- A separate Neovim with this plugin and a screen of 80 × 24 characters.
local Child = {}
Child.__index = Child

function Child:lua(code, ...)
  return vim.rpcrequest(self.channel, 'nvim_exec_lua', code, { ... })
end

function Child:type(keys)
  vim.rpcrequest(self.channel, 'nvim_input', keys)
end

function Child:command(text)
  vim.rpcrequest(self.channel, 'nvim_command', text)
end

--- Returns the options of a client that uses the same daemon as this Neovim, if daemons can be shared here.
function Child:options()
  return { command = M.command, session_dir = self.session_dir, summarizer = 'outline' }
end

--- Returns the lines of the screen, without trailing blanks.
function Child:screen()
  return self:lua([[
    vim.cmd('redraw')
    local lines = {}
    for row = 1, vim.o.lines do
      local cells = {}
      for column = 1, vim.o.columns do
        cells[column] = vim.fn.screenstring(row, column)
      end
      lines[row] = (table.concat(cells):gsub(' +$', ''))
    end
    return lines
  ]])
end

--- Waits until the screen shows a text.
function Child:sees(text)
  local screen
  local ok = pcall(M.wait, function()
    screen = table.concat(self:screen(), '\n')
    return screen:find(text, 1, true) ~= nil
  end)
  if not ok then
    error(('the screen does not show %q:\n%s'):format(text, screen), 2)
  end
end

--- Waits until a Lua expression has the expected value.
function Child:gives(expression, expected)
  local found
  local ok = pcall(M.wait, function()
    found = self:lua('return ' .. expression)
    return vim.deep_equal(found, expected)
  end)
  if not ok then
    local text = '%s gives %s, not %s'
    error(text:format(expression, vim.inspect(found), vim.inspect(expected)), 2)
  end
end

function Child:lines()
  return self:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)')
end

---@return table t
function M.new()
  local ends = {}
  local t = {}

  function t.at_end(callback)
    ends[#ends + 1] = callback
  end

  function t.folder()
    local folder = vim.fn.tempname()
    vim.fn.mkdir(folder, 'p', 448)
    ends[#ends + 1] = function()
      vim.fn.delete(folder, 'rf')
    end
    return folder
  end

  --- Returns the settings for clients of one shared daemon. The daemon ends after the test.
  function t.shared()
    local folder = t.folder()
    local socket = folder .. '/daemon.sock'
    ends[#ends + 1] = function()
      vim.fn.system({ M.command, 'stop', '--socket', socket })
    end
    return {
      command = M.command,
      session_dir = folder .. '/sessions',
      summarizer = 'outline',
      socket = socket,
    }
  end

  --- Starts a client with its own session directory.
  function t.client(options)
    options = options or {}
    if not options.command then
      options.command, options.session_dir = M.command, t.folder()
    end
    local client = assert(treelined.connect_sync(options))
    ends[#ends + 1] = function()
      client:close_sync()
    end
    return client
  end

  --- Makes a fake daemon, which speaks another version or never responds. It is a Python program.
  function t.impostor(answer)
    local path = t.folder() .. '/daemon.py'
    vim.fn.writefile({
      'import json, sys, time',
      'def say(**members): print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)',
      'for line in sys.stdin:',
      '    message = json.loads(line)',
      '    ' .. answer,
    }, path)
    return { command = 'python3', args = { path } }
  end

  function t.child(config)
    local child = setmetatable({ session_dir = t.folder() }, Child)
    local command = { vim.v.progpath, '--embed', '--headless', '-u', root .. '/tests/init.lua' }
    child.channel = vim.fn.jobstart(command, { rpc = true, cwd = root })
    ends[#ends + 1] = function()
      pcall(vim.rpcrequest, child.channel, 'nvim_command', 'qall!')
      vim.fn.jobwait({ child.channel }, PATIENCE_MS)
    end
    child:lua('vim.o.columns, vim.o.lines = 80, 24')
    child:lua(
      [[
        local config = ...
        config.summarizer = config.summarizer ~= vim.NIL and config.summarizer or nil
        vim.g.treelined = config
        notes = {}
        vim.notify = function(text) table.insert(notes, text) end
      ]],
      vim.tbl_extend('keep', config or {}, {
        command = M.command,
        session_dir = child.session_dir,
        summarizer = 'outline',
      })
    )
    return child
  end

  function t.finish()
    for index = #ends, 1, -1 do
      ends[index]()
    end
  end

  return t
end

return M
