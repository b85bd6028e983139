--- The buffer for the next user message of a session. `:write` sends it.

local advice = require('treelined.advice')
local config = require('treelined.config')
local keys = require('treelined.keys')
local session_module = require('treelined.session')
local windows = require('treelined.windows')

local M = {}

---@class treelined.Prompt
---@field session_id string
---@field images table[] content blocks that are sent with the text
---@field attempt? treelined.SendAttempt the last send, if no answer says that the daemon has the message
---@field is_sending boolean

--- A message and its id. The id is kept until the text changes, so that the daemon recognizes a retry after a lost
--- answer.
---@class treelined.SendAttempt
---@field content string|table[]
---@field entry_id string
---@field message table

---@type table<integer, treelined.Prompt>
local prompts = {}

--- How long `:write` waits for the daemon, in milliseconds.
local WRITE_MS = 3000

local namespace = vim.api.nvim_create_namespace('treelined-prompt')

local function say(text, level)
  vim.notify('treelined: ' .. text, level or vim.log.levels.INFO)
end

local function text_of(buf)
  return table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), '\n')
end

local function fill(buf, text)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, vim.split(text, '\n', { plain = true }))
end

local function show_images(buf)
  vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  local count = #prompts[buf].images
  if count > 0 then
    local text = count == 1 and ' 1 image goes with it' or (' %d images go with it'):format(count)
    local options = { virt_text = { { text, 'Comment' } } }
    vim.api.nvim_buf_set_extmark(buf, namespace, 0, 0, options)
  end
end

local function buffer(session)
  for buf, prompt in pairs(prompts) do
    if prompt.session_id == session.id then
      return buf
    end
  end
  local buf = vim.api.nvim_create_buf(true, false)
  prompts[buf] = { session_id = session.id, images = {}, is_sending = false }
  vim.api.nvim_buf_set_name(buf, windows.name(session.id, 'prompt'))
  vim.bo[buf].buftype = 'acwrite'
  vim.bo[buf].bufhidden = 'hide'
  vim.bo[buf].swapfile = false
  vim.bo[buf].filetype = 'markdown'
  vim.b[buf].treelined_session = session.id
  vim.api.nvim_create_autocmd('BufWriteCmd', {
    buffer = buf,
    callback = function()
      M.send(buf, { force = vim.v.cmdbang == 1 })
      -- `:wq` needs an unmodified buffer.
      vim.wait(WRITE_MS, function()
        return not prompts[buf].is_sending
      end, 5)
    end,
  })
  windows.on_wipe(buf, function()
    prompts[buf] = nil
  end)
  keys.map(keys.prompt, buf, { 'n', 'i' })
  return buf
end

local function enter(session)
  local buf = buffer(session)
  windows.enter(session.id, 'prompt', buf, config.get().prompt_window)
  windows.set_title(buf, ('%s · message · :w sends'):format(session:title()))
  return buf
end

--- Moves the cursor after the text, in insert mode.
local function begin_to_write(buf)
  local win = vim.api.nvim_get_current_win()
  vim.api.nvim_win_set_cursor(win, { vim.api.nvim_buf_line_count(buf), 0 })
  if config.get().prompt_insert then
    vim.cmd('startinsert!')
  end
end

--- Shows the prompt of a session in the window that `prompt_window` makes.
---@param session treelined.OpenSession
---@return integer buf
function M.show(session)
  local buf = enter(session)
  begin_to_write(buf)
  return buf
end

--- Puts the text that a navigation has returned into the prompt. `u` restores the previous text.
---@param session treelined.OpenSession
---@param text string
---@param images? table[]
---@param advice_now? string what to do next; shown unless the prompt had another text
---@return integer buf
function M.put(session, text, images, advice_now)
  local buf = enter(session)
  local before = text_of(buf)
  fill(buf, text)
  prompts[buf].images = images or {}
  show_images(buf)
  -- The session has this text, so the buffer counts as unmodified: nothing is lost if Neovim ends.
  vim.bo[buf].modified = false
  begin_to_write(buf)
  if before ~= '' and before ~= text then
    say('u restores the previous text of the prompt')
  elseif advice_now then
    say(advice_now)
  end
  return buf
