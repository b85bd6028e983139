--- `:Treelined`, maps, configuration, health and help.

local f = require('fixture')
local equal = f.equal

local function read(path)
  return table.concat(vim.fn.readfile(f.root .. '/' .. path), '\n')
end

return {
  {
    'modules are loaded when they are used',
    function(t)
      local child = t.child()
      local loaded = child:lua([[
        return vim.tbl_filter(function(name)
          return name:find('^treelined') ~= nil
        end, vim.tbl_keys(package.loaded))
      ]])
      equal(loaded, {})
      equal(child:lua("return vim.fn.exists(':Treelined')"), 2)
    end,
  },
  {
    'subcommands, filters and sessions are completed',
    function(t)
      local child = t.child()
      local function complete(line)
        return child:lua("return vim.fn.getcompletion(..., 'cmdline')", line)
      end
      equal(complete('Treelined la'), { 'label' })
      equal(complete('Treelined import cod'), { 'codex' })
      equal(complete('Treelined filter no'), { 'no-tools' })
      equal(complete('Treelined undo x'), {})
      child:command('Treelined new talk')
      child:sees('talk ·')
      local id = child:lua("return require('treelined.tree').get().session.id")
      equal(complete('Treelined open ' .. id:sub(1, 8)), { id })
      local path = child.session_dir:gsub('[^/]*$', '')
      assert(#complete('Treelined open ' .. path) > 0, 'paths are completed too')
    end,
  },
  {
    'commands that fail show the reason',
    function(t)
      local child = t.child()
      for command, pattern in pairs({
        ['Treelined frobnicate'] = 'there is no `frobnicate`',
        ['Treelined undo'] = 'this buffer is not a tree',
        ['Treelined send'] = 'this buffer is not a prompt',
        ['Treelined name x'] = 'neither a tree nor a prompt',
        ['Treelined filter odd'] = 'there is no filter "odd"; the filters are default, no%-tools',
      }) do
        child:lua('notes = {}')
        child:command(command)
        f.matches(child:lua('return notes[1]'), pattern)
      end
      child:lua('notes = {}')
      child:command('Treelined open nowhere')
      child:gives('#notes', 1)
      f.matches(child:lua('return notes[1]'), 'nowhere')
    end,
  },
  {
    -- `:Treelined open` once accepted only whole ids of 36 characters, while the shell accepts their beginning.
    'the beginning of an id opens the session',
    function(t)
      local child = t.child()
      local client = t.client({ command = f.command, session_dir = child.session_dir })
      local id = f.converse(client, { name = 'talk' }).sessionId
      client:close_sync()
      child:command('Treelined open ' .. id:sub(1, 3))
      child:gives('#notes', 1)
      child:command('Treelined open ' .. id:sub(1, #id - 1))
      child:sees('talk ·')
      child:gives("require('treelined.tree').get().session.id", id)
      child:gives('#notes', 1)
    end,
  },
  {
    'the beginning of several ids opens none of them',
    function(t)
      local child = t.child()
      local client = t.client({ command = f.command, session_dir = child.session_dir })
      for _, id in ipairs({ 'beginning-one', 'beginning-two' }) do
        f.converse(client, { name = id, sessionId = id })
      end
      client:close_sync()
      child:command('Treelined open beginning')
      child:gives('#notes', 1)
      f.matches(child:lua('return notes[1]'), 'several sessions begin with "beginning"')
    end,
  },
  {
    'a recent session can be picked from a list',
    function(t)
      local child = t.child()
      child:command('Treelined')
      child:gives('notes', { 'treelined: there are no sessions yet; `:Treelined new` makes one' })
      local client = t.client({ command = f.command, session_dir = child.session_dir })
      f.converse(client, { name = 'the\nfirst' })
      f.converse(client, { name = '' })
      child:lua([[
        vim.ui.select = function(items, options, choose)
          shown = vim.tbl_map(options.format_item, items)
          choose(items[1])
        end
      ]])
      child:command('Treelined open')
      child:sees('← active')
      local shown = child:lua('return shown')
      f.matches(shown[1], '^ now  says u1 · 4 messages · nvim$')
      local imported =
        { modified = '', name = 'x', messageCount = 1, cwd = '/a/b', source = 'codex' }
      f.matches(require('treelined.row').describe(imported), 'x · 1 message · b · codex$')
      f.matches(shown[2], '  the first · 4 messages · nvim$')
    end,
  },
  {
    '<Plug> maps can be mapped to other keys, and default keys can be disabled',
    function(t)
      local child = t.child({ default_keys = false })
      child:command('Treelined new')
      child:gives('vim.bo.filetype', 'treelined')
      equal(child:lua("return vim.fn.maparg('<CR>', 'n')"), '')
      local keys = require('treelined.keys')
      for _, key in ipairs(keys.tree) do
        equal(child:lua("return vim.fn.hasmapto(..., 'n')", key[2]), 0)
        f.matches(
          child:lua("return vim.fn.maparg(..., 'n', false, true).desc", key[2]),
          '^treelined: '
        )
      end
      equal(child:lua("return vim.fn.maparg('<Plug>(treelined-send)', 'i', false, true).mode"), 'i')
    end,
  },
  {
    'an invalid setting is reported by name, also by :checkhealth',
    function(t)
      local child = t.child({ filtre = 'all', page_size = 'many', render = 'svg' })
      child:command('Treelined open x')
      local said = child:lua('return notes[1]')
      for _, pattern in ipairs({
        'no setting `filtre`',
        '`page_size` is a number',
        '`render` is one of',
      }) do
        f.matches(said, pattern)
      end
      child:command('checkhealth treelined')
      local text = table.concat(child:lines(), '\n')
      f.matches(text, 'ERROR.*no setting `filtre`')
    end,
  },
  {
    ':checkhealth reports versions and settings',
    function(t)
      local child = t.child({ env = { SECRET = 'sk-canary' } })
      child:command('checkhealth treelined')
      local text = table.concat(child:lines(), '\n')
      f.matches(text, 'Neovim is 0%.7 or newer')
      f.matches(text, 'speaks protocol 1')
      f.matches(text, 'summaries are written by `outline`')
      f.matches(text, '0 sessions, listed in')
      assert(not text:find('ERROR', 1, true) and not text:find('sk-canary', 1, true), text)
      child = t.child({ command = '/nowhere/treelined' })
      child:command('checkhealth treelined')
      text = table.concat(child:lines(), '\n')
      f.matches(text, 'ERROR.*`/nowhere/treelined` is not executable')
    end,
  },
  {
    'setup overrides vim.g.treelined',
    function(t)
      local child = t.child({ filter = 'all' })
      child:lua("require('treelined').setup({ filter = 'user-only', render = 'ascii' })")
      child:command('Treelined new plain')
      child:sees('plain · 0 rows')
      child:sees('user-only')
    end,
  },
  {
    'vim.g.treelined can be a function, and contain functions',
    function(t)
      local child = t.child()
      child:lua([[
        local config = vim.g.treelined
        config.answers = {
          session_before_tree = function(_, question)
            question.reply({ cancel = true, reason = 'still\nbuilding it' })
          end,
        }
        vim.g.treelined = function()
          return config
        end
      ]])
      child:command('Treelined new')
      child:sees('0 rows')
      child:type('ihello<C-s>')
      child:sees('hello ← active')
      child:type('<Esc><C-w>k<CR>')
      child:gives('notes', { 'treelined: treelined.nvim cancelled: still building it' })
    end,
  },
  {
    -- Each client once had different keys for the same action.
    'the keys of the tree are those of the table that all clients share',
    function()
      local mine, rows = {}, 0
      for _, key in ipairs(require('treelined.keys').tree) do
        if key.action then
          mine[key.action] = vim.trim((mine[key.action] or '') .. ' ' .. key[1])
        end
      end
      -- Neovim itself has these keys.
      mine.up, mine.down = 'k', 'j'
      for line in io.lines(f.root .. '/../../schema/keys.tsv') do
        local row = vim.split(line, '\t')
        if not vim.startswith(line, '#') then
          rows = rows + 1
          local reserved = row[1]:match('^(.*)!$')
          if reserved then
            for _, key in ipairs(require('treelined.keys').tree) do
              local is_free = key[1] ~= row[5] or key.action == reserved
              assert(is_free, key[1] .. ' is reserved for ' .. reserved)
            end
            mine[reserved] = nil
          else
            equal({ row[1], mine[row[1]] or '-' }, { row[1], row[5] })
            mine[row[1]] = nil
          end
        end
      end
      equal(mine, {})
      assert(rows > 30)
    end,
  },
  {
    -- At 200 columns the keys were once one long column, as at 80.
    'the keys are listed in as many columns as there is room for',
    function()
      local keys = require('treelined.keys')
      equal(#keys.lines(keys.tree, 80), #keys.tree)
      local lines = keys.lines(keys.tree, 200)
      equal(#lines, math.ceil(#keys.tree / 3))
      local count = 0
      for _, line in ipairs(lines) do
        local text = table.concat(vim.tbl_map(function(part)
          return part[1]
        end, line))
        assert(#text < 200, text)
        count = count + #line / 2
      end
      equal(count, #keys.tree)
      equal(lines[1][1][1], '<CR>  ')
    end,
  },
  {
    -- At 40 columns words were broken at the edge of the screen.
    'descriptions of keys go on below themselves where the screen is narrow',
    function()
      local keys = require('treelined.keys')
      local texts = vim.tbl_map(function(line)
        return line[1][1] .. line[2][1]
      end, keys.lines(keys.tree, 40))
      for _, text in ipairs(texts) do
        assert(#text < 40, text)
      end
      equal(vim.list_slice(texts, 1, 2), { '<CR>  go to this entry; open a folded', '      row' })
      assert(#texts > #keys.tree)
      local said = table.concat(texts, ' '):gsub(' +', ' ')
      for _, key in ipairs(keys.tree) do
        assert(said:find(key[1] .. ' ' .. key[3], 1, true), key[3])
      end
    end,
  },
  {
    'the help describes every subcommand, map, setting, function and highlight group',
    function()
      local help = read('doc/treelined.txt')
      local function knows(text)
        assert(help:find(text, 1, true), text .. ' is not in the help')
      end
      for name in pairs(require('treelined.command').subcommands) do
        knows('*:Treelined-' .. name .. '*')
      end
      local keys = require('treelined.keys')
      for _, list in ipairs({ keys.tree, keys.prompt, keys.list }) do
        for _, key in ipairs(list) do
          knows('*' .. key[2] .. '*')
          knows(key[3])
        end
      end
      for line in read('lua/treelined/config.lua'):gmatch('%-%-%-@field ([%w_]+)') do
        knows('*treelined-config-' .. line .. '*')
      end
      for name in pairs(require('treelined')) do
        knows('*treelined.' .. name .. '()*')
      end
      for name in pairs(require('treelined.draw').highlights) do
        knows('*hl-' .. name .. '*')
      end
      for line in help:gmatch('[^\n]+') do
        assert(vim.fn.strdisplaywidth(line) <= 79, 'too wide: ' .. line)
      end
    end,
  },
  {
    'every tag that the help refers to exists',
    function(t)
      local child = t.child()
      child:command('helptags doc')
      for tag in read('doc/treelined.txt'):gmatch('|([^|%s]+)|') do
        local found = child:lua('return #vim.fn.getcompletion(..., "help")', tag)
        assert(found > 0, 'there is no help for ' .. tag)
      end
      -- Here the help file has no file type plugin.
      child:command('noautocmd help treelined')
      f.matches(child:lua('return vim.api.nvim_buf_get_name(0)'), 'treelined.txt$')
    end,
  },
}
