--- Actions on a tree. Each gets the tree, asks the user if necessary, and calls the daemon.

local Tree = require('treelined.tree')
local advice = require('treelined.advice')
local ask = require('treelined.ask')
local branch = require('treelined.branch')
local config = require('treelined.config')
local draw = require('treelined.draw')
local entry = require('treelined.entry')
local keys = require('treelined.keys')
local moves = require('treelined.moves')
local prompt = require('treelined.prompt')
local queries = require('treelined.query')
local sessions = require('treelined.session')
local utf8 = require('treelined.utf8')
local when = require('treelined.when')

local M = {}

local function say(text, level)
  vim.notify('treelined: ' .. text, level or vim.log.levels.INFO)
end

local report = advice.report

for _, name in ipairs({ 'navigate', 'pop', 'merge', 'compact', 'undo', 'redo', 'join', 'abort' }) do
  M[name] = moves[name]
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

--- Shows only rows that match the query (see `query.parse`). An empty query shows all rows again.
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

--- The number of matches around the found one that are marked too.
local MARKED = 200

--- Marks the matches around a match, and moves the cursor to the match.
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

--- Moves the cursor to a match. The daemon searches, so it also finds rows that are not drawn yet.
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
    archived = tree.archived or nil,
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

--- Searches all rows, from the cursor on.
---@param tree treelined.Tree
---@param query? string see `query.parse`; asks for it if left out
function M.search(tree, query)
  local function search(text)
    if vim.trim(text) == '' then
      return
    end
    local node, row = tree:current()
    -- No row is below the last one, and `around` would find the nearest match above it instead.
    local is_last = node and row == tree.rows.total and not node.folded
    local place = node and not is_last and { around = node.id } or { offset = 0 }
    go_to_match(tree, text, place, node and node.id)
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

--- Moves the cursor to the leaf.
function M.leaf(tree)
  if tree.session.leaf_id then
    tree:go_to(tree.session.leaf_id)
  end
end

--- Opens the prompt of the session.
function M.prompt(tree)
  prompt.show(tree.session)
end

--- Draws the tree again.
function M.refresh(tree)
  tree:refresh()
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

function M.next_prompt(tree)
  require('treelined.jump').to_prompt(tree, 1)
end

function M.previous_prompt(tree)
  require('treelined.jump').to_prompt(tree, -1)
end

--- Lists the keys.
function M.keys()
  keys.show(keys.tree)
end

