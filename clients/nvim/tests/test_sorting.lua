--- Tags, pins, archived sessions, families and candidates.

local f = require('fixture')
local equal = f.equal

local ALL = 'vim.api.nvim_buf_get_lines(0, 0, -1, false)'

--- Starts a Neovim, and another client of its session directory with a conversation in it.
local function started(t)
  local child = t.child()
  local client = t.client({ command = f.command, session_dir = child.session_dir })
  child.talk = f.converse(client, { name = 'first' })
  return child, client
end

--- Makes the child choose the item with this text, and record the offered items.
local function choosing(child, text)
  child:lua(
    [[
      local wanted = ...
      vim.ui.select = function(items, options, choose)
        shown = vim.tbl_map(options.format_item, items)
        for index, each in ipairs(shown) do
          if each:find(wanted, 1, true) then
            choose(items[index])
          end
        end
      end
    ]],
    text
  )
end

return {
  {
    'a question is gone from the screen when it is answered',
    function(t)
      local child = started(t)
      child:command('Treelined list')
      child:sees('first')
      child:type('#')
      child:sees('Tags (empty')
      child:type('build<CR>')
      child:sees('first  #build')
      equal(child:screen()[24]:find('Tags'), nil)
      -- The question is asked at once, so these keys answer it.
      child:type('#<C-u>later<CR>')
      child:sees('first  #later')
    end,
  },
  {
    'a session of the list gets tags and a pin, is put away and comes back',
    function(t)
      local child = started(t)
      child:command('Treelined list')
      child:sees('first')
      child:type('#')
      child:sees('Tags (empty')
      child:type('build ui<CR>')
      child:sees('first  #build  #ui')
      -- The first question was once still on the screen, so keys came before the second question.
      child:type('#')
      child:sees('Tags (empty for none): build ui')
      child:type('<C-u>#UI later<CR>')
      child:sees('first  #later  #ui')
      child:type('!')
      child:sees('first  #later  #ui  pinned')
      child:type('!')
      child:gives(ALL .. "[1]:match('pinned') == nil", true)
      child:type('D')
      child:sees('There are no sessions.')
      child:type('A')
      child:sees('first  #later  #ui  archived')
      child:sees('1 session · archived ones too')
      child:type('D')
      child:gives(ALL .. "[1]:match('archived') == nil", true)
      local notes = child:lua('return notes')
      equal(notes[1], 'treelined: tags: #build #ui')
      equal(notes[#notes], 'treelined: the session is in the lists again')
    end,
  },
  {
    'the tree has keys for tags and the pin of its session',
    function(t)
      local child, client = started(t)
      child:command('Treelined open ' .. child.talk.sessionId)
      child:sees('says a2')
      child:type('#')
      child:sees('Tags (empty')
      child:type('deep<CR>')
      child:gives('notes[#notes]', 'treelined: tags: #deep')
      child:type('#')
      child:sees('Tags (empty for none): deep')
      child:type('<C-u>#deeper, wide<CR>')
      child:gives('notes[#notes]', 'treelined: tags: #deeper #wide')
      child:type('!')
      child:gives('notes[#notes]', 'treelined: the session is pinned')
      local rows = assert(client:request_sync('list_sessions', { pinned = true })).sessions
      equal({ #rows, rows[1].tags[1] }, { 1, 'deeper' })
      child:command('Treelined tags deeper wide')
      child:gives('notes[#notes]', 'treelined: the tags are as they were')
    end,
  },
  {
    'a family is a tree of sessions, and going up goes to the entry of the fork',
    function(t)
      local child, client = started(t)
      local from = { sessionId = child.talk.sessionId, entryId = 'a1', name = 'the fork' }
      local fork = assert(client:request_sync('fork_session', from))
      child:command('Treelined open ' .. child.talk.sessionId)
      child:sees('says a2')
      choosing(child, 'the fork')
      child:type('Y')
      child:sees('◉  assistant  says a1 ← active')
      local shown = child:lua('return shown')
      f.matches(shown[1], '^◉  now  first · ')
      f.matches(shown[2], '^    fork ·  now  the fork · ')
      choosing(child, 'first')
      child:type('Y')
      child:sees('says a2 ← active')
      child:gives("vim.fn.getline('.'):match('says a1')", 'says a1')
      assert(fork.session)
    end,
  },
  {
    'a row says that sessions come from it, and the family marks them',
    function(t)
      local child, client = started(t)
      local from = { sessionId = child.talk.sessionId, entryId = 'a1', name = 'the fork' }
      assert(client:request_sync('fork_session', from))
      child:command('Treelined open ' .. child.talk.sessionId)
      child:sees('assistant  ↗ 1 fork · says a1')
      child:type('gg')
      child:sees('user       says u1')
      child:type('j')
      choosing(child, 'nothing')
      child:type('Y')
      child:gives('#(shown or {})', 2)
      f.matches(child:lua('return shown')[2], '^↗   fork ·')
    end,
  },
  {
    'of several answers one is chosen, and the others say why',
    function(t)
      local child, client = started(t)
      local id = child.talk.sessionId
      child:command('Treelined open ' .. id)
      child:sees('says a2')
      child:type('J')
      child:gives('notes[#notes]', 'treelined: no question has several answers here')
      for _, name in ipairs({ 'c1', 'c2', 'c3' }) do
        local said = { sessionId = id, entryId = name, parentId = 'a1', message = f.message(name) }
        said.keepLeaf, said.group = true, 'why'
        assert(client:request_sync('append_message', said))
      end
      choosing(child, 'says c2')
      child:type('J')
      child:sees('Why this one')
      child:type('the shortest<CR>')
      child:gives('notes[#notes]', 'treelined: chosen; 2 others say why')
      equal(#child:lua('return shown'), 3)
      child:sees('says c2')
    end,
  },
}
