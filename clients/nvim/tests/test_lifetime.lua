--- Start and end of the daemon: versions, deadlines, its death, and the end of its stdin.

local f = require('fixture')
local treelined = require('treelined')
local equal, wait = f.equal, f.wait

return {
  {
    'close answers open calls, and leaves no process',
    function(t)
      local client = t.client()
      assert(f.is_alive(client.pid))
      local asked
      client:create_session({ name = 'the last wish' }, function(err, result)
        asked = err or result.session.name
      end)
      client:close_sync()
      equal(asked, 'the last wish')
      equal(f.is_alive(client.pid), false)
      local _, err = client:request_sync('get_leaf')
      equal({ err.kind, tostring(err) }, { 'disconnected', 'the client is closed' })
      client:close_sync()
    end,
  },
  {
    'close aborts open questions',
    function(t)
      local question, moved
      local client = t.client({
        answers = {
          session_before_tree = function(_, given)
            question = given
          end,
        },
      })
      f.converse(client)
      client:navigate_tree({ targetId = 'a1' }, function(err, result)
        moved = err or result.reason
      end)
      wait(function()
        return question
      end)
      client:close_sync()
      equal({ moved, question.over }, { 'aborted', true })
    end,
  },
  {
    'the death of the daemon fails open and later calls',
    function(t)
      local asked, failed, over = 0, {}, 0
      local ended
      local client = t.client({
        answers = {
          session_before_tree = function(_, question)
            asked = asked + 1
            question.on_over = function()
              over = over + 1
            end
          end,
        },
        on_end = function(why)
          ended = why
        end,
      })
      for _ = 1, 2 do
        local id = f.converse(client).sessionId
        client:navigate_tree({ sessionId = id, targetId = 'a1' }, function(err)
          failed[#failed + 1] = err
        end)
      end
      wait(function()
        return asked == 2
      end)
      vim.loop.kill(client.pid, 'sigkill')
      wait(function()
        return ended
      end)
      equal({ #failed, over }, { 2, 2 })
      for _, err in ipairs(failed) do
        equal({ err.kind, err.details.signal }, { 'disconnected', 9 })
        f.matches(err, 'ended by signal 9')
      end
      local _, err = client:request_sync('get_leaf')
      equal(err.kind, 'disconnected')
    end,
  },
  {
    'shutdown ends the daemon with exit code 0',
    function(t)
      local ended
      local client = t.client({
        on_end = function(why)
          ended = why
        end,
      })
      assert(client:request_sync('shutdown'))
      wait(function()
        return ended
      end)
      equal(ended.details.exitCode, 0)
      equal(f.is_alive(client.pid), false)
    end,
  },
  {
    'the error of a failed start names the cause and a remedy',
    function()
      local client, err = treelined.connect_sync({ command = '/nowhere/treelined' })
      equal({ client, err.kind }, { nil, 'disconnected' })
      f.matches(err, 'cannot start /nowhere/treelined: .*ENOENT')
      -- The error once named neither the PATH nor what to do.
      client, err = treelined.connect_sync({ command = 'no-such-treelined' })
      equal(client, nil)
      f.matches(err, 'no such program on the PATH %(.*%)%. Install it with `cargo install')
      client, err = treelined.connect_sync({ command = f.command, cwd = '/nowhere' })
      equal(client, nil)
      f.matches(err, 'no folder /nowhere to start it in')
      client, err = treelined.connect_sync({ command = f.command, args = { '--no-such-option' } })
      equal({ client, err.kind }, { nil, 'disconnected' })
      f.matches(err, 'exit code 2: .*%-%-no%-such%-option')
      client, err = treelined.connect_sync({ command = 'echo', args = { 'hello' } })
      equal({ client, err.kind }, { nil, 'disconnected' })
      f.matches(err, 'not a treelined daemon: it wrote "hello"')
    end,
  },
  {
    'a daemon of another protocol version is refused',
    function(t)
      local impostor = t.impostor('say(id=message["id"], result={"protocolVersion": 2})')
      local client, err = treelined.connect_sync(impostor)
      equal({ client, err.kind }, { nil, 'versionMismatch' })
      equal(err.details, { expected = 1, spoken = 2 })
    end,
  },
  {
    'a call is cancelled at its deadline',
    function(t)
      local log = ''
      local options = t.impostor(
        'say(id=message["id"], result={"protocolVersion": 1}) if message["method"] == "initialize" '
          .. 'else sys.stderr.write(message["method"] + "\\n")'
      )
      options.on_log = function(text)
        log = log .. text
      end
      local client = t.client(options)
      local _, err = client:request_sync('get_leaf', {}, { timeout_ms = 50 })
      equal({ err.kind, err.retryable, err.details.timeoutMs }, { 'timeout', true, 50 })
      client:close_sync()
      equal(log, 'get_leaf\n$/cancel_request\n')
    end,
  },
  {
    'a daemon that does not end is killed',
    function(t)
      local impostor =
        t.impostor('say(id=message["id"], result={"protocolVersion": 1}); time.sleep(60)')
      local client = t.client(impostor)
      client:close_sync(100)
      equal(f.is_alive(client.pid), false)
      equal(client.over.details.signal, 15)
    end,
  },
  {
    'a daemon that closes its output is ended',
    function(t)
      local impostor = t.impostor(
        'say(id=message["id"], result={"protocolVersion": 1}); import os; os.close(1); time.sleep(60)'
      )
      local client = t.client(impostor)
      local _, err = client:request_sync('get_leaf')
      equal({ err.kind, err.details.signal }, { 'disconnected', 9 })
    end,
  },
  {
    'the daemon ends with its Neovim, after it has written everything',
    function(t)
      local child = t.child()
      child:lua([[
        require('treelined').new('brief', function(_, tree)
          path, pid = tree.session.path, require('treelined').client().pid
        end)
      ]])
      child:gives('path ~= nil', true)
      local path, pid = child:lua('return path'), child:lua('return pid')
      child:lua([[
        local tree = require('treelined.tree').get()
        local content = ('x'):rep(3000000)
        tree.session:request('append_message', { message = { role = 'user', content = content } })
      ]])
      pcall(vim.rpcrequest, child.channel, 'nvim_command', 'qall!')
      wait(function()
        return not f.is_alive(pid)
      end, 'the daemon to end')
      assert(vim.fn.getfsize(path) > 3000000)
    end,
  },
}
