--- The window that shows a text of a session: a whole entry, or a summary that is being written.

local config = require('treelined.config')
local draw = require('treelined.draw')
local utf8 = require('treelined.utf8')
local windows = require('treelined.windows')

local M = {}

local function string_or(value, default)
  return type(value) == 'string' and value or default
end

local function block_text(block)
  if type(block) ~= 'table' then
    return vim.inspect(block)
  elseif block.type == 'text' then
    return string_or(block.text, '')
  elseif block.type == 'thinking' then
    return '(thinking)\n' .. string_or(block.thinking, '')
  elseif block.type == 'toolCall' then
    local arguments = vim.inspect(block.arguments or {})
    return ('(calls %s)\n%s'):format(string_or(block.name, '?'), arguments)
  end
  return ('(%s)'):format(string_or(block.type, '?'))
end

local function content_text(content)
  if type(content) == 'table' then
    return table.concat(vim.tbl_map(block_text, content), '\n\n')
  end
  return string_or(content, nil)
end

--- Returns the text of an entry.
---@param entry treelined.Entry|table
---@return string
function M.text(entry)
  local message = type(entry.message) == 'table' and entry.message or entry
  if type(message.command) == 'string' then
    return '$ ' .. message.command .. '\n' .. string_or(message.output, '')
  end
  return content_text(message.content) or string_or(message.summary, nil) or vim.inspect(entry)
end

--- Returns the speaker of an entry as a heading.
---@param entry treelined.Entry|table
---@return string
function M.heading(entry)
  local message = type(entry.message) == 'table' and entry.message or {}
  local node = { type = string_or(entry.type, 'entry'), role = string_or(message.role, nil) }
  return '# ' .. draw.speaker(node)
end

---@type table<string, integer> by session
local buffers = {}

local function buffer(session)
  local buf = buffers[session.id]
  if not buf then
    buf = vim.api.nvim_create_buf(false, true)
    buffers[session.id] = buf
    windows.on_wipe(buf, function()
      buffers[session.id] = nil
    end)
    vim.api.nvim_buf_set_name(buf, windows.name(session.id, 'entry'))
    vim.bo[buf].bufhidden = 'hide'
    vim.bo[buf].modifiable = false
    vim.bo[buf].filetype = 'markdown'
    vim.b[buf].treelined_session = session.id
    local function close()
      M.close(session)
    end
    vim.keymap.set('n', 'q', close, { buffer = buf, desc = 'treelined: close' })
  end
  return buf
end

local function window(session, buf)
  local before = vim.api.nvim_get_current_win()
  local win = windows.enter(session.id, 'entry', buf, config.get().entry_window)
  vim.api.nvim_set_current_win(before)
  return win
end

--- Closes the window of a session's entry in this tab page, and enters the window of the tree. Returns whether there
--- was such a window.
---@param session treelined.OpenSession
---@return boolean
function M.close(session)
  local win = windows.find(windows.name(session.id, 'entry'))
  if not win then
    return false
  end
  local was_current = win == vim.api.nvim_get_current_win()
  if not pcall(vim.api.nvim_win_close, win, false) then
    -- The window is the only one, so it cannot be closed.
    vim.cmd('bprevious')
    return true
  end
  local tree = windows.find(windows.name(session.id))
  if was_current and tree then
    vim.api.nvim_set_current_win(tree)
  end
  return true
end

local function write(buf, first, last, lines)
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, first, last, false, lines)
  vim.bo[buf].modifiable = false
end

--- Shows a text in this window, and opens the window if necessary. The cursor does not move.
---@param session treelined.OpenSession
---@param text string
---@param title string
---@return integer buf
---@return integer win
function M.show(session, text, title)
  local buf = buffer(session)
  write(buf, 0, -1, utf8.lines(text))
  local win = window(session, buf)
  vim.api.nvim_win_set_cursor(win, { 1, 0 })
  windows.set_title(buf, title)
  return buf, win
end

--- Shows a text that is still being written.
---@param session treelined.OpenSession
---@return fun(piece: string) append
---@return fun() abandon says that no more text follows
function M.stream(session)
  local buf, win
  -- The raw last line. It is kept because a character may arrive in two parts.
  local tail = ''
  local function append(piece)
    if not buf then
      buf, win = M.show(session, '', 'summary, being written · x in the tree aborts')
    end
    if not vim.api.nvim_buf_is_valid(buf) then
      return
    end
    tail = tail .. piece
    local lines = utf8.lines(tail)
    tail = tail:match('[^\n]*$')
    write(buf, -2, -1, lines)
    if vim.api.nvim_win_is_valid(win) and win ~= vim.api.nvim_get_current_win() then
      vim.api.nvim_win_set_cursor(win, { vim.api.nvim_buf_line_count(buf), 0 })
    end
  end
  local function abandon()
    if buf and vim.api.nvim_buf_is_valid(buf) then
      windows.set_title(buf, 'summary, not finished')
    end
  end
  return append, abandon
end

return M
