--- Actions on a tree. Each takes the tree, asks the user where necessary, and calls the daemon.

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
  alreadyThere = 'the leaf is here already',
  nothingToSummarize = 'moved; there was nothing to summarize',
}

local function new_navigation_id()
  local uv = vim.uv or vim.loop
  return ('nvim-%d-%d'):format(uv.os_getpid(), uv.hrtime())
end

--- Navigates to an entry, and puts text that is returned for editing into the prompt.
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

--- How long a navigation waits for the number of entries it leaves behind, in milliseconds. After that it
--- asks without the number. Neovim blocks meanwhile, so that typed keys answer the question.
local PREPARATION_MS = 2000

--- Returns the question before a navigation. Leaves out the number of entries if it is nil.
local function question(count)
  if not count then
    return 'Summarize what is left behind?'
  elseif count == 1 then
    return '1 entry is left behind; it stays in the tree. Summarize it?'
  end
  return ('%d entries are left behind; they stay in the tree. Summarize them?'):format(count)
end

--- Says how many entries a navigation leaves behind, asks whether to summarize them, and navigates to the
--- entry under the cursor. Does not ask if no entry is left behind.
function M.navigate(tree)
  local node = tree:current()
  if not node then
    return
  end
  -- At the leaf only a user message has a target: the place before it, to edit it again.
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

--- Undoes the last move of the leaf.
M.undo = step('undo_navigation')

--- Undoes the last undo.
M.redo = step('redo_navigation')

--- Moves the leaf behind the entries of other programs, so that the next message follows theirs.
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

--- Aborts the running navigation.
function M.abort(tree)
  tree.session:request('abort_navigation', {}, function(err, result)
    if err then
      report(err)
    elseif not result.aborted then
      say('no navigation is running')
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

--- Labels the entry under the cursor; an empty label removes it.
---@param tree treelined.Tree
---@param label? string asks for it if left out
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

--- Shows the whole entry under the cursor.
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

--- Sets the filter of the tree.
---@param tree treelined.Tree
---@param filter? treelined.TreeFilter asks for it if left out
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

--- Shows only rows that match the query (see `query.parse`); an empty one shows all rows again.
---@param tree treelined.Tree
---@param given? string asks for it if left out
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

--- Matches around the one that a search goes to, which are marked too.
local MARKED = 200

--- Marks the matches around a match, and goes to it.
local function mark_and_go(tree, params, match)
  local offset = math.max(match.offset - MARKED / 2, 0)
  local page = { offset = offset, limit = MARKED }
  tree.session:request('get_tree', vim.tbl_extend('force', params, page), function(err, result)
    if err then
      return report(err)
    end
    tree.found = {}
    for _, node in ipairs(result.nodes) do
      tree.found[node.id] = node.match
    end
    tree:go_to(match.nodes[1].id)
  end)
end

--- Goes to a match. The daemon searches, so rows that are not drawn yet are found too.
---@param tree treelined.Tree
---@param query string
---@param place {around?: string, offset?: integer} params of `get_tree`
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
      tree.search, tree.found = nil, {}
      tree:refresh()
      return say(('nothing matches "%s"'):format(query))
    elseif node.id == from and result.total > 1 then
      return go_to_match(tree, query, { offset = (result.offset + 1) % result.total })
    end
    tree.search = { query = query, index = result.offset + 1, total = result.total }
    mark_and_go(tree, params, result)
  end)
end

--- Searches all rows from the cursor on.
---@param tree treelined.Tree
---@param query? string see `query.parse`; asks for it if left out
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
      return say('there is no search')
    end
    local index = (search.index - 1 + count) % search.total
    go_to_match(tree, search.query, { offset = index })
  end
end

M.search_next = search_by(1)
M.search_previous = search_by(-1)

--- Goes to the leaf.
function M.leaf(tree)
  if tree.session.leaf_id then
    tree:go_to(tree.session.leaf_id)
  end
end

--- Opens the prompt of the session.
function M.prompt(tree)
  prompt.show(tree.session)
end

--- Draws the tree again. If the daemon has ended, starts it and reopens the session.
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

--- Lists the keys.
function M.keys()
  local lines = {}
  for _, key in ipairs(keys.tree) do
    lines[#lines + 1] = { ('%-6s'):format(key[1]), 'Special' }
    lines[#lines + 1] = { key[3] .. '\n' }
  end
  vim.api.nvim_echo(lines, false, {})
end

--- Closes the window, or leaves the buffer if it is the only window.
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
    return say('this buffer is not a tree', vim.log.levels.ERROR)
  end
  M[name](tree, ...)
end

return M
