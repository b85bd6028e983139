--- The search over all sessions, and the marks on its matches.

local f = require('fixture')
local equal = f.equal

--- Starts a Neovim with two sessions: one with a branch, one with wide and combining characters.
local function two_sessions(t, config)
  local child = t.child(config)
  local client = t.client({ command = f.command, session_dir = child.session_dir })
  child.talk = f.converse(client, { name = 'a | talk' }).sessionId
  local function ask(method, params)
    assert(client:request_sync(method, params))
  end
  ask('set_leaf', { sessionId = child.talk, leafId = 'a1' })
  local said = { role = 'user', content = 'another way' }
  ask('append_message', { sessionId = child.talk, entryId = 'u3', message = said })
  local wide = assert(client:request_sync('create_session', { name = '漢字' })).session.sessionId
  said = { role = 'user', content = '漢字 cafe\204\129s\9\27 SAYS' }
  ask('append_message', { sessionId = wide, entryId = 'w1', message = said })
  local call = { type = 'toolCall', id = 'c', name = 'grep', arguments = { pattern = 'needle' } }
  said = { role = 'assistant', content = { call } }
  ask('append_message', { sessionId = wide, entryId = 'w2', message = said })
  return child
end

--- Returns the marked texts of a buffer, by line.
local FOUND = [[
  local buf = ...
  local marked = {}
  for _, space in pairs(vim.api.nvim_get_namespaces()) do
    for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buf, space, 0, -1, { details = true })) do
      if mark[4].hl_group == 'TreelinedFound' then
        local line = vim.api.nvim_buf_get_lines(buf, mark[2], mark[2] + 1, false)[1]
        table.insert(marked, line:sub(mark[3] + 1, mark[4].end_col))
      end
    end
  end
  return marked
]]

local MARKED = '(function(...) ' .. FOUND .. ' end)(0)'

local TITLE = 'vim.fn.getqflist({ title = 0 }).title'

local HITS = '#vim.tbl_filter(function(item) return item.valid == 1 end, vim.fn.getqflist())'

local VALID = [[vim.tbl_map(function(item)
  return item.valid
end, vim.fn.getqflist())]]

