--- The end of the daemon's log, and the buffer that shows it.

local utf8 = require('treelined.utf8')
local windows = require('treelined.windows')

local M = {}

--- The number of bytes that are kept.
local KEPT = 65536

local NAME = 'treelined://log'

local text = ''

--- Adds a piece of the log.
---@param piece string
function M.add(piece)
  text = (text .. piece):sub(-KEPT)
end

--- Shows the log in its own window.
function M.show()
  local buf = windows.scratch(NAME)
  local lines = text == '' and { 'The daemon has written nothing.' } or utf8.lines(vim.trim(text))
  windows.fill(buf, lines)
  windows.split_to(buf)
  vim.api.nvim_win_set_cursor(0, { #lines, 0 })
end

return M
