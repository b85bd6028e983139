--- Searches all sessions, shows the hits in the quickfix list, and opens the entry of a hit.
---
--- Each list has a scratch buffer with one line per hit. The items of the quickfix list point to these lines. When a
--- jump enters the scratch buffer, the window shows the tree of the hit's session instead.

local advice = require('treelined.advice')
local config = require('treelined.config')
local draw = require('treelined.draw')
local sessions = require('treelined.session')
local utf8 = require('treelined.utf8')

local M = {}

--- The most hits in a list. The daemon returns the best ones.
local LIMIT = 1000

--- The number of lists whose hits are kept. Quickfix keeps the same number of lists.
local LISTS = 10

--- The most columns of a session's name.
local NAME = 32

--- The buffers of the lists, from the oldest to the newest, and their hits.
---@type {buf: integer, hits: treelined.SearchHit[]}[]
local lists = {}

local namespace = vim.api.nvim_create_namespace('treelined_search')

--- The running search: its client and the id of its call.
---@type {client: treelined.Client, id: integer}|nil
local running = nil

local FIELDS =
  { toolCalls = 'call', toolResults = 'result', labels = 'label', summaries = 'summary' }

local report = advice.report

local function cut(text, columns)
  if vim.fn.strdisplaywidth(text) <= columns then
    return text
  end
  local count = columns - 1
  while vim.fn.strdisplaywidth(vim.fn.strcharpart(text, 0, count)) > columns - 1 do
    count = count - 1
  end
  return vim.fn.strcharpart(text, 0, count) .. '…'
end

--- Returns the line of a hit in the list, its text alone, and where the matches are in the text.
---@param hit treelined.SearchHit
local function format(hit)
  local marks = draw.marks[config.get().render]
  local snippet = utf8.line(hit.snippet)
  local name = utf8.line(hit.sessionName ~= '' and hit.sessionName or hit.sessionId)
  local before = hit.branch.onActivePath and marks.path .. ' ' or ''
  local branch = ''
  if hit.branch.leftAt then
    branch = (' %s left at %s'):format(marks.from, utf8.line(hit.branch.leftAt))
  elseif not hit.branch.onActivePath then
    branch = (' %s another root'):format(marks.from)
  end
  local text = before .. snippet .. branch
  local spans = {}
  for _, span in ipairs(utf8.spans(snippet, hit.ranges)) do
    spans[#spans + 1] = { span[1] + #before, span[2] + #before }
  end
  -- Neovim highlights the text before the first bar as a file name, so the name itself has no bar.
  local head = ('%s|%s| '):format(cut(name:gsub('|', '¦'), NAME), FIELDS[hit.field] or hit.field)
  return head .. text, text, spans, #head
end

--- Makes the buffer of a list. Deletes the oldest list if there are more than `LISTS`.
local function buffer_of(hits, lines)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = 'hide'
  vim.api.nvim_create_autocmd('BufEnter', {
    buffer = buf,
    callback = function()
      -- A jump moves the cursor only after this event.
      vim.schedule(function()
        M.open_here(buf)
      end)
    end,
  })
  lists[#lists + 1] = { buf = buf, hits = hits }
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
      -- A line that Neovim has cut has fewer columns.
      pcall(vim.api.nvim_buf_set_extmark, buf, namespace, row - 1, span[1], options)
    end
  end
end

local function show(query, result)
  local items, lines, texts, marks = {}, {}, {}, {}
  for index, hit in ipairs(result.hits) do
    local line, text, spans, indent = format(hit)
    lines[index], texts[index], marks[index] = line, text, {}
    for _, span in ipairs(spans) do
      table.insert(marks[index], { span[1] + indent, span[2] + indent })
    end
    local first = spans[1] or { 0, 0 }
    items[index] = { lnum = index, col = first[1] + 1, end_col = first[2] + 1, text = text }
  end
  local buf = buffer_of(result.hits, texts)
  for _, item in ipairs(items) do
    item.bufnr = buf
  end
  vim.api.nvim_create_autocmd('BufReadPost', {
    group = vim.api.nvim_create_augroup('treelined_search', {}),
    pattern = 'quickfix',
    callback = function(event)
      M.mark(event.buf)
    end,
  })
  vim.fn.setqflist({}, ' ', {
    title = 'treelined: ' .. utf8.line(query),
    items = items,
    context = { treelined = { lines = lines, marks = marks } },
    quickfixtextfunc = lines_of,
  })
  vim.cmd('botright copen')
end

local function say_rest(result)
  local notes = {}
  if result.nextCursor then
    local of = result.totals.atLeast and 'of at least' or 'of'
    notes[#notes + 1] = ('the best %d %s %d hits'):format(#result.hits, of, result.totals.entries)
  end
  if result.partial then
    local files = #result.partial == 1 and '1 file' or #result.partial .. ' files'
    notes[#notes + 1] = files .. ' could not be searched, such as ' .. result.partial[1].path
  end
  if #notes > 0 then
    vim.notify('treelined: ' .. table.concat(notes, '; '))
  end
end

--- Searches all sessions, and lists the hits in the quickfix window. A search that still runs is cancelled.
---@param query string in the language of filters, such as `cache role:user since:2w` or `/pattern/`
---@param callback? fun(err: treelined.Error|nil, result: treelined.SearchResult|nil)
function M.search(query, callback)
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
    local params = { query = query, syntax = 'filters', directory = vim.fn.getcwd(), limit = LIMIT }
    mine.id = client:request('search', params, function(failure, result)
      local is_latest = running == mine
      running = not is_latest and running or nil
      if failure and is_latest then
        report(failure)
      elseif result and is_latest then
        if #result.hits == 0 then
          vim.notify(('treelined: nothing in the sessions matches "%s"'):format(query))
        else
          show(query, result)
        end
        say_rest(result)
      end
      if callback then
        callback(failure, result)
      end
    end)
  end)
end

--- Puts the cursor of a tree on a hit, and marks what was found in the session. Shows all entries if the filter hides
--- the hit.
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

--- Opens the tree of a hit, with the cursor on its entry and the hits of the session marked.
---@param hit treelined.SearchHit
---@param hits treelined.SearchHit[]
local function open(hit, hits)
  sessions.open(hit.sessionId, function(err, session)
    if not session then
      return report(err)
    end
    local found = {}
    for _, other in ipairs(hits) do
      if other.sessionId == hit.sessionId then
        found[other.entryId] = { snippet = other.snippet, ranges = other.ranges }
      end
    end
    require('treelined.tree').show(session, function(tree)
      go_to_hit(tree, hit.entryId, found)
    end)
  end)
end

--- Opens the hit of the cursor line of a list's buffer, in the current window.
---@param buf integer
function M.open_here(buf)
  if vim.api.nvim_get_current_buf() ~= buf then
    return
  end
  local hit, hits
  for _, list in ipairs(lists) do
    if list.buf == buf then
      hits, hit = list.hits, list.hits[vim.api.nvim_win_get_cursor(0)[1]]
    end
  end
  -- Leave the scratch buffer, so that the tree replaces the buffer that the window had before.
  local before = vim.fn.bufnr('#')
  if before > 0 and before ~= buf and vim.api.nvim_buf_is_loaded(before) then
    vim.api.nvim_set_current_buf(before)
  else
    vim.cmd('enew')
  end
  if hit then
    open(hit, hits)
  end
end

return M