return {
  {
    'a question finds what has not all of its words, and says why a branch was left',
    function(t)
      local child = two_sessions(t)
      local client = t.client({ command = f.command, session_dir = child.session_dir })
      assert(client:request_sync('open_session', { sessionId = child.talk }))
      assert(client:request_sync('append_label', { targetId = 'u2', label = 'a dead end' }))
      client:close_sync()
      child:command('Treelined search which zebra says u2 role:user')
      child:gives(TITLE, 'treelined: which zebra says u2 role:user')
      local lines = child:lines()
      equal({ lines[1], lines[2], lines[3] }, {
        'a ¦ talk|text| says u2 ← left at a1',
        'a ¦ talk|left because| a dead end',
        'a ¦ talk|instead| another way',
      })
      local valid = child:lua('return ' .. VALID)
      equal({ valid[1], valid[2], valid[3], valid[4] }, { 1, 0, 0, 1 })
      -- The line with the reason opens the same hit.
      child:type('j<CR>')
      child:gives("vim.fn.getline('.'):match('says u2')", 'says u2')
      -- The same question as a search for the exact words.
      child:command('Treelined words')
      child:gives('notes', {
        'treelined: nothing in the sessions matches "which zebra says u2 role:user"',
      })
      child:command('Treelined literal another WAY')
      child:gives('#notes', 2)
    end,
  },
  {
    'a session does not fill the list, and has more on one of its lines',
    function(t)
      local child = two_sessions(t)
      child:command('Treelined search says')
      child:gives(TITLE, 'treelined: says')
      child:gives(
        '#vim.tbl_filter(function(line) return line:find("|more| 1 more entry") end, '
          .. 'vim.api.nvim_buf_get_lines(0, 0, -1, false))',
        1
      )
      child:type('/more entry<CR><CR>')
      child:gives(TITLE, 'treelined: says · of one session')
      child:gives(HITS, 4)
    end,
  },
  {
    'a word that no entry has gets near ones',
    function(t)
      local child = two_sessions(t)
      child:command('Treelined search enother')
      child:gives('notes', {
        'treelined: nothing in the sessions matches "enother"; nothing has "enother"; did you mean another?',
      })
    end,
  },
  {
    'filters are completed in the command and in its prompt',
    function(t)
      local child = two_sessions(t)
      equal(
        child:lua("return vim.fn.getcompletion('Treelined search way ro', 'cmdline')"),
        { 'role:' }
      )
      equal(
        child:lua("return vim.fn.getcompletion('Treelined search way role:us', 'cmdline')"),
        { 'role:user' }
      )
      child:type(':Treelined search<CR>')
      child:type('way ro<Tab>us<Tab><CR>')
      child:gives(TITLE, 'treelined: way role:user')
      equal(child:lines()[1], 'a ¦ talk|text| • another way')
    end,
  },
  {
    'the hits in all sessions are listed with session, branch and marks',
    function(t)
      local child = two_sessions(t)
      child:command('Treelined words says')
      child:gives('vim.bo.buftype', 'quickfix')
      child:gives(TITLE, 'treelined: says · words')
      local lines = child:lines()
      table.sort(lines)
      equal(lines, {
        'a ¦ talk|text| says a2 ← left at a1',
        'a ¦ talk|text| says u2 ← left at a1',
        'a ¦ talk|text| • says a1',
        'a ¦ talk|text| • says u1',
        '漢字|text| • 漢字 cafe\204\129s SAYS',
      })
      local marked = child:lua(FOUND, 0)
      table.sort(marked)
      equal(marked, { 'SAYS', 'says', 'says', 'says', 'says' })
      -- A range counts characters. A letter is marked together with its combining mark.
      child:command('Treelined search /cafe/')
      child:gives(TITLE, 'treelined: /cafe/')
      equal(child:lua(FOUND, 0), { 'cafe\204\129' })
    end,
  },
  {
    'a hit opens its tree at its entry',
    function(t)
      local child = two_sessions(t, { filter = 'user-only' })
      child:command('Treelined words "says u2"')
      child:gives(TITLE, 'treelined: "says u2" · words')
      child:type('<CR>')
      child:gives("vim.fn.getline('.')", '   └─ ⊟ user       says u2')
      child:gives(MARKED, { 'says u2' })
      equal(child:lua("return require('treelined.tree').get().session.id"), child.talk)
      -- The next list is opened from the tree. It shows another session in the same window.
      child:command('Treelined search /S.YS|needle/')
      child:gives(TITLE, 'treelined: /S.YS|needle/')
      child:command('wincmd p')
      child:command('crewind')
      child:gives("vim.fn.getline('.')", '◉  user       漢字 cafe\204\129s SAYS ← active')
      child:gives(MARKED, { 'SAYS' })
      equal(child:lua('return vim.fn.winnr("$")'), 2)
      -- A hit that the filter hides is shown among all entries.
      child:command('cnext')
      child:gives("require('treelined.tree').get().filter", 'all')
      child:gives("vim.fn.getline('.'):match('needle')", 'needle')
      -- An older list still works.
      child:command('colder')
      child:command('crewind')
      child:gives("vim.fn.getline('.')", '   └─ ⊟ user       says u2')
    end,
  },
  {
    'an empty result and a bad pattern are reported, and the list stays',
    function(t)
      local child = two_sessions(t)
      child:command('Treelined words says')
      child:gives(TITLE, 'treelined: says · words')
      child:command('Treelined words nowhere')
      child:gives('notes', { 'treelined: nothing in the sessions matches "nowhere"' })
      child:command('Treelined search /[/')
      child:gives('#notes', 2)
      f.matches(child:lua('return notes[2]'), '^treelined: search: .*is not a regular expression')
      equal(child:lua('return ' .. TITLE), 'treelined: says · words')
    end,
  },
  {
    'a search that is not answered is replaced by the next one',
    function(t)
      local child = two_sessions(t)
      child:lua([[
        results = {}
        for _, query in ipairs({ 'says', 'way' }) do
          require('treelined').search(query, function(err, result)
            table.insert(results, { query, err ~= nil or #result.hits })
          end)
        end
      ]])
      child:gives('#results', 2)
      child:gives(TITLE, 'treelined: way')
      equal(child:lua('return vim.fn.getqflist({ nr = "$" }).nr'), 1)
      equal(child:lua('return notes'), {})
      child:type(':Treelined search<CR>')
      child:type('another<CR>')
      child:gives(TITLE, 'treelined: another')
    end,
  },
  {
    -- A label was once shown twice, and a folded row had the text of its first entry.
    'a label that was found is marked where it stands, and a folded row keeps its text',
    function()
      local draw = require('treelined.draw')
      local node = {
        type = 'message',
        role = 'user',
        preview = 'Clear it.',
        label = 'the cache',
        onActivePath = true,
      }
      local look = { render = 'ascii', found = { snippet = 'the cache', ranges = { { 4, 9 } } } }
      local line, highlights = draw.row(node, look)
      equal(line, '*  user       [the cache] Clear it.')
      local marked = vim.tbl_filter(function(each)
        return each[3] == 'TreelinedFound'
      end, highlights)
      equal(line:sub(marked[1][1] + 1, marked[1][2]), 'cache')
      node.folded, node.label, node.preview = { branches = 1, entries = 2 }, nil, '2 entries'
      equal((draw.row(node, look)), '*  + 2 entries')
    end,
  },
  {
    'the search and the query of a tree mark what they have found',
    function(t)
      local child = two_sessions(t)
      child:command('Treelined open ' .. child.talk)
      child:sees('← active')
      child:type('gg/says u<CR>')
      child:sees('/says u ')
      child:gives(MARKED, { 'says', 'u', 'says', 'u' })
      child:command('Treelined find nowhere')
      child:gives(MARKED, {})
      child:type('sa2<CR>')
      child:gives(MARKED, { 'a2' })
    end,
  },
  {
    'a search in ascii uses ascii',
    function(t)
      local child = two_sessions(t, { render = 'ascii' })
      child:command('Treelined words u1 says')
      child:gives('vim.bo.buftype', 'quickfix')
      equal(child:lines(), { 'a ¦ talk|text| * says u1' })
    end,
  },
}
