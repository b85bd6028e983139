--- `:checkhealth treelined`.

local config = require('treelined.config')
local protocol = require('treelined.protocol')

local M = {}

-- Neovim 0.8 moved the module here, and 0.10 renamed its functions.
local health = vim.health or require('health')
local start = health.start or health.report_start
local ok = health.ok or health.report_ok
local info = health.info or health.report_info
local fail = health.error or health.report_error

local function check_neovim()
  start('treelined: Neovim')
  if vim.fn.has('nvim-0.7') == 1 then
    ok('Neovim is 0.7 or newer')
  else
    fail('Neovim 0.7 or newer is needed')
  end
end

local function check_configuration()
  start('treelined: configuration')
  local given = config.given()
  local problems = config.problems(given)
  for _, problem in ipairs(problems) do
    fail(problem, { 'see :help treelined-configuration' })
  end
  if #problems == 0 then
    -- Only the names are shown: people paste this report, and the values may be keys.
    local names = vim.tbl_keys(given)
    table.sort(names)
    local text = 'set and sound: ' .. table.concat(names, ', ')
    ok(#names > 0 and text or 'nothing is set, and nothing has to be')
  end
  return #problems == 0
end

local function check_daemon()
  start('treelined: daemon')
  local settings = config.get()
  local command = settings.command or require('treelined.process').default_command()
  if vim.fn.executable(command) == 0 then
    return fail(('`%s` is not executable'):format(command), {
      'install it: cargo install --path . in the treelined repository',
      "or name it: vim.g.treelined = { command = '/path/to/treelined' }",
    })
  end
  local client, err = require('treelined.client').start_sync({
    command = command,
    args = settings.args,
    session_dir = settings.session_dir,
    summarizer = settings.summarizer,
    env = settings.env,
    shared = settings.shared,
    socket = settings.socket,
    timeout_ms = 10000,
  })
  if not client then
    return fail(tostring(err), { 'run it yourself: ' .. command .. ' --help' })
  end
  local server = client.server
  local path = vim.fn.exepath(command)
  ok(('%s %s speaks protocol %d'):format(path, server.serverInfo.version, server.protocolVersion))
  if server.schemaHash ~= protocol.schema_hash then
    info(
      'its schema is another than the one this plugin was made from; both should still understand each other'
    )
  end
  if server.capabilities.summarizer then
    ok('summaries are written by `' .. server.capabilities.summarizer .. '`')
  else
    info('no summarizer is configured, so that no summary is offered')
  end
  local began = vim.loop.hrtime()
  local list, failure = client:request_sync('list_sessions', {})
  if list then
    local ms = (vim.loop.hrtime() - began) / 1e6
    ok(('%d sessions, listed in %.0f ms'):format(#list.sessions, ms))
  else
    fail(tostring(failure))
  end
  client:close_sync()
end

function M.check()
  check_neovim()
  if check_configuration() then
    check_daemon()
  end
end

return M
