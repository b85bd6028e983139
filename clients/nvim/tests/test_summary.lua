--- Summaries while a model writes them. The model is a server that the test controls.

local f = require('fixture')
local equal, wait = f.equal, f.wait

--- Starts a server that speaks OpenAI's protocol for streams of text.
local function model(t)
  local server = vim.loop.new_tcp()
  assert(server:bind('127.0.0.1', 0))
  local self = { requests = {} }
  server:listen(8, function()
    local socket = vim.loop.new_tcp()
    server:accept(socket)
    self.socket = socket
    local request = ''
    socket:read_start(function(_, data)
      request = request .. (data or '')
      local length = tonumber(request:lower():match('content%-length: (%d+)'))
      local head = request:find('\r\n\r\n', 1, true)
      if head and length and #request >= head + 3 + length then
        self.requests[#self.requests + 1] = request:sub(head + 4)
        request = ''
        socket:write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n')
        socket:write('connection: close\r\n\r\n')
      end
      if not data then
        self.is_hung_up = true
      end
    end)
  end)
  t.at_end(function()
    server:close()
    if self.socket and not self.socket:is_closing() then
      self.socket:close()
    end
  end)

  local function event(value)
    self.socket:write('data: ' .. vim.json.encode(value) .. '\n\n')
  end

  function self.say(text)
    event({ choices = { { delta = { content = text } } } })
  end

  function self.finish()
    event({ choices = { { delta = vim.empty_dict(), finish_reason = 'stop' } } })
    self.socket:write('data: [DONE]\n\n')
    self.socket:shutdown(function()
      self.socket:close()
    end)
  end

  local path = t.folder() .. '/config.toml'
  vim.fn.writefile({
    '[summarizer]',
    'use = "llm"',
    '[summarizer.llm]',
    'provider = "local"',
    'model = "m"',
    '[summarizer.llm.providers.local]',
    'api = "openai"',
    ('base_url = "http://127.0.0.1:%d/v1"'):format(server:getsockname().port),
    'key_env = ""',
  }, path)
  self.config = {
    args = { '--config', path },
    summarizer = vim.NIL,
    env = { NO_PROXY = '127.0.0.1' },
  }
  return self
end

local function shown(t, writer)
  local child = t.child(writer.config)
  local client = t.client({ command = f.command, session_dir = child.session_dir })
  local talk = f.converse(client)
  child:command('Treelined open ' .. talk.sessionId)
  child:sees('← active')
  return child
end

return {
  {
    'a summary is shown while it is written, and its focus is sent',
    function(t)
      local writer = model(t)
      local child = shown(t, writer)
      child:type('ggj<CR>3<CR>the cache<CR>')
      wait(function()
        return writer.requests[1]
      end, 'a request to the model')
      f.matches(writer.requests[1], 'the cache')
      child:sees('moving…')
      writer.say('## Goal\nTo be ')
      child:sees('To be')
      child:sees('moving…')
      -- The text has half a character, and an escape sequence.
      writer.say('wärm\27[2J')
      child:sees('To be wärm␛[2J')
      child:type('gg')
      writer.say('\nand dry.')
      child:sees('and dry.')
      writer.finish()
      child:sees('◉  summary    Goal To be wärm')
      child:gives("vim.fn.getline('.'):match('active$')", 'active')
      equal(child:lua('return notes'), {
        'treelined: i writes a message here, H goes on in another agent',
      })
      child:type('u')
      child:sees('says a2 ← active')
    end,
  },
  {
    'x aborts a running summary, and the leaf stays',
    function(t)
      local writer = model(t)
      local child = shown(t, writer)
      child:type('ggj<CR>2<CR>')
      wait(function()
        return writer.requests[1]
      end, 'a request to the model')
      writer.say('It all began')
      child:sees('It all began')
      child:sees('summary, being written · x in the tree')
      child:type('x')
      child:gives('notes', { 'treelined: the move was aborted' })
      child:sees('summary, not finished')
      child:sees('says a2 ← active')
      wait(function()
        return writer.is_hung_up
      end, 'the daemon to hang up')
      child:type('x')
      child:gives('notes[2]', 'treelined: no navigation is running')
    end,
  },
  {
    'a summary is offered only where somebody can write it',
    function(t)
      local child = shown(t, { config = { summarizer = 'none' } })
      child:lua([[
        vim.ui.select = function(items, options, callback)
          offered = { options.prompt, items }
          callback(items[1])
        end
      ]])
      child:type('ggj<CR>')
      child:sees('says a1 ← active')
      local prompt = '2 entries are left behind; they stay in the tree. Go there?'
      child:gives('offered', { prompt, { 'Go there' } })
      child:lua('offered, notes = nil, {}')
      child:type('w')
      child:command('Treelined compact')
      child:gives('#notes', 2)
      f.matches(child:lua('return notes[1]'), 'no summarizer is configured')
      equal(child:lua('return offered == nil'), true)
    end,
  },
}
