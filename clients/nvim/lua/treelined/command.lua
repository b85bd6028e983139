--- The command `:Treelined`, its subcommands and their completion.

local config = require('treelined.config')

local M = {}

local function actions()
  return require('treelined.actions')
end

--- How long completion waits for a list of sessions, in milliseconds.
local COMPLETION_MS = 500

local function complete_session(lead)
  local client = require('treelined').client()
  local found = {}
  local list = client
    and client:request_sync('list_sessions', { limit = 100 }, { timeout_ms = COMPLETION_MS })
  for _, row in ipairs(list and list.sessions or {}) do
    if vim.startswith(row.sessionId, lead) then
      found[#found + 1] = row.sessionId
    end
  end
  return vim.list_extend(found, vim.fn.getcompletion(lead, 'file'))
end

local function complete_filter(lead)
  return vim.tbl_filter(function(filter)
    return vim.startswith(filter, lead)
  end, config.filters)
end

local function complete_import(lead)
  local tools = vim.tbl_filter(function(tool)
    return vim.startswith(tool, lead)
  end, require('treelined.import').tools)
  return vim.list_extend(tools, vim.fn.getcompletion(lead, 'file'))
end

local function complete_continue(lead)
  return vim.tbl_filter(function(tool)
    return vim.startswith(tool, lead)
  end, require('treelined.continuation').tools)
end

--- Completes the last word of a query.
local function complete_search(query)
  return require('treelined.search').complete(query:match('%S*$'), query)
end

--- Returns a function that searches all sessions in this mode.
local function on_all(mode)
  return function(query)
    require('treelined').search(query, nil, { mode = mode })
  end
end

local function on_tree(name)
  return function(argument, lines)
    actions().run(name, argument, lines)
  end
end

---@class treelined.Subcommand
---@field run fun(argument: string|nil, lines: {[1]: integer, [2]: integer}|nil)
---@field complete? fun(lead: string): string[]

---@type table<string, treelined.Subcommand>
M.subcommands = {
  open = {
    run = function(what)
      if what then
        require('treelined').open(what)
      else
        require('treelined').pick()
      end
    end,
    complete = complete_session,
  },
  new = {
    run = function(name)
      require('treelined').new(name)
    end,
  },
  navigate = { run = on_tree('navigate') },
  pop = { run = on_tree('pop') },
  merge = { run = on_tree('merge') },
  copy = { run = on_tree('copy') },
  compare = { run = on_tree('compare') },
  compact = { run = on_tree('compact') },
  fork = { run = on_tree('fork') },
  continue = { run = on_tree('continue'), complete = complete_continue },
  branches = { run = on_tree('branches') },
  ['name-branch'] = { run = on_tree('name_branch') },
  archive = { run = on_tree('archive') },
  archived = { run = on_tree('archived') },
  tags = { run = on_tree('tags') },
  pin = { run = on_tree('pin') },
  ['archive-session'] = { run = on_tree('archive_session') },
  family = { run = on_tree('family') },
  candidates = { run = on_tree('candidates') },
  aside = { run = on_tree('aside') },
  ['keep-aside'] = { run = on_tree('keep_aside') },
  delete = { run = on_tree('delete') },
  export = {
    run = on_tree('export'),
    complete = function(lead)
      return vim.fn.getcompletion(lead, 'file')
    end,
  },
  list = {
    run = function()
      require('treelined').list()
    end,
  },
  import = {
    run = function(argument)
      require('treelined').import(argument)
    end,
    complete = complete_import,
  },
  restore = {
    run = function()
      require('treelined').restore()
    end,
  },
  log = {
    run = function()
      require('treelined.log').show()
    end,
  },
  undo = { run = on_tree('undo') },
  redo = { run = on_tree('redo') },
  abort = { run = on_tree('abort') },
  label = { run = on_tree('label') },
  filter = {
    run = function(filter)
      if filter and not vim.tbl_contains(config.filters, filter) then
        local list = table.concat(config.filters, ', ')
        error(('there is no filter "%s"; the filters are %s'):format(filter, list), 0)
      end
      actions().run('filter', filter)
    end,
    complete = complete_filter,
  },
  query = { run = on_tree('query') },
  find = { run = on_tree('search') },
  search = { run = on_all('ask'), complete = complete_search },
  words = { run = on_all('words'), complete = complete_search },
  literal = { run = on_all('literal') },
  entry = { run = on_tree('entry') },
  leaf = { run = on_tree('leaf') },
  join = { run = on_tree('join') },
  prompt = { run = on_tree('prompt') },
  refresh = { run = on_tree('refresh') },
  run = {
    run = function(what)
      if not what then
        return require('treelined.run').pick()
      end
      local name, args = what:match('^(%S+)%s*(.*)$')
      require('treelined.run').run(name, args)
    end,
    complete = function(lead)
      return require('treelined.run').complete(lead)
    end,
  },
  send = {
    run = function()
      require('treelined.prompt').send()
    end,
  },
  name = {
    run = function(name)
      local tree = require('treelined.tree').get()
      local session = tree and tree.session or require('treelined.prompt').session_of()
      if not session then
        error('this buffer is neither a tree nor a prompt', 0)
      end
      session:request('set_session_name', { name = name or '' }, function(err)
        if err then
          require('treelined.advice').report(err)
        end
      end)
    end,
  },
  stop = {
    run = function()
      require('treelined.session').stop()
    end,
  },
}

--- Runs `:Treelined ARGUMENTS`.
---@param arguments string
---@param lines? {[1]: integer, [2]: integer} the lines before the command
function M.run(arguments, lines)
  local name, rest = vim.trim(arguments):match('^(%S*)%s*(.*)$')
  local subcommand = M.subcommands[name == '' and 'open' or name]
  if not subcommand then
    return vim.notify(('treelined: there is no `%s`'):format(name), vim.log.levels.ERROR)
  end
  local ok, why = pcall(subcommand.run, rest ~= '' and rest or nil, lines)
  if not ok then
    why = tostring(why)
    why = vim.startswith(why, 'treelined: ') and why or 'treelined: ' .. why
    vim.notify(why, vim.log.levels.ERROR)
  end
end

--- Completes `:Treelined`.
---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local name, rest = line:match('^%s*%S+%s+(%S+)%s+(.*)$')
  if name then
    local subcommand = M.subcommands[name]
    return subcommand and subcommand.complete and subcommand.complete(rest) or {}
  end
  local names = vim.tbl_filter(function(each)
    return vim.startswith(each, lead)
  end, vim.tbl_keys(M.subcommands))
  table.sort(names)
  return names
end

return M
