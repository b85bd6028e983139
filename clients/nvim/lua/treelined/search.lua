--- Searches all sessions, shows the hits in the quickfix list, and opens the entry of a hit.
---
--- Each list has a scratch buffer with the same lines. The items of the quickfix list point to these lines. When a
--- jump enters the scratch buffer, the window shows the tree of the hit's session instead. `hits` makes the lines.

local advice = require('treelined.advice')
local draw = require('treelined.draw')
local hits = require('treelined.hits')
local sessions = require('treelined.session')
local utf8 = require('treelined.utf8')

local M = {}

--- The most hits in a list. The daemon returns the best ones.
local LIMIT = 1000

--- The number of lists whose hits are kept. Quickfix keeps the same number of lists.
local LISTS = 10

--- How long completion waits for the daemon, in milliseconds.
local COMPLETION_MS = 500

---@class treelined.SearchOptions
---@field mode? treelined.SessionSearchMode `ask` if left out
---@field session? string the id of the only session that is searched

---@class treelined.SearchList
---@field buf integer
---@field query string
---@field options treelined.SearchOptions
---@field lines treelined.HitLine[]

--- The lists, from the oldest to the newest.
---@type treelined.SearchList[]
local lists = {}

--- The query of the last search.
---@type string|nil
local last = nil

local namespace = vim.api.nvim_create_namespace('treelined_search')

--- The running search: its client and the id of its call.
---@type {client: treelined.Client, id: integer}|nil
local running = nil

local report = advice.report

local function column(lines, name)
  return vim.tbl_map(function(line)
    return line[name]
  end, lines)
end

