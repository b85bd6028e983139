--- The window that shows text of a session: an entry in full, or a summary while it is being written.

local config = require('treelined.config')
local utf8 = require('treelined.utf8')
local windows = require('treelined.windows')

local M = {}

local function block_text(block)
  if block.type == 'text' then
    return block.text or ''
  elseif block.type == 'thinking' then
    return '(thinking)\n' .. (block.thinking or '')
  elseif block.type == 'toolCall' then
    return ('(calls %s)\n%s'):format(block.name or '?', vim.inspect(block.arguments or {}))
  end
  return ('(%s)'):format(block.type)
end

local function content_text(content)
  if type(content) == 'string' then
    return content
  elseif type(content) == 'table' then
    return table.concat(vim.tbl_map(block_text, content), '\n\n')
  end
end

--- What an entry says, as text.
---@param entry treelined.Entry|table
---@return string
function M.text(entry)
  local message = entry.message or entry
  return content_text(message.content)
    or message.summary
    or message.output
    or vim.inspect(entry, { newline = '\n', indent = '  ' })
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
    vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buf, desc = 'treelined: close' })
  end
  return buf
end

local function window(session, buf)
  local before = vim.api.nvim_get_current_win()
  local win = windows.enter(session.id, 'entry', buf, config.get().entry_window)
  vim.api.nvim_set_current_win(before)
  return win
end

local function write(buf, first, last, lines)
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, first, last, false, lines)
  vim.bo[buf].modifiable = false
end

--- Shows a text in the window of entries, which is opened if it is not there; the cursor stays where it is.
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

--- Shows a text that is still being written, from its beginning.
---@param session treelined.OpenSession
---@return fun(piece: string) append
function M.stream(session)
  local buf, win
  -- The last line as it came: a character may arrive in two pieces.
  local tail = ''
  return function(piece)
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
end

return M
