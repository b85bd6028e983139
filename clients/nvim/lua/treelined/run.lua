--- Runs the commands that other clients offer.

local advice = require('treelined.advice')
local session_module = require('treelined.session')
local utf8 = require('treelined.utf8')

local M = {}

--- How long completion waits for the list of commands, in milliseconds.
local COMPLETION_MS = 500

--- Returns the session of the tree or prompt in the current window.
---@return treelined.OpenSession|nil
local function current_session()
  local tree = require('treelined.tree').get()
  return tree and tree.session or require('treelined.prompt').session_of()
end

local function show(session, result)
  if result.output and result.output ~= '' then
    vim.notify(table.concat(utf8.lines(result.output), '\n'))
  end
  if result.prompt and session then
    require('treelined.prompt').put(session, result.prompt)
  elseif result.prompt then
    vim.notify(table.concat(utf8.lines(result.prompt), '\n'))
  end
end

--- Runs a command for the session of the current window, and shows its output. If the result has a prompt, it is put
--- into the prompt of this session.
---@param name string
---@param args? string
---@param callback? fun(err: treelined.Error|nil, result: treelined.RunCommandResult|nil)
function M.run(name, args, callback)
  local session = current_session()
  local params = { name = name, args = args, sessionId = session and session.id }
  session_module.connect(function(err, client)
    local function done(failure, result)
      if result then
        show(session, result)
      else
        local said = failure.kind == 'commandFailed' and failure.details.message
        local text = said and ('%s: %s'):format(name, said) or advice.text(failure)
        vim.notify('treelined: ' .. text, vim.log.levels.ERROR)
      end
      if callback then
        callback(failure, result)
      end
    end
    if client then
      client:run_command(params, done)
    else
      done(err, nil)
    end
  end)
end

local function describe(command)
  local hint = command.argumentHint and ' ' .. command.argumentHint or ''
  local what = command.description and ' · ' .. command.description or ''
  return utf8.line(('%s%s%s (%s)'):format(command.name, hint, what, command.by))
end

--- Lets the user choose a command and type its argument.
function M.pick()
  session_module.connect(function(err, client)
    if not client then
      return advice.report(err)
    end
    client:list_commands({}, function(failure, result)
      if failure then
        return advice.report(failure)
      elseif #result.commands == 0 then
        return vim.notify('treelined: no client offers commands')
      end
      local options = { prompt = 'Run:', kind = 'treelined.run', format_item = describe }
      vim.ui.select(result.commands, options, function(command)
        if not command then
          return
        elseif not command.argumentHint then
          return M.run(command.name)
        end
        local prompt = ('%s %s: '):format(command.name, utf8.line(command.argumentHint))
        require('treelined.ask').input({ prompt = prompt }, function(args)
          M.run(command.name, args)
        end)
      end)
    end)
  end)
end

--- Returns the names of commands that begin with `lead`.
---@param lead string
---@return string[]
function M.complete(lead)
  local client = session_module.client()
  local list = client and client:request_sync('list_commands', {}, { timeout_ms = COMPLETION_MS })
  local names = {}
  for _, command in ipairs(list and list.commands or {}) do
    if vim.startswith(command.name, lead) then
      names[#names + 1] = command.name
    end
  end
  return names
end

return M
