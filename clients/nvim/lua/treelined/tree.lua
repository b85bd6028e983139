--- The buffer that shows a session's tree.
---
--- This module owns the buffer, its lines, and the cursor after changes. The buffer has one line for each row of the
--- tree. Rows are fetched when a window is near them; until then their lines are empty. `actions` implements the keys.

local Rows = require('treelined.rows')
local advice = require('treelined.advice')
local branch = require('treelined.branch')
local config = require('treelined.config')
local draw = require('treelined.draw')
local header = require('treelined.header')
local places = require('treelined.places')
local queries = require('treelined.query')
local windows = require('treelined.windows')

local M = {}

--- The shortest time between two redraws because of changes, in milliseconds. Changes in between are drawn together.
local SETTLE_MS = 10

---@class treelined.Tree
---@field buf integer
---@field session treelined.OpenSession
---@field filter treelined.TreeFilter
---@field query? string shows only matching rows; as the user typed it
---@field search? {query: string, index: integer, total: integer} the search that `n` continues
---@field found table<string, treelined.Match> what a search has found, by entry
---@field archived boolean whether archived branches are shown
---@field private names_sessions? boolean whether rows name the sessions that come from them: not the first rows, since
--- the daemon reads the list of sessions for that
---@field private open_all boolean whether no branch is folded
---@field private expand string[] the branches that hold these entries are open
---@field private each string[] the branches at the forks of these rows have one row each
---@field private rows treelined.Rows
---@field private settings treelined.Config
---@field private namespace integer
---@field private reloading boolean
---@field private again? table<integer, string> entry per window for the refresh after the running one
---@field private settled fun()[] called when all requested rows are drawn
---@field private drawn {[1]: integer, [2]: integer}[] ranges of drawn rows
---@field private columns? integer width of the drawn guides
---@field private is_due boolean whether a refresh is scheduled
---@field private following table<integer, string> windows whose cursor a refresh moves to the leaf, if on this entry
---@field private followed? string the leaf to which they moved last
---@field private has_retried? boolean whether a refresh without folds and cursor was tried
---@field private stop_listening fun()
---@field private changed_at? number when a change was drawn, in milliseconds
local Tree = {}
Tree.__index = Tree

---@type table<integer, treelined.Tree>
local trees = {}

---@type treelined.Tree|nil the tree that was shown last
local latest = nil

--- Returns the tree of a buffer.
---@param buf? integer the current buffer if left out
---@return treelined.Tree|nil
function M.get(buf)
  return trees[(buf == nil or buf == 0) and vim.api.nvim_get_current_buf() or buf]
end

--- Returns the tree of a session, if a buffer shows it.
---@param session_id string
---@return treelined.Tree|nil
function M.of_session(session_id)
  for _, tree in pairs(trees) do
    if tree.session.id == session_id then
      return tree
    end
  end
end

--- Shows an error, unless the daemon or the session has ended, which the header reports.
local function report(err)
  if err.kind ~= 'disconnected' and err.kind ~= 'sessionNotFound' then
    advice.report(err)
  end
end

--- Returns the tree that was shown last.
---@return treelined.Tree|nil
function M.latest()
  return latest
end

--- Replaces lines of the buffer. At other times the buffer is not modifiable.
function Tree:write(first, last, lines)
  local options = vim.bo[self.buf]
  options.modifiable = true
  vim.api.nvim_buf_set_lines(self.buf, first, last, false, lines)
  options.modifiable = false
  options.modified = false
end

function Tree:windows()
  return vim.fn.win_findbuf(self.buf)
end

--- Returns the most columns for guides: a sixth of the narrowest window.
---@return integer
function Tree:guide_columns()
  local columns = vim.o.columns
  for _, win in ipairs(self:windows()) do
    columns = math.min(columns, vim.api.nvim_win_get_width(win))
  end
  return math.floor(columns / 6)
end

