--- Continues a conversation in another agent. Asks for the agent, says what it does not get, and runs `treelined
--- continue` in a terminal, which makes the new session and starts the agent. protocol.md §3.18.

local advice = require('treelined.advice')
local config = require('treelined.config')
local process = require('treelined.process')
local utf8 = require('treelined.utf8')
local windows = require('treelined.windows')

local M = {}

--- The agents and their names. schema/agents.tsv has the list for all clients.
M.agents = {
  { 'claude-code', 'Claude Code' },
  { 'codex', 'Codex' },
  { 'opencode', 'opencode' },
  { 'gemini', 'Gemini CLI' },
  { 'goose', 'goose' },
  { 'pi', 'pi' },
  { 'text', 'any other agent, as a text' },
}

--- The agents by their names in the protocol.
M.tools = vim.tbl_map(function(agent)
  return agent[1]
end, M.agents)

local GO, LEARNED, COPY =
  'Go on', 'Go on with a summary of the branch that is left', 'Copy the command'

--- The choices for a conversation that is too large. Each has a text, the params and options for this choice, and the
--- params that only ask for its size, for which no summary is written.
local SHORTER = {
  { 'Only the last 20 turns', { last = 20 }, { '--last', '20' } },
  { 'Earlier turns as a summary', { compact = true }, { '--compact' }, { limit = 0 } },
  { 'All of it', { limit = 0 }, { '--limit', '0' } },
}

---@class treelined.Continuation
---@field session treelined.OpenSession
---@field node treelined.TreeNode the last entry that is handed over
---@field tool string
---@field shorter? table the chosen row of SHORTER

local function say(text, level)
  vim.notify('treelined: ' .. text, level or vim.log.levels.INFO)
end

local function name_of(tool)
  for _, agent in ipairs(M.agents) do
    if agent[1] == tool then
      return agent[2]
    end
  end
end

local function count(number, one)
  return number == 1 and '1 ' .. one or ('%d %ss'):format(number, one)
end

