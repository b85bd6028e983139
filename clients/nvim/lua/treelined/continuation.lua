--- Goes on in another agent: asks for it, says what it does not get, and runs `treelined continue` in a terminal, which
--- makes the new session and starts the agent. protocol.md §3.18.

local advice = require('treelined.advice')
local config = require('treelined.config')
local process = require('treelined.process')
local utf8 = require('treelined.utf8')
local windows = require('treelined.windows')

local M = {}

--- The agents with their names; schema/agents.tsv has the list that clients share.
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

--- Choices for a conversation that is too large: a text, the params and the options that mean it, and the params that
--- ask for its size: nothing is summarized for a question.
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

--- Returns what is handed over and lost, on one line.
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

--- Returns the program and its arguments. The options of the daemon find the same sessions and the same summarizer.
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

--- Returns the command if a terminal and a person can read it; else says why not. A line break in a path or an id would
--- run what is before it.
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

--- Asks the daemon what would be handed over; nothing is written.
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

--- Asks for the text for any other agent, or whether a summary can be written, and calls back with the result.
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

--- Shows what is lost, and does what the person chooses.
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
    -- Says now, and not in the terminal, that nobody can write the summary; there may be one already.
    ask(to, true, function()
      run_in_terminal(to, argv)
    end)
  end)
end

--- Goes on in another agent with the conversation up to an entry.
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
