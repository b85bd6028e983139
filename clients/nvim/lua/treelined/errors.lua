--- What a call can fail with.

local M = {}

--- A call that failed. `kind` tells why; the number and the text are for people. `tostring` gives the text.
---@class treelined.Error
---@field kind treelined.ErrorKind|treelined.ClientErrorKind
---@field message string
---@field details table by kind, as in the daemon's schema
---@field retryable boolean the same call may succeed later, unchanged
---@field retry_after_ms? integer after so many milliseconds a retry makes sense
---@field code? integer JSON-RPC's number, if the daemon answered

--- Kinds that come from the client, not from the daemon:
--- `disconnected`: the daemon cannot be started, is gone or is being closed (details: `exitCode`, `signal`, `stderr`).
--- `timeout`: no answer within the deadline (details: `timeoutMs`); the daemon was told to cancel.
--- `versionMismatch`: the daemon speaks another protocol version (details: `expected`, `spoken`).
--- `unreadable`: the answer cannot be decoded, for instance since it is nested too deeply.
---@alias treelined.ClientErrorKind 'disconnected'|'timeout'|'versionMismatch'|'unreadable'

local Error = {}
Error.__index = Error
Error.__tostring = function(self)
  return self.message
end

---@param kind string
---@param message string
---@param details? table
---@param rest? {retryable?: boolean, retry_after_ms?: integer, code?: integer}
---@return treelined.Error
function M.new(kind, message, details, rest)
  local fields = { kind = kind, message = message, details = details or {}, retryable = false }
  return setmetatable(vim.tbl_extend('force', fields, rest or {}), Error)
end

--- From the `error` member of a response.
---@param method string
---@param answer table
---@return treelined.Error
function M.answered(method, answer)
  local data = answer.data or {}
  return M.new(
    data.kind or 'internalError',
    method .. ': ' .. tostring(answer.message),
    data.details,
    {
      retryable = data.retryable == true,
      retry_after_ms = data.retryAfterMs,
      code = answer.code,
    }
  )
end

return M
