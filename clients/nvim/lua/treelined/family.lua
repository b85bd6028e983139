--- The family of a session: forks, subagents, and continuations in other tools.

local advice = require('treelined.advice')
local row = require('treelined.row')
local sessions = require('treelined.session')

local M = {}

--- Returns one line for a session of a family: its position in the tree of sessions, then its row.
---@param each treelined.FamilyRow
---@param id string the session whose family it is
---@param born table<string, boolean> the sessions that come from the row of the cursor
---@return string
local function describe(each, id, born)
  local mark = each.sessionId == id and '◉ ' or born[each.sessionId] and '↗ ' or '  '
  local kind = each.comesFrom and each.comesFrom.kind .. ' · ' or ''
  return mark .. ('  '):rep(math.min(each.depth, 16)) .. kind .. row.describe(each)
end

--- Lets the user choose a session of the family, and shows it. If the chosen session is the parent, the cursor is at
--- the entry from which this session comes.
---@param id string
---@param node? treelined.TreeNode the row of the cursor; the sessions that come from it are marked
function M.pick(id, node)
  local born = {}
  for _, session in ipairs(node and node.sessions or {}) do
    born[session.sessionId] = true
  end
  sessions.connect(function(err, client)
    if not client then
      return advice.report(err)
    end
    client:get_family({ sessionId = id }, function(failure, result)
      if failure then
        return advice.report(failure)
      elseif #result.sessions < 2 then
        return vim.notify('treelined: no session comes from this one, and it comes from none')
      end
      local own
      for _, each in ipairs(result.sessions) do
        own = each.sessionId == id and each or own
      end
      local options = {
        prompt = 'Family:',
        kind = 'treelined.family',
        format_item = function(each)
          return describe(each, id, born)
        end,
      }
      vim.ui.select(result.sessions, options, function(chosen)
        if not chosen or chosen.sessionId == id then
          return
        end
        local from = own and own.comesFrom
        require('treelined').open(chosen.path, function(_, tree)
          if tree and from and from.sessionId == chosen.sessionId and from.entryId then
            tree:go_to(from.entryId)
          end
        end)
      end)
    end)
  end)
end

return M
