--- The buffer with all sessions. It follows changes.

local advice = require('treelined.advice')
local highlights = require('treelined.draw')
local keys = require('treelined.keys')
local row = require('treelined.row')
local sessions = require('treelined.session')
local utf8 = require('treelined.utf8')
local when = require('treelined.when')
local windows = require('treelined.windows')

local M = {}

local NAME = 'treelined://sessions'

--- The most rows that are shown. The daemon returns the newest ones.
local LIMIT = 2000

--- The least and the most columns for the working directory, which gets a quarter of the window.
local FOLDER_MIN, FOLDER_MAX = 24, 40

--- The number of columns for the tool that a session comes from.
local TOOL = 11

--- A window with fewer columns shows neither the number of messages nor the directory.
local NARROW = 60

local namespace = vim.api.nvim_create_namespace('treelined-list')

---@type integer|nil
local buf = nil

---@type treelined.SessionRow[] the rows that are shown, the latest first
local rows = {}

--- Whether only the sessions of Neovim's working directory are shown.
local is_here = false

--- Whether archived sessions are shown.
local is_archived = false

--- The client that sends changes, and the function that stops this.
---@type {client: treelined.Client, stop: fun()}|nil
local watched = nil

--- The running call that reads the list. `is_outdated` says that the list has changed since.
---@type {is_outdated: boolean}|nil
local reading = nil

local function is_valid()
  return buf ~= nil and vim.api.nvim_buf_is_valid(buf)
end

--- Returns the path of a folder, cut at its beginning to this number of columns.
local function folder(path, columns)
  local text = utf8.line(vim.fn.fnamemodify(path, ':~'))
  local count = vim.fn.strchars(text)
  if count > columns then
    text = '…' .. vim.fn.strcharpart(text, count - columns + 1)
  end
  return text .. (' '):rep(columns - vim.fn.strdisplaywidth(text))
end

--- Returns the narrowest width of the windows that show the list.
local function width()
  local columns = vim.o.columns
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    columns = math.min(columns, vim.api.nvim_win_get_width(win))
  end
  return columns
end

--- Returns the line of a session without its title: its age, size, directory and tool, as far as they fit.
local function facts(each, columns)
  local tool = vim.fn.strcharpart(utf8.line(each.source or ''), 0, TOOL)
  tool = tool .. (' '):rep(TOOL - vim.fn.strdisplaywidth(tool))
  if columns < NARROW then
    return ('%4s  %s  '):format(when.age(each.modified), tool)
  end
  local room = math.min(math.max(math.floor(columns / 4), FOLDER_MIN), FOLDER_MAX)
  local text = '%4s %5d  %s  %s  '
  return text:format(when.age(each.modified), each.messageCount, folder(each.cwd, room), tool)
end

