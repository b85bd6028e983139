--- Actions that move the leaf, or write a summary there. Each gets the tree, asks the user if necessary, and calls the
--- daemon.

local advice = require('treelined.advice')
local ask = require('treelined.ask')
local entry = require('treelined.entry')
local prompt = require('treelined.prompt')

local M = {}

local report = advice.report

local function say(text)
  vim.notify('treelined: ' .. text)
end

local WITHOUT, WITH, FOCUS = 'No summary', 'Summarize', 'Summarize with focus…'

--- The choice to move without a summary, if no summarizer is configured.
local GO = 'Go there'

local REASONS = {
  cancelledByClient = 'the move was refused',
  noAnswer = 'the move was not answered in time',
  hookFailed = 'a hook failed, and nothing was moved; `treelined config` may say why',
  aborted = 'the move was aborted',
  alreadyThere = 'the leaf is here already',
  nothingToSummarize = 'moved; there was nothing to summarize',
}

--- The texts for a merge and a compaction, which move nothing.
local MERGE_REASONS = {
  alreadyThere = 'this branch is on the path of the leaf',
  nothingToSummarize = 'this branch has nothing to summarize',
}
local COMPACT_REASONS = {
  cancelledByClient = 'the compaction was refused',
  noAnswer = 'the compaction was not answered in time',
  hookFailed = 'a hook failed, and nothing was changed; `treelined config` may say why',
  aborted = 'the compaction was aborted',
}

--- The verbs for the client or hook that prevented the change.
local DEEDS = { cancelledByClient = ' cancelled', hookFailed = ' failed' }

--- Advice after a move to a user message, whose text is then in the prompt, and after a move to another entry. It says
--- how to continue, since treelined does not run a model itself. protocol.md §3.18.
local SEND_NEXT = ':w sends, H in the tree goes on in another agent'
local WRITE_NEXT = 'i writes a message here, H goes on in another agent'

--- Returns why nothing was changed, and who cancelled or failed.
---@param result {reason: string, by?: string, message?: string}
---@param reasons? table<string, string> the texts of the reasons; those of a move if left out
---@return string
function M.reason_text(result, reasons)
  local deed = DEEDS[result.reason]
  if deed and result.by then
    local why = result.message and ': ' .. result.message or ''
    local text = (result.by .. deed .. why):gsub('%c+', ' ')
    return text
  end
  return (reasons and reasons[result.reason]) or REASONS[result.reason] or result.reason
end

local function new_navigation_id()
  local uv = vim.uv or vim.loop
  return ('nvim-%d-%d'):format(uv.os_getpid(), uv.hrtime())
end

local function update_header(tree)
  if vim.api.nvim_buf_is_valid(tree.buf) then
    tree:update_header()
  end
end

--- Shows the result of a navigation: its summary, the new leaf, and the text that was returned for editing.
local function show_result(tree, method, result)
  local session = tree.session
  if result.reason and not result.editorText then
    say(M.reason_text(result, method == 'merge_branch' and MERGE_REASONS or nil))
  end
  if result.summaryEntry then
    entry.show(session, entry.text(result.summaryEntry), 'summary')
  end
  if vim.api.nvim_buf_is_valid(tree.buf) and not result.cancelled then
    tree:refresh(result.newLeafId)
  end
  if result.editorText then
    prompt.put(session, result.editorText, result.editorImages, SEND_NEXT)
  elseif not result.reason and not result.cancelled and method ~= 'merge_branch' then
    say(WRITE_NEXT)
  end
end

--- Calls a method that navigates, and shows the summary while it is being written.
---@param tree treelined.Tree
---@param method 'navigate_tree'|'pop'|'merge_branch'
---@param params table
---@param callback? treelined.Callback
local function run(tree, method, params, callback)
  local session = tree.session
  -- A merge has no id by which it can be aborted. Only one navigation of a session runs at a time, so none is needed.
  local id = method ~= 'merge_branch' and new_navigation_id() or nil
  local append, abandon = entry.stream(session)
  local stop = session:listen(function(event, piece)
    if event == 'summary_delta' and (not id or piece.navigationId == id) then
      append(piece.delta)
    end
  end)
  local token = id or method
  session.navigation_id = session.navigation_id or token
  tree:update_header()
  params = vim.tbl_extend('force', params, { navigationId = id })
  session:request(method, params, function(err, result)
    stop()
    if session.navigation_id == token then
      session.navigation_id = nil
    end
    update_header(tree)
    if err then
      report(err)
    else
      show_result(tree, method, result)
    end
    if err or not result.summaryEntry then
      abandon()
    end
    if callback then
      callback(err, result)
    end
  end)
end

--- How long a navigation waits for the number of entries that it leaves behind, in milliseconds. After this time the
--- question has no number. Neovim blocks during the wait, so that keys typed meanwhile answer the question.
local PREPARATION_MS = 2000

--- Returns the question before a navigation. A nil count is left out.
local function question(count, can_summarize)
  if not count then
    return 'Summarize what is left behind?'
  elseif count == 1 then
    return '1 entry is left behind; it stays in the tree. '
      .. (can_summarize and 'Summarize it?' or 'Go there?')
  end
  return ('%d entries are left behind; they stay in the tree. %s'):format(
    count,
    can_summarize and 'Summarize them?' or 'Go there?'
  )
