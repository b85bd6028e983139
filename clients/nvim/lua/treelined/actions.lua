--- What is done with a tree: each action takes the tree, asks what it must, and calls the daemon.

local Tree = require('treelined.tree')
local ask = require('treelined.ask')
local config = require('treelined.config')
local draw = require('treelined.draw')
local entry = require('treelined.entry')
local keys = require('treelined.keys')
local prompt = require('treelined.prompt')
local queries = require('treelined.query')
local sessions = require('treelined.session')

local M = {}

local function say(text, level)
  vim.notify('treelined: ' .. text, level or vim.log.levels.INFO)
end

local HINTS = {
  summarizerUnavailable = 'no summarizer is configured; set `summarizer`, or go without a summary',
  sessionBusy = 'the session is busy; x aborts a move',
  nothingToUndo = 'nothing to undo or redo',
}

local function report(err)
  local level = err.kind == 'nothingToUndo' and vim.log.levels.INFO or vim.log.levels.ERROR
  say(HINTS[err.kind] or tostring(err), level)
end

local WITHOUT, WITH, FOCUS = 'No summary', 'Summarize', 'Summarize with focus…'

local REASONS = {
  cancelledByClient = 'the move was refused',
  noAnswer = 'the move was not answered in time',
  hookFailed = 'a hook failed, and nothing was moved; `treelined config` may say why',
  aborted = 'the move was aborted',
  alreadyThere = 'the conversation stands here already',
  nothingToSummarize = 'moved; there was nothing to summarize',
}

local function new_navigation_id()
  local uv = vim.uv or vim.loop
  return ('nvim-%d-%d'):format(uv.os_getpid(), uv.hrtime())
end

--- Moves the conversation to an entry, and puts what comes back for editing into the prompt.
---@param tree treelined.Tree
---@param params treelined.NavigateTreeParams
---@param callback? treelined.Callback
function M.move(tree, params, callback)
  local session = tree.session
  local navigation_id = new_navigation_id()
  local append, abandon = entry.stream(session)
  local stop = session:listen(function(event, piece)
    if event == 'summary_delta' and piece.navigationId == navigation_id then
      append(piece.delta)
    end
  end)
  session.navigation_id = session.navigation_id or navigation_id
  tree:update_header()
  params = vim.tbl_extend('force', params, { navigationId = navigation_id })
  session:request('navigate_tree', params, function(err, result)
    stop()
    if session.navigation_id == navigation_id then
      session.navigation_id = nil
    end
    if vim.api.nvim_buf_is_valid(tree.buf) then
      tree:update_header()
    end
    if err then
      abandon()
      report(err)
    else
      if result.reason then
        say(REASONS[result.reason] or result.reason)
      end
      if result.summaryEntry then
        entry.show(session, entry.text(result.summaryEntry), 'summary')
      else
        abandon()
      end
      if vim.api.nvim_buf_is_valid(tree.buf) and not result.cancelled then
        tree:refresh(result.newLeafId)
      end
      if result.editorText then
        prompt.put(session, result.editorText, result.editorImages)
      end
    end
    if callback then
      callback(err, result)
    end
  end)
end

--- How long a move waits to know what it leaves behind before it asks without, in milliseconds. Neovim waits
--- too, so that keys typed meanwhile answer the question.
local PREPARATION_MS = 2000

--- The question before a move that leaves so many entries behind; nil if their number is not known.
local function question(count)
  if not count then
    return 'Summarize what is left behind?'
  elseif count == 1 then
    return '1 entry is left behind; it stays in the tree. Summarize it?'
  end
  return ('%d entries are left behind; they stay in the tree. Summarize them?'):format(count)
end

--- Says what a move leaves behind and asks whether to summarize it, then moves to the entry under the cursor.
--- A move that leaves nothing behind is made without a question.
function M.navigate(tree)
  local node = tree:current()
  if not node then
    return
  end
  -- Only a message of the user's has somewhere to go from where it is: back before it, to be written anew.
  local params = { targetId = node.id, rewind = node.role == 'user' and node.isLeaf or nil }
  local dry_run = vim.tbl_extend('force', params, { dryRun = true })
  local options = { timeout_ms = PREPARATION_MS }
  local result, err = tree.session:request_sync('navigate_tree', dry_run, options)
  if err and err.kind ~= 'timeout' then
    return report(err)
  elseif result and result.reason then
    return say(REASONS[result.reason] or result.reason)
  end
  local count = result and result.preparation.abandonedCount
  if count == 0 then
    return M.move(tree, params)
  end
  local choice = { prompt = question(count), kind = 'treelined.summarize' }
  vim.ui.select({ WITHOUT, WITH, FOCUS }, choice, function(chosen)
    if chosen == WITHOUT then
      M.move(tree, params)
    elseif chosen == WITH then
      params.summarize = true
      M.move(tree, params)
    elseif chosen == FOCUS then
      ask.input({ prompt = 'Focus of the summary: ' }, function(focus)
        params.summarize = true
        params.customInstructions = focus ~= '' and focus or nil
        M.move(tree, params)
      end)
    end
  end)
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

--- Takes the last move back.
M.undo = step('undo_navigation')

--- Takes the last undo back.
M.redo = step('redo_navigation')

--- Goes where another program has written on from here, so that the next message follows theirs.
function M.join(tree)
  local session = tree.session
  if not session.others_leaf_id then
    return say('nobody has written on from here')
  end
  local params = { leafId = session.others_leaf_id }
  session:request('set_leaf', params, function(err, result)
    if err then
      return report(err)
    end
    tree:refresh(result.newLeafId)
  end)
