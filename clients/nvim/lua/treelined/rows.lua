--- The rows of a tree. They are fetched in pages when they are needed, so that a session of 100,000 entries is shown
--- after its first page.
---
--- This module owns the fetched rows, which all come from `get_tree`.

---@class treelined.Rows
---@field total integer
---@field hidden integer
---@field archived integer the number of archived branches
---@field leaf_id? string
---@field private session treelined.OpenSession
---@field private page_size integer
---@field private params table params of `get_tree`, except those of the page
---@field private nodes table<integer, treelined.TreeNode> by row, from 1
---@field private wanted table<integer, boolean>
---@field private revision? string
---@field private generation integer
local Rows = {}
Rows.__index = Rows

local M = {}

---@param session treelined.OpenSession
---@param page_size integer
---@return treelined.Rows
function M.new(session, page_size)
  return setmetatable({
    session = session,
    page_size = page_size,
    generation = 0,
    total = 0,
    hidden = 0,
    archived = 0,
    nodes = {},
    wanted = {},
  }, Rows)
end

--- Returns a row, or nil if it was not fetched.
---@param row integer from 1
---@return treelined.TreeNode|nil
function Rows:get(row)
  return self.nodes[row]
end

--- Returns the fetched rows by their numbers. After a reload it returns another table.
---@return table<integer, treelined.TreeNode>
function Rows:fetched()
  return self.nodes
end

--- Returns the number of an entry's row, or nil if the row was not fetched.
---@param id string
---@return integer|nil
function Rows:find(id)
  for row, node in pairs(self.nodes) do
    if node.id == id then
      return row
    end
  end
end

--- Returns the number of the leaf's row, or nil if the row was not fetched.
---@return integer|nil
function Rows:find_leaf()
  for row, node in pairs(self.nodes) do
    if node.isLeaf then
      return row
    end
  end
end

function Rows:put(result)
  for index, node in ipairs(result.nodes) do
    self.nodes[result.offset + index] = node
  end
  return result.offset + 1, result.offset + #result.nodes
end

--- Drops all rows, and fetches a first page.
---@param params table params of `get_tree`
---@param place {around?: string, offset?: integer}
---@param callback fun(err: treelined.Error|nil, first: integer|nil, last: integer|nil) with the fetched rows
function Rows:reload(params, place, callback)
  self.generation = self.generation + 1
  local generation = self.generation
  local page = vim.tbl_extend('force', params, place, { limit = self.page_size })
  self.session:request('get_tree', page, function(err, result)
    if generation ~= self.generation then
      return
    elseif err then
      return callback(err)
    end
    self.params = params
    self.nodes, self.wanted = {}, {}
    self.total, self.hidden = result.total, result.hidden
    self.archived = result.archivedBranches or 0
    self.shed = result.shedBranches or 0
    self.leaf_id, self.revision = result.leafId, result.revision
    callback(nil, self:put(result))
  end)
end

--- Fetches those rows of a range that are missing.
---@param first integer
---@param last integer
---@param callback fun(err: treelined.Error|nil, first: integer|nil, last: integer|nil) called for each page;
---without rows if the tree has changed
function Rows:fetch(first, last, callback)
  first, last = math.max(first, 1), math.min(last, self.total)
  local row = first
  while row <= last do
    if self.nodes[row] or self.wanted[row] then
      row = row + 1
    else
      local limit = 0
      while
        limit < self.page_size
        and row + limit <= self.total
        and not (self.nodes[row + limit] or self.wanted[row + limit])
      do
        self.wanted[row + limit] = true
        limit = limit + 1
      end
      self:fetch_page(row, limit, callback)
      row = row + limit
    end
  end
end

function Rows:fetch_page(first, limit, callback)
  local generation = self.generation
  local page = vim.tbl_extend('force', self.params, { offset = first - 1, limit = limit })
  self.session:request('get_tree', page, function(err, result)
    if generation ~= self.generation then
      return
    end
    for row = first, first + limit - 1 do
      self.wanted[row] = nil
    end
    if err or result.revision ~= self.revision then
      return callback(err)
    end
    callback(nil, self:put(result))
  end)
end

return M
