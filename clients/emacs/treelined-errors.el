;;; treelined-errors.el --- Errors of the daemon, for people  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; An error is a plist with `:kind' (a string, which programs test), `:message',
;; `:details' and `:retryable'.  This file has advice for each kind, with the commands of
;; this package.

;;; Code:

(defgroup treelined nil
  "Conversations of AI agents as trees."
  :group 'tools
  :prefix "treelined-")

(defvar treelined-error-hints
  '(("parseError" . "this is a defect of this package; please report it")
    ("invalidRequest" . "this is a defect of this package; please report it")
    ("methodNotFound" . "this daemon is too old for it; update treelined")
    ("invalidParams" . "correct the input, or update treelined")
    ("internalError" . "`M-x treelined-log' shows the daemon's log; please report it")
    ("shuttingDown" . "try again; a new daemon is started")
    ("sessionNotFound" . "`M-x treelined' lists the sessions, `M-x treelined-restore' the deleted ones")
    ("sessionBusy" . "wait until it ends, or abort the move with C-g in the tree")
    ("sessionLocked" . "another program is writing; try again in a moment")
    ("headerMissing" . "the file is not a session; `treelined doctor' examines it")
    ("versionUnsupported" . "update treelined")
    ("readOnly" . "the session is open for reading only; its file cannot be changed")
    ("sessionDeleted" . "`M-x treelined-restore' brings it back")
    ("sessionReplaced" . "its file was replaced; g in the tree reads it again")
    ("sessionExists" . "open that one, or choose another name")
    ("importBusy" . "wait until the other import ends")
    ("sessionErased" . "it was erased for the team; start another session")
    ("cursorExpired" . "ask again")
    ("entryNotFound" . "g draws the tree again")
    ("leafMoved" . "others have written here; look at the tree, then try again")
    ("entryInvalid" . "correct the member that the message names")
    ("treeChanged" . "g draws the tree again")
    ("nestingTooDeep" . "fold a part of the tree")
    ("duplicateEntryId" . "send it again")
    ("notAUserMessage" . "choose a message of the user")
    ("nothingToUndo" . nil)
    ("unansweredToolCalls" . "choose an entry below the results of the tools")
    ("nothingToExport" . "choose another part of the session")
    ("summarizerUnavailable"
     . "go without a summary, or set `treelined-arguments' to (\"--summarizer\" \"outline\")")
    ("summarizerFailed" . "nothing was moved; try again, or go without a summary")
    ("nothingToCompact" . "try again when the conversation has grown")
    ("contextTooLarge" . "have earlier turns summarized, or take the last ones only")
    ("eventNotPending" . "the question is over")
    ("storageFull" . "make room on the disk, then try again; nothing is lost")
    ("storageIo" . "check the disk and the file")
    ("pathDenied" . "check the rights of the file, or choose another one")
    ("durabilityUnknown" . "check the disk; the entry may be lost if the machine stops")
    ("importFailed" . "correct the cause that the message names, and import again")
    ("batchUnsupported" . "this is a defect of this package; please report it")
    ("requestTooLarge" . "send less at once")
    ("responseTooLarge" . "raise `treelined-max-frame-bytes' to read it")
    ("overloaded" . "try again in a moment")
    ("memoryExhausted" . "others use the daemon's memory; try again in a moment")
    ("cancelled" . nil)
    ;; Kinds of errors about commands, questions and exports.
    ("commandExists" . "choose another name for the command")
    ("commandNotFound" . "`M-x treelined-run-command' lists the commands")
    ("commandFailed" . "the program that offers the command says why")
    ("noUser" . "no program is there to show the question")
    ("fileExists" . "choose another file")
    ;; Kinds of errors about sessions of a team.
    ("logUnavailable" . "the team's stream does not answer; try again in a moment")
    ("logConflict" . "others write to the session; try again in a moment")
    ("logForeign" . "find the program that writes to this session in the team's stream")
    ("logDiverged" . "fork the session, and pull the team's stream into a new file")
    ("logRewound" . "keep the file, ask who runs the servers, then `treelined push' fills the stream")
    ("logMisconfigured" . "`treelined doctor --cluster' says what is wrong with the stream")
    ("logDenied" . "correct the credentials or certificates of the team")
    ("erasureUnsupported" . "only a team on PostgreSQL can erase; delete the session instead")
    ("payloadTooLarge" . "the team's stream takes up to 64 MiB, if it has a bucket: `treelined doctor --cluster --create' makes it")
    ;; Kinds of errors of this package.
    ("disconnected" . "the next command starts the daemon again; `M-x treelined-log' shows its log")
    ("notStarted" . "install treelined, or set `treelined-command'")
    ("timeout" . "try again, or raise `treelined-timeout'")
    ("versionMismatch" . "update treelined and this package to the same version")
    ("unreadable" . "Emacs cannot read this text; `treelined call get_entry' shows it"))
  "Advice about errors, by kind.")

(defun treelined-failure (kind message &optional details retryable)
  "Return an error of KIND with MESSAGE, DETAILS and RETRYABLE."
  (list :kind kind :message message :details details :retryable retryable))

(defun treelined-error-text (error)
  "Return what has happened in ERROR, and what to do about it."
  (let* ((known (assoc (plist-get error :kind) treelined-error-hints))
         (hint (cond (known (cdr known))
                     ((plist-get error :retryable) "try again"))))
    (concat (plist-get error :message) (and hint (concat " — " hint)))))

(defun treelined-report (error)
  "Show ERROR in the echo area."
  (message "treelined: %s" (treelined-error-text error)))

(provide 'treelined-errors)
;;; treelined-errors.el ends here
