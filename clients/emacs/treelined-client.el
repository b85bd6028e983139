;;; treelined-client.el --- The connection to the daemon  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; One daemon serves this Emacs.  `treelined-request' calls a method and returns at once.
;; The daemon starts with the first call, and again with the next call after it has ended.
;; `treelined-notification-functions' get its notifications.
;;
;; The connection is a separate subclass of `jsonrpc-connection', which sends and reads
;; lines.  `jsonrpc-process-connection' cannot be used: it discards a message that
;; `json-parse-buffer' refuses, and a call whose answer is discarded never ends.  Texts of
;; conversations have NUL characters, which tools write, and halves of surrogate pairs,
;; and `json-parse-buffer' refuses both.

;;; Code:

(require 'cl-lib)
(require 'jsonrpc)
(require 'subr-x)
(require 'treelined-errors)

(defcustom treelined-command '("treelined")
  "The program of the daemon and its arguments.
The daemon speaks JSON-RPC on its stdin and stdout.  A daemon of this
Emacs ends with Emacs; `connect' joins the one that all programs share."
  :group 'treelined
  :type '(choice
          (const :tag "A daemon of this Emacs" ("treelined"))
          (const :tag "The daemon that all programs share" ("treelined" "connect" "--start"))
          (repeat :tag "Program and arguments" string)))

(defcustom treelined-arguments nil
  "More arguments of the daemon, such as (\"--summarizer\" \"llm\")."
  :group 'treelined
  :type '(repeat string))

(defcustom treelined-max-frame-bytes (* 1024 1024)
  "The most bytes of one message of the daemon.
Emacs reads a message at once, so that a large one makes it pause.
Entries above this size cannot be shown.  A change takes effect when the
daemon starts the next time."
  :group 'treelined
  :type 'natnum)

(defcustom treelined-timeout 30
  "How long a call waits for its answer, in seconds.
Calls that wait for people and models may take 11 minutes."
  :group 'treelined
  :type 'natnum)

(defvar treelined-notification-functions nil
  "Functions called with each notification: its name, a symbol, and its params.
They run in a process filter, so they should be fast, and must not read
from the minibuffer.")

(defvar treelined-answer-functions nil
  "Functions that answer the questions of the daemon, by event.
Events are the symbols `session_before_tree', `session_before_fork' and
`session_before_compact'.  A function is called with the params of the
event and a function REPLY, which it calls once, at once or later, with
the answer, a plist such as (:cancel t :reason \"building\"), or nil for
no opinion.  The daemon waits for it; see `treelined-answer-failure' for
functions that fail.  A change takes effect when the daemon starts the
next time.")

(defcustom treelined-answer-failure 'cancel
  "The answer of a function of `treelined-answer-functions' that fails.
It fails if it signals an error, if the daemon refuses its answer, or if
Emacs dies while it is asked.  `cancel' gives the first line of the error
as the reason; `proceed' is not an opinion.  A change takes effect when the
daemon starts the next time."
  :group 'treelined
  :type '(choice (const cancel) (const proceed)))

(defvar treelined-end-functions nil
  "Functions called with an error when the daemon has ended.")

(defconst treelined-client-version "0.1.0"
  "The version of this package, sent to the daemon.")

(defconst treelined-client--waiting
  '(archive_branch choose compact continue_session fork_session merge_branch navigate_tree pop
                   import_sessions run_command)
  "Methods that wait for people, models and large files.")

(defconst treelined-client--waiting-seconds 660
  "The deadline of `treelined-client--waiting', in seconds.")

(defconst treelined-client--log " *treelined log*"
  "The buffer of the daemon's log.")

(defclass treelined-client (jsonrpc-connection)
  ((process :documentation "The process of the daemon.")
   (calls :initform (make-hash-table)
          :documentation "By id, the functions that end open calls with an error.")
   (last-id :initform nil :documentation "The id of the last request.")
   (unsent :initform nil :documentation "The messages that are not sent yet, the oldest first.")
   (sending :initform nil :documentation "Whether a message is being sent.")
   (summarizer :initform nil :documentation "The program that writes summaries, or nil.")
   (why :initform nil :documentation "The error because of which Emacs ends the program."))
  :documentation "A connection to a daemon, one message per line.")

(defvar treelined-client--connection nil
  "The connection to the running daemon, or nil.")

(defmacro treelined-client--guard (&rest body)
  "Run BODY, and show its errors.
Emacs pauses for seconds after an error in a process filter."
  (declare (indent 0) (debug t))
  `(condition-case-unless-debug why
       (progn ,@body)
     (error (message "treelined: %s" (error-message-string why)))))

;;;; Messages

(cl-defmethod jsonrpc-connection-send
  ((connection treelined-client) &key id method params &allow-other-keys)
  "Send a request or notification METHOD with PARAMS and ID over CONNECTION.
A request is sent by `treelined-client--flush', when its answer is awaited."
  (let ((text (concat (json-serialize `(:jsonrpc "2.0" ,@(and id (list :id id))
                                                 :method ,(format "%s" method) :params ,params)
                                      :null-object nil :false-object :json-false)
                      "\n")))
    (oset connection unsent (append (oref connection unsent) (list text)))
    (if id
        (oset connection last-id id)
      (treelined-client--flush connection))))

(defun treelined-client--flush (connection)
  "Send the messages of CONNECTION that are not sent yet.
While the daemon does not read, Emacs runs timers and filters.  These may
call the daemon, and their messages follow this one."
  (unless (oref connection sending)
    (oset connection sending t)
    (unwind-protect
        (while (oref connection unsent)
          (process-send-string (oref connection process) (pop (oref connection unsent))))
      (oset connection sending nil))))

(cl-defmethod jsonrpc-running-p ((connection treelined-client))
  "Return non-nil if the daemon of CONNECTION is alive."
  (process-live-p (oref connection process)))

(cl-defmethod jsonrpc-shutdown ((connection treelined-client))
  "Close the input of CONNECTION's daemon, which finishes its requests and ends."
  (when (jsonrpc-running-p connection)
    (process-send-eof (oref connection process))))

(defun treelined-client--parse ()
  "Read the message at point.  False and null become nil."
  (json-parse-buffer :object-type 'plist :null-object nil :false-object nil))

(defun treelined-client--replace-unreadable ()
  "Replace characters of the line at point that Emacs cannot read by U+FFFD.
These are NUL and halves of surrogate pairs."
  (let ((end (copy-marker (line-end-position)))
        (case-fold-search t))
    (save-excursion
      (while (re-search-forward
              (rx "\\" (or (group "ud" (any "89ab") xdigit xdigit
                                  "\\ud" (any "c-f") xdigit xdigit)
                           (group (or "u0000" (: "ud" (any "89a-f") xdigit xdigit)))
                           nonl))
              end t)
        (when (match-beginning 2)
          (replace-match "ufffd" t t nil 2))))
    (set-marker end nil)))

(defun treelined-client--read (connection)
  "Return the message of CONNECTION on the line at point; nil if it is not JSON."
  (let ((start (point)))
    (condition-case nil
        (treelined-client--parse)
      (error
       (goto-char start)
       (treelined-client--replace-unreadable)
       (condition-case nil
           (treelined-client--parse)
         (error
          (goto-char start)
          (treelined-client--unreadable connection)
          nil))))))

(defun treelined-client--unreadable (connection)
  "End the call of CONNECTION whose answer at point cannot be read."
  (cond ((looking-at "{\"jsonrpc\":\"2.0\",\"id\":\\([0-9]+\\),")
         (let* ((id (string-to-number (match-string 1)))
                (fail (gethash id (oref connection calls))))
           (when fail
             (funcall fail (treelined-failure "unreadable" "the answer cannot be read")))))
        ((not (looking-at "{\"jsonrpc\":\"2.0\","))
         (treelined-client--kill
          connection
          (format "%s is not a treelined daemon: it wrote %S" (car treelined-command)
                  (buffer-substring (point) (min (line-end-position) (+ (point) 200))))))))

(defun treelined-client--kill (connection text &optional kind)
  "End the daemon of CONNECTION because of an error of KIND with TEXT."
  (unless (oref connection why)
    (oset connection why (treelined-failure (or kind "disconnected") text))
    (kill-process (oref connection process))))

(defun treelined-client--filter (process string)
  "Handle the messages that STRING, output of PROCESS, completes."
  (when (buffer-live-p (process-buffer process))
    (with-current-buffer (process-buffer process)
      (goto-char (point-max))
      ;; Only the new part is searched for the end of a line.
      (let ((new (point)))
        (insert string)
        (goto-char new))
      (while (search-forward "\n" nil t)
        (let* ((connection (process-get process 'treelined))
               (message (save-excursion
                          (goto-char (point-min))
                          (treelined-client--read connection))))
          ;; Point is moved before the message is handled, since this may read the next
          ;; messages.
          (goto-char (point-min))
          (forward-line 1)
          (delete-region (point-min) (point))
          (when message
            (with-temp-buffer
              (treelined-client--guard
                (jsonrpc-connection-receive connection message))))
          ;; While the message was handled, a part of a later line may have arrived, and
          ;; point is then after the complete lines.
          (goto-char (point-min)))))))

(defun treelined-client--notified (_connection name params)
  "Handle the notification NAME with PARAMS."
  (dolist (function treelined-notification-functions)
    (treelined-client--guard (funcall function name params)))
  ;; Without `timeoutMs' the daemon does not wait for an answer.
  (when (> (or (plist-get params :timeoutMs) 0) 0)
    (when-let* ((function (alist-get name treelined-answer-functions)))
      (treelined-client--answer function params))))

(defconst treelined-client--most-reason 500
  "The most characters of the reason of a cancel.")

(defun treelined-client--reason (text)
  "Cut TEXT to what the daemon accepts as a reason."
  (substring text 0 (min (length text) treelined-client--most-reason)))

(defun treelined-client--failed (why)
  "Return the answer of a function that has failed because of WHY, a text."
  ;; A guard that fails does not consent.
  (unless (eq treelined-answer-failure 'proceed)
    (list :cancel t :reason (treelined-client--reason
                             (car (split-string (string-trim why) "[\r\n]"))))))

(defun treelined-client--refused (event result error)
  "Report that the daemon refused RESULT for EVENT with ERROR, and answer again."
  (unless (or (equal (plist-get error :kind) "eventNotPending")
              (not (treelined-running-p)))
    (let ((why (format "the answer was refused: %s" (plist-get error :message))))
      (message "treelined: %s" why)
      (treelined-request 'answer_event
                         (list :eventId event
                               ;; A cancel stays a cancel, even if another member is
                               ;; wrong.
                               :result (if (and (listp result) (plist-get result :cancel))
                                           '(:cancel t)
                                         (treelined-client--failed why)))
                         #'ignore))))

(defun treelined-client--reply (event result)
  "Answer EVENT with RESULT, a plist or nil."
  (when (and (listp result) (stringp (plist-get result :reason)))
    (setq result (plist-put (copy-sequence result) :reason
                            (treelined-client--reason (plist-get result :reason)))))
  (treelined-request 'answer_event (list :eventId event :result result) #'ignore
                     (lambda (error) (treelined-client--refused event result error))))

(defun treelined-client--answer (function params)
  "Call FUNCTION, which answers the event with PARAMS."
  (let ((event (plist-get params :eventId)))
    (condition-case why
        (funcall function params
                 (lambda (&optional result) (treelined-client--reply event result)))
      ((error quit)
       (let ((text (error-message-string why)))
         (message "treelined: %s" text)
         (treelined-client--reply event (treelined-client--failed text)))))))

;;;; The daemon

(defun treelined-client--why (connection)
  "Return the reason for the end of CONNECTION, an error."
  (let* ((process (oref connection process))
         (status (process-exit-status process)))
    (or (oref connection why)
        (treelined-failure
         "disconnected"
         (cond ((eq (process-status process) 'signal)
                (format "the daemon was ended by signal %d" status))
               ((zerop status) "the daemon has ended")
               (t (format "the daemon has ended with exit code %d" status)))))))

(defun treelined-client--sentinel (process _event)
  "End all open requests of PROCESS when it has ended."
  (unless (process-live-p process)
    (let* ((connection (process-get process 'treelined))
           (why (treelined-client--why connection)))
      (when (eq connection treelined-client--connection)
        (setq treelined-client--connection nil))
      (kill-buffer (process-buffer process))
      (jsonrpc-forget-pending-continuations connection)
      (dolist (fail (hash-table-values (oref connection calls)))
        (funcall fail why))
      (dolist (function treelined-end-functions)
        (treelined-client--guard (funcall function why))))))

(defun treelined-client--command ()
  "Return `treelined-command', with TREELINED_BIN as the default program."
  (let ((named (getenv "TREELINED_BIN")))
    (if (and (equal (car treelined-command) "treelined")
             (not (string-empty-p (or named ""))))
        (cons named (cdr treelined-command))
      treelined-command)))

(defun treelined-client--start ()
  "Start the daemon and return its process."
  (unless (executable-find (car (treelined-client--command)))
    (signal 'file-missing
            (list (format "no such program; tried: TREELINED_BIN (%s), `treelined-command', \
the `exec-path'"
                          (or (getenv "TREELINED_BIN") "not set")))))
  (let* ((default-directory (expand-file-name "~/"))
         (log (get-buffer-create treelined-client--log))
         (errors (make-pipe-process :name "treelined log" :buffer log :noquery t
                                    :sentinel #'ignore :coding 'utf-8-unix))
         (process (make-process
                   :name "treelined"
                   :command (append (treelined-client--command) treelined-arguments)
                   :buffer (generate-new-buffer " *treelined*" t)
                   :connection-type 'pipe
                   :coding 'utf-8-unix
                   :noquery t
                   :stderr errors
                   :filter #'treelined-client--filter
                   :sentinel #'treelined-client--sentinel)))
    (with-current-buffer (process-buffer process)
      (buffer-disable-undo))
    process))

(defun treelined-client--initialize (connection)
  "Send `initialize' to the daemon of CONNECTION."
  (treelined-client-request
   connection 'initialize
   `(:protocolVersion 1
                      :clientInfo (:name "treelined.el" :version ,treelined-client-version)
                      :processId ,(emacs-pid)
                      :capabilities (:answers ,(mapcan (lambda (answer)
                                        (list (intern (format ":%s" (car answer)))
                                              `(:onFailure ,(symbol-name treelined-answer-failure))))
                                      treelined-answer-functions)
                    :summaryDeltas nil :progress nil
                                                    :ui ["select" "confirm" "input" "editor"]
                                                    :maxFrameBytes ,treelined-max-frame-bytes))
   (lambda (result)
     (setf (slot-value connection 'summarizer)
           (plist-get (plist-get result :capabilities) :summarizer))
     (let ((spoken (plist-get result :protocolVersion)))
       (unless (eql spoken 1)
         (treelined-client--kill connection
                                 (format "the daemon speaks protocol version %s, not 1" spoken)
                                 "versionMismatch"))))
   #'treelined-report))

(defun treelined-connection ()
  "Return the connection to the daemon; start the daemon if it does not run.
Signal an error of the type `file-missing' if there is no such program."
  (unless (and treelined-client--connection
               (jsonrpc-running-p treelined-client--connection))
    (let* ((log (if (slot-exists-p 'treelined-client '-events-buffer-config)
                    '(:events-buffer-config (:size 0))
                  '(:events-buffer-scrollback-size 0)))
           (connection (apply #'make-instance 'treelined-client :name "treelined"
                              :notification-dispatcher #'treelined-client--notified log))
           (process (treelined-client--start)))
      (oset connection process process)
      (process-put process 'treelined connection)
      (setq treelined-client--connection connection)
      ;; Later requests need not wait for the answer.
      (treelined-client--initialize connection)))
  treelined-client--connection)

(defun treelined-running-p ()
  "Return non-nil if the daemon is alive."
  (and treelined-client--connection
       (jsonrpc-running-p treelined-client--connection)))

;;;###autoload (autoload 'treelined-stop "treelined" nil t)
(defun treelined-stop ()
  "End the daemon of this Emacs, until the next command."
  (interactive)
  (when (treelined-running-p)
    (let ((process (oref treelined-client--connection process)))
      (ignore-errors (jsonrpc-shutdown treelined-client--connection))
      ;; The daemon first runs the requests that were sent.
      (with-timeout (2)
        (while (process-live-p process)
          (accept-process-output process 0.05))))))

(add-hook 'kill-emacs-hook #'treelined-stop)

;;;###autoload (autoload 'treelined-log "treelined" nil t)
(defun treelined-log ()
  "Show the log of the daemon."
  (interactive)
  (with-current-buffer (get-buffer-create treelined-client--log)
    (special-mode)
    (display-buffer (current-buffer))))

;;;; Calls

(defun treelined-client--error (method error)
  "Return the error for ERROR, the answer of the daemon to METHOD."
  (let ((data (plist-get error :data)))
    (treelined-failure (or (plist-get data :kind) "internalError")
                       (format "%s: %s" method (plist-get error :message))
                       (plist-get data :details)
                       (plist-get data :retryable))))

(defun treelined-client--cancel (connection id)
  "Ask the daemon of CONNECTION to cancel the request ID."
  (when (jsonrpc-running-p connection)
    (jsonrpc-notify connection '$/cancel_request (list :requestId id))))

(defun treelined-client-request (connection method params then else)
  "Call METHOD with PARAMS over CONNECTION; see `treelined-request'."
  (let* ((buffer (current-buffer))
         (calls (oref connection calls))
         id timer
         (finish (lambda (function value)
                   ;; An answer may come after the deadline.
                   (when (gethash id calls)
                     (remhash id calls)
                     (cancel-timer timer)
                     (treelined-client--guard
                       (if (buffer-live-p buffer)
                           (with-current-buffer buffer (funcall function value))
                         (with-temp-buffer (funcall function value)))))))
         (seconds (if (memq method treelined-client--waiting)
                      treelined-client--waiting-seconds
                    treelined-timeout)))
    (condition-case why
        (jsonrpc-async-request
         connection method params
         ;; The deadline is checked below, since jsonrpc.el of Emacs 28 fails on late
         ;; answers.
         :timeout nil
         :success-fn (lambda (result) (funcall finish then result))
         :error-fn (lambda (error) (funcall finish else (treelined-client--error method error))))
      ;; Text with raw bytes cannot be encoded as JSON.
      (wrong-type-argument
       (funcall else (treelined-failure "invalidParams" (error-message-string why))))
      ;; The program has ended, and its sentinel has not run yet.
      (error
       (funcall else (treelined-failure "disconnected" (error-message-string why))))
      (:success
       (setq id (oref connection last-id))
       (puthash id (lambda (error) (funcall finish else error)) calls)
       (setq timer (run-at-time seconds nil
                                (lambda ()
                                  (treelined-client--cancel connection id)
                                  (funcall finish else
                                           (treelined-failure
                                            "timeout"
                                            (format "%s: no answer within %d s" method seconds)
                                            nil t)))))
       (condition-case why
           (treelined-client--flush connection)
         (error
          (funcall finish else
                   (treelined-failure "disconnected" (error-message-string why)))))))
    id))

(defun treelined-request (method params then &optional else)
  "Call METHOD, a symbol, with PARAMS, a plist, and return at once.
Call THEN with the result, or ELSE with an error; without ELSE the error
is shown.  They run in the buffer that is current now, or in a temporary
one if that has been killed.  Return the id of the request, for
`treelined-cancel-request', or nil if it could not be sent."
  (let ((else (or else #'treelined-report)))
    (condition-case why
        (treelined-client-request (treelined-connection) method params then else)
      (file-error
       (funcall else (treelined-failure "notStarted"
                                        (format "cannot start %s: %s"
                                                (car (treelined-client--command))
                                                (string-join (cdr why) ": "))))
       nil))))

(defun treelined-cancel-request (id)
  "Ask the daemon to cancel the request ID."
  (when (treelined-running-p)
    (treelined-client--cancel treelined-client--connection id)))

(defun treelined-later (function &rest args)
  "Call FUNCTION with ARGS soon, when no minibuffer is active.
It may select windows and ask questions, which callbacks must not."
  (run-at-time 0 nil #'treelined-client--when-free function args))

(defun treelined-client--when-free (function args)
  "Call FUNCTION with ARGS, or wait for the end of the active minibuffer."
  (if (zerop (minibuffer-depth))
      (apply function args)
    (letrec ((again (lambda ()
                      (remove-hook 'minibuffer-exit-hook again)
                      (apply #'treelined-later function args))))
      (add-hook 'minibuffer-exit-hook again))))

(defun treelined-await (start seconds)
  "Call START with two functions, and wait until one is called, at most SECONDS.
If the first one is called, return a cons of t and its argument.  If the
second one is called, return a cons of nil and its argument.  Return nil if
none is called in time."
  (let ((until (time-add nil seconds))
        answer)
    (funcall start
             (lambda (result) (setq answer (cons t result)))
             (lambda (error) (setq answer (cons nil error))))
    (while (and (not answer) (time-less-p nil until))
      (accept-process-output nil 0.01))
    answer))

(provide 'treelined-client)
;;; treelined-client.el ends here
