--- Defines `:Treelined` and the `<Plug>` maps. Other modules are loaded when they are used.

if vim.g.loaded_treelined then
  return
end
vim.g.loaded_treelined = true

vim.api.nvim_create_user_command('Treelined', function(command)
  local lines = command.range > 0 and { command.line1, command.line2 } or nil
  require('treelined.command').run(command.args, lines)
end, {
  nargs = '*',
  range = true,
  desc = 'Conversations of AI agents as trees',
  complete = function(lead, line)
    return require('treelined.command').complete(lead, line)
  end,
})

for _, name in ipairs({
  'navigate',
  'undo',
  'redo',
  'abort',
  'label',
  'prompt',
  'entry',
  'leaf',
  'join',
  'fold-toggle',
  'fold-close',
  'fold-open',
  'fold-open-all',
  'next-prompt',
  'previous-prompt',
  'filter',
  'query',
  'search',
  'search-next',
  'search-previous',
  'pop',
  'merge',
  'copy',
  'compare',
  'fork',
  'continue',
  'branches',
  'name-branch',
  'archive',
  'archived',
  'candidates',
  'aside',
  'keep-aside',
  'family',
  'tags',
  'pin',
  'refresh',
  'keys',
  'close',
}) do
  vim.keymap.set('n', ('<Plug>(treelined-%s)'):format(name), function()
    require('treelined.actions').run((name:gsub('-', '_')))
  end, { desc = 'treelined: ' .. name })
end

for _, name in ipairs({ 'copy', 'compare' }) do
  local options = { silent = true, desc = 'treelined: ' .. name }
  vim.keymap.set(
    'x',
    ('<Plug>(treelined-%s)'):format(name),
    ':Treelined ' .. name .. '<CR>',
    options
  )
end

for _, name in ipairs({
  'open',
  'new',
  'delete',
  'restore',
  'tags',
  'pin',
  'archive',
  'archived',
  'family',
  'import',
  'here',
  'refresh',
  'keys',
}) do
  vim.keymap.set('n', ('<Plug>(treelined-list-%s)'):format(name), function()
    require('treelined.list').run(name)
  end, { desc = 'treelined: ' .. name })
end

vim.keymap.set({ 'n', 'i' }, '<Plug>(treelined-send)', function()
  require('treelined.prompt').send()
end, { desc = 'treelined: send' })

vim.keymap.set('n', '<Plug>(treelined-open)', function()
  require('treelined').pick()
end, { desc = 'treelined: open a session' })

vim.api.nvim_create_autocmd('VimLeavePre', {
  group = vim.api.nvim_create_augroup('treelined', {}),
  callback = function()
    if package.loaded['treelined.session'] then
      require('treelined.session').leave()
    end
  end,
})
