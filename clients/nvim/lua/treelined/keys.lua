--- The keys of treelined's buffers: default keys and their descriptions.

local M = {}

--- Keys of the tree: key, `<Plug>` map, description, and whether it works on selected lines too.
M.tree = {
  { '<CR>', '<Plug>(treelined-navigate)', 'go to this entry' },
  { 'u', '<Plug>(treelined-undo)', 'undo the last move' },
  { '<C-r>', '<Plug>(treelined-redo)', 'redo it' },
  { 'x', '<Plug>(treelined-abort)', 'abort the running navigation' },
  { 'L', '<Plug>(treelined-label)', 'label this entry' },
  { 'p', '<Plug>(treelined-prompt)', 'write a message' },
  { 'K', '<Plug>(treelined-entry)', 'show this entry' },
  { 'gl', '<Plug>(treelined-leaf)', 'go to the leaf' },
  { 'gj', '<Plug>(treelined-join)', 'go to the leaf of other programs' },
  { 'za', '<Plug>(treelined-fold-toggle)', 'fold or unfold what is below' },
  { '<Tab>', '<Plug>(treelined-fold-toggle)', 'the same' },
  { 'zc', '<Plug>(treelined-fold-close)', 'fold' },
  { 'zo', '<Plug>(treelined-fold-open)', 'unfold' },
  { 'zR', '<Plug>(treelined-fold-open-all)', 'unfold everything' },
  { 'f', '<Plug>(treelined-filter)', 'choose the filter' },
  { 's', '<Plug>(treelined-query)', 'show only matching rows' },
  { '/', '<Plug>(treelined-search)', 'search' },
  { 'n', '<Plug>(treelined-search-next)', 'next match' },
  { 'N', '<Plug>(treelined-search-previous)', 'previous match' },
  { 'P', '<Plug>(treelined-pop)', 'go back to before the last user message' },
  { 'D', '<Plug>(treelined-compare)', 'compare this branch with that of the leaf', true },
  { 'gy', '<Plug>(treelined-copy)', 'copy this message to the leaf', true },
  { 'gm', '<Plug>(treelined-merge)', 'bring a summary of this branch to the leaf' },
  { 'gf', '<Plug>(treelined-fork)', 'continue from here in a new session' },
  { 'gb', '<Plug>(treelined-branches)', 'choose a branch to go to' },
  { 'R', '<Plug>(treelined-refresh)', 'draw again; restart the daemon if it has ended' },
  { 'g?', '<Plug>(treelined-keys)', 'list the keys' },
  { 'q', '<Plug>(treelined-close)', 'close the window' },
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
  { 'i', '<Plug>(treelined-list-import)', 'import the conversations of other tools' },
  { '.', '<Plug>(treelined-list-here)', 'show only the sessions of this directory, or all' },
  { 'R', '<Plug>(treelined-list-refresh)', 'read the list again' },
  { 'g?', '<Plug>(treelined-list-keys)', 'list these keys' },
}

--- Maps keys in a buffer, unless the user does that.
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

--- Shows keys with their descriptions.
---@param list table[]
function M.show(list)
  local lines = {}
  for _, key in ipairs(list) do
    lines[#lines + 1] = { ('%-6s'):format(key[1]), 'Special' }
    lines[#lines + 1] = { key[3] .. '\n' }
  end
  vim.api.nvim_echo(lines, false, {})
end

return M
