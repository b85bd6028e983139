--- The example of the README.

local f = require('fixture')

local OUTPUT = [[
moved to %w+ navigate_tree
again: By plane%.
Plan a trip to Rome%.
By train%?
├─ By plane%.
│  At noon, then%.
└─ %[by plane%] A flight at noon; see a2%.
entryNotFound get_entry: no entry "nothing" in this session
$]]

return {
  {
    'the example of the README runs',
    function(t)
      local readme = table.concat(vim.fn.readfile(f.root .. '/README.md'), '\n')
      local example = assert(readme:match('\n```lua\n(.-)\n```\n'))
      local count = 0
      for line in example:gmatch('[^\n]+') do
        count = count + (line:find('%S') and 1 or 0)
      end
      assert(count <= 34, count .. ' lines')
      local folder = t.folder()
      vim.fn.writefile(vim.split(example, '\n'), folder .. '/example.lua')
      local daemon = vim.fn.exepath(f.command)
      vim.loop.fs_symlink(daemon, folder .. '/treelined')
      local out = {}
      local job = vim.fn.jobstart({
        vim.v.progpath,
        '--headless',
        '-u',
        f.root .. '/tests/init.lua',
        '-c',
        'luafile ' .. folder .. '/example.lua',
        '-c',
        'qall!',
      }, {
        env = {
          PATH = folder .. ':' .. vim.env.PATH,
          TREELINED_SESSION_DIR = t.folder(),
        },
        stderr_buffered = true,
        on_stderr = function(_, lines)
          out = lines
        end,
      })
      f.equal(vim.fn.jobwait({ job }, 30000), { 0 })
      -- Without a screen Neovim prints to stderr.
      local text = table.concat(out, '\n'):gsub('\r', '') .. '\n'
      f.matches(text, '^' .. OUTPUT)
    end,
  },
}
