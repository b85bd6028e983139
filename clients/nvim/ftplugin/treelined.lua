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
window.list = false
window.cursorline = true

local keys = require('treelined.keys')
keys.map(keys.tree, vim.api.nvim_get_current_buf())
