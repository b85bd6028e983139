;;; treelined-test-helper.el --- Daemons and conversations for tests  -*- lexical-binding: t; -*-

;;; Commentary:

;; Each test has its own daemon, started from TREELINED_BIN, and its own
;; session directory.  Keys are typed through the command loop.

;;; Code:

(require 'ert)
(require 'treelined)

(defconst treelined-test-folder
  (file-name-directory (directory-file-name (file-name-directory
                                             (or load-file-name buffer-file-name))))
  "The folder of the package.")

(defconst treelined-test-program (or (getenv "TREELINED_BIN") "treelined")
  "The daemon to test.")

(defconst treelined-test-shared (getenv "TREELINED_SHARED")
  "Whether tests join a shared daemon instead of starting a separate one.")

(defun treelined-test-command (directory)
  "Return the command of a daemon with the session DIRECTORY."
  (append (list treelined-test-program)
          (and treelined-test-shared '("connect" "--start"))
          (list "--session-dir" directory)))

(defvar treelined-test-directory nil "The session directory of the running test.")

;; Prints the state of a call without an answer.  Either the daemon has not read the call,
;; or Emacs has not read the answer.  The bytes in the pipes between them, and where each
;; thread waits, show which is true.
(defconst treelined-test-pipes "
import fcntl, os, sys, termios
folder = f'/proc/{sys.argv[1]}/fd/'
for fd in '0', '1', '2':
    try:
        pipe = os.open(folder + fd, os.O_RDONLY | os.O_NONBLOCK)
        waiting = fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))
        print(fd, os.readlink(folder + fd), int.from_bytes(waiting, sys.byteorder), 'bytes')
    except OSError as error:
        print(fd, error)
for task in os.listdir(f'/proc/{sys.argv[1]}/task'):
    said = []
    for name in 'comm', 'wchan', 'syscall', 'stat':
        try:
            said.append(open(f'/proc/{sys.argv[1]}/task/{task}/{name}').read().strip())
        except OSError as error:
            said.append(str(error))
    print(task, ' · '.join(said))
" "A script that prints the pipes and threads of a process.")

(defun treelined-test-daemon ()
  "Return the state of the daemon, for a test whose wait has failed."
  (let* ((connection treelined-client--connection)
         (process (and connection (oref connection process)))
         (log (get-buffer treelined-client--log)))
    (list :status (and process (process-status process))
          :calls (and connection (hash-table-count (oref connection calls)))
          :unsent (and connection (list (oref connection sending) (oref connection unsent)))
          :unread (and process (buffer-live-p (process-buffer process))
                       (with-current-buffer (process-buffer process)
                         (list (point) (buffer-size))))
          :loads (load-average t)
          :process (and process
                        (with-temp-buffer
                          (ignore-errors
                            (call-process "python3" nil t nil "-c" treelined-test-pipes
                                          (number-to-string (process-id process))))
                          (buffer-string)))
          :log (and log (with-current-buffer log (buffer-string))))))

(defun treelined-test-note-timeout (kind &rest _)
  "Print the state of the daemon before an error of the KIND \"timeout\"."
  (when (equal kind "timeout")
    (message "treelined: no answer in time: %S" (treelined-test-daemon))))

(advice-add 'treelined-failure :before #'treelined-test-note-timeout)

(defmacro treelined-test-wait (form)
  "Wait until FORM is not nil, and return its value.  The machine may be busy."
  `(let ((until (time-add nil 60))
         value)
     (while (not (setq value ,form))
       (when (time-less-p until nil)
         (ert-fail (list "timeout while waiting for" ',form (current-message)
                         (treelined-test-daemon)
                         (buffer-name) (buffer-substring-no-properties
                                        (point-min) (point-max)))))
       (accept-process-output nil 0.01))
     value))

(defun treelined-test-clean ()
  "End the daemon, and drop all sessions and buffers."
  (treelined-stop)
  (dolist (buffer (buffer-list))
    (when (and (buffer-live-p buffer)
               (string-match-p "\\` ?\\*treelined" (buffer-name buffer)))
      (kill-buffer buffer)))
  (clrhash treelined-session--table)
  (setq treelined-ask--questions nil
        treelined-ask--shown nil))

