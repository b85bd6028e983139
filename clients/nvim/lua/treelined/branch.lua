--- Names and archive of branches. Any entry of a branch stands for it. The result of every change names the inverse
--- change, and every change is announced, so that all trees are drawn again.

local advice = require('treelined.advice')
local ask = require('treelined.ask')
local config = require('treelined.config')
local keys = require('treelined.keys')
local moves = require('treelined.moves')
local utf8 = require('treelined.utf8')

local M = {}

local namespace = vim.api.nvim_create_namespace('treelined_archived')

local function say(text)
  vim.notify('treelined: ' .. text)
end

--- Returns the key of an action, or its command if the default keys are off.
---@param plug string the name of its map
---@param command string
local function key_of(plug, command)
  for _, key in ipairs(config.get().default_keys and keys.tree or {}) do
    if key[2] == ('<Plug>(treelined-%s)'):format(plug) then
      return key[1]
    end
  end
  return ':Treelined ' .. command
end

--- Returns the row under the cursor. Returns nil, with a message, if the row stands for several branches.
local function current(tree)
  local node = tree:current()
  if node and node.folded and node.folded.branches > 1 then
    return say('these are several branches; open the row, and choose one')
  end
  return node
end

--- Calls a method about the branch of the entry under the cursor.
local function call(tree, method, params, callback)
  local node = current(tree)
  if not node then
    return
  end
  params = vim.tbl_extend('force', params, { entryId = node.id })
  tree.session:request(method, params, function(err, result)
    if err then
      return advice.report(err)
    end
    callback(result)
  end)
end

--- Names the branch of the entry under the cursor; an empty name removes it.
---@param tree treelined.Tree
---@param name? string asks for it if left out
function M.name(tree, name)
  if not name then
    if not current(tree) then
      return
    end
    return ask.input({ prompt = 'Name of this branch (empty for none): ' }, function(given)
      M.name(tree, given)
    end)
  end
  call(tree, 'name_branch', { name = name }, function(result)
    local text = result.name and ('this branch is called "%s"'):format(result.name)
      or 'this branch has no name'
    local before = result.inverse and result.inverse.params.name
    if before then
      text = ('%s; it was "%s"'):format(text, before)
    elseif result.name and result.inverse then
      text = text .. '; an empty name removes it'
    end
    say(utf8.line(text))
  end)
end

local function unarchive(tree)
  call(tree, 'unarchive_branch', {}, function()
    say(('the branch is back; %s archives it again'):format(key_of('archive', 'archive')))
  end)
end

--- Archives the branch of the entry under the cursor, or restores it if it is archived. If the leaf is in the branch,
--- it first moves out.
---@param tree treelined.Tree
function M.archive(tree)
  local node = tree:current()
  if node and node.archived then
    return unarchive(tree)
  end
  call(tree, 'archive_branch', {}, function(result)
    if result.cancelled then
      return say(moves.reason_text(result))
    elseif result.oldLeafId ~= result.newLeafId then
      local undo = key_of('undo', 'undo')
      return say(('archived, and the leaf is at its fork; %s brings both back'):format(undo))
    end
    local text = 'archived; %s shows it, %s brings it back'
    say(text:format(key_of('archived', 'archived'), key_of('archive', 'archive')))
  end)
end

--- Asks a side question: a background branch below the leaf.
---@param tree treelined.Tree
---@param question? string asks for it if left out
function M.aside(tree, question)
  if not question then
    return ask.input({ prompt = 'By the way: ' }, function(given)
      M.aside(tree, given)
    end)
  end
  if not question:find('%S') then
    return
  end
  local message = { role = 'user', content = { { type = 'text', text = vim.trim(question) } } }
  local params = { message = message, keepLeaf = true, group = 'btw' }
  params.parentId = tree.session.leaf_id or vim.NIL
  tree.session:request('append_message', params, function(err)
    if err then
      return advice.report(err)
    end
    local text = 'asked beside the conversation; %s brings it in'
    say(text:format(key_of('keep-aside', 'keep-aside')))
  end)
end

--- Copies the background branch of the entry under the cursor into the conversation.
---@param tree treelined.Tree
function M.keep(tree)
  call(tree, 'keep_branch', {}, function(result)
    local kept = 'kept; its messages are at the leaf'
    say(result.durability == 'none' and 'it is in the conversation already' or kept)
  end)
end

--- Shows archived branches, or hides them.
---@param tree treelined.Tree
function M.toggle(tree)
  if not tree.archived and tree.rows.archived == 0 then
    return say('no branch is archived')
  end
  tree.archived = not tree.archived
  tree:refresh()
end

--- Shows the numbers of archived and of shed branches below the rows. The lines are virtual text, since the lines of
--- the buffer are rows.
---@param tree treelined.Tree
function M.draw(tree)
  vim.api.nvim_buf_clear_namespace(tree.buf, namespace, 0, -1)
  local lines = {}
  local function add(count, kind, text, ...)
    if count > 0 then
      local branches = count == 1 and 'branch' or 'branches'
      text = ('   %d %s %s · ' .. text):format(count, kind, branches, ...)
      table.insert(lines, { { text, 'TreelinedGuide' } })
    end
  end
  local count, shed = tree.rows.archived, tree.rows.shed
  local verb = tree.archived and 'hides' or 'shows'
  local them = count == 1 and 'it' or 'them'
  add(count, 'archived', '%s %s %s', key_of('archived', 'archived'), verb, them)
  add(shed, 'shed', 'treelined unshed brings %s back', shed == 1 and 'it' or 'them')
  if #lines > 0 then
    local last = vim.api.nvim_buf_line_count(tree.buf) - 1
    vim.api.nvim_buf_set_extmark(tree.buf, namespace, last, 0, { virt_lines = lines })
  end
end

return M
