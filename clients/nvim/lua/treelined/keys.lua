--- The keys of treelined's buffers: default keys and their descriptions.

local M = {}

--- Keys of the tree: key, `<Plug>` map, description.
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
  { 'R', '<Plug>(treelined-refresh)', 'draw again; restart the daemon if it has ended' },
  { 'g?', '<Plug>(treelined-keys)', 'list the keys' },
  { 'q', '<Plug>(treelined-close)', 'close the window' },
}

--- Keys of the prompt.
M.prompt = {
  { '<C-s>', '<Plug>(treelined-send)', 'send the message' },
}

return M
