--- Parses queries as users type them: words, or a regular expression between slashes.

local M = {}

--- Returns `query` and `mode` of `get_tree` for a typed query.
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

--- Combines two queries so that a row must match both. Words are joined. Regular expressions cannot be combined.
---@param first? string
---@param second string
---@return string|nil query nil if they cannot be combined
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
