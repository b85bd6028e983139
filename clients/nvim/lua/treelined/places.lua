--- The positions of windows in a tree. They are restored after the tree is drawn again.

local M = {}

---@class treelined.Place
---@field id? string the entry under the cursor, if its row was fetched
---@field row integer
---@field above integer rows of the window above it
---@field column integer

--- Returns the position of each window.
---@param buf integer
---@param nodes table<integer, treelined.TreeNode> the rows that the windows show
---@return table<integer, treelined.Place>
function M.of(buf, nodes)
  local found = {}
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local row = vim.api.nvim_win_get_cursor(win)[1]
    found[win] = {
      id = nodes[row] and nodes[row].id,
      row = row,
      above = row - vim.api.nvim_win_call(win, function()
        return vim.fn.line('w0')
      end),
      column = vim.api.nvim_win_get_cursor(win)[2],
    }
  end
  return found
end

--- Moves a window's cursor to a row. If the row is visible the window does not scroll. Otherwise the row is centred,
--- and no empty lines are shown below the last row if more rows are above.
---@param win integer
---@param row integer
---@param anchor integer the new row of the entry that was under the cursor
---@param place treelined.Place
function M.restore(win, row, anchor, place)
  local count = vim.api.nvim_buf_line_count(vim.api.nvim_win_get_buf(win))
  row = math.min(math.max(row, 1), count)
  local height = vim.fn.getwininfo(win)[1].height
  local topline = math.max(anchor - place.above, 1)
  if row < topline or row >= topline + height then
    topline = math.max(row - math.floor(height / 2), 1)
  end
  topline = math.max(math.min(topline, count - height + 1), 1)
  vim.api.nvim_win_call(win, function()
    vim.fn.winrestview({ topline = topline, lnum = row, col = place.column })
  end)
end

return M
