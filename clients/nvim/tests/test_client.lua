--- Calls, kinds of errors, large messages, line separators, notifications, questions and answers.

local f = require('fixture')
local protocol = require('treelined.protocol')

local equal, wait = f.equal, f.wait

--- Returns a callback for a call, and a function that waits for it.
local function promise()
  local done, err, result = false, nil, nil
  local function settle(...)
    err, result = ...
    done = true
  end
  return settle,
    function()
      wait(function()
        return done
      end, 'an answer')
      return err, result
    end
end

local function read(path)
  local file = assert(io.open(path, 'rb'))
  local text = file:read('*a')
  file:close()
  return text
end

return {
  {
    "initialize returns the daemon's name, and its schema is that of the types",
    function(t)
      local client = t.client({ summarizer = 'outline' })
      equal(client.server.protocolVersion, protocol.version)
      equal(client.server.serverInfo.name, 'treelined')
      equal(client.server.capabilities.summarizer, 'outline')
      equal(client.server.schemaHash, protocol.schema_hash)
    end,
  },
  {
    'a conversation can be written, read and navigated',
    function(t)
      local client = t.client()
      f.converse(client)
      local settle, result_of = promise()
      client:get_tree({ render = 'unicode' }, settle)
      local _, tree = result_of()
      equal(
        vim.tbl_map(function(row)
          return row.preview
        end, tree.nodes),
        { 'says u1', 'says a1', 'says u2', 'says a2' }
      )
      local moved = assert(client:request_sync('navigate_tree', { targetId = 'u2' }))
      equal({ moved.editorText, moved.newLeafId }, { 'says u2', 'a1' })
      equal(assert(client:request_sync('undo_navigation')).newLeafId, 'a2')
      equal(assert(client:request_sync('set_leaf', { leafId = vim.NIL })).newLeafId, nil)
    end,
  },
  {
    'pipelined calls take effect in their order',
    function(t)
      local client = t.client()
      assert(client:request_sync('create_session'))
      -- Appends of one batch may be answered in any order.
      local answered, count = {}, 0
      for number = 1, 300 do
        local id = 'm' .. number
        local params = { entryId = id, message = { role = 'user', content = id } }
        client:append_message(params, function(err, result)
          answered[number] = err or result.entryId
          count = count + 1
        end)
      end
      local entries = assert(client:request_sync('get_entries')).entries
      wait(function()
        return count == 300
      end, 'all answers')
      for number = 1, 300 do
        equal({ answered[number], entries[number].id }, { 'm' .. number, 'm' .. number })
      end
    end,
  },
  {
    'errors have a kind, details and retryable',
    function(t)
      local client = t.client()
      local function failure(method, params)
        local result, err = client:request_sync(method, params)
        equal(result, nil)
        return err
      end
      local none = failure('get_tree', { sessionId = 'nowhere' })
      equal({ none.kind, none.code }, { 'sessionNotFound', 1100 })
      f.converse(client)
      local missing = failure('get_entry', { entryId = 'nothing' })
      equal({ missing.kind, missing.details.entryId }, { 'entryNotFound', 'nothing' })
      f.matches(missing, '^get_entry: ')
      local moved = failure('set_leaf', { leafId = 'u1', expectedLeafId = 'a1' })
      equal({ moved.kind, moved.details.leafId }, { 'leafMoved', 'a2' })
      local wrong = failure('get_entry', { entry = 'a1' })
      equal({ wrong.kind, wrong.retryable }, { 'invalidParams', false })
      assert(wrong.details.field)
      equal(failure('get_rich').kind, 'methodNotFound')
    end,
  },
  {
    'a message that is too large is refused, and the connection goes on',
    function(t)
      local client = t.client({ args = { '--max-frame-bytes', '70000' } })
      local params = { message = { role = 'user', content = ('x'):rep(80000) } }
      local _, err = client:request_sync('append_message', params)
      equal(err.kind, 'requestTooLarge')
      equal(assert(client:request_sync('list_sessions')).sessions, {})
    end,
  },
  {
    'params that cannot be encoded are refused with the name of the field, and nothing is sent',
    function(t)
      local client = t.client()
      assert(client:request_sync('create_session'))
      local itself = {}
      itself.itself = itself
      local wrong = {
        { { role = 'user', content = 'a\255' }, 'message.content', 'is not UTF%-8' },
        { { role = 'user', content = 'x', at = 1 / 0 }, 'message.at', 'finite' },
        { { role = 'user', content = print }, 'message.content', 'function' },
        { { role = 'user', content = { 'x', y = 'z' } }, 'message.content', 'mixes' },
        { itself, nil, 'nested too deeply' },
      }
      for _, case in ipairs(wrong) do
        local _, err = client:request_sync('append_message', { message = case[1] })
        equal(err.kind, 'invalidParams')
        f.matches(err, case[3])
        equal(case[2] or err.details.field, err.details.field)
      end
      equal(assert(client:request_sync('get_entries')).entries, {})
    end,
  },
  {
    'a message of 20 MB is written and read',
    function(t)
      local client = t.client({ timeout_ms = 120000 })
      assert(client:request_sync('create_session'))
      local text = ('päck/chen\n'):rep(1900000)
      assert(#text > 20000000)
      local params = { message = { role = 'user', content = text } }
      local entry_id = assert(client:request_sync('append_message', params)).entryId
      local entry = assert(client:request_sync('get_entry', { entryId = entry_id })).entry
      assert(entry.message.content == text, 'the text has changed')
    end,
  },
  {
    'line separators other than line feeds stay inside messages, and bytes are stored unchanged',
    function(t)
      local client = t.client()
      local path = assert(client:request_sync('create_session')).session.path
      local text =
        'a\226\128\168b\226\128\169c\194\133d\re\r\nf\vg\fh\ni\30\28\239\187\191😀\0/\\"'
      local params = { message = { role = 'user', content = text, n = 9007199254740991, x = 0.1 } }
      local entry_id = assert(client:request_sync('append_message', params)).entryId
      local message = assert(client:request_sync('get_entry', { entryId = entry_id })).entry.message
      equal(message, params.message)
      local stored = read(path)
      local _, line_feeds = stored:gsub('\n', '')
      equal(line_feeds, 2, 'the header and one entry')
      assert(stored:find('\239\187\191😀\\u0000/\\\\\\"', 1, true), stored)
      assert(stored:find('"n":9007199254740991,', 1, true), stored)
    end,
  },
  {
    -- Neovim's decoder fails on such escapes, and the whole response was once lost.
    'an unpaired surrogate is decoded as U+FFFD, and its neighbours are unchanged',
    function(t)
      local dir = t.folder()
      local header =
        '{"type":"session","version":3,"id":"half","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/"}'
      local entry = '{"type":"message","id":"u1","parentId":null,"timestamp":"2025-01-01T00:00:01.000Z",'
        .. [["message":{"role":"user","content":"\ud83d \\ud83d \ud83d\ude00 \\\ude00 x"}}]]
      vim.fn.writefile({ header, entry }, dir .. '/half.jsonl')
      local client = t.client()
      assert(client:request_sync('open_session', { path = dir .. '/half.jsonl' }))
      local found = assert(client:request_sync('get_entry', { entryId = 'u1' })).entry
      equal(found.message.content, '\239\191\189 \\ud83d 😀 \\\239\191\189 x')
    end,
  },
  {
    'a response that cannot be decoded fails only its call',
    function(t)
      local deep = '("[" * 2000) + ("]" * 2000)'
      local impostor = t.impostor(
        'say(id=message["id"], result={"protocolVersion": 1}) if message["id"] != 2 else print('
          .. '\'{"jsonrpc":"2.0","id":2,"result":\' + '
          .. deep
          .. " + '}', flush=True)"
      )
      local client = t.client(impostor)
      local _, err = client:request_sync('get_leaf')
      equal(err.kind, 'unreadable')
      assert(client:request_sync('get_leaf'))
    end,
  },
  {
    'session_tree arrives before the response, until the handler is removed',
    function(t)
      local client = t.client()
      f.converse(client)
      local moves, names = {}, {}
      local stop = client:on('session_tree', function(move)
        moves[#moves + 1] = { move.oldLeafId, move.newLeafId, move.cause }
      end)
      client:on('*', function(_, name)
        names[name] = true
      end)
      assert(client:request_sync('set_leaf', { leafId = 'a1' }))
      equal(moves, { { 'a2', 'a1', 'set_leaf' } })
      assert(names.session_tree)
      stop()
      assert(client:request_sync('set_leaf', { leafId = 'a2' }))
      equal(#moves, 1)
    end,
  },
  {
    'an error in a handler is reported, and other handlers still run',
    function(t)
      local said = {}
      local client = t.client({
        on_error = function(text)
          said[#said + 1] = text
        end,
      })
      f.converse(client)
      client:on('session_tree', function()
        error('a mistake')
      end)
      assert(client:request_sync('set_leaf', { leafId = 'a1' }))
      equal(#said, 1)
      f.matches(said[1], 'a handler of session_tree failed: .*a mistake')
    end,
  },
  {
    'an answerer can cancel or summarize, at once or later',
    function(t)
      local client = t.client({
        answers = {
          session_before_tree = function(event, question)
            local preparation = event.preparation
            if not preparation.userWantsSummary then
              return question.reply({ cancel = true })
            end
            vim.defer_fn(function()
              local left = vim.tbl_map(function(entry)
                return entry.id
              end, preparation.entriesToSummarize)
              local summary = { summary = 'left ' .. table.concat(left, ' ') }
              question.reply({ summary = summary })
            end, 20)
          end,
        },
      })
      f.converse(client)
      local vetoed = assert(client:request_sync('navigate_tree', { targetId = 'u1' }))
      equal({ vetoed.cancelled, vetoed.reason }, { true, 'cancelledByClient' })
      local params = { targetId = 'a1', summarize = true, label = 'left' }
      local moved = assert(client:request_sync('navigate_tree', params))
      equal({ moved.summaryEntry.summary, moved.fromHook }, { 'left u2 a2', true })
      local label = assert(client:request_sync('get_label', { entryId = moved.summaryEntry.id }))
      equal(label.label, 'left')
    end,
  },
  {
    -- A guard that raised an error, or whose answer was refused, once counted as having no opinion, so the move
    -- happened.
    'without an opinion a navigation proceeds; an error or a refused answer cancels, unless failures proceed',
    function(t)
      local mistakes = {
        {
          'the answerer of session_before_tree failed: .*a mistake',
          function()
            error('a mistake\nof two lines')
          end,
          '^[^\n]*a mistake$',
        },
        {
          'was refused: .*cancle',
          function(question)
            question.reply({ cancle = true })
          end,
          'was refused: .*cancle',
        },
        {
          'was refused: ',
          function(question)
            vim.defer_fn(function()
              question.reply(true)
            end, 1)
          end,
          'was refused: ',
        },
        {
          nil,
          function(question)
            question.fail('cannot tell')
          end,
          '^cannot tell$',
        },
      }
      for _, on_failure in ipairs({ 'cancel', 'proceed' }) do
        local answer
        local said = {}
        local client = t.client({
          command = f.command,
          session_dir = t.folder(),
          client_info = { name = 'guard' },
          on_failure = on_failure ~= 'cancel' and on_failure or nil,
          on_error = function(text)
            said[#said + 1] = text
          end,
          answers = {
            session_before_tree = function(_, question)
              answer(question)
            end,
          },
        })
        f.converse(client)
        local function go(id)
          local params = { targetId = id, onNoAnswer = 'cancel' }
          return assert(client:request_sync('navigate_tree', params))
        end
        answer = function(question)
          question.reply()
        end
        equal(go('a1').newLeafId, 'a1')
        for _, mistake in ipairs(mistakes) do
          assert(client:request_sync('set_leaf', { leafId = 'a2' }))
          said, answer = {}, mistake[2]
          local moved = go('a1')
          equal(#said, mistake[1] and 1 or 0)
          if mistake[1] then
            f.matches(said[1], mistake[1])
          end
          if on_failure == 'proceed' then
            equal(moved.newLeafId, 'a1')
          else
            equal({ moved.reason, moved.by }, { 'cancelledByClient', 'guard' })
            f.matches(moved.message, mistake[3])
          end
        end
        -- A cancel stays a cancel, even if another member of the answer is wrong.
        assert(client:request_sync('set_leaf', { leafId = 'a2' }))
        answer = function(question)
          question.reply({ cancel = true, because = 'building' })
        end
        equal(go('a1').reason, 'cancelledByClient')
        answer = function(question)
          question.reply({ cancel = true, reason = ('ü'):rep(501) })
        end
        equal(go('a1').message, ('ü'):rep(500))
      end
    end,
  },
  {
    -- A Neovim that was killed during a question once counted as having no opinion.
    'a Neovim that dies while it is asked has answered its on_failure',
    function(t)
      local settings = t.shared()
      local client = t.client(vim.deepcopy(settings))
      assert(client:request_sync('create_session', { sessionId = 'talk' }))
      for _, id in ipairs({ 'u1', 'u2' }) do
        local params = { entryId = id, message = { role = 'user', content = id } }
        assert(client:request_sync('append_message', params))
      end
      for on_failure, cancelled in pairs({ cancel = true, proceed = false }) do
        local dying = vim.deepcopy(settings)
        dying.client_info = { name = 'guard' }
        dying.on_failure = on_failure
        local other
        dying.answers = {
          session_before_tree = function()
            other.process:kill('sigkill')
          end,
        }
        other = t.client(dying)
        assert(other:request_sync('open_session', { sessionId = 'talk' }))
        assert(client:request_sync('set_leaf', { leafId = 'u2' }))
        local moved = assert(client:request_sync('navigate_tree', { targetId = 'u1' }))
        equal({ moved.cancelled, moved.by }, { cancelled, cancelled and 'guard' or nil })
      end
    end,
  },
  {
    'a question is over for its answerer after the timeout',
    function(t)
      local dismissed
      local client = t.client({
        answers = {
          session_before_tree = function(_, question)
            question.on_over = function()
              dismissed = question.over
            end
          end,
        },
      })
      f.converse(client)
      local params = { targetId = 'a1', answerTimeoutMs = 50, onNoAnswer = 'cancel' }
      equal(assert(client:request_sync('navigate_tree', params)).reason, 'noAnswer')
      equal(dismissed, true)
    end,
  },
  {
    'notifications that an answerer needs are sent despite opt_out',
    function(t)
      local dismissed
      local client = t.client({
        opt_out = { 'session_before_tree', 'event_resolved', 'session_tree' },
        answers = {
          session_before_tree = function(_, question)
            question.on_over = function()
              dismissed = question.over
            end
          end,
        },
      })
      client:on('session_tree', function()
        dismissed = 'opted out'
      end)
      f.converse(client)
      local params = { targetId = 'a1', answerTimeoutMs = 50 }
      equal(assert(client:request_sync('navigate_tree', params)).newLeafId, 'a1')
      equal(dismissed, true)
    end,
  },
  {
    'an answerer can ask for more time',
    function(t)
      local left
      local client = t.client({
        answers = {
          session_before_tree = function(_, question)
            question.extend(60000, function(err, result)
              left = err or result.timeoutMs
              vim.defer_fn(function()
                question.reply({ cancel = true })
              end, 3300)
            end)
          end,
        },
      })
      f.converse(client)
      local params = { targetId = 'a1', answerTimeoutMs = 3000 }
      equal(assert(client:request_sync('navigate_tree', params)).reason, 'cancelledByClient')
      assert(type(left) == 'number' and left > 50000, vim.inspect(left))
    end,
  },
  {
    'a waiting navigation is aborted, and a waiting call cancelled',
    function(t)
      local asked = {}
      local function wait_for_ever(event, question)
        asked[#asked + 1] = { event = event, question = question }
      end
      local client = t.client({
        answers = { session_before_tree = wait_for_ever, session_before_fork = wait_for_ever },
      })
      f.converse(client)
      local settle, result_of = promise()
      client:navigate_tree({ targetId = 'a1', navigationId = 'n1' }, settle)
      wait(function()
        return asked[1]
      end)
      equal(assert(client:request_sync('abort_navigation', { navigationId = 'n1' })).aborted, true)
      local _, moved = result_of()
      equal(moved.reason, 'aborted')
      equal(asked[1].question.over, true)

      settle, result_of = promise()
      local id = client:navigate_tree({ targetId = 'a1' }, settle)
      wait(function()
        return asked[2]
      end)
      client:cancel(id)
      _, moved = result_of()
      equal(moved.reason, 'aborted')

      settle, result_of = promise()
      id = client:fork_session({}, settle)
      wait(function()
        return asked[3]
      end)
      client:cancel(id)
      equal(result_of().kind, 'cancelled')
      equal(assert(client:request_sync('get_leaf')).leafId, 'a2')
    end,
  },
  {
    'summary_delta arrives while a summary is written',
    function(t)
      local client = t.client({ summarizer = 'outline', summary_deltas = true })
      f.converse(client)
      local pieces = {}
      client:on('summary_delta', function(params)
        equal(params.index, #pieces)
        pieces[#pieces + 1] = params.delta
      end)
      local moved =
        assert(client:request_sync('navigate_tree', { targetId = 'a1', summarize = true }))
      assert(#pieces > 0)
      local whole = table.concat(pieces)
      assert(moved.summaryEntry.summary:find(vim.trim(whole), 1, true), whole)
    end,
  },
}
