--- Runs the tests: `nvim --headless -u tests/init.lua -c 'luafile tests/run.lua'`, or ./check.
---
--- Each file `test_*.lua` returns a list of `{ name, function(t) … end }`. `t` creates what a test needs, and removes
--- it afterwards. Only tests whose names contain the text in TREELINED_TEST are run.

local fixture = require('fixture')
local here = vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h')

--- The longest duration of a test, in milliseconds. If a test takes longer, Neovim ends.
local LIMIT_MS = 300000

local function run_one(test)
  local t = fixture.new()
  local watchdog = vim.loop.new_timer()
  watchdog:start(LIMIT_MS, 0, function()
    io.stderr:write('hangs: ' .. test[1] .. '\n')
    os.exit(1)
  end)
  local ok, why = xpcall(test[2], function(err)
    return debug.traceback(type(err) == 'table' and vim.inspect(err) or tostring(err), 2)
  end, t)
  local ended, end_why = xpcall(t.finish, debug.traceback)
  watchdog:close()
  if ok and not ended then
    return false, end_why
  end
  return ok, why
end

local function main()
  local wanted = vim.env.TREELINED_TEST or ''
  local passed, failed = 0, 0
  for _, path in ipairs(vim.fn.glob(here .. '/test_*.lua', true, true)) do
    for _, test in ipairs(dofile(path)) do
      local file = vim.fn.fnamemodify(path, ':t:r')
      if (file .. ': ' .. test[1]):find(wanted, 1, true) then
        local began = vim.loop.hrtime()
        local ok, why = run_one(test)
        local ms = (vim.loop.hrtime() - began) / 1e6
        local line = ('%s %s: %s (%d ms)\n'):format(ok and 'ok  ' or 'FAIL', file, test[1], ms)
        io.stdout:write(line)
        if ok then
          passed = passed + 1
        else
          failed = failed + 1
          io.stdout:write(tostring(why) .. '\n')
        end
        io.stdout:flush()
      end
    end
  end
  io.stdout:write(('%d passed, %d failed\n'):format(passed, failed))
  return passed > 0 and failed == 0
end

local ok, good = xpcall(main, debug.traceback)
if not ok then
  io.stdout:write(tostring(good) .. '\n')
end
vim.cmd(ok and good and 'qall!' or 'cquit!')
