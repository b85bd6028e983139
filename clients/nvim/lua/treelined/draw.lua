--- Formats a row of the tree: its text and its highlights. Pure.
---
--- The daemon sends the guides, previews and flags. This module replaces control characters in text of the session.

local utf8 = require('treelined.utf8')

local M = {}

--- The number of columns for the speaker.
local SPEAKER = 10

local MARKS = {
  unicode = {
    path = '•',
    leaf = '◉',
    folded = '⊞',
    opened = '⊟',
    active = '← active',
    failed = '✗',
    from = '←',
    born = '↗ ',
    dot = ' · ',
  },
  ascii = {
    path = '*',
    leaf = '@',
    folded = '+',
    opened = '-',
    active = '<- active',
    failed = '!',
    from = '<-',
    born = '-> ',
    dot = ' - ',
  },
}
M.marks = MARKS

--- The highlight groups, each with the group to which it links by default; '' means none. A group with a background
--- would interrupt the highlight of the cursor line.
M.highlights = {
  TreelinedActive = 'String',
  TreelinedFolded = 'Special',
  TreelinedGuide = 'NonText',
  TreelinedSpeaker = 'Comment',
  TreelinedUser = 'Function',
  TreelinedSummary = 'Type',
  TreelinedLabel = 'Special',
  TreelinedPreview = '',
  TreelinedInactive = 'Comment',
  TreelinedAccent = 'Identifier',
  TreelinedSuccess = 'String',
  TreelinedWarning = 'DiagnosticWarn',
  TreelinedDim = 'Comment',
  TreelinedError = 'DiagnosticError',
  TreelinedFlag = 'DiagnosticWarn',
  TreelinedFound = 'Underlined',
}

--- Defines the highlight groups that the user has not defined.
function M.define_highlights()
  for group, link in pairs(M.highlights) do
    vim.api.nvim_set_hl(0, group, { default = true, link = link ~= '' and link or nil })
  end
end

--- The highlight groups of the styles that a row may have.
local STYLES = {
  accent = 'TreelinedAccent',
  success = 'TreelinedSuccess',
  warning = 'TreelinedWarning',
  error = 'TreelinedError',
  dim = 'TreelinedDim',
}

local SPEAKERS = {
  thinking_level_change = 'thinking',
  model_change = 'model',
  mode_change = 'mode',
  custom_message = 'note',
  session_info = 'name',
  context_edit = 'edit',
  branch_summary = 'summary',
}

local ROLES = {
  toolResult = 'tool',
  bashExecution = 'shell',
  branchSummary = 'summary',
  compactionSummary = 'compaction',
}

--- Returns the speaker of a row in one word.
---@param node treelined.TreeNode
---@return string
function M.speaker(node)
  if node.type == 'message' then
    local role = node.role or 'message'
    return ROLES[role] or role
  end
  return SPEAKERS[node.type] or node.type
end

