--- Options and keys of tree buffers.

if vim.b.did_ftplugin == 1 then
  return
end
vim.b.did_ftplugin = 1

local window = vim.opt_local
window.wrap = false
window.number = false
window.relativenumber = false
window.signcolumn = 'no'
window.foldcolumn = '0'
window.foldenable = false
window.spell = false
-- A row that goes on outside of the window says so. Rows have no tabs.
window.list = true
window.listchars = 'extends:…,precedes:…'
window.cursorline = true

local keys = require('treelined.keys')
keys.map(keys.tree, vim.api.nvim_get_current_buf())
