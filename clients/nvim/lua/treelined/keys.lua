--- The keys of treelined's buffers: default keys and their descriptions.

local M = {}

--- The keys of the tree. Each has the key, its `<Plug>` map, a description, whether it also works on selected lines,
--- and, if schema/keys.tsv (the table of all clients) has the action, its name there.
M.tree = {
  {
    '<CR>',
    '<Plug>(treelined-navigate)',
    'go to this entry; open a folded row',
    action = 'accept',
  },
  { 'u', '<Plug>(treelined-undo)', 'undo the last move', action = 'undo' },
  { '<C-r>', '<Plug>(treelined-redo)', 'redo the move', action = 'redo' },
  { 'x', '<Plug>(treelined-abort)', 'abort the running navigation' },
  { 'L', '<Plug>(treelined-label)', 'label this entry', action = 'label' },
  { 'i', '<Plug>(treelined-prompt)', 'write a message', action = 'compose' },
  { 'K', '<Plug>(treelined-entry)', 'show this entry' },
  { 'a', '<Plug>(treelined-leaf)', 'go to the leaf', action = 'to-active' },
  { 'o', '<Plug>(treelined-join)', 'go to the leaf of other programs', action = 'to-news' },
  { ']]', '<Plug>(treelined-next-prompt)', 'to the next user message', action = 'next-prompt' },
  { '[[', '<Plug>(treelined-previous-prompt)', 'to the one before', action = 'previous-prompt' },
  { '<Tab>', '<Plug>(treelined-fold-toggle)', 'open or close branches', action = 'toggle-fold' },
  { 'za', '<Plug>(treelined-fold-toggle)', 'the same', action = 'toggle-fold' },
  { 'zc', '<Plug>(treelined-fold-close)', 'close', action = 'fold-or-up' },
  { 'zo', '<Plug>(treelined-fold-open)', 'open', action = 'unfold-or-down' },
  { 'zR', '<Plug>(treelined-fold-open-all)', 'open or close all branches', action = 'open-all' },
  { 'f', '<Plug>(treelined-filter)', 'choose the filter' },
  { 's', '<Plug>(treelined-query)', 'show only matching rows' },
  { '/', '<Plug>(treelined-search)', 'search', action = 'search' },
  { 'n', '<Plug>(treelined-search-next)', 'next match', action = 'next-hit' },
  { 'N', '<Plug>(treelined-search-previous)', 'previous match', action = 'previous-hit' },
  { 'e', '<Plug>(treelined-pop)', 'edit the last user message again', action = 'rewind' },
  {
    'c',
    '<Plug>(treelined-compare)',
    'compare this branch with that of the leaf',
    true,
    action = 'compare',
  },
  { 'p', '<Plug>(treelined-copy)', 'copy this message to the leaf', true, action = 'cherry-pick' },
  {
    'w',
    '<Plug>(treelined-merge)',
    'bring a summary of this branch to the leaf',
    action = 'merge',
  },
  { 'gf', '<Plug>(treelined-fork)', 'continue from here in a new session', action = 'fork' },
  {
    'H',
    '<Plug>(treelined-continue)',
    'continue in another tool',
    action = 'continue-elsewhere',
  },
  { 'b', '<Plug>(treelined-branches)', 'choose a branch to go to', action = 'branches' },
  { '@', '<Plug>(treelined-name-branch)', 'name this branch', action = 'name-branch' },
  {
    'D',
    '<Plug>(treelined-archive)',
    'archive this branch, or bring it back',
    action = 'archive',
  },
  { '.', '<Plug>(treelined-archived)', 'show or hide archived branches', action = 'show-archived' },
  { 'J', '<Plug>(treelined-candidates)', 'choose between answers', action = 'candidates' },
  { ',', '<Plug>(treelined-aside)', 'ask beside the conversation', action = 'aside' },
  {
    ';',
    '<Plug>(treelined-keep-aside)',
    'copy a side question to the leaf',
    action = 'keep-aside',
  },
  { 'Y', '<Plug>(treelined-family)', 'sessions related to this one', action = 'family' },
  { '#', '<Plug>(treelined-tags)', 'change the tags of the session', action = 'tags' },
  { '!', '<Plug>(treelined-pin)', 'pin the session, or unpin it', action = 'pin' },
  {
    'R',
    '<Plug>(treelined-refresh)',
    'draw again; restart the daemon if it has ended',
    action = 'reconnect',
  },
  { 'g?', '<Plug>(treelined-keys)', 'list the keys', action = 'help' },
  { 'q', '<Plug>(treelined-close)', 'close the window', action = 'quit' },
}

