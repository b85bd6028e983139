;;; treelined-continue.el --- Go on in another agent  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Asks for the agent, says what it does not get, and runs `treelined
;; continue' in a terminal, which makes the new session and starts the agent
;; (protocol.md §3.18).  Nothing is written before the person agrees.

;;; Code:

(require 'term)
(require 'treelined-tree)

(defconst treelined-continue--tools
  '(("Claude Code" . "claude-code") ("Codex" . "codex") ("opencode" . "opencode")
    ("Gemini CLI" . "gemini") ("goose" . "goose") ("pi" . "pi")
    ("another agent, as a text" . "text"))
  "The agents by their names; `text' is for any other one.")

(defconst treelined-continue--shorter
  '((?n "last 20 turns" (:last 20) ("--last" "20"))
    (?s "earlier turns summarized" (:compact t) ("--compact"))
    (?a "all of it" (:limit 0) ("--limit" "0")))
  "What helps if a conversation is too large: key, name, params and options.")

(defun treelined-continue--command (session entry tool options)
  "Return the command to go on in TOOL behind the ENTRY of SESSION.
OPTIONS are further ones.  Those of the daemon find the same sessions."
  (append (treelined-client--command) treelined-arguments
          (list "continue" "--in" tool) options
          (list "--" (treelined-session-path session) entry)))

(defun treelined-continue--description (result)
  "Return what is handed over and lost by RESULT of `continue_session'."
  (let* ((messages (plist-get result :messages))
         (steps (plist-get result :steps))
         (agent (and (> (length steps) 0) (aref (aref steps (1- (length steps))) 0))))
    (string-join
     (append (list (format (ngettext "%d message, about %d tokens" "%d messages, about %d tokens"
                                     messages)
                           messages (plist-get result :tokens)))
             (mapcar (lambda (loss)
                       (concat "lost: " (treelined-row-shown (plist-get loss :text) " ")))
                     (plist-get result :losses))
             (and agent (not (executable-find agent))
                  (list (concat agent " is not installed here"))))
     "; ")))

(defun treelined-continue--preview (session params options then)
  "Ask what PARAMS of `continue_session' hand over of SESSION; write nothing.
Call THEN with the result and OPTIONS of the command.  If it is too much,
ask for less."
  (treelined-session-request
   session 'continue_session (append params '(:dryRun t))
   (lambda (result)
     (treelined-later then result options))
   (lambda (error)
     (if (equal (plist-get error :kind) "contextTooLarge")
         (treelined-later #'treelined-continue--ask-for-less session params options then error)
       (treelined-report error)))))

(defun treelined-continue--ask-for-less (session params options then error)
  "Ask for less than ERROR refuses, and go on with it.
SESSION, PARAMS, OPTIONS and THEN are as in `treelined-continue--preview'."
  (let* ((choices (mapcar (lambda (row) (list (car row) (cadr row)))
                          treelined-continue--shorter))
         (key (car (read-multiple-choice (concat (plist-get error :message) ".  Hand over:")
                                         choices)))
         (row (assq key treelined-continue--shorter)))
    (treelined-continue--preview session (append params (nth 2 row))
                                 (append options (nth 3 row)) then)))

(defun treelined-continue--run (session command tool)
  "Run COMMAND, to go on with SESSION in TOOL, in a terminal."
  (let* ((default-directory (file-name-as-directory
                             (let ((cwd (treelined-session-cwd session)))
                               (if (file-directory-p cwd) cwd "~/"))))
         (buffer (apply #'term-ansi-make-term (generate-new-buffer-name (format "*%s*" tool))
                        (car command) nil (cdr command))))
    (with-current-buffer buffer
      (term-char-mode)
      (let ((sentinel (process-sentinel (get-buffer-process buffer))))
        (set-process-sentinel
         (get-buffer-process buffer)
         (lambda (process event)
           (funcall sentinel process event)
           (unless (process-live-p process)
             (message "treelined: `M-x treelined-import' brings what was said there into the tree"))))))
    (pop-to-buffer buffer)))

(defun treelined-continue--show-text (text)
  "Show TEXT, and put it into the kill ring."
  (kill-new text)
  (with-current-buffer (get-buffer-create "*treelined handoff*")
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert text)
      (goto-char (point-min)))
    (special-mode)
    (visual-line-mode 1)
    (pop-to-buffer (current-buffer)))
  (message "treelined: this is in the kill ring; give it to the agent as its first message"))

(defun treelined-continue--confirm (session node tool result options)
  "Say what RESULT hands over to TOOL and loses, and do what the person chooses.
The conversation is that of SESSION up to NODE; OPTIONS are for the command."
  (let* ((entry (plist-get node :id))
         (is-text (equal tool "text"))
         (key (car (read-multiple-choice
                    (format "%s.  Go on in %s?" (treelined-continue--description result)
                            (car (rassoc tool treelined-continue--tools)))
                    (append '((?y "yes" "Go on."))
                            (unless (plist-get node :isLeaf)
                              '((?l "with what was learned"
                                    "The first words say what the branch that is left has taught.")))
                            (unless is-text
                              '((?w "copy the command" "Put the command into the kill ring.")))
                            '((?n "no" "Nothing is written."))))))
         (learned (eq key ?l)))
    (cond
     ((eq key ?n))
     ((eq key ?w)
      (kill-new (mapconcat #'shell-quote-argument
                           (treelined-continue--command session entry tool options) " "))
      (message "treelined: the command is in the kill ring; nothing is written before it runs"))
     ((and is-text (not learned))
      (treelined-continue--show-text (plist-get result :text)))
     ((not learned)
      (treelined-continue--run
       session (treelined-continue--command session entry tool options) tool))
     (t
      ;; Says now, and not in the terminal, that nobody can write the summary.
      (treelined-continue--preview
       session (list :entryId entry :tool tool :learned t) (append options '("--learned"))
       (lambda (result options)
         (if is-text
             (treelined-continue--show-text (plist-get result :text))
           (treelined-continue--run
            session (treelined-continue--command session entry tool options) tool))))))))

(defun treelined-tree-continue (tool)
  "Continue in TOOL with the conversation up to the entry at point.
Say what TOOL does not get before anything is written.  What is said there
comes back into this tree by \\[treelined-import]."
  (interactive
   (list (cdr (assoc (completing-read "Go on in: " treelined-continue--tools nil t)
                     treelined-continue--tools)))
   treelined-tree-mode)
  (let ((session treelined-session)
        (node (or (treelined-tree-node) (user-error "There is no entry here"))))
    (unless (or (treelined-session-path session) (equal tool "text"))
      (user-error "This session has no file; choose a text"))
    (treelined-continue--preview
     session (list :entryId (plist-get node :id) :tool tool) nil
     (lambda (result options)
       (treelined-continue--confirm session node tool result options)))))

(provide 'treelined-continue)
;;; treelined-continue.el ends here
