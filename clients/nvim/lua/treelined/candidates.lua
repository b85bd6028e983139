--- Candidates: several answers to one question, of which a person chooses one.

local advice = require('treelined.advice')
local ask = require('treelined.ask')
local moves = require('treelined.moves')
local utf8 = require('treelined.utf8')

local M = {}

local function say(text)
  vim.notify('treelined: ' .. utf8.line(text))
end

--- The most branches that are compared at once.
local MOST = 32

--- Moves the leaf to a candidate, and notes the reason on the other candidates.
local function choose(tree, tip, reason)
  local params = { tipId = tip, reason = vim.trim(reason) ~= '' and reason or nil }
  tree.session:request('choose', params, function(err, result)
    if err then
      return advice.report(err)
    elseif result.cancelled then
      return say(moves.reason_text(result))
    end
    local count = #result.others
    say(
      ('chosen; %s'):format(count == 1 and 'the other one says why' or count .. ' others say why')
    )
    tree:refresh(result.newLeafId)
  end)
end

--- Lets the user choose one of these branches, which answer the same question.
local function pick(tree, branches, outcomes)
  local options = {
    prompt = 'Candidates:',
    kind = 'treelined.candidate',
    format_item = function(each)
      local mark = each.isActive and '◉ ' or '  '
      local outcome = outcomes[each.tipId]
      return utf8.line(mark .. (outcome ~= '' and outcome or each.name))
    end,
  }
  vim.ui.select(branches, options, function(chosen)
    if not chosen then
      return
    end
    ask.input({ prompt = 'Why this one (may be empty): ' }, function(reason)
      choose(tree, chosen.tipId, reason)
    end)
  end)
end

--- Returns the branches that answer one question: the newest question with an answer.
local function candidates(branches)
  local groups, latest = {}, nil
  for _, each in ipairs(branches) do
    if each.group then
      -- Two groups may have the same name at different forks.
      local key = each.group .. '\n' .. (each.forkId or '')
      groups[key] = groups[key] or {}
      table.insert(groups[key], each)
      local is_several = #groups[key] > 1
      if is_several and (not latest or each.lastActivity >= latest.lastActivity) then
        latest = { key = key, lastActivity = each.lastActivity }
      end
    end
  end
  return latest and groups[latest.key] or {}
end

--- Shows the candidates of the newest question side by side, and moves the leaf to the candidate that the user
--- chooses.
---@param tree treelined.Tree
function M.show(tree)
  local session = tree.session
  session:request('list_branches', {}, function(err, result)
    if err then
      return advice.report(err)
    end
    local found = candidates(result.branches)
    if #found < 2 then
      return say('no question has several answers here')
    end
    local tips = {}
    for index, each in ipairs(found) do
      tips[index] = each.tipId
    end
    local params = { a = tips[1], b = tips[2], more = vim.list_slice(tips, 3, MOST) }
    session:request('compare_branches', params, function(failure, compared)
      if failure then
        return advice.report(failure)
      end
      local outcomes = { [tips[1]] = compared.a.outcome, [tips[2]] = compared.b.outcome }
      for index, side in ipairs(compared.more or {}) do
        outcomes[tips[index + 2]] = side.outcome
      end
      pick(tree, found, outcomes)
    end)
  end)
end

return M
