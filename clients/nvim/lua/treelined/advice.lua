--- Advice about errors: for each kind, the command or the key of this plugin that helps.

local M = {}

local DEFECT = 'this is a defect of the plugin; please report it'

--- Advice by kind of error. An empty text means that the error needs no advice.
---@type table<treelined.ErrorKind|treelined.ClientErrorKind, string>
M.by_kind = {
  parseError = DEFECT,
  invalidRequest = DEFECT,
  batchUnsupported = DEFECT,
  methodNotFound = 'the daemon is too old for this; update treelined',
  invalidParams = 'correct the input, or update treelined',
  internalError = '`:Treelined log` shows the log of the daemon; please report it',
  shuttingDown = 'try again: a new daemon is started',
  sessionNotFound = '`:Treelined list` lists the sessions, `:Treelined restore` the deleted ones',
  sessionBusy = 'wait until the session is free; `x` in the tree aborts a move',
  sessionLocked = 'another program is writing; try again in a moment',
  headerMissing = 'the file is not a session; `treelined doctor FILE` examines it',
  versionUnsupported = 'update treelined, or run `treelined migrate FILE`',
  readOnly = 'the file can only be read; `:Treelined fork` continues in a copy',
  sessionDeleted = '`:Treelined restore` brings it back',
  sessionReplaced = '`R` in the tree reads the new file',
  sessionExists = 'open that session, or choose another name',
  importBusy = 'wait until the other import ends',
  sessionErased = 'it was erased for the team; start another session',
  cursorExpired = 'ask again',
  entryNotFound = '`R` draws the tree again',
  leafMoved = '`o` in the tree goes to the leaf of other programs; then try again',
  entryInvalid = 'correct the member that the message names',
  treeChanged = '`R` draws the tree again',
  nestingTooDeep = 'fold a part of the tree with `zc`',
  duplicateEntryId = 'change the text, and send it again',
  notAUserMessage = 'choose a message of the user',
  nothingToUndo = '',
  unansweredToolCalls = 'select the calls together with all their results',
  nothingToExport = 'export another part of the session',
  summarizerUnavailable = "set `summarizer`, for instance to 'outline', or go without a summary",
  summarizerFailed = 'nothing was moved; try again, or go without a summary',
  nothingToCompact = 'try again when the conversation has grown',
  contextTooLarge = 'have earlier turns summarized, or take the last ones only',
  eventNotPending = '',
  noUser = 'no program is connected that shows the question',
  commandExists = 'choose another name for the command',
  commandNotFound = '`:Treelined run` lists the commands',
  commandFailed = 'the program that offers the command may say more',
  storageFull = 'make room on the disk, and try again; nothing is lost',
  storageIo = 'check the disk and the file',
  pathDenied = 'check the permissions of the file, or choose another one',
  durabilityUnknown = 'check the disk, and try again to learn whether it is safe',
  fileExists = 'choose another file',
  importFailed = 'correct the cause that the message names, and import again',
  logUnavailable = 'try again in a moment: the stream of the team does not answer',
  logConflict = 'try again: others write to the session',
  logForeign = 'find the program that writes to this session in the stream of the team',
  logDiverged = 'fork the session, and pull the stream of the team into a new file',
  logRewound = 'keep the file, ask who runs the servers, then `treelined push` fills the stream',
  logMisconfigured = '`treelined doctor --cluster` says what is wrong with the stream',
  logDenied = 'correct the credentials of [team]',
  erasureUnsupported = 'only a team on PostgreSQL can erase; delete the session instead',
  payloadTooLarge = '`treelined doctor --cluster --create` makes a bucket, with which the stream takes up to 64 MiB',
  requestTooLarge = 'send less at once',
  responseTooLarge = '`treelined export` writes it into a file',
  overloaded = 'try again in a moment',
  memoryExhausted = "others use the daemon's memory; try again in a moment",
  cancelled = '',
  disconnected = 'the next command starts the daemon again; `:Treelined log` shows its log',
  timeout = 'try again, or raise `timeout_ms`',
  versionMismatch = 'update treelined and this plugin to the same version',
  unreadable = '`treelined call get_entry` shows the text',
  sessionAmbiguous = '`:Treelined open` without an id lists the sessions',
}

--- Returns the message of an error, followed by its advice.
---@param err treelined.Error
---@return string
function M.text(err)
  local advice = M.by_kind[err.kind] or (err.retryable and 'try again' or '')
  -- If the daemon could not be started there is no log, and the message already says what to do.
  if err.kind == 'disconnected' and not err.details.stderr then
    advice = ''
  end
  local said = vim.trim(tostring(err))
  return advice == '' and said or said .. ' – ' .. advice
end

--- Shows an error with its advice.
---@param err treelined.Error
function M.report(err)
  if err.kind == 'nothingToUndo' then
    return vim.notify('treelined: nothing to undo or redo')
  end
  vim.notify('treelined: ' .. M.text(err), vim.log.levels.ERROR)
end

return M
