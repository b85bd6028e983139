--- Deletes sessions into the trash, and restores them.

local advice = require('treelined.advice')
local row = require('treelined.row')
local sessions = require('treelined.session')

local M = {}

--- Asks the user, and then moves a session to the trash.
---@param id string
---@param title string
---@param callback? fun() called when the session is in the trash
function M.delete(id, title, callback)
  local text = ('Move "%s" to the trash? `:Treelined restore` brings it back.'):format(title)
  local options = { prompt = text, kind = 'treelined.confirm' }
  vim.ui.select({ 'Move it to the trash', 'Keep it' }, options, function(chosen)
    if chosen ~= 'Move it to the trash' then
      return
    end
    sessions.connect(function(err, client)
      if not client then
        return advice.report(err)
      end
      client:delete_session({ sessionId = id }, function(failure)
        if failure then
          return advice.report(failure)
        end
        vim.notify(('treelined: "%s" is in the trash'):format(title))
        if callback then
          callback()
        end
      end)
    end)
  end)
end

--- Lets the user choose a deleted session, and restores it.
---@param callback fun(path: string) called with the file of the restored session
function M.restore(callback)
  sessions.connect(function(err, client)
    if not client then
      return advice.report(err)
    end
    client:list_trash({}, function(failure, result)
      if failure then
        return advice.report(failure)
      elseif #result.sessions == 0 then
        return vim.notify('treelined: the trash is empty')
      end
      local options = { prompt = 'Restore:', kind = 'treelined.trash', format_item = row.describe }
      vim.ui.select(result.sessions, options, function(chosen)
        if not chosen then
          return
        end
        local params = { sessionId = chosen.sessionId, trashedPath = chosen.trashedPath }
        client:restore_session(params, function(refused, restored)
          if refused then
            return advice.report(refused)
          end
          callback(restored.path)
        end)
      end)
    end)
  end)
end

return M
