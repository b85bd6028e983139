--- Shows two branches side by side in a separate tab page, in Neovim's diff mode.

local advice = require('treelined.advice')
local entry = require('treelined.entry')
local utf8 = require('treelined.utf8')
local windows = require('treelined.windows')

local M = {}

--- The most entries that are shown of each branch.
local LIMIT = 400

--- Reads entries, and calls the callback with their text or with the first error.
---@param session treelined.OpenSession
---@param ids string[]
---@param callback fun(err: treelined.Error|nil, lines: string[]|nil)
local function read(session, ids, callback)
  local texts, missing, failure = {}, math.min(#ids, LIMIT), nil
  local function finish()
    local lines = {}
    for _, text in ipairs(texts) do
      vim.list_extend(lines, utf8.lines(text))
    end
    if #ids > LIMIT then
      lines[#lines + 1] = ('(%d more entries)'):format(#ids - LIMIT)
    end
    callback(failure, not failure and lines or nil)
  end
  if missing == 0 then
    return finish()
  end
  for index = 1, missing do
    session:request('get_entry', { entryId = ids[index] }, function(err, result)
      failure = failure or err
      if result then
        texts[index] = entry.heading(result.entry) .. '\n' .. entry.text(result.entry) .. '\n'
      end
      missing = missing - 1
      if missing == 0 then
        finish()
      end
    end)
  end
end

local function counted(count, one, many)
  return count == 1 and '1 ' .. one or ('%d %s'):format(count, many)
end

--- Returns the title of a branch.
local function title(side, branch, is_active)
  local parts = { side .. (is_active and ', active' or '') }
  parts[#parts + 1] = counted(#branch.entryIds, 'entry', 'entries')
  parts[#parts + 1] = counted(branch.stats.toolCalls, 'tool call', 'tool calls')
  local changed = branch.files.modifiedFiles
  if #changed > 0 then
    parts[#parts + 1] = 'changes ' .. table.concat(changed, ', ')
  end
  return table.concat(parts, ' · ')
end

--- Fills the buffer of a branch, and shows it in the current window.
local function fill(session, side, lines, text)
  local buf = windows.scratch('treelined://compare/' .. side)
  windows.fill(buf, lines)
  vim.bo[buf].filetype = 'markdown'
  vim.b[buf].treelined_session = session.id
  vim.keymap.set('n', 'q', '<Cmd>tabclose<CR>', { buffer = buf, desc = 'treelined: close' })
  vim.api.nvim_set_current_buf(buf)
  windows.set_title(buf, text)
  vim.cmd('diffthis')
  vim.opt_local.foldcolumn = '0'
  windows.wrap_at_words()
end

--- Shows two branches, from the entry after their common ancestor on.
---@param session treelined.OpenSession
---@param a string the last entry of one branch
---@param b string the last entry of the other
function M.show(session, a, b)
  session:request('compare_branches', { a = a, b = b }, function(err, result)
    if err then
      return advice.report(err)
    end
    read(session, result.a.entryIds, function(failure, left)
      if failure then
        return advice.report(failure)
      end
      read(session, result.b.entryIds, function(second_failure, right)
        if second_failure then
          return advice.report(second_failure)
        end
        vim.cmd('tabnew')
        fill(session, 'left', left, title('left', result.a, a == session.leaf_id))
        vim.cmd('rightbelow vsplit')
        fill(session, 'right', right, title('right', result.b, b == session.leaf_id))
        vim.cmd('wincmd p')
      end)
    end)
  end)
end

return M