end

--- Asks the user whether and how to summarize, and calls the callback with the corresponding params.
local function ask_for_summary(choices, text, callback)
  local options = { prompt = text, kind = 'treelined.summarize' }
  vim.ui.select(choices, options, function(chosen)
    if chosen == WITHOUT or chosen == GO then
      callback({ summarize = false })
    elseif chosen == WITH then
      callback({ summarize = true })
    elseif chosen == FOCUS then
      ask.input({ prompt = 'Focus of the summary: ' }, function(focus)
        callback({ summarize = true, customInstructions = focus ~= '' and focus or nil })
      end)
    end
  end)
end

--- Says how many entries a navigation leaves behind, asks whether to summarize them, and navigates. If no entry is
--- left behind, it does not ask.
local function ask_and_run(tree, method, params)
  local dry_run = vim.tbl_extend('force', params, { dryRun = true })
  local options = { timeout_ms = PREPARATION_MS }
  local result, err = tree.session:request_sync(method, dry_run, options)
  if err and err.kind ~= 'timeout' then
    return report(err)
  elseif result and result.reason then
    return say(REASONS[result.reason] or result.reason)
  end
  local count = result and result.preparation.abandonedCount
  if count == 0 then
    return run(tree, method, vim.tbl_extend('force', params, { summarize = false }))
  end
  -- Without a response in time it is not known whether a summary can be written. The daemon then reports an error if
  -- it cannot.
  local can_summarize = not result or result.canSummarize
  local choices = can_summarize and { WITHOUT, WITH, FOCUS } or { GO }
  ask_for_summary(choices, question(count, can_summarize), function(summary)
    run(tree, method, vim.tbl_extend('force', params, summary))
  end)
end

--- Moves the leaf to the entry under the cursor.
function M.navigate(tree)
  local node = tree:current()
  if node and node.folded then
    tree:set_fold('open')
  elseif node then
    -- If the entry is the leaf, only a user message can be a target: the leaf moves before it, to edit it again.
    local rewind = node.role == 'user' and node.isLeaf or nil
    ask_and_run(tree, 'navigate_tree', { targetId = node.id, rewind = rewind })
  end
end

--- Moves the leaf before the last user message, and puts the text of the message into the prompt.
function M.pop(tree)
  ask_and_run(tree, 'pop', {})
end

--- Shows a message if no summarizer is configured, and says that a focus in the command asks hooks and other clients
--- for a summary.
---@return boolean
local function nobody_summarizes(tree)
  local is_nobody = not tree.session:summarizer()
  if is_nobody then
    say('no summarizer is configured; set `summarizer`, for instance to "outline"')
  end
  return is_nobody
end

--- Appends a summary of the branch that ends at the entry under the cursor, below the leaf.
function M.merge(tree)
  local node = tree:current()
  if not node or nobody_summarizes(tree) then
    return
  end
  local text = 'Bring a summary of the branch that ends here to the leaf?'
  ask_for_summary({ WITH, FOCUS }, text, function(summary)
    run(tree, 'merge_branch', {
      tipId = node.id,
      customInstructions = summary.customInstructions,
    })
  end)
end

--- Summarizes the older part of the context.
---@param tree treelined.Tree
---@param focus? string asks for it if left out
function M.compact(tree, focus)
  if not focus then
    if nobody_summarizes(tree) then
      return
    end
    return ask.input({ prompt = 'Compact, with this focus (empty for none): ' }, function(given)
      M.compact(tree, given)
    end)
  end
  local session = tree.session
  local params = { customInstructions = focus ~= '' and focus or nil }
  session.compaction = session:request('compact', params, function(err, result)
    session.compaction = nil
    update_header(tree)
    if err then
      return report(err)
    elseif result.reason then
      say(M.reason_text(result, COMPACT_REASONS))
    end
    if result.compactionEntry then
      entry.show(session, entry.text(result.compactionEntry), 'compaction')
    end
  end)
  tree:update_header()
end

local function step(method)
  return function(tree)
    tree.session:request(method, {}, function(err, result)
      if err then
        return report(err)
      end
      tree:refresh(result.newLeafId)
    end)
  end
end

--- Undoes the last move of the leaf.
M.undo = step('undo_navigation')

--- Undoes the last undo.
M.redo = step('redo_navigation')

--- Moves the leaf after the entries of other programs, so that the next message follows theirs.
function M.join(tree)
  local session = tree.session
  if not session.others_leaf_id then
    return say('no other program has appended here')
  end
  local params = { leafId = session.others_leaf_id }
  session:request('set_leaf', params, function(err, result)
    if err then
      return report(err)
    end
    tree:refresh(result.newLeafId)
  end)
end

--- Aborts the running navigation or compaction.
function M.abort(tree)
  local session = tree.session
  if session.compaction then
    return session:cancel(session.compaction)
  end
  session:request('abort_navigation', {}, function(err, result)
    if err then
      report(err)
    elseif not result.aborted then
      say('no navigation is running')
    end
  end)
end

return M
