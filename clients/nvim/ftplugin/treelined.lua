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

if require('treelined.config').get().default_keys then
  for _, key in ipairs(require('treelined.keys').tree) do
    vim.keymap.set('n', key[1], key[2], { buffer = true, remap = true, desc = key[3] })
  end
end
