--- Texts about a session in a list.

local utf8 = require('treelined.utf8')
local when = require('treelined.when')

local M = {}

--- Returns the title of a session in a list: its name, else its first message, else its id.
---@param row treelined.SessionRow|treelined.TrashedRow
---@return string
function M.title(row)
  for _, text in ipairs({ row.name or '', row.firstMessage or '' }) do
    if vim.trim(text) ~= '' then
      return utf8.line(text)
    end
  end
  return utf8.line(row.sessionId)
end

--- Returns a session of a list in one line.
---@param row treelined.SessionRow|treelined.TrashedRow
---@return string
function M.describe(row)
  local count = row.messageCount == 1 and '1 message' or row.messageCount .. ' messages'
  return ('%4s  %s · %s'):format(when.age(row.modified), M.title(row), count)
end

return M