end

local function new_id()
  local bytes = (vim.uv or vim.loop).random(8)
  return (bytes:gsub('.', function(byte)
    return ('%02x'):format(byte:byte())
  end))
end

local function sent(buf, changedtick)
  if not vim.api.nvim_buf_is_valid(buf) then
    return
  end
  prompts[buf].attempt = nil
  prompts[buf].images = {}
  show_images(buf)
  -- Text that was typed since the send belongs to the next message.
  if vim.api.nvim_buf_get_changedtick(buf) == changedtick then
    fill(buf, '')
    vim.bo[buf].modified = false
  end
end

--- Returns the attempt for the text in the prompt: the last attempt if the text is unchanged, otherwise a new one.
---@param prompt treelined.Prompt
---@param text string
---@return treelined.SendAttempt
local function attempt_of(prompt, text)
  local content = text
  if #prompt.images > 0 then
    content = vim.list_extend({ { type = 'text', text = text } }, prompt.images)
  end
  if prompt.attempt and vim.deep_equal(prompt.attempt.content, content) then
    return prompt.attempt
  end
  local seconds, microseconds = (vim.uv or vim.loop).gettimeofday()
  local timestamp = seconds * 1000 + math.floor(microseconds / 1000)
  return {
    content = content,
    entry_id = new_id(),
    message = { role = 'user', content = content, timestamp = timestamp },
  }
end

---@param expected_leaf_id? string|userdata the leaf that the message must follow; nil for any leaf
local function append(buf, session, text, expected_leaf_id)
  local prompt = prompts[buf]
  prompt.attempt = attempt_of(prompt, text)
  local params = {
    entryId = prompt.attempt.entry_id,
    expectedLeafId = expected_leaf_id,
    message = prompt.attempt.message,
  }
  local changedtick = vim.api.nvim_buf_get_changedtick(buf)
  session:request('append_message', params, function(err)
    prompt.is_sending = false
    if not err then
      sent(buf, changedtick)
    elseif err.kind == 'leafMoved' then
      say(
        'not sent: other programs have appended here. `o` in the tree goes to their leaf, '
          .. '`:write!` sends it here and makes a branch',
        vim.log.levels.WARN
      )
    else
      say('not sent: ' .. advice.text(err), vim.log.levels.ERROR)
    end
  end)
end

--- Sends the prompt as a user message. Clears the prompt if the daemon has stored the message, and keeps it otherwise.
--- If the session is not open any more, it is first opened again, if necessary with a new daemon.
---@param buf? integer the current buffer if left out
---@param options? {force?: boolean} force: send even if other programs have appended here; it makes a branch
function M.send(buf, options)
  buf = (buf == nil or buf == 0) and vim.api.nvim_get_current_buf() or buf
  local prompt = prompts[buf]
  if not prompt then
    return say('this buffer is not a prompt', vim.log.levels.ERROR)
  elseif prompt.is_sending then
    return say('the message is being sent')
  end
  local text = text_of(buf)
  if vim.trim(text) == '' and #prompt.images == 0 then
    return say('there is nothing to send')
  end
  prompt.is_sending = true
  -- The leaf that the user has seen. When the session is opened again, others may have moved the leaf.
  local seen = session_module.known(prompt.session_id)
  local expected_leaf_id = seen and seen.leaf_id or vim.NIL
  if options and options.force then
    expected_leaf_id = nil
  end
  session_module.reopen(prompt.session_id, function(err, session)
    if not session then
      prompt.is_sending = false
      return say('not sent: ' .. advice.text(err), vim.log.levels.ERROR)
    end
    append(buf, session, text, expected_leaf_id)
  end)
end

--- Returns the session id of a prompt buffer.
---@param buf? integer
---@return treelined.OpenSession|nil
function M.session_of(buf)
  local prompt = prompts[(buf == nil or buf == 0) and vim.api.nvim_get_current_buf() or buf]
  return prompt and session_module.known(prompt.session_id)
end

return M
