--- The keys of treelined's buffers: what is mapped by default, and what each does, in a line.

local M = {}

--- In a tree: the key, the `<Plug>` map it stands for, what that does.
M.tree = {
  { '<CR>', '<Plug>(treelined-navigate)', 'go to this entry' },
  { 'u', '<Plug>(treelined-undo)', 'undo the last move' },
  { '<C-r>', '<Plug>(treelined-redo)', 'redo it' },
  { 'x', '<Plug>(treelined-abort)', 'abort the move that runs' },
  { 'L', '<Plug>(treelined-label)', 'label this entry' },
  { 'p', '<Plug>(treelined-prompt)', 'write a message' },
  { 'K', '<Plug>(treelined-entry)', 'show this entry' },
  { 'gl', '<Plug>(treelined-leaf)', 'where the conversation stands' },
  { 'gj', '<Plug>(treelined-join)', 'go where others have written on' },
  { 'za', '<Plug>(treelined-fold-toggle)', 'fold or unfold what is below' },
  { '<Tab>', '<Plug>(treelined-fold-toggle)', 'the same' },
  { 'zc', '<Plug>(treelined-fold-close)', 'fold' },
  { 'zo', '<Plug>(treelined-fold-open)', 'unfold' },
  { 'zR', '<Plug>(treelined-fold-open-all)', 'unfold everything' },
  { 'f', '<Plug>(treelined-filter)', 'choose which rows there are' },
  { 's', '<Plug>(treelined-query)', 'only rows that match' },
  { '/', '<Plug>(treelined-search)', 'search' },
  { 'n', '<Plug>(treelined-search-next)', 'next match' },
  { 'N', '<Plug>(treelined-search-previous)', 'previous match' },
  { 'R', '<Plug>(treelined-refresh)', 'draw anew; start the daemon again if it is gone' },
  { 'g?', '<Plug>(treelined-keys)', 'these keys' },
  { 'q', '<Plug>(treelined-close)', 'close the window' },
}

--- In the prompt.
M.prompt = {
  { '<C-s>', '<Plug>(treelined-send)', 'send the message' },
}

return M