local function draw()
  if not is_valid() then
    return
  end
  local lines, columns = {}, width()
  for index, each in ipairs(rows) do
    lines[index] = facts(each, columns) .. row.title(each) .. row.marks(each)
  end
  if #rows == 0 then
    lines = { 'There are no sessions. `o` makes one, `i` imports those of other tools.' }
  end
  local ids, positions = {}, {}
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local position = vim.api.nvim_win_get_cursor(win)
    local before = vim.b[buf].treelined_rows or {}
    ids[win], positions[win] = before[position[1]] or false, position
  end
  windows.fill(buf, lines)
  vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  local shown = {}
  for index, each in ipairs(rows) do
    shown[index] = each.sessionId
    local marks = #lines[index] - #row.marks(each)
    local options = { end_col = marks - #row.title(each), hl_group = 'TreelinedInactive' }
    vim.api.nvim_buf_set_extmark(buf, namespace, index - 1, 0, options)
    options = { end_col = #lines[index], hl_group = 'TreelinedLabel' }
    vim.api.nvim_buf_set_extmark(buf, namespace, index - 1, marks, options)
  end
  vim.b[buf].treelined_rows = shown
  -- The cursor stays on the same session.
  for win, id in pairs(ids) do
    local line = math.min(positions[win][1], #lines)
    for index, other in ipairs(shown) do
      line = other == id and index or line
    end
    vim.api.nvim_win_set_cursor(win, { line, positions[win][2] })
  end
  local count = #rows == 1 and '1 session' or #rows .. ' sessions'
  count = count .. (is_archived and ' · archived ones too' or '')
  local where = is_here and ' · of ' .. vim.fn.fnamemodify(vim.fn.getcwd(), ':~') or ''
  windows.set_title(buf, count .. where .. ' · g? lists the keys')
end

--- Inserts changed rows at their positions, and deletes removed ones.
local function change(event)
  if reading then
    -- The list that is being read may be older than this event, so it is read again.
    reading.is_outdated = true
    return
  end
  local gone = {}
  for _, id in ipairs(event.removed) do
    gone[id] = true
  end
  local paths = {}
  for _, each in ipairs(event.changed) do
    -- A file without a header has no id yet.
    gone[each.sessionId] = each.sessionId ~= ''
    paths[each.path] = true
  end
  rows = vim.tbl_filter(function(each)
    return not gone[each.sessionId] and not paths[each.path]
  end, rows)
  vim.list_extend(rows, event.changed)
  table.sort(rows, function(a, b)
    if a.modified ~= b.modified then
      return a.modified > b.modified
    end
    return a.sessionId < b.sessionId
  end)
  draw()
end

local function unwatch()
  if watched then
    watched.stop()
    watched.client:unwatch_sessions({})
    watched = nil
  end
end

local function read(client, params, callback)
  local mine = { is_outdated = false }
  reading = mine
  client:list_sessions(params, function(err, result)
    if reading ~= mine then
      return
    end
    reading = nil
    if err then
      return advice.report(err)
    end
    rows = result.sessions
    draw()
    if mine.is_outdated then
      return read(client, params, callback)
    elseif callback then
      callback()
    end
  end)
end

--- Reads the list, and follows its changes afterwards. Starts the daemon if it does not run.
---@param callback? fun()
function M.refresh(callback)
  sessions.connect(function(err, client)
    if not client then
      return advice.report(err)
    end
    local cwd = is_here and vim.fn.getcwd() or nil
    if watched then
      watched.stop()
    end
    watched = { client = client, stop = client:on('sessions_changed', change) }
    -- The watch begins before the list is read, so that no change is missed.
    local archived = is_archived or nil
    client:watch_sessions({ cwd = cwd, archived = archived })
    read(client, { sort = 'recent', limit = LIMIT, cwd = cwd, archived = archived }, callback)
  end)
end

--- Returns the session under the cursor.
local function current()
  return rows[vim.api.nvim_win_get_cursor(0)[1]]
end

local ACTIONS = {}

function ACTIONS.open()
  local each = current()
  if each then
    require('treelined').open(each.path)
  end
end

function ACTIONS.new()
  require('treelined.ask').input({ prompt = 'Name of the new session: ' }, function(name)
    require('treelined').new(name ~= '' and name or nil)
  end)
end

function ACTIONS.delete()
  local each = current()
  if each then
    require('treelined.trash').delete(each.sessionId, row.title(each), M.refresh)
  end
end

function ACTIONS.restore()
  require('treelined').restore()
end

--- Calls a function with the row under the cursor.
local function on_current(run)
  return function()
    local each = current()
    if each then
      run(each)
    end
  end
end

ACTIONS.tags = on_current(function(each)
  require('treelined.sorting').tags_of(each)
end)

ACTIONS.pin = on_current(function(each)
  require('treelined.sorting').mark(each.sessionId, 'pinned')
end)

ACTIONS.archive = on_current(function(each)
  require('treelined.sorting').mark(each.sessionId, 'archived')
end)

ACTIONS.family = on_current(function(each)
  require('treelined.family').pick(each.sessionId)
end)

function ACTIONS.archived()
  is_archived = not is_archived
  M.refresh()
end

function ACTIONS.import()
  require('treelined').import()
end

function ACTIONS.here()
  is_here = not is_here
  M.refresh()
end

function ACTIONS.refresh()
  M.refresh()
end

function ACTIONS.keys()
  keys.show(keys.list)
end

--- Runs an action of the list.
---@param name string
function M.run(name)
  if buf ~= vim.api.nvim_get_current_buf() then
    return vim.notify('treelined: this buffer is not the list', vim.log.levels.ERROR)
  end
  ACTIONS[name]()
end

local function make()
  buf = windows.scratch(NAME)
  highlights.define_highlights()
  vim.bo[buf].filetype = 'treelined-list'
  windows.on_wipe(buf, function()
    buf = nil
    unwatch()
  end)
  vim.api.nvim_create_autocmd('VimResized', { buffer = buf, callback = draw })
  keys.map(keys.list, buf)
end

--- Shows the list in the current window.
---@param callback? fun() called when it is drawn
function M.show(callback)
  if not is_valid() then
    make()
  end
  local win = vim.fn.bufwinid(buf)
  if win ~= -1 then
    vim.api.nvim_set_current_win(win)
  else
    vim.api.nvim_set_current_buf(buf)
  end
  vim.opt_local.wrap = false
  vim.opt_local.cursorline = true
  M.refresh(callback)
end

return M
