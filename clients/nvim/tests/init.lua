--- Configures the Neovim of the tests: it loads this plugin, and nothing of the user's.

local root = vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h:h')
vim.opt.runtimepath = { root, vim.env.VIMRUNTIME }
vim.opt.packpath = { vim.env.VIMRUNTIME }
package.path = root .. '/tests/?.lua;' .. package.path
vim.opt.swapfile = false
vim.opt.shadafile = 'NONE'
vim.cmd('filetype plugin on')
