--- The windows of the prompt and of entries: side by side below the tree. Their titles, and the end of their
--- buffers.

local config = require('treelined.config')
local utf8 = require('treelined.utf8')

local M = {}

--- The roles of buffers, with the command that opens one beside the other.
local BESIDE = { prompt = 'leftabove vsplit', entry = 'rightbelow vsplit' }
local OTHER = { prompt = 'entry', entry = 'prompt' }

--- Returns the name of a session's buffer: that of the tree, or that of a role.
---@param session_id string
---@param role? 'prompt'|'entry'
---@return string
function M.name(session_id, role)
  return 'treelined://' .. utf8.line(session_id) .. (role and '/' .. role or '')
end

--- Returns the window of this tab page that shows the buffer of this name.
local function find(name)
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(win)) == name then
      return win
    end
  end
end

--- Wraps text at words, with the indent of the line.
local function wrap_at_words()
  vim.opt_local.wrap = true
  vim.opt_local.linebreak = true
  vim.opt_local.breakindent = true
end

--- Shows a buffer in the window of its role, and goes there.
---@param session_id string
---@param role 'prompt'|'entry'
---@param buf integer
---@param command string makes a window, if there is none of the other role
---@return integer win
function M.enter(session_id, role, buf, command)
  local win = find(M.name(session_id, role))
  if win then
    vim.api.nvim_set_current_win(win)
    return win
  end
  local other = find(M.name(session_id, OTHER[role]))
  if other then
    vim.api.nvim_set_current_win(other)
    command = BESIDE[role]
  end
  vim.cmd(command)
  vim.api.nvim_set_current_buf(buf)
  wrap_at_words()
  return vim.api.nvim_get_current_win()
end

--- Shows a title in the buffer's windows: in 'winbar', or in 'statusline' before Neovim 0.8.
---@param buf integer
---@param title string
function M.set_title(buf, title)
  vim.b[buf].treelined_title = utf8.line(title)
  if not config.get().header then
    return
  end
  local option = vim.fn.exists('+winbar') == 1 and 'winbar' or 'statusline'
  -- Neovim does not interpret percent signs in the value of `%{}`.
  local text = " %{get(b:,'treelined_title','')}%<%{&modified?' [+]':''}"
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    if vim.wo[win][option] ~= text then
      vim.api.nvim_win_call(win, function()
        vim.opt_local[option] = text
      end)
    end
  end
  vim.cmd('redrawstatus!')
end

--- Makes `:bdelete` wipe the buffer out. A buffer shown again would lack its options and keys.
---@param buf integer
---@param callback fun() called when it is wiped out
function M.on_wipe(buf, callback)
  vim.api.nvim_create_autocmd('BufDelete', {
    buffer = buf,
    callback = function()
      vim.schedule(function()
        if vim.api.nvim_buf_is_valid(buf) then
          vim.api.nvim_buf_delete(buf, { force = true })
        end
      end)
    end,
  })
  vim.api.nvim_create_autocmd('BufWipeout', { buffer = buf, callback = callback })
end

return M
