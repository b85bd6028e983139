--- Forks, comparisons, copies, merges and compactions, in the tree of another Neovim.

local f = require('fixture')
local equal = f.equal

--- Starts a Neovim that shows u1 → a1 with the branches u2 → a2 (left) and u3 → a3 (active).
local function shown(t, config)
  local child = t.child(config)
  local client = t.client({ command = f.command, session_dir = child.session_dir })
  child.talk = f.converse(client)
  local id = child.talk.sessionId
  for _, name in ipairs({ 'u3', 'a3' }) do
    local parent = name == 'u3' and 'a1' or nil
    local said = { sessionId = id, entryId = name, parentId = parent, message = f.message(name) }
    assert(client:request_sync('append_message', said))
  end
  client:close_sync()
  child:command('Treelined open ' .. id)
  child:sees('says a3 ← active')
  child:type('zR')
  child:sees('says a2')
  return child
end

local LINE = "vim.fn.getline('.')"
local ALL = 'vim.api.nvim_buf_get_lines(0, 0, -1, false)'

--- Moves the cursor to the row of a message.
local function go(child, text)
  child:lua('vim.fn.search(..., "cw")', text)
end

return {
  {
    'c shows the branch of the cursor beside that of the leaf, in diff mode',
    function(t)
      local child = shown(t)
      go(child, 'says a2')
      child:type('c')
      child:gives('vim.fn.tabpagenr("$")', 2)
      child:gives(ALL, { '# user', 'says u2', '', '# assistant', 'says a2', '' })
      child:sees('left · 2 entries · 0 tool calls')
      equal(child:lua('return vim.wo.diff'), true)
      child:type('<C-w>l')
      child:gives(ALL, { '# user', 'says u3', '', '# assistant', 'says a3', '' })
      child:sees('right, active · 2 entries')
      child:type('q')
      child:gives('vim.bo.filetype', 'treelined')
      child:type('Gc')
      child:gives(
        'notes',
        { 'treelined: this is the leaf; go to another branch, or select two lines' }
      )
    end,
  },
  {
    'two selected lines are compared',
    function(t)
      local child = shown(t)
      child:type('ggjjVjjc')
      child:gives('vim.fn.tabpagenr("$")', 2)
      child:gives(ALL, { '# user', 'says u2', '' })
      child:type('<C-w>l')
      child:gives(ALL, { '# user', 'says u3', '' })
    end,
  },
  {
    'p copies messages to the leaf, one or the selected ones',
    function(t)
      local child = shown(t)
      go(child, 'says u2')
      child:type('p')
      child:sees('says u2 ← active')
      go(child, 'says u2')
      child:type('Vjp')
      child:sees('says a2 ← active')
      child:gives('notes', {
        'treelined: 1 message is copied',
        'treelined: 2 messages are copied',
      })
      child:gives('vim.api.nvim_buf_line_count(0)', 9)
    end,
  },
  {
    'w brings a summary of another branch to the leaf',
    function(t)
      local child = shown(t)
      go(child, 'says a2')
      child:type('w1<CR>')
      child:sees('Tried “says u2”')
      child:gives(LINE .. ":match('summary.*active') ~= nil", true)
      child:gives('vim.api.nvim_buf_line_count(0)', 7)
      go(child, 'says u1')
      child:type('w1<CR>')
      child:gives('notes', { 'treelined: this branch is on the path of the leaf' })
    end,
  },
  {
    'e goes back to before the last user message, and puts it into the prompt',
    function(t)
      local child = shown(t)
      child:type('gge1<CR>')
      child:gives(ALL, { 'says u3' })
      child:sees('says a1 ← active')
    end,
  },
  {
    'gf continues in a new session, which the list has too',
    function(t)
      local child = shown(t)
      go(child, 'says u2')
      child:type('gf')
      child:gives(ALL, { 'says u2' })
      child:sees('says a1 ← active')
      equal(child:lua('return #notes'), 1)
      child:type(' anew<C-s>')
      child:sees('◉  user       says u2 anew ← active')
      child:command('tabnew')
      child:command('Treelined list')
      child:gives('#' .. ALL, 2)
    end,
  },
  {
    'b lists the branches, and goes to the chosen one',
    function(t)
      local child = shown(t)
      child:lua([[
        vim.ui.select = function(items, options, choose)
          shown = vim.tbl_map(options.format_item, items)
          for index, text in ipairs(shown) do
            if text:find('says u2') then
              choose(items[index])
            end
          end
        end
      ]])
      child:type('b')
      child:gives(LINE .. ":match('says a2')", 'says a2')
      -- Branches were once named by their last messages, with dates.
      equal(child:lua('return shown'), {
        '   now  says u2 · 2 messages',
        '◉  now  says u3 · 2 messages',
      })
    end,
  },
  {
    'a branch is archived, counted, shown again and brought back, and each message names the way back',
    function(t)
      local child = shown(t)
      child:type('zR')
      child:sees('⊞ 2 entries · says u2')
      go(child, 'says u2')
      child:command('Treelined archive')
      child:sees('1 archived branch · ')
      child:gives(ALL, {
        '•  user       says u1',
        '•  assistant  says a1',
        '•  user       says u3',
        '◉  assistant  says a3 ← active',
      })
      child:sees(' hidden · 1 archived')
      child:command('Treelined archived')
      child:sees('⊞ 2 entries · says u2 (archived)')
      go(child, 'says u2')
      child:command('Treelined archive')
      child:gives("vim.fn.search('(archived)', 'nw')", 0)
      child:gives('vim.api.nvim_buf_line_count(0)', 5)
      local notes = child:lua('return notes')
      f.matches(notes[1], '^treelined: archived; %. shows it, D brings it back$')
      f.matches(notes[2], '^treelined: the branch is back; D archives it again$')
      child:command('Treelined archived')
      child:gives("require('treelined.tree').get().archived", false)
      child:command('Treelined archived')
      child:gives('notes[3]', 'treelined: no branch is archived')
    end,
  },
  {
    'shed branches are counted with the way back',
    function(t)
      local child = shown(t)
      go(child, 'says u2')
      child:command('Treelined archive')
      child:sees('1 archived branch · ')
      child:lua([[
        local tree = require('treelined.tree').get()
        tree.session:request('shed_branches', {}, function(err) shed = err or true end)
      ]])
      child:gives('shed', true)
      child:sees('1 shed branch · treelined unshed brings it back')
      child:gives("require('treelined.tree').get().rows.archived", 0)
    end,
  },
  {
    'the leaf leaves a branch that is archived, and a guard can hold it there',
    function(t)
      local child = shown(t)
      go(child, 'says a3')
      child:command('Treelined archive')
      child:sees('◉  assistant  says a1 ← active')
      f.matches(child:lua('return notes[1]'), 'the leaf is at its fork; u brings both back$')
      child:type('u')
      child:sees('says a3 ← active')
      child:gives("require('treelined.tree').get().rows.archived", 0)
    end,
  },
  {
    'a branch is named, and several in one row are not one',
    function(t)
      local child = shown(t)
      go(child, 'says a2')
      child:command('Treelined name-branch the cache')
      child:command('Treelined name-branch the second')
      child:gives('notes', {
        'treelined: this branch is called "the cache"; an empty name removes it',
        'treelined: this branch is called "the second"; it was "the cache"',
      })
      child:lua([[
        vim.ui.select = function(items, options)
          shown = vim.tbl_map(options.format_item, items)
        end
      ]])
      child:type('b')
      child:gives('shown', {
        '   now  the second · 2 messages',
        '◉  now  says u3 · 2 messages',
      })
      child:lua("require('treelined.tree').get().session:request('set_leaf', { leafId = 'a1' })")
      child:sees('◉  assistant  says a1 ← active')
      child:type('zR')
      child:sees('2 branches')
      go(child, '2 branches')
      child:command('Treelined archive')
      child:gives(
        'notes[#notes]',
        'treelined: these are several branches; open the row, and choose one'
      )
    end,
  },
  {
    -- Guides once took 40 of 110 columns.
    'a tree of 5,000 entries with 27 branches has at most 12 columns of guides at 80 columns',
    function(t)
      local child = t.child()
      local client = t.client({ command = f.command, session_dir = child.session_dir })
      local id = f.large_tree(client)
      client:close_sync()
      child:command('Treelined open ' .. id)
      child:sees('← active')
      -- Returns the width of the widest guides in the fetched rows, and the number of branches that these rows fold.
      local function widest()
        return child:lua([[
          local wide, branches = 0, 0
          local tree = require('treelined.tree').get()
          for row, node in pairs(tree.rows:fetched()) do
            local line = vim.fn.getline(row)
            local before = line:match('^(.-)⊞') or line:match('^(.-)' .. (node.role or '⊞'))
            wide = math.max(wide, vim.fn.strdisplaywidth(before) - 3)
            branches = branches + (node.folded and node.folded.branches or 0)
          end
          return { wide, branches }
        ]])
      end
      equal(widest()[1], 3)
      child:type('gg')
      child:sees('says u0')
      child:lua("require('treelined.tree').get():go_to('u4860')")
      child:sees('⊞ 90 entries · says u4770')
      equal(widest()[1], 3)
      child:type('zR')
      child:sees('5000 rows')
      child:type('G')
      child:sees('says a4999')
      equal(widest(), { 12, 0 })
    end,
  },
  {
    -- The row ended in the middle of a word, as if the text ended there.
    'a row that is longer than the window says so',
    function(t)
      local child = shown(t)
      local client = t.client({ command = f.command, session_dir = child.session_dir })
      assert(client:request_sync('open_session', { sessionId = child.talk.sessionId }))
      local message = f.message('u4')
      message.content[1].text = ('word '):rep(40)
      assert(client:request_sync('append_message', { entryId = 'u4', message = message }))
      client:close_sync()
      child:sees('word wo…\n')
      child:type('G$')
      child:sees('\n…')
    end,
  },
  {
    'an open branch says its name',
    function(t)
      local child = shown(t)
      go(child, 'says a2')
      child:command('Treelined name-branch the cache')
      child:gives('#notes', 1)
      child:sees('user       the cache · says u2')
    end,
  },
  {
    -- Side questions once had no keys.
    'a question is asked beside the conversation, and kept once',
    function(t)
      local child = shown(t)
      child:type(',')
      child:sees('By the way')
      child:type('and the weather?<CR>')
      child:gives('notes[#notes]', 'treelined: asked beside the conversation; ; brings it in')
      child:sees('says a3 ← active')
      child:sees('and the weather?')
      child:type('zR')
      go(child, 'and the weather')
      child:type(';')
      child:gives('notes[#notes]', 'treelined: kept; its messages are at the leaf')
      go(child, 'and the weather')
      child:type(';')
      child:gives('notes[#notes]', 'treelined: it is in the conversation already')
    end,
  },
  {
    'the archive of another program is drawn at once',
    function(t)
      local daemon = t.shared()
      local agent = t.client(daemon)
      local talk = f.converse(agent)
      local said = { entryId = 'u3', parentId = 'a1', message = f.message('u3') }
      assert(agent:request_sync('append_message', said))
      local child = t.child(daemon)
      child:command('Treelined open ' .. talk.sessionId)
      child:sees('⊞ 2 entries · says u2')
      assert(agent:request_sync('archive_branch', { entryId = 'u2' }))
      child:sees('1 archived branch · ')
      assert(agent:request_sync('unarchive_branch', { entryId = 'u2' }))
      child:sees('⊞ 2 entries · says u2')
    end,
  },
  {
    'a compaction is shown when it is written; with nothing to compact it says so',
    function(t)
      local child = shown(t)
      child:command('Treelined compact the plan')
      child:gives('#notes', 1)
      f.matches(child:lua('return notes[1]'), 'try again when the conversation has grown')
      local client = t.client({ command = f.command, session_dir = child.session_dir })
      assert(client:request_sync('open_session', { sessionId = child.talk.sessionId }))
      for n = 1, 12 do
        local id = (n % 2 == 1 and 'u' or 'a') .. 'long' .. n
        local message = f.message(id)
        message.content[1].text = ('word %d '):format(n):rep(4000)
        assert(client:request_sync('append_message', { entryId = id, message = message }))
      end
      client:close_sync()
      child:sees('assistant  word 12')
      child:type('o')
      child:sees('◉     assistant  word 12')
      child:command('Treelined compact the plan')
      child:sees(' compaction')
      child:sees('compaction')
      equal(child:lua('return #notes'), 1)
    end,
  },
}
