--- The tree on the screen of another Neovim, driven by keys.
---
--- While that Neovim waits for input it answers no requests, so a test sends an action together with its input.

local f = require('fixture')
local equal = f.equal

--- Starts a Neovim that shows u1 → a1 → u2 → a2, written by another client.
local function shown(t, config, params)
  local child = t.child(config)
  local client = t.client({ command = f.command, session_dir = child.session_dir })
  child.talk = f.converse(client, params)
  child:command('Treelined open ' .. child.talk.sessionId)
  child:sees('← active')
  child.client = client
  return child
end

local function cursor_line(child)
  return child:lua("return vim.fn.getline('.')")
end

local LINE = "vim.fn.getline('.')"
local ALL = 'vim.api.nvim_buf_get_lines(0, 0, -1, false)'

return {
  {
    'a session is drawn with the cursor on the leaf',
    function(t)
      local child = shown(t)
      local screen = child:screen()
      local has_winbar = vim.fn.exists('+winbar') == 1
      local header = table.remove(screen, has_winbar and 1 or 23)
      equal(header, ' talk · 4 rows · 1 hidden')
      equal(vim.list_slice(screen, 1, 5), {
        '•  user       says u1',
        '•  assistant  says a1',
        '•  user       says u2',
        '◉  assistant  says a2 ← active',
        '~',
      })
      equal(cursor_line(child), screen[4])
      equal(child:lua('return vim.bo.modifiable'), false)
      equal(child:lua('return vim.bo.filetype'), 'treelined')
      child:type('kk')
      child:gives(LINE, screen[2])
    end,
  },
  {
    'Enter navigates, u undoes it, and C-r redoes it',
    function(t)
      local child = shown(t)
      child:type('gg<CR><CR>ggj<CR>1<CR>')
      child:sees('◉  assistant  says a1 ← active')
      child:sees('⊞ 2 entries · says u2')
      child:gives(LINE, '◉  assistant  says a1 ← active')
      child:type('u')
      child:gives(LINE, '◉  assistant  says a2 ← active')
      child:type('<C-r>')
      child:gives(LINE, '◉  assistant  says a1 ← active')
      child:lua('notes = {}')
      child:type('<C-r>')
      child:gives('notes', { 'treelined: nothing to undo or redo' })
      child:type('<CR>')
      child:gives('notes[2]', 'treelined: the leaf is here already')
    end,
  },
  {
    -- The question once had no number, so that two entries looked like two hundred.
    'the question before a navigation says how many entries are left behind',
    function(t)
      local child = shown(t)
      child:lua([[
        asked = {}
        vim.ui.select = function(_, options)
          table.insert(asked, options.prompt)
        end
      ]])
      child:type('gg<CR>')
      child:gives('asked', {
        '3 entries are left behind; they stay in the tree. Summarize them?',
      })
      child:type('jj<CR>')
      child:gives('asked[2]', '1 entry is left behind; it stays in the tree. Summarize it?')
      child:type('G<CR>')
      child:gives('notes[1]', 'treelined: the leaf is here already')
      equal(child:lua('return #asked'), 2)
    end,
  },
  {
    -- There is nothing to summarize.
    'a navigation that leaves no entry behind asks nothing',
    function(t)
      local child = shown(t)
      child:type('ggj<CR>1<CR>')
      child:gives(LINE, '◉  assistant  says a1 ← active')
      child:lua('vim.ui.select = function(_, options) asked = options.prompt end')
      -- The branch is folded, so the key first opens it.
      child:type('G<CR>')
      child:gives(LINE, '   └─ ⊟ user       says u2')
      child:type('G<CR>')
      child:gives(LINE, '◉  assistant  says a2 ← active')
      equal(child:lua('return asked == nil'), true)
    end,
  },
  {
    'the question has no number if the number is late',
    function(t)
      local child = shown(t)
      child:lua([[
        local client = require('treelined').client()
        client.request_sync = function()
          return nil, { kind = 'timeout' }
        end
        vim.ui.select = function(_, options) asked = options.prompt end
      ]])
      child:type('gg<CR>')
      child:gives('asked', 'Summarize what is left behind?')
    end,
  },
  {
    'a user message returns to the prompt, and can be sent as a new one',
    function(t)
      local child = shown(t)
      child:type('k<CR>1<CR>')
      child:sees('talk · message · :w sends')
      child:gives(ALL, { 'says u2' })
      equal(child:lua('return vim.bo.filetype'), 'markdown')
      child:type(', but<CR>otherwise<C-s>')
      child:sees('◉  user       says u2, but otherwise ← active')
      child:gives(ALL, { '' })
      equal(child:lua('return vim.bo.modified'), false)
      local params = { path = child.talk.path }
      local own = t.client(child:options())
      assert(own:request_sync('open_session', params))
      local leaf = assert(own:request_sync('get_leaf'))
      equal(leaf.entry.message.content, 'says u2, but\notherwise')
      equal({ leaf.entry.message.role, leaf.entry.parentId }, { 'user', 'a1' })
      assert(leaf.entry.message.timestamp > 1.5e12)
    end,
  },
  {
    'a user message that is the leaf returns to the prompt too',
    function(t)
      local child = shown(t)
      child:type('ihasty<C-s>')
      child:sees('hasty ← active')
      child:type('<Esc><C-w>kG<CR>')
      child:gives(ALL, { 'hasty' })
      child:sees('says a2 ← active')
    end,
  },
  {
    'a cursor on the leaf follows the entries of other programs; other cursors stay',
    function(t)
      local child = shown(t)
      local function append(id)
        local said = { sessionId = child.talk.sessionId, entryId = id, message = f.message(id) }
        assert(child.client:request_sync('append_message', said))
      end
      append('u3')
      child:gives(LINE, '   └─ ⊟ user       says u3')
      child:sees('talk · 5 rows · 1 hidden · others have written')
      append('a3')
      child:gives(LINE, '      assistant  says a3')
      child:type('gg')
      child:command('split')
      child:type('G')
      child:gives("vim.fn.line('.')", 6)
      append('u4')
      child:gives(LINE, '      user       says u4')
      child:command('wincmd p')
      child:gives(LINE, '•  user       says u1')
      append('a4')
      child:sees('says a4')
      child:gives(LINE, '•  user       says u1')
    end,
  },
  {
    -- The state entry of a stale program once made a session open on an old branch, and no text said where the newest
    -- turns are.
    'a session that opens beside its newest turns says so, and o goes there',
    function(t)
      local child = t.child()
      local client = t.client({ command = f.command, session_dir = child.session_dir })
      local talk = f.converse(client)
      client:close_sync()
      local state = '{"type":"custom","id":"s1","parentId":"u1","timestamp":"2026-11-22T08:16:21.582Z",'
        .. '"customType":"todo.state","data":{}}'
      vim.fn.writefile({ state }, talk.path, 'a')
      child:command('Treelined open ' .. talk.sessionId)
      child:sees('1 newer turn is on another branch: o')
      child:type('o')
      child:sees('says a2 ← active')
    end,
  },
  {
    -- A user has 128 instances of inotify. When all were in use, the daemon once noticed the entries of other
    -- processes only at the next call, so the tree of an idle Neovim did not show them.
    'entries of other programs are shown also if the platform refuses to watch files',
    function(t)
      local wrapper = t.folder() .. '/treelined'
      vim.fn.writefile({
        '#!/bin/sh',
        '# In its own user namespace, where the limit can be set.',
        'limit=/proc/sys/user/max_inotify_instances',
        'program=' .. vim.fn.shellescape(vim.fn.exepath(f.command)),
        'unshare -r true 2>/dev/null || exec "$program" "$@"',
        'exec unshare -r sh -c "echo 0 >$limit"\'; exec "$@"\' sh "$program" "$@"',
      }, wrapper)
      vim.loop.fs_chmod(wrapper, 448)
      local child = shown(t, { command = wrapper })
      for _, id in ipairs({ 'u3', 'a3', 'u4' }) do
        local said = { sessionId = child.talk.sessionId, entryId = id, message = f.message(id) }
        assert(child.client:request_sync('append_message', said))
        child:gives(LINE .. ":match('says .*')", 'says ' .. id)
      end
    end,
  },
  {
    'a message refused because of entries of others is kept; it can follow them, or make a branch',
    function(t)
      local child = shown(t)
      child:type('iprecious<Esc>')
      local said = { sessionId = child.talk.sessionId, entryId = 'u3', message = f.message('u3') }
      assert(child.client:request_sync('append_message', said))
      child:sees('says u3')
      child:type('<C-s>')
      child:gives('#notes', 1)
      f.matches(child:lua('return notes[1]'), 'not sent: other programs have appended here')
      equal(child:lines(), { 'precious' })
      child:type('<C-w>ko')
      child:sees('says u3 ← active')
      child:type('<C-w>j<C-s>')
      child:sees('◉  user       precious ← active')

      said.entryId, said.message = 'a3', f.message('a3')
      said.parentId = child:lua(
        [[
        local id = ...
        return require('treelined.session').get(id).leaf_id
      ]],
        child.talk.sessionId
      )
      child:type('u')
      assert(child.client:request_sync('append_message', said))
      child:sees('says a3')
      child:type('<C-s>')
      child:gives('#notes', 2)
      child:command('write!')
      child:gives('vim.bo.modified', false)
      child:sees('precious ← active')
    end,
  },
  {
    'a label can be set and removed',
    function(t)
      local child = shown(t)
      child:type('ggLhere 100%{1+1}<CR>')
      child:gives(LINE, '•  user       [here 100%{1+1}] says u1')
      child:type('L<C-u><CR>')
      child:gives(LINE, '•  user       says u1')
      child:type('L<C-c>')
      child:gives('vim.fn.mode()', 'n')
      child:command('Treelined label again')
      child:gives(LINE, '•  user       [again] says u1')
    end,
  },
  {
    'rows can be filtered, and reduced to those that match',
    function(t)
      local child = shown(t)
      child:type('f3<CR>')
      child:sees('talk · 2 rows · 3 hidden · user-only')
      equal(child:lines(), { '•  user       says u1', '◉  user       says u2 ← active' })
      child:command('Treelined filter all')
      child:sees('talk · 5 rows · all')
      child:command('Treelined filter default')
      child:type('sa1 says<CR>')
      child:gives(ALL, { '◉  assistant  says a1 ← active' })
      child:sees('only "a1 says"')
      child:type('s<C-u>nothing at all<CR>')
      child:gives(ALL, {
        'No rows: 5 are hidden by filter and query.',
      })
      child:type('<CR>LK')
      child:type('s<C-u><CR>')
      child:gives('vim.api.nvim_buf_line_count(0)', 4)
    end,
  },
  {
    -- Each step of a branch was once indented further, so that a large tree consisted of guides.
    'branches that were left are one row, which keys open and close',
    function(t)
      local child = shown(t)
      local id = child.talk.sessionId
      -- Both are written at once. Otherwise `o` may go to the first one before the second one is there.
      local entries = vim.tbl_map(function(name)
        return { type = 'message', id = name, parentId = 'a1', message = f.message(name) }
      end, { 'u3', 'u4' })
      assert(child.client:request_sync('append_entries', { sessionId = id, entries = entries }))
      local head = { '•  user       says u1', '•  assistant  says a1' }
      local tail = '◉  user       says u4 ← active'
      local function gives(...)
        local rows = vim.list_extend(vim.deepcopy(head), { ... })
        child:gives(ALL, vim.list_extend(rows, { tail }))
      end
      child:sees('others have written')
      child:type('o')
      gives('   └─ ⊞ 2 branches · 3 entries · says u2 · says u3')
      -- The cursor leaves the leaf before the move is drawn. Drawing once put the cursor back on the leaf.
      child:type('ggjj<CR>')
      gives('   ├─ ⊞ 2 entries · says u2', '   └─ ⊞ 1 entry · says u3')
      child:type('<Tab>')
      local open = { '   ├─ ⊟ user       says u2', '   │  assistant  says a2' }
      gives(open[1], open[2], '   └─ ⊞ 1 entry · says u3')
      child:type('jza')
      gives('   ├─ ⊞ 2 entries · says u2', '   └─ ⊞ 1 entry · says u3')
      child:type('zc')
      gives('   └─ ⊞ 2 branches · 3 entries · says u2 · says u3')
      child:type('/says a2<CR>')
      gives(open[1], open[2], '   └─ ⊞ 1 entry · says u3')
      child:gives(LINE, open[2])
      child:type('zR')
      local all = vim.list_extend(vim.deepcopy(head), { '   ├─ user       says u2', open[2] })
      vim.list_extend(
        all,
        { '   ├─ user       says u3', '◉  └─ user       says u4 ← active' }
      )
      child:gives(ALL, all)
      child:type('gg]]')
      child:gives(LINE, '   ├─ user       says u2')
      child:type('G[[')
      child:gives(LINE, '   ├─ user       says u3')
    end,
  },
  {
    'a search goes from match to match, into folded branches too',
    function(t)
      local child = shown(t)
      child:type('gg/u2<CR>')
      child:gives(LINE, '•  user       says u2')
      child:sees('/u2 1 of 1')
      child:type('gg/SAYS u<CR>')
      child:gives(LINE, '•  user       says u2')
      child:sees('/SAYS u 2 of 2')
      child:type('n')
      child:gives(LINE, '•  user       says u1')
      child:type('N')
      child:gives(LINE, '•  user       says u2')
      child:command('Treelined find nowhere')
      child:gives('notes', { 'treelined: nothing matches "nowhere"' })
    end,
  },
  {
    -- A search from the last row once found the nearest match above it, instead of the first match.
    'a search from the last row begins at the first',
    function(t)
      local child = shown(t)
      child:type('G/SAYS u<CR>')
      child:gives(LINE, '•  user       says u1')
      child:sees('/SAYS u 1 of 2')
    end,
  },
  {
    -- Neovim once sent every query as words, so a regular expression found nothing.
    'a query or a search between slashes is a regular expression',
    function(t)
      local child = shown(t)
      child:type('gg//u[2-9]$/<CR>')
      child:gives(LINE, '•  user       says u2')
      child:sees('//u[2-9]$/ 1 of 1')
      child:command('Treelined query /^says a\\d$/')
      child:gives(ALL, { '•  assistant  says a1', '◉  assistant  says a2 ← active' })
      child:command('Treelined find /a1/')
      child:gives('notes', {
        'treelined: a pattern cannot be searched for among rows that match a query; '
          .. '`s` changes the query',
      })
      -- An invalid pattern is refused once, and all rows are shown again.
      child:command('Treelined query /[/')
      child:gives('#notes', 2)
      f.matches(child:lua('return notes[2]'), 'is not a regular expression')
      child:gives('vim.api.nvim_buf_line_count(0)', 4)
      -- One slash or two slashes alone are words.
      child:command('Treelined query //')
      child:sees('No rows')
      child:type('s<C-u><CR>')
      child:gives('vim.api.nvim_buf_line_count(0)', 4)
    end,
  },
  {
    'a whole entry is shown beside the prompt',
    function(t)
      local child = shown(t)
      child:type('ggiunsent<Esc><C-w>kK')
      child:sees('│says u1')
      child:sees('unsent')
      child:type('a')
      child:gives(LINE, '◉  assistant  says a2 ← active')
    end,
  },
  {
    -- The cursor stays in the tree when K shows an entry, so q once closed the tree and left the entry open.
    'q closes the entry that K has shown, and then the tree',
    function(t)
      local child = shown(t)
      local NAMES = [[vim.tbl_map(function(win)
        return vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(win)):match('[^/]*$')
      end, vim.api.nvim_tabpage_list_wins(0))]]
      local id = child:lua("return require('treelined.tree').get().session.id")
      child:type('ggK')
      child:gives(NAMES, { id, 'entry' })
      child:type('q')
      child:gives(NAMES, { id })
      child:gives(LINE, '•  user       says u1')
      child:type('K')
      child:gives(NAMES, { id, 'entry' })
      child:type('<C-w>jq')
      child:gives(NAMES, { id })
      child:gives(LINE, '•  user       says u1')
    end,
  },
  {
    'text of a session breaks no line, moves no cursor and runs no command',
    function(t)
      local hostile = 'x\27[2J\n\r\t\0\226\128\174y%#Error#%{1/0}'
      local child = t.child()
      local client = t.client({ command = f.command, session_dir = child.session_dir })
      local name = 'n%{execute("quit")}\27]0;'
      local id = assert(client:request_sync('create_session', { name = name })).session.sessionId
      local entries = {
        { type = 'message', id = 'u1', message = { role = 'user', content = hostile } },
        {
          type = 'message',
          id = 't1',
          message = {
            role = 'toolResult',
            toolCallId = 'c',
            toolName = hostile,
            isError = true,
            content = { { type = 'text', text = hostile } },
          },
        },
        { type = 'label', id = 'l1', targetId = 'u1', label = hostile },
        { type = 'odd\n' .. hostile, id = 'o1' },
      }
      assert(client:request_sync('append_entries', { entries = entries }))
      child:command('Treelined open ' .. id)
      child:sees('← active')
      child:command('Treelined filter all')
      child:sees('rows · all')
      local lines = child:lines()
      equal(#lines, 5)
      for _, line in ipairs(lines) do
        assert(not line:find('[%z\1-\31\127]') and not line:find('\226\128\174', 1, true), line)
      end
      f.matches(lines[2], '%[x %[2J')
      child:sees('n%{execute("quit")}')
      child:type('ggj')
      child:type('K')
      child:sees('x␛[2J')
      child:type('<CR>1<CR>')
      -- The prompt has the original text, so that the user can send it again.
      child:gives("vim.api.nvim_buf_get_name(0):match('prompt$')", 'prompt')
      equal(table.concat(child:lines(), '\n'), hostile)
      child:type('<C-s>')
      child:gives(ALL, { '' })
      local own = t.client(child:options())
      assert(own:request_sync('open_session', { sessionId = id }))
      equal(assert(own:request_sync('get_leaf')).entry.message.content, hostile)
    end,
  },
  {
    -- Neovim processes the default of a question like typed keys, and C-f opens a window of commands. A path once went
    -- through expand(), which runs text between backticks.
    'labels and names of files are never run as commands',
    function(t)
      local child = t.child()
      local client = t.client({ command = f.command, session_dir = child.session_dir })
      local path = f.converse(client).path
      local label = 'x\6ggdGi\28e\18=execute("let g:ran = 1")\13\10\27:let g:ran = 1\13'
      assert(client:request_sync('append_label', { targetId = 'u1', label = label }))
      client:close_sync()
      local odd = child.session_dir .. '/`touch ran`$(touch ran) %#.jsonl'
      assert(vim.loop.fs_rename(path, odd))
      child:lua('vim.fn.chdir(...)', child.session_dir)
      child:lua('vim.ui.select = function(items, _, choose) choose(items[1]) end')
      child:command('Treelined open')
      child:sees('← active')
      child:type('ggLy<CR>')
      child:gives("vim.fn.getline(1):match('y%] says u1$')", 'y] says u1')
      f.matches(child:lines()[1], '%[x ggdGi e =execute')
      equal(child:lua('return vim.g.ran == nil'), true)
      equal(vim.fn.filereadable(child.session_dir .. '/ran'), 0)
    end,
  },
  {
    'a session of 100,000 entries is shown with its first page',
    function(t)
      local child = t.child()
      local path = child.session_dir .. '/long.jsonl'
      local file = assert(io.open(path, 'wb'))
      file:write('{"type":"session","version":3,"id":"long",')
      file:write('"timestamp":"2025-01-01T00:00:00.000Z","cwd":"/"}\n')
      local entry = '{"type":"message","id":"m%d","parentId":%s,"timestamp":"2025-01-01T00:00:01.000Z",'
        .. '"message":{"role":"user","content":"number %d"}}\n'
      for number = 1, 100000 do
        local parent = number > 1 and ('"m%d"'):format(number - 1) or 'null'
        file:write(entry:format(number, parent, number))
      end
      file:close()
      child:command('Treelined open ' .. path)
      child:sees('number 100000 ← active')
      equal(child:lua('return vim.api.nvim_buf_line_count(0)'), 100000)
      local drawn = [[(function()
        local count = 0
        for _, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
          count = count + (line ~= '' and 1 or 0)
        end
        return count
      end)()]]
      local count = child:lua('return ' .. drawn)
      assert(count >= 22 and count <= 600, count .. ' rows are drawn')
      child:type('gg')
      child:gives(LINE, '•  user       number 1')
      child:type('50000Gzt')
      child:sees('number 50000')
      child:sees('number 50010')
      child:type('/77777<CR>')
      child:gives(LINE, '•  user       number 77777')
      child:type('zt<C-f><C-f><C-f>')
      child:sees('number 77850')
      assert(child:lua('return ' .. drawn) < 3000)
    end,
  },
  {
    -- Once only R opened the session again, and the cursor jumped to the leaf.
    'the death of the daemon is shown; the next key opens the session again, and the cursor stays',
    function(t)
      local child = shown(t)
      child:type('ggj')
      child:gives(LINE, '•  assistant  says a1')
      vim.loop.kill(child:lua("return require('treelined').client().pid"), 'sigkill')
      child:sees('talk · the daemon has ended by signal 9')
      equal(child:lines()[1], '•  user       says u1')
      child:command('Treelined label back')
      child:gives(LINE, '•  assistant  [back] says a1')
      child:sees('talk · 4 rows')
      vim.loop.kill(child:lua("return require('treelined').client().pid"), 'sigkill')
      child:sees('talk · the daemon has ended by signal 9')
      child:type('R')
      child:sees('talk · 4 rows')
      equal(cursor_line(child), '•  assistant  [back] says a1')
      equal(child:lua('return notes'), {})
    end,
  },
  {
    -- The cursor was once put back to its position at the time of the request.
    'a cursor that moves while rows are read stays where the user has put it',
    function(t)
      local child = shown(t)
      child:lua([[
        local session = require('treelined.tree').get().session
        local request = session.request
        session.request = function(self, method, params, callback, options)
          session.request = nil
          request(self, method, params, function(...)
            local arguments = { ... }
            answer = function() callback(unpack(arguments)) end
          end, options)
        end
        require('treelined.tree').get():refresh()
      ]])
      child:gives('answer ~= nil', true)
      child:type('gg')
      child:gives(LINE, '•  user       says u1')
      child:lua('answer()')
      child:gives("require('treelined.tree').get().reloading", false)
      equal(cursor_line(child), '•  user       says u1')
    end,
  },
  {
    'a draft outlives the daemon, and sending it starts a new one',
    function(t)
      local child = shown(t)
      child:type('iprecious<Esc>')
      vim.loop.kill(child:lua("return require('treelined').client().pid"), 'sigkill')
      child:sees('by signal 9')
      equal(child:lines(), { 'precious' })
      child:command('write')
      child:sees('precious ← active')
      child:gives('vim.bo.modified', false)
      child:command('write')
      child:gives('notes[#notes]', 'treelined: there is nothing to send')
      child:type('u')
      child:gives(ALL, { 'precious' })
    end,
  },
  {
    -- A retry was once recognized only if the leaf was unchanged. After a lost answer the leaf is the message itself,
    -- so the message was appended a second time.
    'a message whose answer was lost is sent again with its id, and appended once',
    function(t)
      local child = shown(t)
      child:lua([[
        local client = require('treelined').client()
        local request = client.request
        client.request = function(self, method, params, callback, options)
          if method ~= 'append_message' then
            return request(self, method, params, callback, options)
          end
          return request(self, method, params, function(err)
            answered = err == nil
            vim.loop.kill(client.pid, 'sigkill')
            callback({ kind = 'disconnected', details = {} }, nil)
          end, options)
        end
      ]])
      child:type('iprecious<C-s>')
      child:gives('answered', true)
      child:sees('by signal 9')
      child:type('<Esc>')
      equal(child:lines(), { 'precious' })
      child:command('write')
      child:gives('vim.bo.modified', false)
      child:gives(ALL, { '' })
      child:sees('talk · 5 rows')
      local own = t.client(child:options())
      assert(own:request_sync('open_session', { sessionId = child.talk.sessionId }))
      equal(assert(own:request_sync('get_leaf')).entry.parentId, 'a2')
    end,
  },
  {
    -- Otherwise the draft would follow entries that the user has not seen.
    'a draft that is sent by a new daemon does not follow the entries of others silently',
    function(t)
      local child = shown(t)
      child:type('iprecious<Esc>')
      vim.loop.kill(child:lua("return require('treelined').client().pid"), 'sigkill')
      child:sees('by signal 9')
      local said = { sessionId = child.talk.sessionId, entryId = 'u3', message = f.message('u3') }
      assert(child.client:request_sync('append_message', said))
      child:command('write')
      child:gives('#notes', 1)
      f.matches(child:lua('return notes[1]'), 'not sent: other programs have appended here')
      equal(child:lines(), { 'precious' })
      child:command('write')
      child:sees('precious ← active')
    end,
  },
  {
    'images return with the text, and are sent with it',
    function(t)
      local child = t.child()
      local client = t.client({ command = f.command, session_dir = child.session_dir })
      local id =
        assert(client:request_sync('create_session', { name = 'images' })).session.sessionId
      local image = { type = 'image', data = 'AAAA', mimeType = 'image/png' }
      local content = { { type = 'text', text = 'look' }, image }
      local said =
        { sessionId = id, message = { role = 'user', content = content }, entryId = 'u1' }
      assert(client:request_sync('append_message', said))
      child:command('Treelined open ' .. id)
      child:sees('look')
      child:type('<CR>')
      child:sees('1 image goes with it')
      child:type('<C-s>')
      child:gives('vim.bo.modified', false)
      child:gives("require('treelined.session').get('" .. id .. "').leaf_id ~= nil", true)
      local own = t.client(child:options())
      assert(own:request_sync('open_session', { sessionId = id }))
      local leaf = assert(own:request_sync('get_leaf')).entry
      assert(leaf.id ~= 'u1')
      equal(leaf.message.content, content)
    end,
  },
  {
    'an empty session shows a message, and a command creates a session',
    function(t)
      local child = t.child()
      child:command('Treelined new of mine')
      child:sees('Nothing has been said yet.')
      child:sees('of mine · 0 rows')
      child:type('<CR>uLKzaza')
      child:type('ihello<C-s>')
      child:sees('◉  user       hello ← active')
      child:type('<Esc><C-w>k')
      child:command('Treelined name of another')
      child:sees('of another · 1 row')
    end,
  },
  {
    'a cancelled navigation is reported',
    function(t)
      local child = shown(t)
      child:lua([[
        require('treelined.session').stop()
        require('treelined').setup({
          answers = {
            session_before_tree = function(event, question)
              question.reply({ cancel = event.preparation.targetId == 'u1' })
            end,
          },
        })
      ]])
      child:sees('talk · the client is closed')
      child:type('R')
      child:sees('talk · 4 rows')
      child:type('gg<CR>1<CR>')
      child:gives('notes', { 'treelined: treelined.nvim cancelled' })
      child:type('j<CR>1<CR>')
      child:gives(LINE, '◉  assistant  says a1 ← active')
    end,
  },
  {
    -- Guides of up to 64 columns once filled a narrow window, so that no word of a deep row was visible.
    'guides take a sixth of the window, and are drawn again when its width changes',
    function(t)
      local child = t.child()
      local client = t.client({ command = f.command, session_dir = child.session_dir })
      local id = assert(client:request_sync('create_session', { name = 'deep' })).session.sessionId
      local entries = { { type = 'message', id = 'u0', message = f.message('u0') } }
      for n = 1, 30 do
        local parent = n == 1 and 'u0' or 'u' .. (n - 1)
        for _, name in ipairs({ 'side', 'u' }) do
          local said = { type = 'message', id = name .. n, parentId = parent }
          said.message = f.message(name .. n)
          entries[#entries + 1] = said
        end
      end
      assert(client:request_sync('append_entries', { entries = entries }))
      client:close_sync()
      child:command('Treelined open ' .. id)
      child:sees('← active')
      child:type('zR')
      -- If the branch is folded, its one row has these words too.
      child:sees('assistant  says side30')
      local function columns_before_speaker()
        local line = cursor_line(child)
        return vim.fn.strchars(line:match('^(.-)user'))
      end
      local wide = columns_before_speaker()
      assert(wide <= 3 + math.floor(child:lua('return vim.o.columns') / 6), wide)
      f.matches(cursor_line(child), '…')
      child:command('vertical new')
      child:command('wincmd p')
      child:command('vertical resize 24')
      child:gives("vim.fn.getline('.'):find('says') ~= nil", true)
      child:gives("vim.fn.strchars(vim.fn.getline('.'):match('^(.-)user')) <= 3 + 6", true)
      child:command('only')
      child:gives("vim.fn.strchars(vim.fn.getline('.'):match('^(.-)user'))", wide)
    end,
  },
  {
    -- The cursor was once put in the middle of the window even at the end of the tree.
    'the end of a long tree fills the window',
    function(t)
      local child = t.child()
      local client = t.client({ command = f.command, session_dir = child.session_dir })
      local talk = f.converse(client)
      local entries = {}
      for n = 1, 60 do
        entries[n] = { type = 'message', id = 'more' .. n, message = f.message('more' .. n) }
      end
      assert(client:request_sync('append_entries', { entries = entries }))
      client:close_sync()
      child:command('Treelined open ' .. talk.sessionId)
      child:sees('← active')
      for _, line in ipairs(child:screen()) do
        assert(line ~= '~', 'the window ends in empty lines')
      end
    end,
  },
  {
    'no highlight group of a row has a background, which would hide the cursor line',
    function(t)
      local child = shown(t)
      for group in pairs(require('treelined.draw').highlights) do
        local found = child:lua('return vim.api.nvim_get_hl_by_name(..., true)', group)
        equal({ group, found.background }, { group, nil })
      end
    end,
  },
  {
    'text is wrapped at words, and the prompt opens in insert mode',
    function(t)
      local child = shown(t)
      child:type('i')
      child:gives('vim.fn.mode()', 'i')
      child:gives('vim.wo.linebreak', true)
      child:type('<Esc><C-w>kK<C-w>j')
      child:gives('vim.wo.linebreak', true)
      child:type('<C-w>k')
      child:gives('vim.wo.linebreak', false)
    end,
  },
  {
    'a deleted tree can be shown again, also by :edit, and its windows keep no options of it',
    function(t)
      local child = shown(t)
      child:command('edit')
      child:gives('#' .. ALL, 4)
      child:sees('says a2 ← active')
      local option = vim.fn.exists('+winbar') == 1 and 'winbar' or 'statusline'
      child:command('enew')
      equal(child:lua('return vim.wo.' .. option), '')
      equal(child:lua('return vim.wo.cursorline'), false)
      child:command('bdelete treelined://')
      child:gives("vim.fn.bufnr('treelined://')", -1)
      child:command('Treelined open ' .. child.talk.sessionId)
      child:sees('says a2 ← active')
      child:type('ggLnew<CR>')
      child:gives(LINE, '•  user       [new] says u1')
      child:type('igone<Esc>')
      child:command('bdelete!')
      child:gives("vim.fn.bufnr('prompt$')", -1)
      child:type('iwritten<Esc>')
      child:command('wq')
      child:sees('◉  user       written ← active')
      equal(child:lua("return vim.api.nvim_buf_get_name(0):find('prompt') == nil"), true)
    end,
  },
}
