;;; treelined-list.el --- The list of sessions  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The daemon sorts, filters and pages the list.  The next page is fetched when point
;; comes near the end.

;;; Code:

(require 'iso8601)
(require 'tabulated-list)
(require 'treelined-tree)

(defconst treelined-list--page 200 "Sessions that are fetched at once.")

(defvar-local treelined-list--sort "recent" "The order of the list.")
(defvar-local treelined-list--words nil "Words that sessions have, or nil.")
(defvar-local treelined-list--directory nil "The only directory that is listed, or nil.")
(defvar-local treelined-list--archived nil "Whether archived sessions are listed too.")
(defvar-local treelined-list--cursor nil "The place of the next page, or nil.")
(defvar-local treelined-list--loading nil "Whether a page is under way.")
(defvar-local treelined-list--watching nil "The connection that reports changes, or nil.")
(defvar-local treelined-list--timer nil "The timer that fetches changes, or nil.")

(defconst treelined-list--delay 0.5 "Seconds for which changes are collected.")

(defun treelined-list--age (timestamp)
  "Return how long ago TIMESTAMP was, such as \"5m\" (protocol.md §1.5).
If TIMESTAMP is not a time, return it unchanged."
  (condition-case nil
      (let ((passed (floor (float-time
                            (time-subtract nil (encode-time (iso8601-parse timestamp))))))
            (age "now"))
        (pcase-dolist (`(,seconds . ,unit) '((60 . "m") (3600 . "h") (86400 . "d")
                                             (604800 . "w") (31536000 . "y")))
          (when (>= passed seconds)
            (setq age (format "%d%s" (/ passed seconds) unit))))
        age)
    (error timestamp)))

(defun treelined-list--directory-name (directory)
  "Return DIRECTORY, cut at the front if it is long."
  (let ((name (abbreviate-file-name directory))
        (columns (treelined-list--directory-columns)))
    (if (<= (length name) columns)
        name
      (concat "…" (substring name (- 1 columns))))))

(defun treelined-list--title (row)
  "Return the title of ROW: its fault, or its name, or its first message."
  (let ((name (plist-get row :name))
        (first (plist-get row :firstMessage))
        (diagnostic (plist-get row :diagnostic)))
    (cond (diagnostic (propertize (plist-get diagnostic :message) 'face 'error))
          (name (propertize name 'face 'treelined-user))
          ((string-empty-p first) (propertize "(empty)" 'face 'shadow))
          (t first))))

(defun treelined-list--marks (row)
  "Return tags, pin, archive and git branch of ROW, each with a gap before it."
  (let* ((branch (plist-get (plist-get row :git) :branch))
         (marks (append (mapcar (lambda (tag) (concat "#" tag)) (plist-get row :tags))
                        (and (plist-get row :pinned) '("pinned"))
                        (and (plist-get row :archived) '("archived"))
                        (and branch (list (concat "on " branch))))))
    (propertize (treelined-row-shown (mapconcat (lambda (mark) (concat "  " mark)) marks "") " ")
                'face 'treelined-label)))

(defconst treelined-list--columns
  `((nil ("When" 4 nil) ,(lambda (row) (treelined-list--age (plist-get row :modified))))
    (t ("Messages" 8 nil :right-align t)
       ,(lambda (row) (number-to-string (plist-get row :messageCount))))
    (t ("Directory" treelined-list--directory-columns nil)
       ,(lambda (row)
          (propertize (treelined-list--directory-name (plist-get row :cwd)) 'face 'shadow)))
    (nil ("Tool" 11 nil)
         ,(lambda (row) (propertize (or (plist-get row :source) "") 'face 'shadow)))
    (nil ("Session" 0 nil)
         ,(lambda (row) (concat (treelined-list--title row) (treelined-list--marks row)))))
  "The columns: whether a narrow window leaves it out, its format, its text.")

(defconst treelined-list--narrow 60
  "A window with fewer columns lacks some of the list.")

(defun treelined-list--width ()
  "Return the width of the window of this buffer."
  (let ((window (get-buffer-window nil t)))
    (if window (window-width window) (frame-width))))

(defun treelined-list--directory-columns ()
  "Return the width of directories: a quarter of the window, up to 40."
  (max 20 (min 40 (/ (treelined-list--width) 4))))

(defun treelined-list--columns ()
  "Return the columns that fit into the window of this buffer."
  (if (< (treelined-list--width) treelined-list--narrow)
      (seq-remove #'car treelined-list--columns)
    treelined-list--columns))

(defun treelined-list--format (column)
  "Return the format of COLUMN, as `tabulated-list-format' has it."
  (pcase (cadr column)
    (`(,name ,width . ,rest)
     (cons name (cons (if (numberp width) width (funcall width)) rest)))))

(defun treelined-list--entry (row)
  "Return the entry of the list for ROW."
  (list row (vconcat (mapcar (lambda (column) (funcall (nth 2 column) row))
                             (treelined-list--columns)))))

(defun treelined-list--set-columns ()
  "Set the columns of the list to those that fit into its window.
Return whether they have changed."
  (let ((format (vconcat (mapcar #'treelined-list--format (treelined-list--columns)))))
    (unless (equal format tabulated-list-format)
      (setq tabulated-list-format format
            tabulated-list-entries (mapcar (lambda (entry) (treelined-list--entry (car entry)))
                                           tabulated-list-entries))
      (tabulated-list-init-header)
      t)))

(defun treelined-list--resized (_window)
  "Draw the list again if other columns fit into its window now."
  (when (and (treelined-list--set-columns) tabulated-list-entries)
    (treelined-list--print)))

(defun treelined-list--fetch (cursor &optional limit)
  "Fetch the page at CURSOR, the first one if it is nil, of LIMIT rows."
  (setq treelined-list--loading t)
  (treelined-list--watch)
  (treelined-request
   'list_sessions
   (list :sort treelined-list--sort :query treelined-list--words
         :archived treelined-list--archived
         :cwd treelined-list--directory :limit (or limit treelined-list--page) :cursor cursor)
   (lambda (result)
     (when (derived-mode-p 'treelined-list-mode)
       (setq treelined-list--loading nil
             treelined-list--cursor (plist-get result :nextCursor)
             tabulated-list-entries
             (append (and cursor tabulated-list-entries)
                     (mapcar #'treelined-list--entry (plist-get result :sessions))))
       (treelined-list--print)
       (treelined-list--say-nothing)
       (force-mode-line-update)))
   (lambda (error)
     (setq treelined-list--loading nil)
     (treelined-report error))))

(defun treelined-list--print ()
  "Draw the list, and keep point on its session, whose row may have changed."
  (let ((id (plist-get (tabulated-list-get-id) :sessionId))
        (column (current-column)))
    (tabulated-list-print t)
    (unless (or (null id) (equal id (plist-get (tabulated-list-get-id) :sessionId)))
      (let ((place (save-excursion
                     (goto-char (point-min))
                     (while (not (or (eobp)
                                     (equal id (plist-get (tabulated-list-get-id) :sessionId))))
                       (forward-line 1))
                     (and (not (eobp)) (point)))))
        (when place
          (goto-char place)
          (move-to-column column))))))

(defun treelined-list--watch ()
  "Watch the list of sessions, once for each connection."
  (when-let* ((connection (ignore-errors (treelined-connection))))
    (unless (eq connection treelined-list--watching)
      (setq treelined-list--watching connection)
      ;; An older daemon does not have this method.  Then the list is fetched again only
      ;; on demand.
      (treelined-request 'watch_sessions nil #'ignore #'ignore))))

(defun treelined-list--notified (name _params)
  "Fetch the shown rows of lists again soon after the notification NAME."
  (when (eq name 'sessions_changed)
    (dolist (buffer (buffer-list))
      (with-current-buffer buffer
        (when (and (derived-mode-p 'treelined-list-mode) (not treelined-list--timer))
          (setq treelined-list--timer
                (run-at-time treelined-list--delay nil #'treelined-list--follow buffer)))))))

(defun treelined-list--follow (buffer)
  "Fetch the shown rows of the list in BUFFER again."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (setq treelined-list--timer nil)
      ;; After the daemon has ended, only a command starts it again, and not the list.
      (when (treelined-running-p)
        (if treelined-list--loading
            (treelined-list--notified 'sessions_changed nil)
          (treelined-list--fetch nil (max treelined-list--page
                                          (length tabulated-list-entries))))))))

(add-hook 'treelined-notification-functions #'treelined-list--notified)

(defun treelined-list--say-nothing ()
  "Show in an empty list what the user can do."
  (when (null tabulated-list-entries)
    (let ((inhibit-read-only t))
      (insert (substitute-command-keys
               (if (or treelined-list--words treelined-list--directory)
                   "No session is like that.  \\<treelined-list-mode-map>\
\\[treelined-list-all] lists all sessions.\n"
                 "There are no sessions yet.\n\n\\<treelined-list-mode-map>\
\\[treelined-import] imports conversations of Claude Code, Codex, opencode, Gemini CLI, goose, pi, Qwen Code, Cline, Roo Code, Kilo Code, Copilot.\n\\[treelined-new] makes a new session.\n")))
      (goto-char (point-min)))))

(defun treelined-list--more ()
  "Fetch the next page if point is near the end of the list."
  (when (and treelined-list--cursor (not treelined-list--loading)
             (save-excursion
               (forward-line (frame-height))
               (eobp)))
    (treelined-list--fetch treelined-list--cursor)))

(defun treelined-list--revert (&rest _)
  "Fetch the list again."
  (treelined-list--fetch nil))

(defun treelined-list--header ()
  "Return the text about the list in the mode line."
  (concat " by " treelined-list--sort
          (and treelined-list--words (format ", “%s”" treelined-list--words))
          (and treelined-list--directory
               (format ", in %s" (abbreviate-file-name treelined-list--directory)))
          (and treelined-list--archived ", archived ones too")
          (and treelined-list--loading ", loading…")))

(defvar treelined-list-mode-map (make-sparse-keymap)
  "The keys of `treelined-list-mode'; `treelined-menu' defines them.")

(define-derived-mode treelined-list-mode tabulated-list-mode "Treelined-List"
  "The sessions of the session directory.
\\<treelined-list-mode-map>\\[treelined-list-menu] shows all commands.

\\{treelined-list-mode-map}"
  :group 'treelined
  (setq-local tabulated-list-padding 1
              mode-line-process '(:eval (treelined-list--header))
              revert-buffer-function #'treelined-list--revert)
  (hl-line-mode 1)
  (add-hook 'post-command-hook #'treelined-list--more nil t)
  (add-hook 'window-size-change-functions #'treelined-list--resized nil t)
  (treelined-list--set-columns))

(defun treelined-list--row ()
  "Return the session at point."
  (or (tabulated-list-get-id)
      (user-error "There is no session here")))

(defun treelined-list-open ()
  "Open the session at point."
  (interactive nil treelined-list-mode)
  (treelined-session-open (plist-get (treelined-list--row) :path)
                          (lambda (session)
                            (treelined-later #'treelined-tree-show session))))

(defun treelined-list-sort ()
  "List the sessions in the next order."
  (interactive nil treelined-list-mode)
  (let ((orders '("recent" "created" "name" "threaded" "recent")))
    (setq treelined-list--sort (cadr (member treelined-list--sort orders))))
  (treelined-list--fetch nil))

(defun treelined-list-filter (words)
  "List the sessions with WORDS in their name, first message, directory or id."
  (interactive (list (read-string "Sessions with: " treelined-list--words)))
  (setq treelined-list--words (and (not (string-blank-p words)) words))
  (treelined-list--fetch nil))

(defun treelined-list-here ()
  "List only the sessions of the current directory, or those of all directories."
  (interactive nil treelined-list-mode)
  (setq treelined-list--directory
        (unless treelined-list--directory
          (directory-file-name (expand-file-name default-directory))))
  (treelined-list--fetch nil))

(defun treelined-list-archived ()
  "List archived sessions too, or leave them out again."
  (interactive nil treelined-list-mode)
  (setq treelined-list--archived (not treelined-list--archived))
  (treelined-list--fetch nil))

(defun treelined-list-all ()
  "List all sessions."
  (interactive nil treelined-list-mode)
  (setq treelined-list--words nil
        treelined-list--directory nil)
  (treelined-list--fetch nil))

(defun treelined-list-delete ()
  "Move the session at point to the trash."
  (interactive nil treelined-list-mode)
  (let ((row (treelined-list--row)))
    (when (yes-or-no-p (format "Move “%s” to the trash? "
                               (or (plist-get row :name) (plist-get row :firstMessage))))
      (treelined-request 'delete_session (list :sessionId (plist-get row :sessionId))
                         (lambda (_)
                           (message "%s" (substitute-command-keys
                                          "Deleted; `\\[treelined-restore]' brings it back"))
                           (treelined-list--fetch nil))))))

;;;###autoload (autoload 'treelined-restore "treelined" nil t)
(defun treelined-restore ()
  "Choose a deleted session, and bring it back."
  (interactive)
  (treelined-request
   'list_trash '(:limit 200)
   (lambda (result)
     (treelined-later #'treelined-list--restore (plist-get result :sessions)))))

(defun treelined-list--restore (rows)
  "Choose one of ROWS of the trash, and bring it back."
  (if (seq-empty-p rows)
      (message "treelined: the trash is empty")
    (let* ((choices (mapcar (lambda (row)
                              (cons (format "%s  %s" (treelined-list--age (plist-get row :deletedAt))
                                            (or (plist-get row :name)
                                                (plist-get row :firstMessage)))
                                    row))
                            rows))
           (row (cdr (assoc (completing-read "Restore: " choices nil t) choices))))
      (treelined-request 'restore_session (list :sessionId (plist-get row :sessionId)
                                                :trashedPath (plist-get row :trashedPath))
                         (lambda (_)
                           (message "treelined: restored")
                           (when-let* ((buffer (get-buffer "*treelined*")))
                             (with-current-buffer buffer
                               (treelined-list--fetch nil))))))))

;;;###autoload (autoload 'treelined "treelined" nil t)
(defun treelined ()
  "List the sessions."
  (interactive)
  (let ((directory default-directory))
    (pop-to-buffer-same-window (get-buffer-create "*treelined*"))
    (unless (derived-mode-p 'treelined-list-mode)
      (treelined-list-mode))
    (setq default-directory directory)
    (treelined-list--fetch nil)))

;;;###autoload (autoload 'treelined-open "treelined" nil t)
(defun treelined-open (what)
  "Open the session WHAT, the path of a session file or an id."
  (interactive (list (read-file-name "Session file: " nil nil t)))
  (treelined-session-open what (lambda (session)
                                 (treelined-later #'treelined-tree-show session))))

;;;###autoload (autoload 'treelined-new "treelined" nil t)
(defun treelined-new (name)
  "Create a session for this directory, and call it NAME if that is not empty."
  (interactive (list (read-string "Name of the new session (may be empty): ")))
  (treelined-session-create (and (not (string-blank-p name)) name) default-directory
                            (lambda (session)
                              (treelined-later #'treelined-tree-show session))))

(provide 'treelined-list)
;;; treelined-list.el ends here