(defmacro treelined-test-with (&rest body)
  "Run BODY with a daemon and its own session directory."
  (declare (indent 0) (debug t))
  `(let* ((treelined-test-directory (make-temp-file "treelined-test" t))
          (treelined-command (treelined-test-command treelined-test-directory))
          (treelined-arguments nil)
          ;; On a busy machine the daemon may answer too late how many entries a move
          ;; leaves behind, and whether a summary can be written.
          (treelined-actions--preparation-seconds 60))
     (set-file-modes treelined-test-directory #o700)
     (unwind-protect
         (save-window-excursion ,@body)
       (treelined-test-clean)
       (when treelined-test-shared
         (call-process treelined-test-program nil nil nil
                       "stop" "--session-dir" treelined-test-directory))
       (delete-directory treelined-test-directory t))))

(defun treelined-test-call (method &rest params)
  "Call METHOD with PARAMS, wait, and return the result; signal the kind of an error."
  (let ((answer (treelined-await (lambda (then else) (treelined-request method params then else))
                                 60)))
    (if (car answer)
        (cdr answer)
      (error "%s: %s" method (plist-get (cdr answer) :kind)))))

(defun treelined-test-say (session id role text)
  "Append the message TEXT of ROLE to SESSION as the entry ID."
  (treelined-test-call 'append_message :sessionId session :entryId id
                       :message (list :role role
                                      :content (if (equal role "user")
                                                   text
                                                 (vector (list :type "text" :text text))))))

(defun treelined-test-converse (id)
  "Make the session ID: a question, two ideas, and a branch for each of them."
  (treelined-test-call 'create_session :sessionId id :cwd "/tmp" :name id :write "now")
  (treelined-test-say id "u1" "user" "Why does the build fail?")
  (treelined-test-say id "a1" "assistant" "A stale cache, or a missing import.")
  (treelined-test-say id "u2" "user" "Clear the cache.")
  (treelined-test-say id "a2" "assistant" "Cleared. It still fails.")
  (treelined-test-call 'set_leaf :sessionId id :leafId "a1")
  (treelined-test-say id "u3" "user" "Add the import.")
  (treelined-test-say id "a3" "assistant" "Added. The build passes."))

(defun treelined-test-idle-p ()
  "Return whether the tree of this buffer is drawn, and no request is open."
  (and (derived-mode-p 'treelined-tree-mode)
       treelined-tree--revision
       (not treelined-tree--loading)
       (not treelined-tree--timer)
       (not (memq 'asked (hash-table-values treelined-tree--rows)))))

(defun treelined-test-open (what)
  "Show the tree of the session WHAT, and wait until it is drawn."
  (treelined-open what)
  (treelined-test-wait (progn
                         (set-buffer (window-buffer))
                         (and (treelined-test-idle-p)
                              (member what (list (treelined-session-id treelined-session)
                                                 (treelined-session-path treelined-session)))))))

(defun treelined-test-settle ()
  "Wait until the tree is drawn."
  (treelined-test-wait (treelined-test-idle-p)))

(defun treelined-test-lines ()
  "Return the lines of this buffer without trailing blanks."
  (split-string (string-trim-right (buffer-substring-no-properties (point-min) (point-max)))
                "\n"))

(defun treelined-test-keys (keys)
  "Type KEYS, as for `kbd', and wait for the tree, if this is one."
  (execute-kbd-macro (kbd keys))
  (set-buffer (window-buffer))
  (when (derived-mode-p 'treelined-tree-mode)
    (treelined-test-settle)))

(defun treelined-test-go (id)
  "Put point on the entry ID of this tree."
  (treelined-tree-go-to id)
  (treelined-test-wait (and (treelined-test-idle-p) (equal (treelined-tree-id) id))))

(defmacro treelined-test-messages (&rest body)
  "Run BODY, and return the texts of the messages that it shows."
  (declare (indent 0) (debug t))
  `(let (texts)
     (cl-letf (((symbol-function 'message)
                (lambda (format &rest arguments)
                  (when format
                    (push (apply #'format-message format arguments) texts)))))
       ,@body)
     (nreverse texts)))

(defmacro treelined-test-hears (regexp &rest body)
  "Run BODY, and wait for a message that matches REGEXP."
  (declare (indent 1) (debug t))
  `(let (heard)
     (cl-letf (((symbol-function 'message)
                (lambda (format &rest arguments)
                  (when (and format
                             (string-match-p ,regexp (apply #'format-message format arguments)))
                    (setq heard t)))))
       ,@body
       (treelined-test-wait heard))))

(defconst treelined-test-drawn
  '("• user       Why does the build fail?"
    "• assistant  A stale cache, or a missing import."
    "  ├─ user       Clear the cache."
    "  │  assistant  Cleared. It still fails."
    "• └─ user       Add the import."
    "◉    assistant  Added. The build passes. ← active")
  "The tree of `treelined-test-converse'.")

(defconst treelined-test-folded
  '("• user       Why does the build fail?"
    "• assistant  A stale cache, or a missing import."
    "  └─ ⊞ 2 entries · Clear the cache."
    "• user       Add the import."
    "◉ assistant  Added. The build passes. ← active")
  "The tree of `treelined-test-converse', with its left branch in one row.")

(defmacro treelined-test-with-folded-tree (&rest body)
  "Run BODY in the tree of a conversation as it opens."
  (declare (indent 0) (debug t))
  `(treelined-test-with
     (treelined-test-converse "talk")
     (treelined-test-open "talk")
     ,@body))

(defmacro treelined-test-with-tree (&rest body)
  "Run BODY in the tree of a conversation, with all branches open."
  (declare (indent 0) (debug t))
  `(treelined-test-with-folded-tree
     (treelined-tree-unfold-all)
     (treelined-test-settle)
     ,@body))

(provide 'treelined-test-helper)
;;; treelined-test-helper.el ends here
