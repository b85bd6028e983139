--- Queries as they are typed: words, or a regular expression between slashes.

local M = {}

--- The `query` and `mode` of `get_tree` for what was typed.
---@param typed string
---@return string query
---@return treelined.SearchMode mode
function M.parse(typed)
  local pattern = typed:match('^/(.+)/$')
  if pattern then
    return pattern, 'regex'
  end
  return typed, 'words'
end

--- The same for rows that must match two queries. The daemon takes one: words are joined, patterns cannot be.
---@param first? string
---@param second string
---@return string|nil query nil if there is no such query
---@return treelined.SearchMode|nil mode
function M.both(first, second)
  if not first or first == second then
    return M.parse(second)
  end
  local first_query, first_mode = M.parse(first)
  local second_query, second_mode = M.parse(second)
  if first_mode == 'words' and second_mode == 'words' then
    return first_query .. ' ' .. second_query, 'words'
  end
end

return M
