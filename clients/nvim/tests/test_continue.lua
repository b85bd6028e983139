--- Continuing in another agent, and the message after going back.

local f = require('fixture')
local equal = f.equal

--- Starts a Neovim that shows u1 → a1 → u2 → a2, with a `codex` that prints its arguments.
local function shown(t, config)
  local home = t.folder()
  vim.fn.mkdir(home .. '/bin')
  -- On a busy machine the terminal of Neovim loses what a program writes right before it ends.
  local script = {
    '#!/bin/sh',
    '[ "$1" = --version ] && exit',
    'echo "codex got $# arguments: $*"',
    'sleep 2',
  }
  vim.fn.writefile(script, home .. '/bin/codex')
  vim.fn.setfperm(home .. '/bin/codex', 'rwx------')
  local child = t.child(vim.tbl_extend('force', {
    env = { HOME = home, CODEX_HOME = home .. '/codex', PATH = home .. '/bin:' .. vim.env.PATH },
  }, config or {}))
  child.home = home
  local client = t.client({ command = f.command, session_dir = child.session_dir })
  child.talk = f.converse(client, { name = 'talk', cwd = home })
  client:close_sync()
  child:command('Treelined open ' .. child.talk.sessionId)
  child:sees('says a2 ← active')
  return child
end

local function written(child)
  return vim.fn.glob(child.home .. '/codex/sessions/**/*.jsonl', true, true)
end

--- Answers the next choices with these items, and records the choices in `asked`. A choice without an answer waits.
local function choose(child, ...)
  child:lua(
    [[
      asked, picks = {}, { ... }
      vim.ui.select = function(items, options, callback)
        table.insert(asked, { options.prompt, items })
        local pick = table.remove(picks, 1)
        if pick then
          vim.schedule(function()
            callback(type(pick) == 'number' and items[pick] or pick)
          end)
        end
      end
    ]],
    ...
  )
end

local GO, LEARNED, COPY =
  'Go on', 'Go on with a summary of the branch that is left', 'Copy the command'

