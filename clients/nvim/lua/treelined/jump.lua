--- Moves the cursor between user messages, also to rows that were not fetched yet.

local advice = require('treelined.advice')

local M = {}

--- Moves the cursor to the next user message, or to the previous one. Fetches missing rows page by page, until it
--- finds a message or the user moves the cursor.
---@param tree treelined.Tree
---@param step 1|-1
---@param from? integer the row after which the search continues; the cursor's row if left out
---@param size? integer rows to fetch at once
function M.to_prompt(tree, step, from, size)
  local _, start = tree:current()
  local row = from or start
  repeat
    row = row + step
    local node = tree.rows:get(row)
    if node and node.role == 'user' and not node.folded and node.style ~= 'dim' then
      return vim.api.nvim_win_set_cursor(tree:main_window(), { row, 0 })
    end
  until not node
  if row < 1 or row > tree.rows.total then
    return
  end
  size = size or tree.settings.page_size
  local first = step > 0 and row or math.max(row - size + 1, 1)
  local last = step > 0 and math.min(row + size - 1, tree.rows.total) or row
  tree.rows:fetch_page(first, last - first + 1, function(err, from_row, to_row)
    if not vim.api.nvim_buf_is_valid(tree.buf) then
      return
    elseif err then
      return advice.report(err)
    elseif not from_row then
      return tree:refresh()
    end
    tree:draw(from_row, to_row)
    -- If an answer would be too large, the daemon ends it before the wanted row. A further request returns this row
    -- alone, or not at all.
    local came = tree.rows:get(row) ~= nil
    if tree:main_window() and select(2, tree:current()) == start and (came or size > 1) then
      M.to_prompt(tree, step, row - step, not came and 1 or nil)
    end
  end)
end

return M
