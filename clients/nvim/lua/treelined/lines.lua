--- Splits bytes into lines at line feeds only, for chunks of any size.

local M = {}

--- Calls `on_line` with each line, without its line feed. Reads every byte once.
---@param on_line fun(line: string)
---@return fun(chunk: string) push
function M.splitter(on_line)
  local parts = {}
  return function(chunk)
    local from = 1
    while true do
      local at = chunk:find('\n', from, true)
      if not at then
        break
      end
      parts[#parts + 1] = chunk:sub(from, at - 1)
      local line = table.concat(parts)
      parts = {}
      from = at + 1
      on_line(line)
    end
    if from <= #chunk then
      parts[#parts + 1] = chunk:sub(from)
    end
  end
end

return M
