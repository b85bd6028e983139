--- The settings from `vim.g.treelined` and `setup`, and their defaults.

local M = {}

---@class treelined.Config
---@field command? string program of the daemon; default $TREELINED_BIN, else `treelined`
---@field args? string[] further arguments of the daemon
---@field session_dir? string session directory; default the daemon's
---@field summarizer? string summarizer, for instance `outline`; default the daemon's configuration
---@field env? table<string, string> added to the daemon's environment
---@field shared? boolean use the daemon that all clients of the session directory share; default false
---@field socket? string the socket of another shared daemon to use
---@field timeout_ms? integer deadline of calls; default 30 s, or 11 min if they wait for people and models
---@field answers? table<string, treelined.Answerer> answerers by name of the event
---@field on_failure? 'cancel'|'proceed' the answer of an answerer that fails; default `cancel`
---@field render? 'unicode'|'ascii' how the tree is drawn
---@field filter? treelined.TreeFilter filter of a new tree
---@field order? treelined.TreeOrder `active-first` puts the active path first
---@field page_size? integer rows per request
---@field header? boolean show name, size and filter above the tree (before Neovim 0.8: in its status line)
---@field default_keys? boolean map keys in the tree and in the prompt
---@field tree_window? string command that makes the tree's window
---@field prompt_insert? boolean open the prompt in insert mode
---@field prompt_window? string command that makes the prompt's window
---@field entry_window? string command that makes the window of entries and summaries
---@field terminal_window? string command that makes the window in which another agent continues
M.defaults = {
  args = {},
  shared = false,
  render = 'unicode',
  filter = 'default',
  order = 'time',
  page_size = 200,
  header = true,
  default_keys = true,
  tree_window = 'edit',
  prompt_insert = true,
  prompt_window = 'belowright 8split',
  entry_window = 'belowright 12split',
  terminal_window = 'botright split',
}

local TYPES = {
  command = 'string',
  args = 'table',
  session_dir = 'string',
  summarizer = 'string',
  env = 'table',
  shared = 'boolean',
  socket = 'string',
  timeout_ms = 'number',
  answers = 'table',
  on_failure = { 'cancel', 'proceed' },
  render = { 'unicode', 'ascii' },
  filter = { 'default', 'no-tools', 'user-only', 'labeled-only', 'all' },
  order = { 'time', 'active-first' },
  page_size = 'number',
  header = 'boolean',
  default_keys = 'boolean',
  tree_window = 'string',
  prompt_insert = 'boolean',
  prompt_window = 'string',
  entry_window = 'string',
  terminal_window = 'string',
}

M.filters = TYPES.filter

---@type treelined.Config
local given = {}

--- Returns the problems of a configuration, one on each line.
---@param config any
---@return string[]
function M.problems(config)
  if type(config) ~= 'table' then
    return { 'the configuration is a ' .. type(config) .. ', not a table' }
  end
  local problems = {}
  local names = vim.tbl_keys(config)
  table.sort(names, function(a, b)
    return tostring(a) < tostring(b)
  end)
  for _, name in ipairs(names) do
    local expected, value = TYPES[name], config[name]
    if expected == nil then
      problems[#problems + 1] = ('there is no setting `%s`'):format(name)
    elseif type(expected) == 'table' then
      if not vim.tbl_contains(expected, value) then
        local list = table.concat(expected, ', ')
        problems[#problems + 1] = ('`%s` is one of %s'):format(name, list)
      end
    elseif type(value) ~= expected then
      problems[#problems + 1] = ('`%s` is a %s, not a %s'):format(name, expected, type(value))
    end
  end
  return problems
end

local function from_global()
  local global = vim.g.treelined
  if type(global) == 'function' then
    global = global()
  end
  return global == nil and {} or global
end

--- Stores the argument of `require('treelined').setup`.
---@param config treelined.Config
function M.set(config)
  given = config
end

--- Returns the user's settings without checking them.
---@return any
function M.given()
  local global = from_global()
  if type(global) ~= 'table' or type(given) ~= 'table' then
    return type(global) ~= 'table' and global or given
  end
  return vim.tbl_extend('force', global, given)
end

--- Returns the settings with defaults; throws if one is invalid.
---@return treelined.Config
function M.get()
  local config = M.given()
  local problems = M.problems(config)
  if #problems > 0 then
    error('treelined: ' .. table.concat(problems, '; '), 0)
  end
  return vim.tbl_extend('force', M.defaults, config)
end

return M
