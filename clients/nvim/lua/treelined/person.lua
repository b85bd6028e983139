--- Questions and messages of other clients to the person who uses this Neovim.
---
--- Questions are shown one after the other, and only in normal mode, so that typed text does not answer a question.

local ask = require('treelined.ask')
local config = require('treelined.config')
local utf8 = require('treelined.utf8')
local windows = require('treelined.windows')

local M = {}

---@class treelined.AskedPerson
---@field event treelined.UserAsked
---@field question treelined.Question
---@field close? fun() removes what shows it

---@type treelined.AskedPerson[]
local waiting = {}

---@type treelined.AskedPerson|nil
local shown = nil

--- The id of the question while Neovim waits for its answer. During this wait Neovim runs only fast callbacks.
---@type string|nil
local blocked_by = nil

local LEVELS = {
  info = vim.log.levels.INFO,
  warning = vim.log.levels.WARN,
  error = vim.log.levels.ERROR,
}

local group = vim.api.nvim_create_augroup('treelined-person', {})

local function is_idle()
  local mode = vim.api.nvim_get_mode()
  return mode.mode == 'n' and not mode.blocking and vim.fn.getcmdwintype() == ''
end

--- Returns the question as one line: the client that asks, the title, and what the answer is about.
local function prompt_of(event)
  local text = event.by .. ': ' .. event.title
  if event.message and event.message ~= '' then
    text = text .. ' ' .. event.message
  end
  if event.placeholder and event.placeholder ~= '' then
    text = text .. ' (' .. event.placeholder .. ')'
  end
  return utf8.line(text)
end

local show_next

--- Answers the question with a value, or dismisses it if the value is nil.
local function settle(asked, value)
  if shown ~= asked then
    return
  end
  shown = nil
  if value == nil then
    asked.question.reply({ dismissed = true })
  else
    asked.question.reply({ value = value })
  end
  vim.schedule(show_next)
end

--- Calls a function that shows a prompt: `vim.ui.input` or `vim.ui.select`. Neovim's own functions return after the
--- answer. The functions of plugins open a floating window and return at once.
local function with_prompt(asked, show)
  local before = {}
  for _, win in ipairs(vim.api.nvim_list_wins()) do
    before[win] = true
  end
  blocked_by = asked.event.eventId
  local ok, why = pcall(show)
  blocked_by = nil
  local opened = vim.tbl_filter(function(win)
    return not before[win] and vim.api.nvim_win_get_config(win).relative ~= ''
  end, vim.api.nvim_list_wins())
  function asked.close()
    for _, win in ipairs(opened) do
      pcall(vim.api.nvim_win_close, win, true)
    end
  end
  if not ok then
    settle(asked, nil)
    error(why, 0)
  end
end

local show = {}

function show.select(asked)
  local event = asked.event
  local options = {
    prompt = prompt_of(event),
    kind = 'treelined.' .. event.kind,
    format_item = utf8.line,
  }
  with_prompt(asked, function()
    vim.ui.select(event.options, options, function(choice)
      settle(asked, choice)
    end)
  end)
end

function show.confirm(asked)
  local options = { prompt = prompt_of(asked.event), kind = 'treelined.confirm' }
  with_prompt(asked, function()
    vim.ui.select({ 'Yes', 'No' }, options, function(choice)
      settle(asked, choice and choice == 'Yes')
    end)
  end)
end

function show.input(asked)
  local event = asked.event
  with_prompt(asked, function()
    ask.input({ prompt = prompt_of(event) .. ' ', default = event.initial }, function(text)
      settle(asked, text)
    end, function()
      settle(asked, nil)
    end)
  end)
end

--- Shows a scratch buffer. `:write` answers with its text, and closing it dismisses the question.
function show.editor(asked)
  local event = asked.event
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buf, 'treelined://question/' .. utf8.line(event.eventId))
  vim.bo[buf].buftype = 'acwrite'
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].filetype = 'markdown'
  vim.api.nvim_buf_set_lines(
    buf,
    0,
    -1,
    false,
    vim.split(event.initial or '', '\n', { plain = true })
  )
  vim.bo[buf].modified = false
  function asked.close()
    -- The buffer must not be deleted inside its own autocommand.
    vim.schedule(function()
      if vim.api.nvim_buf_is_valid(buf) then
        vim.api.nvim_buf_delete(buf, { force = true })
      end
    end)
  end
  vim.api.nvim_create_autocmd('BufWriteCmd', {
    buffer = buf,
    callback = function()
      vim.bo[buf].modified = false
      settle(asked, table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), '\n'))
      asked.close()
    end,
  })
  vim.api.nvim_create_autocmd('BufWipeout', {
    buffer = buf,
    callback = function()
      settle(asked, nil)
    end,
  })
  vim.cmd(config.get().prompt_window)
  vim.api.nvim_set_current_buf(buf)
  windows.set_title(buf, prompt_of(event) .. ' · :w answers, :q dismisses')
end

function show_next()
  vim.api.nvim_clear_autocmds({ group = group })
  if shown or #waiting == 0 then
    return
  elseif not is_idle() then
    vim.api.nvim_create_autocmd({ 'ModeChanged', 'CmdwinLeave' }, {
      group = group,
      callback = function()
        vim.schedule(show_next)
      end,
    })
    return
  end
  shown = table.remove(waiting, 1)
  show[shown.event.kind](shown)
end

--- The answerer for `user_asked`.
---@type treelined.Answerer
function M.answer(event, question)
  local asked = { event = event, question = question }
  function question.on_over()
    waiting = vim.tbl_filter(function(other)
      return other ~= asked
    end, waiting)
    if shown == asked then
      shown = nil
      if asked.close then
        asked.close()
      end
      vim.schedule(show_next)
    end
  end
  waiting[#waiting + 1] = asked
  if not is_idle() then
    vim.notify(('%s asks; leave this mode to answer'):format(utf8.line(event.by)))
  end
  -- A prompt of Neovim blocks until the answer, and must not delay other notifications.
  vim.schedule(show_next)
end

--- Closes the prompt of a question that is over. This runs when a line arrives, even while Neovim waits for a key, so
--- it calls only functions that are |api-fast|.
---@param line string
function M.hear(line)
  if blocked_by and line:find('"event_resolved"', 1, true) and line:find(blocked_by, 1, true) then
    blocked_by = nil
    vim.api.nvim_input('<Esc>')
  end
end

--- Shows `user_notified`.
---@param event treelined.UserNotified
function M.notify(event)
  local text = table.concat(utf8.lines(event.message), '\n')
  vim.notify(utf8.line(event.by) .. ': ' .. text, LEVELS[event.level])
end

return M
