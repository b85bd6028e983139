--- Imports the conversations of other tools. Their files do not change.

local advice = require('treelined.advice')
local sessions = require('treelined.session')

local M = {}

local TOOLS = { 'claude-code', 'codex', 'opencode', 'gemini', 'goose', 'pi' }
M.tools = TOOLS

local function say(text, level)
  vim.notify('treelined: ' .. text, level or vim.log.levels.INFO)
end

local function counted(count, one, many)
  return count == 1 and '1 ' .. one or ('%d %s'):format(count, many)
end

--- Returns the number of conversations by tool, such as `3 of codex, 1 of pi`.
local function by_tool(rows)
  local counts, parts = {}, {}
  for _, row in ipairs(rows) do
    counts[row.tool] = (counts[row.tool] or 0) + 1
  end
  local tools = vim.tbl_keys(counts)
  table.sort(tools)
  for _, tool in ipairs(tools) do
    parts[#parts + 1] = ('%d of %s'):format(counts[tool], tool)
  end
  return table.concat(parts, ', ')
end

--- Reports why files could not be imported.
local function say_failures(files)
  local failed = vim.tbl_filter(function(file)
    return file.error ~= nil
  end, files)
  if #failed > 0 then
    local first = failed[1]
    local text = '%s could not be imported, such as %s: %s'
    say(
      text:format(counted(#failed, 'file', 'files'), first.path, first.error.message),
      vim.log.levels.WARN
    )
  end
end

--- Returns the params of an import: a tool, or paths.
local function params_of(argument)
  if not argument then
    return {}
  elseif vim.tbl_contains(TOOLS, argument) then
    return { from = argument }
  end
  return { paths = { vim.fn.fnamemodify(argument, ':p') } }
end

local function run(client, params, callback)
  say('importing…')
  client:import_sessions(params, function(err, result)
    if err then
      return advice.report(err)
    end
    local new = result.totals.created
    local text = '%s imported, %s added'
    say(
      text:format(
        counted(new, 'session', 'sessions'),
        counted(result.totals.entriesAdded, 'entry', 'entries')
      )
    )
    if result.totals.held > 0 then
      local held = counted(result.totals.held, 'entry', 'entries')
      say(held .. ' may still grow: what the tool writes next brings them, or a later import')
    end
    say_failures(result.files)
    callback()
  end)
end

--- Shows what an import would add, asks the user, and runs the import.
---@param argument? string a tool, or the path of a file or a folder; all places of all tools if left out
---@param callback fun() called when something was imported
function M.import(argument, callback)
  sessions.connect(function(err, client)
    if not client then
      return advice.report(err)
    end
    local params = params_of(argument)
    local dry_run = vim.tbl_extend('force', params, { dryRun = true })
    client:import_sessions(dry_run, function(failure, found)
      if failure then
        return advice.report(failure)
      end
      local rows = vim.tbl_filter(function(row)
        return row.entriesAdded > 0
      end, found.sessions)
      if #rows == 0 then
        say(#found.sessions == 0 and 'no conversations were found' or 'there is nothing new')
        return say_failures(found.files)
      end
      local text = ('Import %s: %s?'):format(
        counted(#rows, 'conversation', 'conversations'),
        by_tool(rows)
      )
      local options = { prompt = text, kind = 'treelined.confirm' }
      vim.ui.select({ 'Import', 'Do not import' }, options, function(chosen)
        if chosen == 'Import' then
          run(client, params, callback)
        end
      end)
    end)
  end)
end

return M
