--- Asks for a line of text.

local utf8 = require('treelined.utf8')

local M = {}

--- Returns whether `vim.ui.input` is Neovim's own function.
local function is_builtin()
  return debug.getinfo(vim.ui.input, 'S').source:find('vim/ui.lua', 1, true) ~= nil
end

--- Calls `vim.ui.input`, and distinguishes an empty answer from a cancelled question: Neovim 0.7 passes nil for both.
---@param options {prompt: string, default?: string}
---@param callback fun(text: string) not called without an answer
---@param without? fun() called without an answer
function M.input(options, callback, without)
  -- Neovim processes the default like typed keys, so the default must not contain control characters.
  options = vim.tbl_extend('force', options, { default = utf8.line(options.default or '') })
  local function given(text)
    -- Neovim leaves the prompt and its answer on the screen, as if it were still waiting.
    vim.api.nvim_echo({ { '' } }, false, {})
    if text then
      callback(text)
    elseif without then
      without()
    end
  end
  if vim.fn.has('nvim-0.8') == 1 or not is_builtin() then
    return vim.ui.input(options, given)
  end
  local none = '\1'
  local arguments = vim.tbl_extend('keep', { cancelreturn = none }, options)
  local ok, text = pcall(vim.fn.input, arguments)
  given(ok and text ~= none and text or nil)
end

return M
