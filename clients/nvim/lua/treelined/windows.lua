--- The windows of the prompt and of entries, which are side by side below the tree; their titles; and the end of their
--- buffers.

local config = require('treelined.config')
local utf8 = require('treelined.utf8')

local M = {}

--- The roles of buffers. Each has the command that opens its window beside the window of the other role.
local BESIDE = { prompt = 'leftabove vsplit', entry = 'rightbelow vsplit' }
local OTHER = { prompt = 'entry', entry = 'prompt' }

--- The status line below a title, if the user has not set one.
local STATUS = " treelined%{&modified?' [+]':''}%=%l/%L  %P "

--- Returns the name of a session's buffer: of its tree, or of a role.
---@param session_id string
---@param role? 'prompt'|'entry'
---@return string
function M.name(session_id, role)
  return 'treelined://' .. utf8.line(session_id) .. (role and '/' .. role or '')
end

--- Returns the window of this tab page that shows the buffer with this name.
---@param name string
---@return integer|nil
function M.find(name)
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(win)) == name then
      return win
    end
  end
end

--- Wraps the text of the current window at words, with the indent of each line.
function M.wrap_at_words()
  vim.opt_local.wrap = true
  vim.opt_local.linebreak = true
  vim.opt_local.breakindent = true
end

--- Shows a buffer in the window of its role, and enters the window.
---@param session_id string
---@param role 'prompt'|'entry'
---@param buf integer
---@param command string the command that makes a window, if no window of the other role is open
---@return integer win
function M.enter(session_id, role, buf, command)
  local win = M.find(M.name(session_id, role))
  if win then
    vim.api.nvim_set_current_win(win)
    return win
  end
  local other = M.find(M.name(session_id, OTHER[role]))
  if other then
    vim.api.nvim_set_current_win(other)
    command = BESIDE[role]
  end
  vim.cmd(command)
  vim.api.nvim_set_current_buf(buf)
  M.wrap_at_words()
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
        -- Neovim's default status line would show the name of the buffer, which contains the session's id.
        if option == 'winbar' and vim.go.statusline == '' then
          vim.opt_local.statusline = STATUS
        end
      end)
    end
  end
  vim.cmd('redrawstatus!')
end

--- Returns the scratch buffer with this name, and makes it if it does not exist. It cannot be modified, and `q` closes
--- its window.
---@param name string
---@return integer buf
function M.scratch(name)
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_get_name(buf) == name then
      return buf
    end
  end
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buf, name)
  vim.bo[buf].bufhidden = 'hide'
  vim.bo[buf].modifiable = false
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buf, desc = 'treelined: close' })
  return buf
end

--- Replaces the lines of a buffer that cannot be modified.
---@param buf integer
---@param lines string[]
function M.fill(buf, lines)
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].modified = false
end

--- Enters the window of this tab page that shows a buffer. If there is none, shows the buffer in a new window below.
---@param buf integer
function M.split_to(buf)
  local win = vim.fn.bufwinid(buf)
  if win ~= -1 then
    return vim.api.nvim_set_current_win(win)
  end
  vim.cmd(config.get().entry_window)
  vim.api.nvim_set_current_buf(buf)
  M.wrap_at_words()
end

--- Makes `:bdelete` wipe out the buffer: a buffer that is shown again would lack its options and keys.
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