return {
  {
    'H says what is lost before anything is written, and starts the agent in a terminal',
    function(t)
      local child = shown(t)
      choose(child, 'codex')
      child:type('ggjH')
      child:gives('#asked', 2)
      equal(child:lua('return asked[1][2]'), {
        'claude-code',
        'codex',
        'opencode',
        'gemini',
        'goose',
        'pi',
        'text',
      })
      f.matches(child:lua('return asked[2][1]'), '^2 messages, about %d+ tokens.* In Codex:$')
      equal(child:lua('return asked[2][2]'), { GO, LEARNED, COPY })
      equal(written(child), {})
      choose(child, 'codex', GO)
      child:type('H')
      child:sees('codex got 2 arguments: resume ')
      equal(child:lua('return vim.bo.buftype'), 'terminal')
      local files = written(child)
      equal(#files, 1)
      local text = table.concat(vim.fn.readfile(files[1]))
      assert(text:find('says a1', 1, true) and not text:find('says u2', 1, true), text)
      local advice = '`:Treelined import codex` brings what was said there into the tree'
      child:gives('notes[#notes]', 'treelined: ' .. advice)
    end,
  },
  {
    'the agent hears what the branch that is left has taught',
    function(t)
      local child = shown(t)
      choose(child, LEARNED)
      child:type('ggj')
      child:command('Treelined continue codex')
      child:sees('Tried “says u2”')
      local words = table.concat(child:lines())
      f.matches(words, 'codex got 3 arguments: resume .*Another way was tried')
    end,
  },
  {
    'without a summarizer the choice of a summary is an error with its remedy, and nothing is written',
    function(t)
      local child = shown(t, { summarizer = 'none' })
      choose(child, LEARNED)
      child:type('ggj')
      child:command('Treelined continue codex')
      child:gives('#notes', 1)
      f.matches(child:lua('return notes[1]'), "set `summarizer`, for instance to 'outline'")
      equal(written(child), {})
    end,
  },
  {
    'the command can be copied, and a text is for every other agent',
    function(t)
      local child = shown(t)
      choose(child, COPY)
      child:command('Treelined continue codex')
      child:gives('#notes', 1)
      -- At the leaf no branch is left.
      equal(child:lua('return asked[1][2]'), { GO, COPY })
      local line = child:lua("return vim.fn.getreg('\"')")
      f.matches(line, "'continue' '%-%-in' 'codex' '%-%-' '" .. vim.pesc(child.session_dir))
      equal(written(child), {})
      -- Without a terminal the command makes the session, and prints the command line to run.
      local env = ('HOME=%s CODEX_HOME=%s/codex '):format(child.home, child.home)
      f.matches(vim.fn.system(env .. line .. ' </dev/null'), 'codex resume')
      equal(#written(child), 1)
      choose(child, GO)
      child:command('Treelined continue text')
      child:gives('vim.bo.filetype', 'markdown')
      child:sees('says a2')
      f.matches(child:lua("return vim.fn.getreg('\"')"), 'says a2')
    end,
  },
  {
    -- A conversation that is too large was once an error that Neovim could not resolve.
    'a conversation that is too large is cut as the person chooses',
    function(t)
      local child = shown(t)
      local client = t.client({ command = f.command, session_dir = child.session_dir })
      local id = f.converse(client, { name = 'long', cwd = child.home }).sessionId
      for _, entry in ipairs({ 'u3', 'a3' }) do
        local message = f.message(entry)
        message.content[1].text = ('many words '):rep(40000)
        local said = { sessionId = id, entryId = entry, message = message }
        assert(client:request_sync('append_message', said))
      end
      client:close_sync()
      child:command('Treelined open ' .. id)
      child:sees(' long · ')
      child:gives("vim.fn.line('.')", 6)
      choose(child, 3, GO)
      child:command('Treelined continue codex')
      child:sees('codex got 2 arguments: resume ')
      f.matches(child:lua('return asked[1][1]'), '150')
      f.matches(child:lua('return asked[2][1]'), '^6 messages, about')
      equal(#written(child), 1)
    end,
  },
  {
    'an agent that does not exist is named with those that do',
    function(t)
      local child = shown(t)
      child:command('Treelined continue vim')
      equal(child:lua('return notes'), {
        'treelined: there is no agent "vim"; use claude-code, codex, opencode, gemini, goose, pi, text',
      })
      equal(child:lua("return vim.fn.getcompletion('Treelined continue g', 'cmdline')"), {
        'gemini',
        'goose',
      })
    end,
  },
  {
    -- A message after going back once got no answer, and no text said how to get one.
    'after going back to a user message a line says what to do next',
    function(t)
      local child = shown(t)
      choose(child, 'No summary')
      child:type('e')
      child:gives('vim.api.nvim_buf_get_lines(0, 0, -1, false)', { 'says u2' })
      child:gives('notes', {
        'treelined: :w sends, H in the tree goes on in another agent',
      })
    end,
  },
  {
    -- Only fetched rows were once searched, so below the window the key did nothing.
    'the next and the previous user message are found in rows that were not fetched',
    function(t)
      local child = t.child({ page_size = 5 })
      local client = t.client({ command = f.command, session_dir = child.session_dir })
      local id = f.converse(client).sessionId
      local function say(entry)
        local said = { sessionId = id, entryId = entry, message = f.message(entry) }
        assert(client:request_sync('append_message', said))
      end
      for number = 3, 300 do
        say('a' .. number)
      end
      say('u300')
      client:close_sync()
      child:command('Treelined open ' .. id)
      child:sees('says u300 ← active')
      child:type('[[')
      child:gives("vim.fn.line('.')", 3)
      child:sees('says u2')
      child:command('bwipeout')
      child:command('Treelined open ' .. id)
      child:sees('says u300 ← active')
      child:type('gg')
      child:sees('says u2')
      child:type(']]')
      child:gives("vim.fn.line('.')", 3)
      child:type(']]')
      child:gives("vim.fn.getline('.'):match('says u300') ~= nil", true)
    end,
  },
  {
    'the agents are those of the table that all clients share',
    function()
      local agents = {}
      for line in io.lines(f.root .. '/../../schema/agents.tsv') do
        if not vim.startswith(line, '#') then
          local row = vim.split(line, '\t')
          agents[#agents + 1] = { row[1], row[2] }
        end
      end
      equal(require('treelined.continuation').agents, agents)
    end,
  },
  {
    'after a move to another entry a line says what can be done there',
    function(t)
      local child = shown(t)
      choose(child, 'No summary')
      child:type('ggj<CR>')
      child:gives('notes', {
        'treelined: i writes a message here, H goes on in another agent',
      })
    end,
  },
}