--- Returns how many sessions of each kind come from a row, such as `1 fork, 2 subagents`; '' if there are none.
---@param node treelined.TreeNode
---@return string
function M.born(node)
  local kinds, counts = {}, {}
  for _, session in ipairs(node.sessions or {}) do
    if not counts[session.kind] then
      kinds[#kinds + 1] = session.kind
    end
    counts[session.kind] = (counts[session.kind] or 0) + 1
  end
  local said = vim.tbl_map(function(kind)
    return ('%d %s%s'):format(counts[kind], kind, counts[kind] > 1 and 's' or '')
  end, kinds)
  return table.concat(said, ', ')
end

local function padded(text, columns)
  text = utf8.line(text)
  if vim.fn.strdisplaywidth(text) > columns then
    text = vim.fn.strcharpart(text, 0, columns)
  end
  return text .. (' '):rep(columns + 1 - vim.fn.strdisplaywidth(text))
end

local function speaker_group(node, speaker)
  if not node.onActivePath then
    return 'TreelinedInactive'
  elseif speaker == 'user' then
    return 'TreelinedUser'
  elseif speaker == 'summary' or speaker == 'compaction' then
    return 'TreelinedSummary'
  end
  return 'TreelinedSpeaker'
end

--- Returns whether a branch begins with a row.
local function heads_branch(node)
  local prefix = node.prefix or ''
  return vim.endswith(prefix, '─ ') or vim.endswith(prefix, '|- ') or vim.endswith(prefix, '`- ')
end

--- Draws a row.
---@param node treelined.TreeNode
---@param look {render: 'unicode'|'ascii', found?: treelined.Match}
---@return string line
---@return {[1]: integer, [2]: integer, [3]: string}[] highlights columns in bytes from 0, end exclusive, and group
function M.row(node, look)
  local marks = MARKS[look.render]
  local line, highlights = '', {}
  local function add(text, group)
    if text ~= '' then
      if group then
        highlights[#highlights + 1] = { #line, #line + #text, group }
      end
      line = line .. text
    end
  end
  -- The mark is at the left, so that it is visible even if the row is long.
  local mark = node.isLeaf and marks.leaf or (node.onActivePath and marks.path) or ' '
  add(mark, 'TreelinedActive')
  add('  ')
  add(utf8.line(node.prefix or ''), 'TreelinedGuide')
  if node.folded then
    add(marks.folded .. ' ', 'TreelinedFolded')
  elseif node.opened and node.opened.expand then
    add(marks.opened .. ' ', 'TreelinedFolded')
  end
  local speaker = M.speaker(node)
  if not node.folded then
    add(padded(speaker, SPEAKER), speaker_group(node, speaker))
    if node.branchName then
      add(utf8.line(node.branchName) .. marks.dot, 'TreelinedFolded')
    end
    if node.sessions then
      add(marks.born .. utf8.line(M.born(node)) .. marks.dot, 'TreelinedFlag')
    end
  end
  -- A later highlight overrides an earlier one.
  local function show_found(begin, match)
    for _, span in ipairs(utf8.spans(utf8.line(match.snippet), match.ranges)) do
      highlights[#highlights + 1] = { begin + span[1], begin + span[2], 'TreelinedFound' }
    end
  end
  -- A folded row stands for a branch. A match in its first entry is not marked.
  local found = node.match or (not node.folded and look.found or nil)
  local is_label = found and found.snippet == node.label
  if node.label then
    local begin = #line + 1
    add('[' .. utf8.line(node.label) .. ']', 'TreelinedLabel')
    if is_label then
      show_found(begin, found)
    end
    add(' ')
  end
  -- The preview of a tool result already contains the tool and the failure.
  if node.isError and not node.toolCall then
    add(marks.failed .. ' ', 'TreelinedError')
  end
  local said = node.preview
  if node.tokens then
    said = ('%d tokens before: '):format(node.tokens) .. said
  end
  local text_group = 'TreelinedInactive'
  if node.onActivePath then
    text_group = STYLES[node.style] or 'TreelinedPreview'
  end
  if node.icon then
    add(utf8.line(node.icon) .. ' ', text_group)
  end
  if found and not is_label then
    local begin = #line
    add(utf8.line(found.snippet), text_group)
    show_found(begin, found)
  else
    add(utf8.line(said), text_group)
  end
  if node.flags and #node.flags > 0 then
    add(' ')
    add('(' .. utf8.line(table.concat(node.flags, ', ')) .. ')', 'TreelinedFlag')
  end
  -- The mark is only on the row where a branch begins, since the other rows of the branch are below it.
  if node.archived and heads_branch(node) then
    add(' (archived)', 'TreelinedGuide')
  end
  if node.isLeaf then
    add(' ')
    add(marks.active, 'TreelinedActive')
  end
  line = line:gsub(' +$', '')
  for _, highlight in ipairs(highlights) do
    highlight[2] = math.min(highlight[2], #line)
  end
  return line, highlights
end

return M
