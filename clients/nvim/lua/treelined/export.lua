--- Writes a session into a file, as a page, Markdown, text, or a session file.

local advice = require('treelined.advice')
local ask = require('treelined.ask')

local M = {}

--- The formats by the extension of the file's name.
local FORMATS = {
  html = 'html',
  md = 'markdown',
  markdown = 'markdown',
  txt = 'text',
  jsonl = 'jsonl',
}

local function counted(redactions)
  local count = 0
  for _, redaction in ipairs(redactions) do
    count = count + redaction.count
  end
  if count == 0 then
    return ''
  end
  return count == 1 and '; 1 secret is replaced' or ('; %d secrets are replaced'):format(count)
end

--- Exports a session. Asks the user before it replaces a file.
---@param session treelined.OpenSession
---@param path? string asks for it if left out
---@param overwrite? boolean
function M.export(session, path, overwrite)
  if not path then
    local slug = session:title():gsub('[^%w]+', '-'):gsub('^%-+', ''):gsub('%-+$', '')
    local default = (slug == '' and 'session' or slug) .. '.html'
    local text = 'Export to (.html, .md, .txt, .jsonl): '
    return ask.input({ prompt = text, default = default, completion = 'file' }, function(given)
      if given ~= '' then
        M.export(session, given)
      end
    end)
  end
  local format = FORMATS[path:match('%.(%w+)$')]
  if not format then
    local text = 'treelined: the name ends in .html, .md, .txt or .jsonl, not as in ' .. path
    return vim.notify(text, vim.log.levels.ERROR)
  end
  path = vim.fn.fnamemodify(path, ':p')
  local params = { path = path, format = format, overwrite = overwrite or nil }
  session:request('export_session', params, function(err, result)
    if result then
      local size = ('%.0f KiB'):format(math.ceil(result.bytes / 1024))
      vim.notify(('treelined: exported to %s, %s%s'):format(path, size, counted(result.redactions)))
    elseif err.kind == 'fileExists' then
      local options = { prompt = path .. ' exists. Replace it?', kind = 'treelined.confirm' }
      vim.ui.select({ 'Replace it', 'Keep it' }, options, function(chosen)
        if chosen == 'Replace it' then
          M.export(session, path, true)
        end
      end)
    else
      advice.report(err)
    end
  end)
end

return M