--- Draws the rows from `first` to `last`. Rows that were not fetched are drawn as empty lines.
function Tree:draw(first, last)
  table.insert(self.drawn, { first, last })
  local lines, highlights = {}, {}
  for row = first, last do
    local node = self.rows:get(row)
    if node then
      local look = {
        render = self.settings.render,
        found = self.found[node.id],
      }
      lines[#lines + 1], highlights[row] = draw.row(node, look)
    else
      lines[#lines + 1] = ''
    end
  end
  vim.api.nvim_buf_clear_namespace(self.buf, self.namespace, first - 1, last)
  self:write(first - 1, last, lines)
  for row, list in pairs(highlights) do
    for _, each in ipairs(list) do
      vim.api.nvim_buf_set_extmark(self.buf, self.namespace, row - 1, each[1], {
        end_col = each[2],
        hl_group = each[3],
      })
    end
  end
end

--- Fetches the visible rows, and some rows around them.
function Tree:show_windows()
  if self.reloading or self.session.over then
    return
  end
  if self.rows.total > 0 and self.columns ~= self:guide_columns() then
    return self:refresh()
  end
  for _, win in ipairs(self:windows()) do
    -- The windows first scroll to their cursors, as the next redraw will do: `getwininfo` describes the previous
    -- redraw.
    local top, bottom = unpack(vim.api.nvim_win_call(win, function()
      return { vim.fn.line('w0'), vim.fn.line('w$') }
    end))
    local margin = vim.api.nvim_win_get_height(win)
    self.rows:fetch(top - margin, bottom + margin, function(err, first, last)
      if not vim.api.nvim_buf_is_valid(self.buf) then
        return
      elseif first then
        self:draw(first, last)
      elseif err then
        report(err)
      else
        self:refresh()
      end
    end)
  end
end

function Tree:params()
  local query, mode
  if self.query then
    query, mode = queries.parse(self.query)
  end
  -- The branch in which other programs continue is open.
  local expand = vim.list_extend({ self.session.others_leaf_id }, self.expand)
  return {
    filter = self.filter,
    order = self.settings.order,
    query = query,
    mode = mode,
    fold = not self.open_all and 'left' or nil,
    expand = not self.open_all and expand or nil,
    each = not self.open_all and self.each or nil,
    archived = self.archived or nil,
    sessions = self.names_sessions,
    render = self.settings.render,
    prefixColumns = self.columns,
  }
end

--- Returns the current window if it shows the tree, or another window that does.
---@return integer|nil
function Tree:main_window()
  local win = vim.api.nvim_get_current_win()
  if vim.api.nvim_win_get_buf(win) == self.buf then
    return win
  end
  return self:windows()[1]
end

--- Returns the row under a window's cursor; nil if it was not fetched.
---@param win? integer
---@return treelined.TreeNode|nil
---@return integer row
function Tree:current(win)
  win = win or self:main_window()
  local row = win and vim.api.nvim_win_get_cursor(win)[1] or 1
  return self.rows:get(row), row
end

--- Updates the header.
function Tree:update_header()
  windows.set_title(self.buf, header.title(self))
end

local function blank(count)
  local lines = {}
  for index = 1, count do
    lines[index] = ''
  end
  return lines
end

--- Makes the buffer as long as the tree. All lines are empty.
function Tree:clear()
  local count = math.max(self.rows.total, 1)
  local present = vim.api.nvim_buf_line_count(self.buf)
  vim.api.nvim_buf_clear_namespace(self.buf, self.namespace, 0, -1)
  if count < present then
    self:write(count, present, {})
  elseif count > present then
    self:write(present, present, blank(count - present))
  end
  for _, range in ipairs(self.drawn) do
    local first, last = range[1], math.min(range[2], count)
    if first <= last then
      self:write(first - 1, last, blank(last - first + 1))
    end
  end
  self.drawn = {}
end

--- If there are no rows, draws a message instead.
function Tree:draw_nothing()
  local text = 'Nothing has been said yet.'
  if self.rows.hidden > 0 and (self.query or self.filter ~= 'default') then
    text = ('No rows: %d are hidden by filter and query.'):format(self.rows.hidden)
  end
  self:write(0, -1, { text })
  vim.api.nvim_buf_set_extmark(self.buf, self.namespace, 0, 0, {
    end_col = #text,
    hl_group = 'TreelinedInactive',
  })
end

--- Returns the row of an entry. For an entry without a row, returns the row of the leaf's nearest visible ancestor.
function Tree:row_of(id)
  local row = self.rows:find(id)
  if not row and id == self.rows.leaf_id then
    row = self.rows:find_leaf()
  end
  return row
end

--- Draws the tree again. Each cursor stays on its entry.
---@param focus? string|table<integer, string> entry for the cursor, or an entry for each of some windows
---@param callback? fun() called when all requested rows are drawn
function Tree:refresh(focus, callback)
  local main = self:main_window()
  local goals = focus
  if type(focus) ~= 'table' then
    goals = main and { [main] = focus } or {}
  end
  if callback then
    table.insert(self.settled, callback)
  end
  if self.reloading then
    self.again = vim.tbl_extend('force', self.again or {}, goals)
    return
  end
  self.reloading = true
  self.columns = self:guide_columns()
  local shown = self.rows:fetched()
  local before = places.of(self.buf, shown)
  local here = before[main] or { row = 1 }
  local around = goals[main] or here.id or select(2, next(goals))
  local offset = math.max(here.row - 1 - math.floor(self.settings.page_size / 2), 0)
  local place = around and { around = around } or { offset = offset }
  self.rows:reload(self:params(), place, function(err, first, last)
    self.reloading = false
    if not vim.api.nvim_buf_is_valid(self.buf) then
      return
    elseif err then
      return self:reload_failed(err)
    end
    local now = places.of(self.buf, shown)
    self:clear()
    if self.rows.total == 0 then
      self:draw_nothing()
    else
      self:draw(first, last)
    end
    branch.draw(self)
    for win, is in pairs(now) do
      local anchor = is.id and self:row_of(is.id) or is.row
      -- If the user has moved the cursor since, it stays where it is.
      local has_moved = before[win] and before[win].row ~= is.row
      local goal = not has_moved and goals[win] and self:row_of(goals[win])
      places.restore(win, goal or anchor, anchor, is)
    end
    self:settle()
  end)
end

--- Calls a function as soon as no refresh is running.
---@param callback fun()
function Tree:when_drawn(callback)
  if self.reloading then
    table.insert(self.settled, callback)
  else
    callback()
  end
end

function Tree:reload_failed(err)
  -- If the file was replaced, a folded entry or the entry under the cursor may not exist any more.
  if err.kind == 'entryNotFound' and not self.has_retried then
    self.has_retried = true
    self.expand, self.each, self.found, self.search = {}, {}, {}, nil
    self.rows = Rows.new(self.session, self.settings.page_size)
    return self:refresh()
  end
  -- The query is dropped, because the daemon would refuse the invalid pattern again at every change of the tree.
  if err.kind == 'invalidParams' and self.query then
    self.query = nil
    report(err)
    return self:refresh()
  end
  report(err)
  self:settle()
end

function Tree:settle()
  self:update_header()
  if self.again then
    local goals = self.again
    self.again = nil
    return self:refresh(goals)
  end
  self.has_retried = false
  self:show_windows()
  local callbacks = self.settled
  self.settled = {}
  for _, callback in ipairs(callbacks) do
    callback()
  end
  if not self.names_sessions and self.rows.total > 0 then
    self.names_sessions = true
    self:refresh()
  end
end

--- Schedules a refresh. A cursor on the leaf follows the leaf, even if another program appends.
function Tree:changed()
  for _, win in ipairs(self:windows()) do
    local node = self:current(win)
    if self.rows.total == 0 or (node and (node.isLeaf or node.id == self.followed)) then
      self.following[win] = node and node.id or ''
    end
  end
  if self.is_due then
    return
  end
  self.is_due = true
  local function now()
    return (vim.uv or vim.loop).hrtime() / 1e6
  end
  -- A change after a pause is drawn at once.
  local rest = (self.changed_at or -math.huge) + SETTLE_MS - now()
  vim.defer_fn(function()
    self.changed_at = now()
    local goals = {}
    for win, id in pairs(self.following) do
      -- If the user has moved the cursor since the change, it stays where it is.
      local node = vim.api.nvim_win_is_valid(win) and self:current(win)
      if (node and node.id or '') == id then
        goals[win] = self.session.others_leaf_id or self.session.leaf_id
      end
    end
    self.followed = select(2, next(goals)) or self.followed
    self.is_due, self.following = false, {}
    if vim.api.nvim_buf_is_valid(self.buf) then
      self:refresh(goals)
    end
  end, math.max(0, math.ceil(rest)))
end

--- Moves the cursor to an entry, and opens the branches that hide it.
---@param id string
---@param callback? fun()
function Tree:go_to(id, callback)
  local params = vim.tbl_extend('force', self:params(), { around = id, limit = 1 })
  self.session:request('get_tree', params, function(err, result)
    if err then
      return report(err)
    end
    local node = result.nodes[1]
    if node and node.folded then
      table.insert(self.expand, id)
      return self:refresh(id, callback)
    end
    self:refresh(node and node.id or id, callback)
  end)
end

--- Returns a copy of a list without some values.
local function without(list, values)
  return vim.tbl_filter(function(value)
    return not vim.tbl_contains(values or {}, value)
  end, list)
end

--- Returns the first row of the branch that has this row, if the branch was opened and the first row was fetched.
---@param row integer
---@return treelined.TreeNode|nil
function Tree:head_of(row)
  local node = self.rows:get(row)
  local indent = node and node.indent
  while node do
    local begins = node.prefix and node.prefix:match('[─-] $')
    if begins and node.indent == indent then
      return node.opened and node.opened.expand and node
    end
    row = row - 1
    node = self.rows:get(row)
  end
end

--- Opens the branches of the row under the cursor, or closes the branch that contains the row.
---@param how 'open'|'close'|'toggle'|'open_all'
function Tree:set_fold(how)
  if how == 'open_all' then
    self.open_all = not self.open_all
    self.expand, self.each = {}, {}
    return self:refresh()
  end
  local node, row = self:current()
  if not node then
    return
  elseif node.folded and how ~= 'close' then
    table.insert(node.folded.branches > 1 and self.each or self.expand, node.id)
    return self:refresh()
  elseif node.folded and node.opened then
    self.each = without(self.each, node.opened.each)
    return self:refresh()
  end
  -- As with Vim's folds, closing at a row inside a branch closes the branch.
  local head = how ~= 'open' and self:head_of(row)
  if head then
    self.expand = without(self.expand, head.opened.expand)
    self:refresh(head.id)
  end
end

local function watch(tree, group)
  local function on(events, callback, pattern)
    local where = pattern and { pattern = pattern } or { buffer = tree.buf }
    local options = vim.tbl_extend('force', where, { group = group, callback = callback })
    vim.api.nvim_create_autocmd(events, options)
  end
  on({ 'CursorMoved', 'BufWinEnter' }, function()
    tree:show_windows()
  end)
  on({ 'WinScrolled', 'VimResized' }, function()
    tree:show_windows()
  end, '*')
  on({ 'BufWinEnter', 'WinEnter' }, function()
    tree:update_header()
  end)
  on('ColorScheme', draw.define_highlights, '*')
  -- `:edit` refreshes the tree, since there is no file to read.
  on('BufReadCmd', function()
    tree:refresh()
  end)
  windows.on_wipe(tree.buf, function()
    tree.stop_listening()
    trees[tree.buf] = nil
    latest = latest ~= tree and latest or select(2, next(trees))
    vim.api.nvim_del_augroup_by_id(group)
  end)
end

local function listen(tree)
  tree.stop_listening = tree.session:listen(function(event)
    if event == 'changed' then
      tree:changed()
    elseif event == 'reopened' and vim.api.nvim_buf_is_valid(tree.buf) then
      tree:reopened()
    elseif event ~= 'summary_delta' and vim.api.nvim_buf_is_valid(tree.buf) then
      tree:update_header()
    end
  end)
end

--- Draws a session that was opened again. Each cursor stays on its entry, but a cursor on the leaf follows the leaf.
function Tree:reopened()
  local goals = {}
  for _, win in ipairs(self:windows()) do
    local node = self:current(win)
    if not node or node.isLeaf then
      goals[win] = self.session.leaf_id
    end
  end
  self:refresh(goals)
end

--- Shows the tree of a session in the window that `tree_window` makes.
---@param session treelined.OpenSession
---@param callback? fun(tree: treelined.Tree) called when it is drawn
---@return treelined.Tree
function M.show(session, callback)
  local settings = config.get()
  local tree = M.of_session(session.id)
  if not tree then
    local buf = vim.api.nvim_create_buf(true, true)
    tree = setmetatable({
      buf = buf,
      session = session,
      filter = settings.filter,
      archived = false,
      open_all = false,
      expand = {},
      each = {},
      found = {},
      rows = Rows.new(session, settings.page_size),
      settings = settings,
      namespace = vim.api.nvim_create_namespace('treelined'),
      reloading = false,
      settled = {},
      drawn = {},
      is_due = false,
      following = {},
    }, Tree)
    trees[buf] = tree
    vim.api.nvim_buf_set_name(buf, windows.name(session.id))
    listen(tree)
    draw.define_highlights()
    local options = vim.bo[buf]
    options.buftype = 'nofile'
    options.bufhidden = 'hide'
    options.swapfile = false
    options.undolevels = -1
    options.modifiable = false
    watch(tree, vim.api.nvim_create_augroup('treelined_tree_' .. buf, {}))
  end
  latest = tree
  local win = tree:windows()[1]
  if win then
    vim.api.nvim_set_current_win(win)
  else
    if settings.tree_window ~= 'edit' then
      vim.cmd(settings.tree_window)
    end
    vim.api.nvim_set_current_buf(tree.buf)
  end
  -- The file type is set after a window shows the buffer, so that window options take effect.
  if vim.bo[tree.buf].filetype == '' then
    vim.bo[tree.buf].filetype = 'treelined'
  end
  tree:refresh(session.leaf_id, callback and function()
    callback(tree)
  end)
  return tree
end

return M
