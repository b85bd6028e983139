--- Jumps between messages of a person, also to rows that were not fetched.

local advice = require('treelined.advice')

local M = {}

--- Puts the cursor on the next message of a person, or on the one before. Rows that were not fetched are fetched, page
--- by page, until there is one or the cursor has moved.
---@param tree treelined.Tree
---@param step 1|-1
---@param from? integer the row that the search goes on behind; the cursor's if left out
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
    -- An answer that would be too large ends before the wanted row, which then comes alone, or not at all.
    local came = tree.rows:get(row) ~= nil
    if tree:main_window() and select(2, tree:current()) == start and (came or size > 1) then
      M.to_prompt(tree, step, row - step, not came and 1 or nil)
    end
  end)
end

return M
