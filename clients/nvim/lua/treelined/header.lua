--- Texts about a tree: its header, and its text for the status line.

local M = {}

local function count(tree)
  return tree.rows.total == 1 and '1 row' or tree.rows.total .. ' rows'
end

--- Returns a text about the leaf of other programs, and how to go there.
local function elsewhere(session)
  local turns = session.newer_turns
  if not turns then
    return 'others have written'
  end
  local newer = turns == 0 and 'newer entries are'
    or turns == 1 and '1 newer turn is'
    or turns .. ' newer turns are'
  local keys = require('treelined.config').get().default_keys and 'o' or ':Treelined join'
  return ('%s on another branch: %s'):format(newer, keys)
end

--- Adds texts about what the session is doing.
local function add_state(parts, tree)
  local session = tree.session
  if session.over then
    parts[#parts + 1] = tostring(session.over):match('^[^\n]*')
  elseif session.others_leaf_id then
    parts[#parts + 1] = elsewhere(session)
  end
  if session.read_only then
    parts[#parts + 1] = 'read only'
  end
  if session.navigation_id then
    parts[#parts + 1] = 'moving…'
  elseif session.compaction then
    parts[#parts + 1] = 'compacting…'
  end
  return table.concat(parts, ' · ')
end

--- Returns the text of the header.
---@param tree treelined.Tree
---@return string
function M.title(tree)
  local parts = { tree.session:title() }
  if tree.session.over then
    return add_state(parts, tree)
  end
  parts[#parts + 1] = count(tree)
  if tree.rows.hidden > 0 then
    parts[#parts + 1] = tree.rows.hidden .. ' hidden'
  end
  if tree.rows.archived > 0 then
    parts[#parts + 1] = tree.rows.archived .. ' archived'
  end
  if tree.filter ~= 'default' then
    parts[#parts + 1] = tree.filter
  end
  if tree.query then
    parts[#parts + 1] = ('only "%s"'):format(tree.query)
  end
  if tree.search then
    local search = tree.search
    local text = '/%s %d of %d'
    parts[#parts + 1] = text:format(search.query, search.index, search.total)
  end
  return add_state(parts, tree)
end

--- Returns the text for the status line: title, number of rows, and what the session is doing. In a buffer of a
--- session the text is about this session, elsewhere about the session that was shown last; '' if there is none.
---@return string
function M.status()
  local trees = require('treelined.tree')
  local id = vim.b.treelined_session
  local tree = trees.get() or (id and trees.of_session(id)) or trees.latest()
  if not tree then
    return ''
  end
  return add_state({ tree.session:title(), count(tree) }, tree)
end

return M
