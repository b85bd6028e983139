--- Tags, pins and archived sessions, for the session of a tree and for a row of the list.

local advice = require('treelined.advice')
local ask = require('treelined.ask')
local sessions = require('treelined.session')
local utf8 = require('treelined.utf8')

local M = {}

local function say(text)
  vim.notify('treelined: ' .. utf8.line(text))
end

--- Calls the callback with the client for the sessions.
local function with_client(callback)
  sessions.connect(function(err, client)
    if not client then
      return advice.report(err)
    end
    callback(client)
  end)
end

--- Calls the callback with the current row of a session, which has its tags and marks.
local function with_row(client, id, callback)
  client:list_sessions({ query = id, archived = true }, function(err, result)
    if err then
      return advice.report(err)
    end
    for _, row in ipairs(result.sessions) do
      if row.sessionId == id then
        return callback(row)
      end
    end
    say('this session is not in the list, so it has no tags and marks')
  end)
end

--- Splits a text into tags.
local function words(text)
  local found = {}
  for word in text:gmatch('[^%s,]+') do
    found[#found + 1] = (word:gsub('^#', '')):lower()
  end
  return found
end

--- Gives the session exactly the tags in `text`.
local function set_tags(client, id, before, text)
  local wanted = words(text)
  local function without(list, others)
    return vim.tbl_filter(function(tag)
      return not vim.tbl_contains(others, tag)
    end, list)
  end
  local params = { sessionId = id, add = without(wanted, before), remove = without(before, wanted) }
  if #params.add == 0 and #params.remove == 0 then
    return say('the tags are as they were')
  end
  -- The tags of a session can be changed only while it is open.
  local known = sessions.get(id)
  local function finish()
    if not known then
      client:close_session({ sessionId = id })
    end
  end
  local function change()
    client:tag_session(params, function(err, result)
      finish()
      if err then
        return advice.report(err)
      end
      local tags = vim.tbl_map(function(tag)
        return '#' .. tag
      end, result.tags)
      say(#tags == 0 and 'the session has no tags' or 'tags: ' .. table.concat(tags, ' '))
    end)
  end
  if known then
    return change()
  end
  client:open_session({ sessionId = id }, function(err)
    if err then
      return advice.report(err)
    end
    change()
  end)
end

--- Asks for the tags of the session of a row.
local function ask_tags(client, row)
  local before = row.tags or {}
  local options = { prompt = 'Tags (empty for none): ', default = table.concat(before, ' ') }
  ask.input(options, function(given)
    set_tags(client, row.sessionId, before, given)
  end)
end

--- Changes the tags of a session.
---@param id string
---@param text? string the tags it has then; asks for them if left out
function M.tags(id, text)
  with_client(function(client)
    with_row(client, id, function(row)
      if text then
        return set_tags(client, id, row.tags or {}, text)
      end
      ask_tags(client, row)
    end)
  end)
end

--- Asks for the tags of the session of a row in the list. It asks before any call to the daemon, since keys that are
--- typed before the question would be keys of the list.
---@param row treelined.SessionRow
function M.tags_of(row)
  with_client(function(client)
    ask_tags(client, row)
  end)
end

local SAID = {
  pinned = { [true] = 'pinned', [false] = 'not pinned any more' },
  archived = { [true] = 'archived; lists leave it out', [false] = 'in the lists again' },
}

--- Sets or removes a mark of a session on this machine.
---@param id string
---@param mark 'pinned'|'archived'
function M.mark(id, mark)
  with_client(function(client)
    with_row(client, id, function(row)
      client:mark_session({ sessionId = id, [mark] = not row[mark] }, function(err, result)
        if err then
          return advice.report(err)
        end
        say('the session is ' .. SAID[mark][result[mark]])
      end)
    end)
  end)
end

return M
