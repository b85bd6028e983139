--- Errors of calls.

local M = {}

--- The error of a call. Programs should test `kind`; `code` and `message` are for people. `tostring` returns the
--- message.
---@class treelined.Error
---@field kind treelined.ErrorKind|treelined.ClientErrorKind
---@field message string
---@field details table depends on the kind, see the daemon's schema
---@field retryable boolean whether the same call may succeed later, unchanged
---@field retry_after_ms? integer the time after which a retry makes sense
---@field code? integer JSON-RPC code, if the daemon answered

--- The kinds of errors that this client adds to the daemon's kinds:
--- `disconnected`: the daemon could not be started, has ended, or was closed (details: `exitCode`, `signal`,
--- `stderr`).
--- `timeout`: no response in time (details: `timeoutMs`); the daemon was asked to cancel the call.
--- `versionMismatch`: the daemon speaks another protocol version (details: `expected`, `spoken`).
--- `unreadable`: the response cannot be decoded, for instance because it is nested too deep.
--- `sessionAmbiguous`: the given text is the beginning of the ids of several sessions.
---@alias treelined.ClientErrorKind 'disconnected'|'timeout'|'versionMismatch'|'unreadable'|'sessionAmbiguous'

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

--- Makes an error from the `error` member of a response.
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
