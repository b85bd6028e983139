--- UTF-8 validation, and text that is safe in a buffer.
---
--- Sessions have text of models, tools and other programs. In a buffer, a line feed would split a line, and marks for
--- the direction of writing would change the order of words.

local M = {}

local REPLACEMENT = '\239\191\189'

-- Ranges of characters that a terminal or an editor obeys instead of showing them. They equal the daemon's table: the
-- test tests/it/unseen.rs compares both.
local CONTROLS = {
  { 0x80, 0x9f },
  { 0x61c, 0x61c },
  { 0x200e, 0x200f },
  { 0x2028, 0x202e },
  { 0x2066, 0x206f },
  { 0xfff9, 0xfffb },
  { 0xe0000, 0xe007f },
}

local replaced = {}
for _, range in ipairs(CONTROLS) do
  for code = range[1], range[2] do
    replaced[vim.fn.nr2char(code, true)] = REPLACEMENT
  end
end

local function continues(byte, low, high)
  return byte ~= nil and byte >= low and byte <= high
end

--- Returns the length in bytes of the valid character (Unicode, table 3-7) whose first byte, over 127, is at `at`; 0
--- if there is none.
local function char_length(text, at)
  local first, second, third, fourth = text:byte(at, at + 3)
  if first >= 0xc2 and first <= 0xdf then
    return continues(second, 0x80, 0xbf) and 2 or 0
  elseif first >= 0xe0 and first <= 0xef then
    local low, high = first == 0xe0 and 0xa0 or 0x80, first == 0xed and 0x9f or 0xbf
    return continues(second, low, high) and continues(third, 0x80, 0xbf) and 3 or 0
  elseif first >= 0xf0 and first <= 0xf4 then
    local low, high = first == 0xf0 and 0x90 or 0x80, first == 0xf4 and 0x8f or 0xbf
    local rest = continues(third, 0x80, 0xbf) and continues(fourth, 0x80, 0xbf)
    return rest and continues(second, low, high) and 4 or 0
  end
  return 0
end

--- Returns whether `text` is UTF-8. The compiled loop is ten times as fast as a pattern.
---@param text string
---@return boolean
function M.is_valid(text)
  local at, last = 1, #text
  while at <= last do
    local length = text:byte(at) < 0x80 and 1 or char_length(text, at)
    if length == 0 then
      return false
    end
    at = at + length
  end
  return true
end

--- Returns the visible picture of a C0 control or of DEL.
local function picture(char)
  local code = char:byte()
  return '\226\144' .. string.char(code == 127 and 0xa1 or 0x80 + code)
end

--- Returns `text` as one line: ASCII controls become pictures (`␛`), and other controls become U+FFFD.
---@param text string
---@param keep_tabs? boolean
---@return string
function M.line(text, keep_tabs)
  text = text:gsub(keep_tabs and '[%z\1-\8\10-\31\127]' or '[%z\1-\31\127]', picture)
  -- These are the first bytes of all other controls.
  if text:find('[\194\216\226\239\243]') then
    text = text:gsub('[\194\216\226\239\243][\128-\191]+', replaced)
  end
  return text
end

--- Converts ranges of characters (code points, from 0, end exclusive) to ranges of bytes. Each range is widened to
--- whole characters with their combining marks, since a part of a character cannot be highlighted.
---@param text string
---@param ranges integer[][]
---@return integer[][]
function M.spans(text, ranges)
  local starts = {}
  for at = 1, #text do
    local byte = text:byte(at)
    if byte < 0x80 or byte >= 0xc0 then
      starts[#starts + 1] = at - 1
    end
  end
  local spans = {}
  for _, range in ipairs(ranges) do
    local first, last = starts[range[1] + 1], starts[math.min(range[2], #starts)]
    if first and last and first <= last then
      local behind = vim.fn.byteidx(text, vim.fn.charidx(text, last) + 1)
      first = vim.fn.byteidx(text, vim.fn.charidx(text, first))
      spans[#spans + 1] = { first, behind < 0 and #text or behind }
    end
  end
  return spans
end

--- Splits `text` into lines for a buffer. Controls are replaced as in `line`, except tabs.
---@param text string
---@return string[]
function M.lines(text)
  local lines = {}
  for index, line in ipairs(vim.split(text, '\n', { plain = true })) do
    lines[index] = M.line(line:gsub('\r$', ''), true)
  end
  return lines
end

return M
