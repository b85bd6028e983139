--- Makes the lines of a list of hits: for each hit its text and, if its branch was left, the reason and what was tried
--- instead. Does no I/O.

local config = require('treelined.config')
local draw = require('treelined.draw')
local utf8 = require('treelined.utf8')

local M = {}

--- The most columns for a session's name.
local NAME = 32

local FIELDS =
  { toolCalls = 'call', toolResults = 'result', labels = 'label', summaries = 'summary' }

---@class treelined.HitLine
---@field line string as the quickfix window shows it
---@field text string the same without name and field
---@field spans integer[][] the matches in `line`, in bytes from 0, end exclusive
---@field first integer[] the first match in `text`; `{ 0, 0 }` if there is none
---@field hit treelined.SearchHit
---@field is_part? boolean whether it belongs to the hit above
---@field more? string the id of a session with more hits

local function cut(text, columns)
  if vim.fn.strdisplaywidth(text) <= columns then
    return text
  end
  local count = columns - 1
  while vim.fn.strdisplaywidth(vim.fn.strcharpart(text, 0, count)) > columns - 1 do
    count = count - 1
  end
  return vim.fn.strcharpart(text, 0, count) .. '…'
end

local function head(hit, kind)
  local name = utf8.line(hit.sessionName ~= '' and hit.sessionName or hit.sessionId)
  -- Neovim highlights the text before the first bar as the name of a file, so the session's name must not have a bar.
  return ('%s|%s| '):format(cut(name:gsub('|', '¦'), NAME), kind)
end

local function hit_line(hit)
  local marks = draw.marks[config.get().render]
  local snippet = utf8.line(hit.snippet)
  local before = hit.branch.onActivePath and marks.path .. ' ' or ''
  local branch = ''
  if hit.branch.leftAt then
    branch = (' %s left at %s'):format(marks.from, utf8.line(hit.branch.leftAt))
  elseif not hit.branch.onActivePath then
    branch = (' %s another root'):format(marks.from)
  end
  local begin = head(hit, FIELDS[hit.field] or hit.field)
  local spans = utf8.spans(snippet, hit.ranges)
  local first = spans[1] or { -#before, -#before }
  return {
    line = begin .. before .. snippet .. branch,
    text = before .. snippet .. branch,
    spans = vim.tbl_map(function(span)
      return { span[1] + #begin + #before, span[2] + #begin + #before }
    end, spans),
    first = { first[1] + #before, first[2] + #before },
    hit = hit,
  }
end

local function part(hit, kind, said)
  local text = utf8.line(said)
  return {
    line = head(hit, kind) .. text,
    text = text,
    spans = {},
    first = { 0, 0 },
    hit = hit,
    is_part = true,
  }
end

--- Returns the lines of a result.
---@param result treelined.SearchResult
---@return treelined.HitLine[]
function M.lines(result)
  local counts, last = {}, {}
  for _, more in ipairs(result.more or {}) do
    counts[more.sessionId] = more.count
  end
  for index, hit in ipairs(result.hits) do
    last[hit.sessionId] = index
  end
  local lines = {}
  for index, hit in ipairs(result.hits) do
    lines[#lines + 1] = hit_line(hit)
    if hit.branch.reason then
      lines[#lines + 1] = part(hit, 'left because', hit.branch.reason.text)
    end
    if hit.branch.instead then
      lines[#lines + 1] = part(hit, 'instead', hit.branch.instead.text)
    end
    local count = last[hit.sessionId] == index and counts[hit.sessionId]
    if count then
      local said = count == 1 and '1 more entry' or count .. ' more entries'
      local line = part(hit, 'more', said .. ' of this session')
      line.more = hit.sessionId
      lines[#lines + 1] = line
    end
  end
  return lines
end

--- Returns a sentence with the words that no entry has and similar words; nil if there are none.
---@param result treelined.SearchResult
---@return string|nil
function M.near(result)
  local said = {}
  for _, each in ipairs(result.didYouMean or {}) do
    local others = vim.tbl_filter(function(near)
      return near ~= each.taken
    end, each.near)
    local parts = { ('nothing has "%s"'):format(utf8.line(each.word)) }
    if each.taken then
      parts[#parts + 1] = ('%s counts instead'):format(utf8.line(each.taken))
    end
    if #others > 0 then
      parts[#parts + 1] = ('did you mean %s?'):format(utf8.line(table.concat(others, ', ')))
    end
    said[#said + 1] = table.concat(parts, '; ')
  end
  return #said > 0 and table.concat(said, ' ') or nil
end

return M