--- Keys of the prompt.
M.prompt = {
  { '<C-s>', '<Plug>(treelined-send)', 'send the message' },
}

--- Keys of the list of sessions.
M.list = {
  { '<CR>', '<Plug>(treelined-list-open)', 'open this session' },
  { 'o', '<Plug>(treelined-list-new)', 'make a new session' },
  { 'dd', '<Plug>(treelined-list-delete)', 'move this session to the trash' },
  { 'U', '<Plug>(treelined-list-restore)', 'restore a session from the trash' },
  { '#', '<Plug>(treelined-list-tags)', 'change the tags of this session' },
  { '!', '<Plug>(treelined-list-pin)', 'pin this session, or unpin it' },
  { 'D', '<Plug>(treelined-list-archive)', 'archive this session, or bring it back' },
  { 'A', '<Plug>(treelined-list-archived)', 'show or hide archived sessions' },
  { 'Y', '<Plug>(treelined-list-family)', 'sessions related to this one' },
  { 'i', '<Plug>(treelined-list-import)', 'import the conversations of other tools' },
  { '.', '<Plug>(treelined-list-here)', 'show only the sessions of this directory, or all' },
  { 'R', '<Plug>(treelined-list-refresh)', 'read the list again' },
  { 'g?', '<Plug>(treelined-list-keys)', 'list these keys' },
}

--- Maps keys in a buffer, unless the user has mapped them.
---@param list table[]
---@param buf integer
---@param modes? string[] default: normal mode, and visual mode for keys of selected lines
function M.map(list, buf, modes)
  if not require('treelined.config').get().default_keys then
    return
  end
  for _, key in ipairs(list) do
    local options = { buffer = buf, remap = true, desc = 'treelined: ' .. key[3] }
    vim.keymap.set(modes or (key[4] and { 'n', 'x' } or 'n'), key[1], key[2], options)
  end
end

--- Breaks a text between words into lines of at most so many characters, if its words are not longer.
local function wrapped(text, most)
  local lines = { '' }
  for word in text:gmatch('%S+') do
    local line = lines[#lines]
    if line ~= '' and #line + 1 + #word > most then
      lines[#lines + 1] = word
    else
      lines[#lines] = line == '' and word or line .. ' ' .. word
    end
  end
  return lines
end

--- Returns keys with their descriptions in one column, with long descriptions on several lines.
local function one_column(list, columns)
  local lines = {}
  for _, key in ipairs(list) do
    local name = ('%-6s'):format(key[1])
    -- Neovim begins another line after text in the last column.
    for index, text in ipairs(wrapped(key[3], columns - #name - 1)) do
      lines[#lines + 1] = { { index == 1 and name or (' '):rep(#name), 'Special' }, { text } }
    end
  end
  return lines
end

--- Returns keys with their descriptions in as many columns as there is room for, from top to bottom.
---@param list table[]
---@param columns integer
---@return string[][][] lines of parts, as `nvim_echo` has them
function M.lines(list, columns)
  local widest = 0
  for _, key in ipairs(list) do
    widest = math.max(widest, #key[3])
  end
  local count = math.max(math.floor(columns / (widest + 8)), 1)
  if count == 1 then
    return one_column(list, columns)
  end
  local height = math.ceil(#list / count)
  local lines = {}
  for index, key in ipairs(list) do
    local line = (index - 1) % height + 1
    lines[line] = lines[line] or {}
    local behind = index + height <= #list and (' '):rep(widest + 2 - #key[3]) or ''
    vim.list_extend(lines[line], { { ('%-6s'):format(key[1]), 'Special' }, { key[3] .. behind } })
  end
  return lines
end

--- Shows keys with their descriptions.
---@param list table[]
function M.show(list)
  local parts = {}
  for _, line in ipairs(M.lines(list, vim.o.columns)) do
    vim.list_extend(parts, line)
    parts[#parts + 1] = { '\n' }
  end
  vim.api.nvim_echo(parts, false, {})
end

return M
