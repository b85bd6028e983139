--- Runs the example of the README.

local f = require('fixture')

local function readme()
  return table.concat(vim.fn.readfile(f.root .. '/README.md'), '\n')
end

--- Runs a Neovim to its end, and returns its output.
local function run(arguments, env)
  local out = {}
  local command = vim.list_extend({ vim.v.progpath, '--headless' }, arguments)
  local job = vim.fn.jobstart(vim.list_extend(command, { '-c', 'qall!' }), {
    env = env,
    stderr_buffered = true,
    on_stderr = function(_, lines)
      out = lines
    end,
  })
  f.equal(vim.fn.jobwait({ job }, 60000), { 0 })
  -- Without a screen Neovim prints to stderr.
  return (table.concat(out, '\n'):gsub('\r', ''))
end

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
      local example = assert(readme():match('\n## The library\n.-\n```lua\n(.-)\n```\n'))
      local count = 0
      for line in example:gmatch('[^\n]+') do
        count = count + (line:find('%S') and 1 or 0)
      end
      assert(count <= 34, count .. ' lines')
      local folder = t.folder()
      vim.fn.writefile(vim.split(example, '\n'), folder .. '/example.lua')
      local daemon = vim.fn.exepath(f.command)
      vim.loop.fs_symlink(daemon, folder .. '/treelined')
      local arguments =
        { '-u', f.root .. '/tests/init.lua', '-c', 'luafile ' .. folder .. '/example.lua' }
      local text = run(arguments, {
        PATH = folder .. ':' .. vim.env.PATH,
        TREELINED_BIN = '',
        TREELINED_SESSION_DIR = t.folder(),
      })
      f.matches(text .. '\n', '^' .. OUTPUT)
    end,
  },
  {
    'the install line of the README makes the plugin known to a new Neovim',
    function(t)
      local home = t.folder()
      local line = assert(readme():match('\n    (mkdir [^\n]+)'))
      local env = { HOME = home, XDG_DATA_HOME = home .. '/.local/share', XDG_CONFIG_HOME = home }
      local shell = vim.fn.jobstart({ 'sh', '-c', line }, { cwd = f.root .. '/../..', env = env })
      f.equal(vim.fn.jobwait({ shell }, 60000), { 0 })
      local text = run({ '-i', 'NONE', '-c', "echo exists(':Treelined')" }, env)
      f.equal(vim.trim(text), '2')
    end,
  },
  {
    'the spec for lazy.nvim of the README has commands and settings that exist',
    function()
      local text = assert(readme():match('\n```lua\n({\n.-\n})\n```\n'))
      local spec = assert(loadstring('return ' .. text))()
      f.equal({ spec.cmd, spec.name }, { 'Treelined', 'treelined' })
      f.matches(spec.dir, 'clients/nvim$')
      f.equal(require('treelined.config').problems(spec.opts), {})
      local subcommands = require('treelined.command').subcommands
      for _, key in ipairs(spec.keys) do
        local name = assert(key[2]:match('^<Cmd>Treelined ?(%a*)<CR>$'))
        assert(name == '' or subcommands[name], name)
      end
    end,
  },
}
