;;; treelined-continue.el --- Go on in another agent  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Asks for the agent, says what the agent does not get, and runs `treelined continue' in
;; a terminal, which makes the new session and starts the agent (protocol.md §3.18).
;; Nothing is written before the person agrees.

;;; Code:

(require 'term)
(require 'treelined-tree)

(defconst treelined-continue--tools
  '(("Claude Code" . "claude-code") ("Codex" . "codex") ("opencode" . "opencode")
    ("Gemini CLI" . "gemini") ("goose" . "goose") ("pi" . "pi")
    ("any other agent, as a text" . "text"))
  "The agents by their names; schema/agents.tsv has the list that clients share.")

(defconst treelined-continue--shorter
  '((?n "last 20 turns" (:last 20) ("--last" "20"))
    (?s "earlier turns summarized" (:compact t) ("--compact") (:limit 0))
    (?a "all of it" (:limit 0) ("--limit" "0")))
  "Choices for a conversation that is too large: key, name, params and options.
The last element has the params that only request its size: for a question
no summary is written.")

(defun treelined-continue--command (session entry tool options)
  "Return the command that continues in TOOL after the ENTRY of SESSION.
OPTIONS are further options.  With the options of the daemon the command
uses the same session directory.  `connect' and the words after it are left
out, since they only say how to reach a daemon."
  (append (seq-take-while (lambda (word) (not (equal word "connect")))
                          (treelined-client--command))
          treelined-arguments
          (list "continue" "--in" tool) options
          (mapcar #'treelined-continue--word
                  (list "--" (treelined-session-path session) entry))))

(defun treelined-continue--word (word)
  "Return WORD, if it can be shown to a person and pasted into a terminal."
  ;; A shell would run the text before a line break as a separate command.
  (unless (equal word (treelined-row-shown word ""))
    (user-error "A path or an id has a control character"))
  word)

(defun treelined-continue--description (result)
  "Return a text about what RESULT of `continue_session' hands over and loses."
  (let ((messages (plist-get result :messages)))
    (string-join
     (append (list (format (ngettext "%d message, about %d tokens" "%d messages, about %d tokens"
                                     messages)
                           messages (plist-get result :tokens)))
             (mapcar (lambda (loss)
                       (concat "lost: " (treelined-row-shown (plist-get loss :text) " ")))
                     (plist-get result :losses))
             (mapcar (lambda (program) (concat program " is not installed here"))
                     (plist-get result :missing)))
     "; ")))

(defun treelined-continue--ask (session params then &optional else)
  "Ask the daemon what PARAMS of `continue_session' hand over of SESSION.
Nothing is written.
Call THEN with the result later.  ELSE is as in `treelined-request'."
  (treelined-session-request session 'continue_session (append params '(:dryRun t))
                             (lambda (result)
                               (treelined-later then result))
                             else))

(defun treelined-continue--preview (session params row then)
  "Ask the daemon what PARAMS of `continue_session' hand over of SESSION.
ROW of `treelined-continue--shorter' makes it shorter.  Without ROW, let the
person choose one if it is too large.  Call THEN with the result and the row."
  (treelined-continue--ask
   session (append (or (nth 4 row) (nth 2 row)) params)
   (lambda (result)
     (funcall then result row))
   (lambda (error)
     (if (equal (plist-get error :kind) "contextTooLarge")
         (treelined-later #'treelined-continue--ask-for-less session params then error)
       (treelined-report error)))))

(defun treelined-continue--ask-for-less (session params then error)
  "Let the person choose less than ERROR refuses, and continue with that.
SESSION, PARAMS and THEN are as in `treelined-continue--preview'."
  (let* ((choices (mapcar (lambda (row) (list (car row) (cadr row)))
                          treelined-continue--shorter))
         (key (car (read-multiple-choice (concat (plist-get error :message) ".  Hand over:")
                                         choices))))
    (treelined-continue--preview session params (assq key treelined-continue--shorter) then)))

(defun treelined-continue--run (session command tool)
  "Run COMMAND, which continues SESSION in TOOL, in a terminal."
  (let* ((default-directory (treelined-session-directory session))
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
      (insert (treelined-row-shown text))
      (goto-char (point-min)))
    (special-mode)
    (visual-line-mode 1)
    (pop-to-buffer (current-buffer)))
  (message "treelined: this is in the kill ring; give it to the agent as its first message"))

(defun treelined-continue--choose (result node tool)
  "Show what RESULT hands over to TOOL up to NODE and loses; return a key."
  (car (read-multiple-choice
        (format "%s.  Go on in %s?" (treelined-continue--description result)
                (car (rassoc tool treelined-continue--tools)))
        (append '((?y "yes" "Go on."))
                (unless (plist-get node :isLeaf)
                  '((?l "with what was learned"
                        "The first words say what the branch that is left has taught.")))
                (unless (equal tool "text")
                  '((?w "copy the command" "Put the command into the kill ring.")))
                '((?n "no" "Nothing is written."))))))

(defun treelined-continue--confirm (session node tool result row)
  "Show what RESULT hands over to TOOL and loses, and do what the person chooses.
The conversation is the path of SESSION to NODE.  ROW is the choice that makes
it shorter, or nil."
  (let* ((key (treelined-continue--choose result node tool))
         (learned (eq key ?l))
         (entry (plist-get node :id))
         (params (append (nth 2 row) (list :entryId entry :tool tool)
                         (and learned '(:learned t))))
         (command (and (not (equal tool "text"))
                       (treelined-continue--command
                        session entry tool
                        (append (nth 3 row) (and learned '("--learned")))))))
    (cond
     ((eq key ?n))
     ((eq key ?w)
      (kill-new (mapconcat #'shell-quote-argument command " "))
      (message "treelined: the command is in the kill ring; nothing is written before it runs"))
     ((null command)
      (treelined-continue--ask session params
                               (lambda (result)
                                 (treelined-continue--show-text (plist-get result :text)))))
     ((or (not learned) (slot-value (treelined-connection) 'summarizer))
      (treelined-continue--run session command tool))
     (t
      ;; If no summary can be written, the error is shown here instead of in the terminal.
      ;; A summary may already exist.
      (treelined-continue--ask session params
                               (lambda (_) (treelined-continue--run session command tool)))))))

(defun treelined-tree-continue (tool)
  "Continue in TOOL with the conversation up to the entry at point.
Say what TOOL does not get before anything is written.  What is said there
comes back into this tree by \\[treelined-import]."
  (interactive
   (list (cdr (assoc (completing-read "Go on in: " treelined-continue--tools nil t)
                     treelined-continue--tools)))
   treelined-tree-mode)
  (unless tool
    (user-error "Name the agent that goes on"))
  (let ((session treelined-session)
        (node (or (treelined-tree-node) (user-error "There is no entry here"))))
    (unless (or (treelined-session-path session) (equal tool "text"))
      (user-error "This session has no file; choose a text"))
    (treelined-continue--preview
     session (list :entryId (plist-get node :id) :tool tool) nil
     (lambda (result row)
       (treelined-continue--confirm session node tool result row)))))

(provide 'treelined-continue)
;;; treelined-continue.el ends here
