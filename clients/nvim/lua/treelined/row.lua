--- Texts about a session in a list.

local utf8 = require('treelined.utf8')
local when = require('treelined.when')

local M = {}

--- Returns the title of a session in a list: its name, or its first message, or its id.
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

--- Returns the marks of a session in a list: tags, pin, archive, git branch. A gap is before each mark.
---@param row treelined.SessionRow
---@return string
function M.marks(row)
  local parts = vim.tbl_map(function(tag)
    return '#' .. tag
  end, row.tags or {})
  for _, mark in ipairs({ 'pinned', 'archived' }) do
    if row[mark] then
      parts[#parts + 1] = mark
    end
  end
  if row.git and row.git.branch then
    parts[#parts + 1] = 'on ' .. row.git.branch
  end
  local text = #parts > 0 and '  ' .. table.concat(parts, '  ') or ''
  return utf8.line(text)
end

--- Returns one line for a session in a list: its age, title and size, its project, and the tool that it comes from.
---@param row treelined.SessionRow|treelined.TrashedRow
---@return string
function M.describe(row)
  local count = row.messageCount == 1 and '1 message' or row.messageCount .. ' messages'
  local parts =
    { M.title(row), count, utf8.line(vim.fn.fnamemodify(row.cwd or '', ':t')), row.source or '' }
  local text = table.concat(
    vim.tbl_filter(function(part)
      return part ~= ''
    end, parts),
    ' · '
  )
  return ('%4s  %s'):format(when.age(row.modified), text)
end

return M
