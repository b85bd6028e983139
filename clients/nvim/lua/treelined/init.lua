--- treelined for Neovim: conversations of AI agents as trees.
---
--- No setup is needed. `:Treelined` opens a session; `:help treelined` describes everything.

local M = {}

--- Sets the configuration, like `vim.g.treelined`. Optional.
---@param config? treelined.Config
function M.setup(config)
  require('treelined.config').set(config or {})
end

local function report(err)
  require('treelined.advice').report(err)
end

local function shower(callback)
  return function(err, session)
    if not session then
      report(err)
      if callback then
        callback(err, nil)
      end
      return
    end
    require('treelined.tree').show(session, callback and function(tree)
      callback(nil, tree)
    end)
  end
end

--- Opens a session and shows its tree.
---@param what string id of the session, the beginning of it (4 characters or more), or path of its file
---@param callback? fun(err: treelined.Error|nil, tree: treelined.Tree|nil) called when it is drawn
function M.open(what, callback)
  require('treelined.session').open(what, shower(callback))
end

--- Creates a session for the working directory and shows its tree.
---@param name? string
---@param callback? fun(err: treelined.Error|nil, tree: treelined.Tree|nil) called when it is drawn
function M.new(name, callback)
  require('treelined.session').create(name, shower(callback))
end

--- Lets the user choose a recent session, and opens it.
function M.pick()
  require('treelined.session').connect(function(err, client)
    if not client then
      return report(err)
    end
    client:list_sessions({ sort = 'recent', limit = 200 }, function(failure, result)
      if failure then
        return report(failure)
      elseif #result.sessions == 0 then
        return vim.notify('treelined: there are no sessions yet; `:Treelined new` makes one')
      end
      local describe = require('treelined.row').describe
      local options = { prompt = 'Session:', kind = 'treelined.session', format_item = describe }
      vim.ui.select(result.sessions, options, function(row)
        if row then
          M.open(row.path)
        end
      end)
    end)
  end)
end

--- Shows the list of all sessions. The list follows changes.
---@param callback? fun() called when it is drawn
function M.list(callback)
  require('treelined.list').show(callback)
end

--- Imports the conversations of other tools after a question to the user, and shows the list of sessions.
---@param argument? string a tool, or the path of a file or a folder; all places of all tools if left out
function M.import(argument)
  require('treelined.import').import(argument, M.list)
end

--- Lets the user choose a deleted session, restores it and opens it.
function M.restore()
  require('treelined.trash').restore(M.open)
end

--- Returns a text for the status line: the title of a session, its number of rows, and what it is doing. Returns ''
--- until a tree was shown.
---@param is_escaped? boolean doubles percent signs, for places that interpret them, such as the plugin lualine
---@return string
function M.status(is_escaped)
  if not package.loaded['treelined.tree'] then
    return ''
  end
  local text = require('treelined.utf8').line(require('treelined.header').status())
  return is_escaped and (text:gsub('%%', '%%%%')) or text
end

--- Searches the text of all sessions, and lists the hits in the quickfix window. Choosing a hit opens its tree at the
--- entry.
---@param query? string a question, or a regular expression between slashes; asks for it if left out
---@param callback? fun(err: treelined.Error|nil, result: treelined.SearchResult|nil) called when they are listed
---@param options? treelined.SearchOptions
function M.search(query, callback, options)
  local search = require('treelined.search')
  local mode = options and options.mode or 'ask'
  -- A search for the exact words uses the last question by default.
  query = query or (mode ~= 'ask' and search.last() or nil)
  if query then
    return search.search(query, callback, options)
  end
  local complete = "customlist,v:lua.require'treelined.search'.complete"
  require('treelined.ask').input({
    prompt = 'Search all sessions: ',
    completion = mode ~= 'literal' and complete or nil,
  }, function(given)
    if vim.trim(given) ~= '' then
      M.search(given, callback, options)
    end
  end)
end

--- Runs a command that another client offers, for the session of the current window, and shows the output.
---@param name string
---@param args? string
---@param callback? fun(err: treelined.Error|nil, result: treelined.RunCommandResult|nil)
function M.run(name, args, callback)
  require('treelined.run').run(name, args, callback)
end

--- Starts a daemon in addition to the one that has the sessions of Neovim's trees open.
---@param options? treelined.ClientOptions
---@param callback fun(err: treelined.Error|nil, client: treelined.Client|nil)
function M.connect(options, callback)
  require('treelined.client').start(options, callback)
end

--- Like `connect`, but waits for the result.
---@param options? treelined.ClientOptions
---@return treelined.Client|nil
---@return treelined.Error|nil
function M.connect_sync(options)
  return require('treelined.client').start_sync(options)
end

--- Returns the client that has the sessions of the trees open, if its daemon runs.
---@return treelined.Client|nil
function M.client()
  return require('treelined.session').client()
end

return M