--- Makes the buffer of a list. If there are more than `LISTS` lists, deletes the oldest one.
---@param list treelined.SearchList without its buffer
---@return integer
local function make_buffer(list)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, column(list.lines, 'text'))
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = 'hide'
  vim.api.nvim_create_autocmd('BufEnter', {
    buffer = buf,
    callback = function()
      -- The jump moves the cursor only after this event.
      vim.schedule(function()
        M.open_here(buf)
      end)
    end,
  })
  list.buf = buf
  lists[#lists + 1] = list
  if #lists > LISTS then
    local oldest = table.remove(lists, 1)
    if vim.api.nvim_buf_is_valid(oldest.buf) then
      vim.api.nvim_buf_delete(oldest.buf, { force = true })
    end
  end
  return buf
end

--- Returns the lines of the quickfix window, as 'quickfixtextfunc' does.
---@param info {id: integer, start_idx: integer, end_idx: integer}
---@return string[]
local function lines_of(info)
  local list = vim.fn.getqflist({ id = info.id, context = 0 }).context
  return vim.list_slice(list.treelined.lines, info.start_idx, info.end_idx)
end

--- Marks the matches in the quickfix window, if it shows a list of this module.
---@param buf integer
function M.mark(buf)
  vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  local list = vim.fn.getqflist({ context = 0, qfbufnr = 0 })
  local ours = type(list.context) == 'table' and list.context.treelined
  if not ours or list.qfbufnr ~= buf then
    return
  end
  draw.define_highlights()
  for row, spans in ipairs(ours.marks) do
    for _, span in ipairs(spans) do
      local options = { end_col = span[2], hl_group = 'TreelinedFound' }
      -- Neovim may have cut the line, so that it has fewer columns.
      pcall(vim.api.nvim_buf_set_extmark, buf, namespace, row - 1, span[1], options)
    end
  end
end

--- Returns a title that says how the query was understood, unless as a question, and where it searched.
local function title(list)
  local parts = { 'treelined: ' .. utf8.line(list.query) }
  if list.options.mode ~= 'ask' then
    parts[#parts + 1] = list.options.mode
  end
  if list.options.session then
    parts[#parts + 1] = 'of one session'
  end
  return table.concat(parts, ' · ')
end

local function show(list)
  local buf = make_buffer(list)
  local items = {}
  for index, line in ipairs(list.lines) do
    items[index] = {
      bufnr = buf,
      lnum = index,
      col = line.first[1] + 1,
      end_col = line.first[2] + 1,
      text = line.text,
      -- `:cnext` goes to the next hit, and skips the lines with reasons.
      valid = line.is_part and 0 or 1,
    }
  end
  vim.api.nvim_create_autocmd('BufReadPost', {
    group = vim.api.nvim_create_augroup('treelined_search', {}),
    pattern = 'quickfix',
    callback = function(event)
      M.mark(event.buf)
    end,
  })
  vim.fn.setqflist({}, ' ', {
    title = title(list),
    items = items,
    context = {
      treelined = { lines = column(list.lines, 'line'), marks = column(list.lines, 'spans') },
    },
    quickfixtextfunc = lines_of,
  })
  vim.cmd('botright copen')
end

--- Reports what the list does not show.
local function say_rest(query, result)
  local notes = {}
  if #result.hits == 0 then
    notes[1] = ('nothing in the sessions matches "%s"'):format(query)
  elseif #result.hits < result.totals.entries then
    local plus = result.totals.atLeast and '+' or ''
    notes[1] = ('the best %d of %d%s hits'):format(#result.hits, result.totals.entries, plus)
  end
  notes[#notes + 1] = hits.near(result)
  if result.partial then
    local files = #result.partial == 1 and '1 file' or #result.partial .. ' files'
    notes[#notes + 1] = files .. ' could not be searched, such as ' .. result.partial[1].path
  end
  if #notes > 0 then
    vim.notify('treelined: ' .. table.concat(notes, '; '))
  end
end

local function params_of(query, options)
  -- A literal search has no filters.
  local is_literal = options.mode == 'literal'
  return {
    query = query,
    syntax = is_literal and 'plain' or 'filters',
    mode = options.mode,
    sessionId = options.session,
    directory = not is_literal and vim.fn.getcwd() or nil,
    limit = LIMIT,
  }
end

--- Searches all sessions, and lists the hits in the quickfix window. Cancels the previous search if it still runs.
---@param query string a question with filters, such as `which cache role:user since:2w`, or `/pattern/`
---@param callback? fun(err: treelined.Error|nil, result: treelined.SearchResult|nil)
---@param given? treelined.SearchOptions
function M.search(query, callback, given)
  local options = vim.tbl_extend('keep', given or {}, { mode = 'ask' })
  last = query
  sessions.connect(function(err, client)
    if not client then
      report(err)
      return callback and callback(err, nil)
    end
    if running then
      running.client:cancel(running.id)
    end
    local mine = { client = client }
    running = mine
    mine.id = client:request('search', params_of(query, options), function(failure, result)
      local is_latest = running == mine
      running = not is_latest and running or nil
      if failure and is_latest then
        report(failure)
      elseif result and is_latest then
        if #result.hits > 0 then
          show({ query = query, options = options, lines = hits.lines(result) })
        end
        say_rest(query, result)
      end
      if callback then
        callback(failure, result)
      end
    end)
  end)
end

--- Returns the query of the last search; nil if there was none.
---@return string|nil
function M.last()
  return last
end

--- Completes the word at the end of a query, like the completion of a command.
---@param lead string the end of the query, which a completion replaces
---@param typed string the query up to the cursor
---@return string[]
function M.complete(lead, typed)
  local client
  sessions.connect(function(_, started)
    client = started
  end)
  vim.wait(COMPLETION_MS, function()
    return client
  end, 5)
  local result = client
    and client:request_sync('complete_query', { query = typed }, { timeout_ms = COMPLETION_MS })
  if not result then
    return {}
  end
  local kept = vim.fn.strcharpart(typed, 0, result.start):sub(#typed - #lead + 1)
  return vim.tbl_map(function(item)
    return kept .. item.text
  end, result.items)
end

--- Moves the cursor of a tree to a hit, and marks all matches in the session. If the filter of the tree hides the hit,
--- all entries are shown.
---@param tree treelined.Tree
---@param id string
---@param found table<string, treelined.Match> by entry
local function go_to_hit(tree, id, found)
  tree.query, tree.search, tree.found = nil, nil, found
  tree:go_to(id, function()
    local node = tree:current()
    if node and node.id ~= id and tree.filter ~= 'all' then
      tree.filter = 'all'
      tree:go_to(id)
    end
  end)
end

--- Opens the tree of a hit. The cursor is on its entry, and all hits in the session are marked.
---@param hit treelined.SearchHit
---@param lines treelined.HitLine[]
local function open(hit, lines)
  sessions.open(hit.sessionId, function(err, session)
    if not session then
      return report(err)
    end
    local found = {}
    for _, other in ipairs(column(lines, 'hit')) do
      if other.sessionId == hit.sessionId then
        found[other.entryId] = { snippet = other.snippet, ranges = other.ranges }
      end
    end
    require('treelined.tree').show(session, function(tree)
      go_to_hit(tree, hit.entryId, found)
    end)
  end)
end

--- Opens the hit at the cursor line of a list's buffer in the current window. On a line about more hits of a session,
--- lists these hits.
---@param buf integer
function M.open_here(buf)
  if vim.api.nvim_get_current_buf() ~= buf then
    return
  end
  local list, line
  for _, each in ipairs(lists) do
    if each.buf == buf then
      list, line = each, each.lines[vim.api.nvim_win_get_cursor(0)[1]]
    end
  end
  -- The window first shows its previous buffer, which the tree then replaces.
  local before = vim.fn.bufnr('#')
  if before > 0 and before ~= buf and vim.api.nvim_buf_is_loaded(before) then
    vim.api.nvim_set_current_buf(before)
  else
    vim.cmd('enew')
  end
  if line and line.more then
    M.search(list.query, nil, { mode = list.options.mode, session = line.more })
  elseif line then
    open(line.hit, list.lines)
  end
end

return M