end

--- Ends a move that waits for an answer or a summary.
function M.abort(tree)
  tree.session:request('abort_navigation', {}, function(err, result)
    if err then
      report(err)
    elseif not result.aborted then
      say('nothing is on its way')
    end
  end)
end

local function set_label(tree, node, label)
  tree.session:request('append_label', { targetId = node.id, label = label }, function(err)
    if err then
      report(err)
    end
  end)
end

--- Labels the entry under the cursor; an empty label takes it off.
---@param tree treelined.Tree
---@param label? string asked for if left out
function M.label(tree, label)
  local node = tree:current()
  if not node then
    return
  elseif label then
    return set_label(tree, node, label)
  end
  ask.input({ prompt = 'Label: ', default = node.label or '' }, function(given)
    set_label(tree, node, given)
  end)
end

--- Shows the entry under the cursor in full.
function M.entry(tree)
  local node = tree:current()
  if not node then
    return
  end
  tree.session:request('get_entry', { entryId = node.id }, function(err, result)
    if err then
      return report(err)
    end
    local title = draw.speaker(node) .. ' · ' .. node.timestamp
    entry.show(tree.session, entry.text(result.entry), title)
  end)
end

--- Chooses which rows there are.
---@param tree treelined.Tree
---@param filter? treelined.TreeFilter asked for if left out
function M.filter(tree, filter)
  local function set(chosen)
    if chosen then
      tree.filter = chosen
      tree:refresh()
    end
  end
  if filter then
    return set(filter)
  end
  vim.ui.select(config.filters, { prompt = 'Rows:', kind = 'treelined.filter' }, set)
end

--- Leaves only rows that match the query, as `query.parse` reads it; an empty one brings all back.
---@param tree treelined.Tree
---@param given? string asked for if left out
function M.query(tree, given)
  local function set(text)
    tree.query = vim.trim(text) ~= '' and text or nil
    tree:refresh()
  end
  if given then
    return set(given)
  end
  ask.input({ prompt = 'Only rows with: ', default = tree.query or '' }, set)
end

--- Goes to a match. The daemon searches: what is not drawn yet is found too.
---@param tree treelined.Tree
---@param query string
---@param place {around?: string, offset?: integer} of `get_tree`
---@param from? string the entry that the search begins after
local function go_to_match(tree, query, place, from)
  local text, mode = queries.both(tree.query, query)
  if not text then
    return say(
      'a pattern cannot be searched for among rows that match a query; `s` changes the query'
    )
  end
  local params = {
    filter = tree.filter,
    order = config.get().order,
    query = text,
    mode = mode,
    limit = 1,
  }
  tree.session:request('get_tree', vim.tbl_extend('force', params, place), function(err, result)
    if err then
      return report(err)
    end
    local node = result.nodes[1]
    if not node then
      tree.search = nil
      tree:update_header()
      return say(('nothing has "%s"'):format(query))
    elseif node.id == from and result.total > 1 then
      return go_to_match(tree, query, { offset = (result.offset + 1) % result.total })
    end
    tree.search = { query = query, index = result.offset + 1, total = result.total }
    tree:go_to(node.id)
  end)
end

--- Searches all rows, from the cursor on.
---@param tree treelined.Tree
---@param query? string as `query.parse` reads it; asked for if left out
function M.search(tree, query)
  local function search(text)
    if vim.trim(text) == '' then
      return
    end
    local node = tree:current()
    go_to_match(tree, text, node and { around = node.id } or {}, node and node.id)
  end
  if query then
    return search(query)
  end
  ask.input({ prompt = 'Search: ' }, search)
end

local function search_by(count)
  return function(tree)
    local search = tree.search
    if not search then
      return say('nothing is searched for')
    end
    local index = (search.index - 1 + count) % search.total
    go_to_match(tree, search.query, { offset = index })
  end
end

M.search_next = search_by(1)
M.search_previous = search_by(-1)

--- Goes to where the conversation stands.
function M.leaf(tree)
  if tree.session.leaf_id then
    tree:go_to(tree.session.leaf_id)
  end
end

--- Opens the prompt of the tree's session.
function M.prompt(tree)
  prompt.show(tree.session)
end

--- Draws anew. If the daemon is gone it is started again, and the session opened where it was.
function M.refresh(tree)
  if not tree.session.over then
    return tree:refresh()
  end
  sessions.open(tree.session.path or tree.session.id, function(err, session)
    if not session then
      return report(err)
    end
    tree:reopen(session)
  end)
end

function M.fold_toggle(tree)
  tree:set_fold('toggle')
end

function M.fold_open(tree)
  tree:set_fold('open')
end

function M.fold_close(tree)
  tree:set_fold('close')
end

function M.fold_open_all(tree)
  tree:set_fold('open_all')
end

--- Says what the keys do.
function M.keys()
  local lines = {}
  for _, key in ipairs(keys.tree) do
    lines[#lines + 1] = { ('%-6s'):format(key[1]), 'Special' }
    lines[#lines + 1] = { key[3] .. '\n' }
  end
  vim.api.nvim_echo(lines, false, {})
end

--- Closes the window, or leaves the buffer if there is no other window.
function M.close()
  if not pcall(vim.cmd, 'close') then
    pcall(vim.cmd, 'bprevious')
  end
end

--- Runs an action on the tree of the current buffer.
---@param name string
function M.run(name, ...)
  local tree = Tree.get()
  if not tree then
    return say('this buffer is no tree', vim.log.levels.ERROR)
  end
  M[name](tree, ...)
end

return M
