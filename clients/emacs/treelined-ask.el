;;; treelined-ask.el --- Commands and questions of other programs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Programs that are connected to the daemon can offer commands, and ask the person who
;; uses this Emacs.  A question is shown when the person does not type, and every answer
;; ends with a key like RET, so that no other typed key answers a question.

;;; Code:

(require 'treelined-compose)

(defcustom treelined-ask-idle 1
  "How long Emacs is idle before a question is shown, in seconds.
With nil only `treelined-answer' shows questions."
  :group 'treelined
  :type '(choice number (const :tag "Never" nil)))

(defvar treelined-ask--questions nil "The params of open questions, the oldest first.")
(defvar treelined-ask--shown nil "The id of the question that is shown.")

;;;; Questions

(defun treelined-ask--notified (name params)
  "Follow the notification NAME with PARAMS."
  (pcase name
    ('user_asked (treelined-ask--asked params))
    ('event_resolved (treelined-ask--resolved (plist-get params :eventId)))
    ('user_notified (treelined-ask--show-message params))))

(add-hook 'treelined-notification-functions #'treelined-ask--notified)

(defun treelined-ask--ended (_error)
  "Drop all questions, since the daemon has ended."
  (dolist (question treelined-ask--questions)
    (treelined-ask--resolved (plist-get question :eventId))))

(add-hook 'treelined-end-functions #'treelined-ask--ended)

(defun treelined-ask--show-message (params)
  "Show the message in PARAMS."
  (let ((face (pcase (plist-get params :level)
                ("error" 'error)
                ("warning" 'warning)
                (_ 'default))))
    (message "treelined: %s" (propertize (plist-get params :message) 'face face))))

(defun treelined-ask--asked (question)
  "Show QUESTION when the person does not type."
  (setq treelined-ask--questions (append treelined-ask--questions (list question)))
  (message "treelined: %s asks: %s  (%s)"
           (or (plist-get question :by) "a program") (plist-get question :title)
           (substitute-command-keys "\\[treelined-answer]"))
  (when treelined-ask-idle
    (run-with-idle-timer (time-add (or (current-idle-time) 0) treelined-ask-idle) nil
                         #'treelined-later #'treelined-ask--next)))

(defun treelined-ask--resolved (id)
  "Drop the question ID, and close its prompt."
  (setq treelined-ask--questions
        (seq-remove (lambda (question) (equal id (plist-get question :eventId)))
                    treelined-ask--questions))
  (when (equal id treelined-ask--shown)
    (setq treelined-ask--shown nil)
    (message "treelined: the question is over")
    (when (active-minibuffer-window)
      (run-at-time 0 nil #'abort-recursive-edit))))

(defun treelined-ask--next ()
  "Show the oldest question, if there is one and none is shown."
  (when (and treelined-ask--questions (not treelined-ask--shown))
    (treelined-answer)))

(defun treelined-ask--send (id result)
  "Answer the question ID with RESULT, unless it is over."
  (when (equal id treelined-ask--shown)
    (setq treelined-ask--shown nil)
    (setq treelined-ask--questions
          (seq-remove (lambda (question) (equal id (plist-get question :eventId)))
                      treelined-ask--questions))
    (treelined-request 'answer_event (list :eventId id :result result) #'ignore)
    (treelined-ask--next)))

(defun treelined-ask--prompt (question)
  "Return the prompt of QUESTION."
  (let ((message (plist-get question :message))
        (placeholder (plist-get question :placeholder)))
    (concat (and message (concat message "\n"))
            (plist-get question :title)
            (and placeholder (format " (%s)" placeholder))
            ": ")))

(defun treelined-ask--read (question)
  "Read the answer to QUESTION in the minibuffer."
  (let ((prompt (treelined-ask--prompt question))
        (initial (plist-get question :initial)))
    (pcase (plist-get question :kind)
      ("select" (completing-read prompt (append (plist-get question :options) nil) nil t nil nil
                                 initial))
      ("confirm" (if (equal "yes" (completing-read prompt '("yes" "no") nil t)) t :json-false))
      (_ (read-string prompt initial)))))

;;;###autoload (autoload 'treelined-answer "treelined" nil t)
(defun treelined-answer ()
  "Answer the oldest question of another program.
\\<minibuffer-local-map>\\[abort-minibuffers] dismisses it."
  (interactive)
  (let* ((question (or (car treelined-ask--questions)
                       (user-error "No question waits")))
         (id (plist-get question :eventId)))
    (setq treelined-ask--shown id)
    (if (equal (plist-get question :kind) "editor")
        (treelined-ask--edit question)
      (treelined-ask--send id (condition-case nil
                                  (list :value (treelined-ask--read question))
                                (quit '(:dismissed t)))))))

;;;; Longer answers

(defvar-local treelined-ask--id nil "The question that this buffer answers.")

(defvar treelined-ask-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'treelined-ask-finish)
    (define-key map (kbd "C-c C-k") #'treelined-ask-dismiss)
    map)
  "The keys of `treelined-ask-mode'.")

(define-derived-mode treelined-ask-mode text-mode "Treelined-Ask"
  "An answer to a question of another program.

\\{treelined-ask-mode-map}"
  :group 'treelined)

(defun treelined-ask--edit (question)
  "Show a buffer for the answer to QUESTION."
  (pop-to-buffer (generate-new-buffer "*treelined answer*")
                 '(display-buffer-below-selected))
  (treelined-ask-mode)
  (insert (or (plist-get question :initial) ""))
  (setq treelined-ask--id (plist-get question :eventId)
        header-line-format
        (treelined-header
         (concat (plist-get question :title)
                 (substitute-command-keys
                  " · \\<treelined-ask-mode-map>\\[treelined-ask-finish] answers, \
\\[treelined-ask-dismiss] dismisses")))))

(defun treelined-ask--close (result)
  "Answer the question of this buffer with RESULT, and close the buffer."
  (let ((id treelined-ask--id))
    (unless (equal id treelined-ask--shown)
      (user-error "The question is over; the text stays here"))
    (quit-window t)
    (treelined-ask--send id result)))

(defun treelined-ask-finish ()
  "Answer the question with the text of this buffer."
  (interactive)
  (treelined-ask--close (list :value (buffer-substring-no-properties (point-min) (point-max)))))

(defun treelined-ask-dismiss ()
  "Dismiss the question of this buffer."
  (interactive)
  (treelined-ask--close '(:dismissed t)))

;;;; Commands

(defun treelined-ask--read-command (commands)
  "Choose one of COMMANDS and its arguments; return them in a cons."
  (let* ((table (mapcar (lambda (command) (cons (plist-get command :name) command))
                        (append commands nil)))
         (completion-extra-properties
          (list :annotation-function
                (lambda (name)
                  (when-let* ((text (plist-get (cdr (assoc name table)) :description)))
                    (concat "  " text)))))
         (name (completing-read "Command: " table nil t))
         (hint (plist-get (cdr (assoc name table)) :argumentHint)))
    (cons name (and hint (read-string (format "%s %s: " name hint))))))

(defun treelined-ask--ran (result session)
  "Show the RESULT of a command that ran on SESSION, which may be nil."
  (when-let* ((output (plist-get result :output)))
    (if (string-search "\n" output)
        (with-current-buffer (get-buffer-create "*treelined output*")
          (let ((inhibit-read-only t))
            (erase-buffer)
            (insert output))
          (special-mode)
          (display-buffer (current-buffer)))
      (message "%s" output)))
  (when-let* ((prompt (plist-get result :prompt)))
    (funcall treelined-draft-function prompt (list :session session))))

(defun treelined-ask--run (commands session)
  "Choose one of COMMANDS, and run it on SESSION, which may be nil."
  (if (seq-empty-p commands)
      (message "treelined: no program offers a command")
    (pcase-let ((`(,name . ,arguments) (treelined-ask--read-command commands)))
      (treelined-request
       'run_command (list :name name :args arguments
                          :sessionId (and session (treelined-session-id session)))
       (lambda (result)
         (treelined-later #'treelined-ask--ran result session))))))

;;;###autoload (autoload 'treelined-run-command "treelined" nil t)
(defun treelined-run-command ()
  "Choose a command of another program, and run it on this session."
  (interactive)
  (let ((session treelined-session))
    (treelined-request 'list_commands nil
                       (lambda (result)
                         (treelined-later #'treelined-ask--run
                                          (plist-get result :commands) session)))))

(provide 'treelined-ask)
;;; treelined-ask.el ends here
