--- Advice about errors, the log, and the status line.

local f = require('fixture')
local equal = f.equal

return {
  {
    'every kind of error has advice, and there is none for kinds that do not exist',
    function()
      local by_kind = require('treelined.advice').by_kind
      local methods = f.root .. '/../../schema/methods.json'
      local declared = vim.json.decode(table.concat(vim.fn.readfile(methods), '\n')).errors
      local kinds = {
        disconnected = true,
        timeout = true,
        versionMismatch = true,
        unreadable = true,
        sessionAmbiguous = true,
      }
      for _, each in ipairs(declared) do
        kinds[each.kind] = true
      end
      for kind in pairs(kinds) do
        assert(by_kind[kind], 'no advice for ' .. kind)
      end
      for kind in pairs(by_kind) do
        assert(kinds[kind], 'advice for ' .. kind .. ', which is not a kind')
      end
    end,
  },
  {
    -- A key or a command in the advice was once renamed, and the advice was wrong.
    'advice names only commands and keys that exist',
    function()
      local subcommands = require('treelined.command').subcommands
      local keys = {}
      for _, key in ipairs(require('treelined.keys').tree) do
        keys[key[1]] = true
      end
      for kind, advice in pairs(require('treelined.advice').by_kind) do
        for name in advice:gmatch('`:Treelined (%a+)`') do
          assert(subcommands[name], kind .. ' names :Treelined ' .. name)
        end
        for key in advice:gmatch('`(%a%a?)`') do
          assert(keys[key], kind .. ' names the key ' .. key)
        end
      end
    end,
  },
  {
    'an error shows what happened and what to do; a daemon that did not start says it itself',
    function()
      local advice, errors = require('treelined.advice'), require('treelined.errors')
      local ended = errors.new('disconnected', 'the daemon has ended', { stderr = '' })
      f.matches(advice.text(ended), '^the daemon has ended – the next command starts')
      local missing = errors.new('disconnected', 'there is no such program', {})
      equal(advice.text(missing), 'there is no such program')
      local new = errors.new('ofTomorrow', 'odd', {}, { retryable = true })
      equal(advice.text(new), 'odd – try again')
    end,
  },
  {
    'the log of the daemon can be shown',
    function(t)
      local child = t.child({ env = { TREELINED_LOG = 'debug' } })
      child:command('Treelined new talk')
      child:sees('talk · 0 rows')
      child:lua("require('treelined.log').add('a line\\27[2J of the log')")
      child:command('Treelined log')
      child:gives("vim.api.nvim_buf_get_name(0):match('log$')", 'log')
      f.matches(table.concat(child:lines(), '\n'), 'a line␛%[2J of the log')
      child:type('q')
      child:gives('vim.bo.filetype', 'treelined')
    end,
  },
  {
    'the status line has the title, the rows, and what goes on',
    function(t)
      local child = t.child()
      local status = "require('treelined').status()"
      equal(child:lua('return ' .. status), '')
      child:command('Treelined new 100%{1+1}')
      child:gives(status, '100%{1+1} · 0 rows')
      child:gives("require('treelined').status(true)", '100%%{1+1} · 0 rows')
      child:type('ihello<C-s>')
      child:gives(status, '100%{1+1} · 1 row')
      child:type('<Esc>')
      child:command('tabnew')
      child:gives(status, '100%{1+1} · 1 row')
      vim.loop.kill(child:lua("return require('treelined').client().pid"), 'sigkill')
      child:gives(status, '100%{1+1} · 1 row · the daemon has ended by signal 9')
    end,
  },
  {
    -- The header once showed the raw id.
    'a session without a name is titled by its first message, else by its date',
    function(t)
      local child = t.child()
      child:command('Treelined new')
      child:sees(' · 0 rows')
      f.matches(
        child:lua("return require('treelined').status()"),
        '^%d+%-%d+%-%d+ %d+:%d+ · 0 rows$'
      )
      child:type('i' .. ('why '):rep(20) .. '<C-s>')
      child:sees(('why '):rep(10) .. '… · 1 row')
      child:command('Treelined name talk')
      child:sees('talk · 1 row')
    end,
  },
}
