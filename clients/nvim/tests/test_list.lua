--- The list of sessions, the trash, imports and exports.

local f = require('fixture')
local equal = f.equal

local ALL = 'vim.api.nvim_buf_get_lines(0, 0, -1, false)'

--- Starts a Neovim that shows the list, and another client of its session directory.
local function listed(t)
  local child = t.child()
  local client = t.client({ command = f.command, session_dir = child.session_dir })
  f.converse(client, { name = 'first' })
  child:command('Treelined list')
  child:gives('#' .. ALL, 1)
  child:sees('first')
  return child, client
end

return {
  {
    'the list follows new, renamed and deleted sessions, and the cursor stays on its session',
    function(t)
      local child, client = listed(t)
      f.matches(child:lines()[1], '^ now     4  .*  first$')
      -- A title once had only two of 40 columns.
      child:lua('vim.o.columns = 40')
      child:gives('vim.api.nvim_buf_get_lines(0, 0, 1, false)', { ' now               first' })
      child:lua('vim.o.columns = 80')
      child:gives("vim.fn.getline(1):match('^ now     4  ') ~= nil", true)
      local other = f.converse(client, { name = 'second' })
      child:gives('#' .. ALL, 2)
      child:gives("vim.fn.getline('.'):match('first')", 'first')
      child:sees('2 sessions')
      local params = { sessionId = other.sessionId, name = 'renamed' }
      assert(client:request_sync('set_session_name', params))
      child:sees('renamed')
      assert(client:request_sync('delete_session', { sessionId = other.sessionId }))
      child:gives('#' .. ALL, 1)
    end,
  },
  {
    -- The list once showed dates, and every other client ages.
    'times are shown as ages, in whole units',
    function()
      local when = require('treelined.when')
      local day = 86400
      for age, passed in pairs({
        now = 59,
        ['1m'] = 60,
        ['59m'] = 3599,
        ['1h'] = 3600,
        ['23h'] = day - 1,
        ['6d'] = 7 * day - 1,
        ['1w'] = 7 * day,
        ['52w'] = 365 * day - 10,
        ['1y'] = 365 * day,
      }) do
        -- A second may pass between the two calls.
        local now = os.time()
        local iso = os.date('!%Y-%m-%dT%H:%M:%S.000Z', now - passed)
        local shown = when.age(iso)
        if os.time() == now then
          f.equal(shown, age)
        end
      end
      f.equal(when.age(os.date('!%Y-%m-%dT%H:%M:%SZ', os.time() + 1000)), 'now')
      f.equal(when.age('yesterday'), 'yesterday')
    end,
  },
  {
    'a session of the list is opened, deleted after a question, and restored',
    function(t)
      local child = listed(t)
      child:type('<CR>')
      child:sees('says a2 ← active')
      child:command('Treelined list')
      child:type('dd2<CR>')
      child:type('dd1<CR>')
      child:sees('There are no sessions.')
      child:gives('notes', { 'treelined: "first" is in the trash' })
      child:lua('vim.ui.select = function(items, _, choose) choose(items[1]) end')
      child:type('U')
      child:sees('says a2 ← active')
      child:command('Treelined delete')
      child:gives('notes[2]', 'treelined: "first" is in the trash')
      child:command('Treelined restore')
      child:sees('says a2 ← active')
    end,
  },
  {
    'the list lives on with a new daemon',
    function(t)
      local child = listed(t)
      vim.loop.kill(child:lua("return require('treelined').client().pid"), 'sigkill')
      child:gives("require('treelined').client() == nil", true)
      child:type('R')
      child:gives("require('treelined').client() ~= nil", true)
      child:gives('#' .. ALL, 1)
      local client = t.client({ command = f.command, session_dir = child.session_dir })
      f.converse(client, { name = 'second' })
      child:gives('#' .. ALL, 2)
    end,
  },
  {
    -- A session that was listed while its file was being made was once in the list twice.
    'a file whose header comes later is one session',
    function(t)
      local child = listed(t)
      local folder = vim.fn.glob(child.session_dir .. '/*/')
      local path = folder .. '2026-11-22T08-16-21-582Z_late.jsonl'
      vim.fn.writefile({ 'not a header' }, path)
      child:gives('#' .. ALL, 2)
      local header = {
        type = 'session',
        version = 3,
        id = 'late',
        timestamp = '2026-11-22T08:16:21.582Z',
        cwd = '/tmp',
      }
      local entry = {
        type = 'message',
        id = 'u1',
        parentId = vim.NIL,
        timestamp = '2026-11-22T08:16:22.582Z',
        message = { role = 'user', content = 'here I am' },
      }
      vim.fn.writefile({ vim.fn.json_encode(header), vim.fn.json_encode(entry) }, path)
      child:sees('here I am')
      child:gives('#' .. ALL, 2)
    end,
  },
  {
    -- The list that was read once replaced changes that were announced after the daemon had made it.
    'a change that is announced while the list is read is not lost',
    function(t)
      local child, client = listed(t)
      child:lua([[
        local client = require('treelined').client()
        local request = client.request
        client.request = function(self, method, params, callback, options)
          if method ~= 'list_sessions' then
            return request(self, method, params, callback, options)
          end
          client.request = nil
          return request(self, method, params, function(...)
            local arguments = { ... }
            answer = function() callback(unpack(arguments)) end
          end, options)
        end
        client:on('sessions_changed', function() is_announced = true end)
      ]])
      child:type('R')
      child:gives('answer ~= nil', true)
      f.converse(client, { name = 'second' })
      child:gives('is_announced', true)
      child:lua('answer()')
      child:gives('#' .. ALL, 2)
      child:sees('second')
    end,
  },
  {
    'an import says what it would bring, asks, and changes nothing before',
    function(t)
      local child = t.child()
      local folder = t.folder()
      local path = folder .. '/0b9f7c58-5c0e-4c0e-9d7e-0b9f7c585c0e.jsonl'
      local line = '{"parentUuid":%s,"isSidechain":false,"userType":"external","cwd":"/tmp",'
        .. '"sessionId":"0b9f7c58-5c0e-4c0e-9d7e-0b9f7c585c0e","version":"1.0.0","type":"user",'
        .. '"message":{"role":"user","content":"hello from elsewhere"},"uuid":"%s",'
        .. '"timestamp":"2025-01-01T00:00:00.000Z"}'
      vim.fn.writefile({ line:format('null', 'aaaaaaaa-0000-4000-8000-000000000001') }, path)
      child:lua([[
        vim.ui.select = function(items, options, choose)
          asked, choice = options.prompt, choice or 2
          choose(items[choice])
        end
      ]])
      child:command('Treelined import ' .. path)
      child:gives('asked', 'Import 1 conversation: 1 of claude-code?')
      child:command('Treelined list')
      child:sees('There are no sessions.')
      child:lua('choice = 1')
      child:command('Treelined import ' .. path)
      child:sees('hello from elsewhere')
      child:gives("notes[#notes]:match('^treelined: 1 session imported') ~= nil", true)
      child:command('Treelined import ' .. path)
      child:gives('notes[#notes]', 'treelined: there is nothing new')
    end,
  },
  {
    'a session is exported in the format of the name; an existing file is replaced after a question',
    function(t)
      local child = listed(t)
      child:type('<CR>')
      child:sees('says a2 ← active')
      local path = t.folder() .. '/talk.md'
      child:command('Treelined export ' .. path)
      child:gives('#notes', 1)
      f.matches(child:lua('return notes[1]'), 'exported to .*talk%.md, 1 KiB$')
      f.matches(table.concat(vim.fn.readfile(path), '\n'), 'says a2')
      vim.fn.writefile({ 'mine' }, path)
      child:lua([[
        vim.ui.select = function(items, options, choose)
          asked = options.prompt
          choose(items[choice])
        end
      ]])
      child:lua('choice = 2')
      child:command('Treelined export ' .. path)
      child:gives('asked', path .. ' exists. Replace it?')
      equal(vim.fn.readfile(path), { 'mine' })
      child:lua('choice = 1')
      child:command('Treelined export ' .. path)
      child:gives('#notes', 2)
      f.matches(table.concat(vim.fn.readfile(path), '\n'), 'says a2')
      child:command('Treelined export ' .. path .. '.pdf')
      f.matches(child:lua('return notes[3]'), 'ends in %.html, %.md')
    end,
  },
}