--- Returns the rows of a range of lines, without those that were not fetched.
---@param tree treelined.Tree
---@param lines? {[1]: integer, [2]: integer} the first and the last line; the cursor's if left out
---@return treelined.TreeNode[]
local function nodes_of(tree, lines)
  if not lines then
    return { (tree:current()) }
  end
  local nodes = {}
  for line = lines[1], lines[2] do
    nodes[#nodes + 1] = tree.rows:get(line)
  end
  return nodes
end

--- Copies the messages of a range of lines to the leaf, in their order.
---@param tree treelined.Tree
---@param _ nil
---@param lines? {[1]: integer, [2]: integer} the cursor's line if left out
function M.copy(tree, _, lines)
  local ids = {}
  for _, node in ipairs(nodes_of(tree, lines)) do
    if node.type == 'message' or node.type == 'custom_message' then
      ids[#ids + 1] = node.id
    end
  end
  if #ids == 0 then
    return say('only messages can be copied')
  end
  local params = { entryIds = ids, expectedLeafId = tree.session.leaf_id or vim.NIL }
  tree.session:request('cherry_pick', params, function(err, result)
    if err then
      return report(err)
    end
    say(#ids == 1 and '1 message is copied' or ('%d messages are copied'):format(#ids))
    tree:refresh(result.leafId)
  end)
end

--- Shows two branches side by side: those of the first and the last line, or those of the cursor and the leaf.
---@param tree treelined.Tree
---@param _ nil
---@param lines? {[1]: integer, [2]: integer} the selected lines; the cursor's line and the leaf if left out
function M.compare(tree, _, lines)
  local nodes = nodes_of(tree, lines)
  local first = nodes[1] and nodes[1].id
  local second = #nodes > 1 and nodes[#nodes].id or tree.session.leaf_id
  if not first or not second then
    return say('there is nothing to compare')
  elseif first == second then
    return say('this is the leaf; go to another branch, or select two lines')
  end
  require('treelined.compare').show(tree.session, first, second)
end

--- Makes a session from the path to the entry under the cursor, and shows it. For a user message the path ends before
--- the message, and its text is put into the prompt of the new session.
function M.fork(tree)
  local node = tree:current()
  if not node then
    return
  end
  local session = tree.session
  -- A model cannot continue a fork that has calls without results.
  local params = { entryId = node.id, closeToolCalls = true }
  session:request('fork_session', params, function(err, result)
    if err then
      return report(err)
    elseif result.cancelled then
      return say('the fork was refused')
    end
    local fork = sessions.adopt(session.client, result.session)
    Tree.show(fork, function()
      say('this is the fork; the session that it comes from is unchanged')
      if result.editorText then
        prompt.put(fork, result.editorText, result.editorImages)
      end
    end)
  end)
end

--- Continues in another tool with the conversation up to the entry under the cursor.
---@param tree treelined.Tree
---@param tool? string asks for it if left out
M['continue'] = function(tree, tool)
  local node = tree:current()
  if node then
    require('treelined.continuation').start(tree.session, node, tool)
  end
end

local function describe_branch(each)
  local count = each.messageCount == 1 and '1 message' or each.messageCount .. ' messages'
  local mark = each.isActive and '◉ ' or '  '
  return utf8.line(
    ('%s%4s  %s · %s%s'):format(
      mark,
      when.age(each.lastActivity),
      each.givenName or each.name,
      count,
      each.archived and ' · archived' or ''
    )
  )
end

--- Lets the user choose a branch, and moves the cursor to its last entry.
function M.branches(tree)
  tree.session:request('list_branches', { archived = tree.archived or nil }, function(err, result)
    if err then
      return report(err)
    end
    local options = { prompt = 'Branch:', kind = 'treelined.branch', format_item = describe_branch }
    vim.ui.select(result.branches, options, function(chosen)
      if chosen then
        tree:go_to(chosen.tipId)
      end
    end)
  end)
end

M.name_branch, M.archive, M.archived = branch.name, branch.archive, branch.toggle

--- Changes the tags of the session.
---@param tree treelined.Tree
---@param tags? string the tags it has then; asks for them if left out
function M.tags(tree, tags)
  require('treelined.sorting').tags(tree.session.id, tags)
end

--- Pins the session, or removes its pin.
function M.pin(tree)
  require('treelined.sorting').mark(tree.session.id, 'pinned')
end

--- Archives the session, or restores it from the archive.
function M.archive_session(tree)
  require('treelined.sorting').mark(tree.session.id, 'archived')
end

--- Shows the family of the session.
function M.family(tree)
  require('treelined.family').pick(tree.session.id, (tree:current()))
end

--- Lets the user choose between the answers to one question.
function M.candidates(tree)
  require('treelined.candidates').show(tree)
end

--- Asks a side question.
---@param tree treelined.Tree
---@param question? string asks for it if left out
function M.aside(tree, question)
  require('treelined.branch').aside(tree, question)
end

--- Copies a side question and its answer into the conversation.
function M.keep_aside(tree)
  require('treelined.branch').keep(tree)
end

--- Writes the session into a file.
---@param tree treelined.Tree
---@param path? string asks for it if left out
function M.export(tree, path)
  require('treelined.export').export(tree.session, path)
end

--- Moves the session to the trash, after a question to the user, and leaves its tree.
function M.delete(tree)
  local session = tree.session
  require('treelined.trash').delete(session.id, session:title(), function()
    if vim.api.nvim_buf_is_valid(tree.buf) then
      vim.api.nvim_buf_delete(tree.buf, { force = true })
    end
  end)
end

--- Closes the window of an entry, if there is one. Otherwise closes this window, or leaves the buffer if it is in the
--- only window.
function M.close(tree)
  if entry.close(tree.session) then
    return
  end
  if not pcall(vim.cmd, 'close') then
    pcall(vim.cmd, 'bprevious')
  end
end

--- Actions that need no daemon.
local LOCAL = { keys = true, close = true }

--- Runs an action on the tree of the current buffer. If the session is not open any more, it is first opened again, if
--- necessary with a new daemon.
---@param name string
function M.run(name, ...)
  local tree = Tree.get()
  if not tree then
    return say('this buffer is not a tree', vim.log.levels.ERROR)
  elseif LOCAL[name] or not tree.session.over then
    return M[name](tree, ...)
  end
  local arguments = { ... }
  sessions.reopen(tree.session.id, function(err)
    if err then
      return report(err)
    elseif name == 'refresh' then
      return
    end
    -- The action is about the entry under the cursor, so it waits until the rows are drawn.
    tree:when_drawn(function()
      if Tree.get() == tree then
        M[name](tree, unpack(arguments))
      end
    end)
  end)
end

return M