--- Returns on one line what the other agent gets and what is lost.
local function describe(result)
  local parts = {
    ('%s, about %s'):format(count(result.messages, 'message'), count(result.tokens, 'token')),
  }
  for _, loss in ipairs(result.losses) do
    parts[#parts + 1] = 'lost: ' .. loss.text
  end
  for _, program in ipairs(result.missing or {}) do
    parts[#parts + 1] = program .. ' is not installed here'
  end
  return utf8.line(table.concat(parts, '; '))
end

--- Returns the program and its arguments. The options of the daemon are among them, so that the program uses the same
--- session directory and summarizer.
---@param to treelined.Continuation
---@param learned boolean
---@return string[]
local function command(to, learned)
  local settings = config.get()
  local argv = { settings.command or process.default_command() }
  if settings.session_dir then
    vim.list_extend(argv, { '--session-dir', settings.session_dir })
  end
  if settings.summarizer then
    vim.list_extend(argv, { '--summarizer', settings.summarizer })
  end
  vim.list_extend(argv, settings.args)
  vim.list_extend(argv, { 'continue', '--in', to.tool })
  vim.list_extend(argv, learned and { '--learned' } or {})
  vim.list_extend(argv, to.shorter and to.shorter[3] or {})
  return vim.list_extend(argv, { '--', to.session.path, to.node.id })
end

--- Runs a command in a terminal in a new window.
local function run_in_terminal(to, argv)
  vim.cmd(config.get().terminal_window)
  vim.cmd('enew')
  local options = {
    env = config.get().env,
    on_exit = function(_, status)
      if status == 0 then
        say(('`:Treelined import %s` brings what was said there into the tree'):format(to.tool))
      end
    end,
  }
  if vim.fn.has('nvim-0.11') == 1 then
    vim.fn.jobstart(argv, vim.tbl_extend('force', options, { term = true }))
  else
    vim.fn.termopen(argv, options)
  end
  vim.cmd('startinsert')
end

--- Returns the command if it can be shown to a person and pasted into a terminal. Otherwise reports why not: a shell
--- would run the text before a line break in a path or an id as a separate command.
local function readable(argv)
  for _, word in ipairs(argv) do
    if utf8.line(word) ~= word then
      return say('a path or an id has a control character', vim.log.levels.ERROR)
    end
  end
  return argv
end

local function shell_line(argv)
  return table.concat(vim.tbl_map(vim.fn.shellescape, argv), ' ')
end

local function show_text(text)
  local buf = windows.scratch('treelined://handoff')
  vim.bo[buf].filetype = 'markdown'
  windows.fill(buf, utf8.lines(text))
  windows.split_to(buf)
  vim.fn.setreg('"', text)
  say('this is in the register "; give it to the agent as its first message')
end

--- Asks the daemon what the other agent would get. Nothing is written.
---@param to treelined.Continuation
---@param callback fun(result: table)
local function preview(to, callback)
  local row = to.shorter or {}
  local params = { entryId = to.node.id, tool = to.tool, dryRun = true }
  params = vim.tbl_extend('force', params, row[4] or row[2] or {})
  to.session:request('continue_session', params, function(err, result)
    if not err then
      return callback(result)
    elseif err.kind ~= 'contextTooLarge' then
      return advice.report(err)
    end
    local options = {
      prompt = utf8.line(err.message) .. '. Hand over:',
      kind = 'treelined.shorter',
      format_item = function(choice)
        return choice[1]
      end,
    }
    vim.ui.select(SHORTER, options, function(choice)
      if choice then
        to.shorter = choice
        preview(to, callback)
      end
    end)
  end)
end

--- Asks the daemon for the text for any other agent, or whether a summary can be written, and calls the callback with
--- the result.
---@param to treelined.Continuation
---@param learned boolean
---@param callback fun(result: table)
local function ask(to, learned, callback)
  local params = { entryId = to.node.id, tool = to.tool, learned = learned, dryRun = true }
  params = vim.tbl_extend('force', params, to.shorter and to.shorter[2] or {})
  to.session:request('continue_session', params, function(err, result)
    if err then
      return advice.report(err)
    end
    callback(result)
  end)
end

--- Shows what is lost, lets the person choose, and acts on the choice.
---@param to treelined.Continuation
---@param result table
local function confirm(to, result)
  local choices = { GO }
  if not to.node.isLeaf then
    choices[#choices + 1] = LEARNED
  end
  if to.tool ~= 'text' then
    choices[#choices + 1] = COPY
  end
  local text = ('%s. In %s:'):format(describe(result), name_of(to.tool))
  vim.ui.select(choices, { prompt = text, kind = 'treelined.continue' }, function(chosen)
    if not chosen then
      return
    elseif to.tool == 'text' then
      return ask(to, chosen == LEARNED, function(handed)
        show_text(handed.text)
      end)
    end
    local argv = readable(command(to, chosen == LEARNED))
    if not argv then
      return
    elseif chosen == COPY then
      vim.fn.setreg('"', shell_line(argv))
      return say('the command is in the register "; nothing is written before it runs')
    elseif chosen == GO or to.session:summarizer() then
      return run_in_terminal(to, argv)
    end
    -- If no summary can be written, the error is shown here instead of in the terminal. A summary may already exist.
    ask(to, true, function()
      run_in_terminal(to, argv)
    end)
  end)
end

--- Continues the conversation up to an entry in another agent.
---@param session treelined.OpenSession
---@param node treelined.TreeNode
---@param tool? string asks for it if left out
function M.start(session, node, tool)
  if not tool then
    local options = { prompt = 'Go on in:', kind = 'treelined.tool', format_item = name_of }
    return vim.ui.select(M.tools, options, function(chosen)
      if chosen then
        M.start(session, node, chosen)
      end
    end)
  elseif not vim.tbl_contains(M.tools, tool) then
    local list = table.concat(M.tools, ', ')
    return say(('there is no agent "%s"; use %s'):format(tool, list), vim.log.levels.ERROR)
  elseif not session.path and tool ~= 'text' then
    return say('this session has no file; choose `text`', vim.log.levels.ERROR)
  end
  local to = { session = session, node = node, tool = tool }
  preview(to, function(result)
    confirm(to, result)
  end)
end

return M
