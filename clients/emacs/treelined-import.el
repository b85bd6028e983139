;;; treelined-import.el --- Imports and exports  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `treelined-import' shows its progress, and then a report in which RET opens sessions.
;; `treelined-export' needs a daemon that has `export_session'.

;;; Code:

(require 'iso8601)
(require 'treelined-tree)

(defconst treelined-import--tools
  '("auto" "claude-code" "codex" "opencode" "gemini" "goose" "pi" "qwen-code"
    "cline" "roo-code" "kilo-code" "copilot-cli" "vscode-chat"
    "chatgpt" "claude-ai")
  "The tools that `import_sessions' reads from.")

(defconst treelined-import--exports '("chatgpt" "claude-ai")
  "The tools whose conversations are in a file that the user downloads.")

(defvar-local treelined-import--progress nil "The part of the import that is done, in percent.")

(defvar treelined-import-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'treelined-import-visit)
    (define-key map "n" #'next-line)
    (define-key map "p" #'previous-line)
    (define-key map [remap keyboard-quit] #'treelined-quit)
    map)
  "The keys of `treelined-import-mode'.")

(define-derived-mode treelined-import-mode special-mode "Treelined-Import"
  "The report of an import.

\\{treelined-import-mode-map}"
  :group 'treelined
  (setq-local truncate-lines t
              header-line-format '(:eval (treelined-import--header))))

(defun treelined-import--header ()
  "Return the header line."
  (treelined-header
   (if treelined-running
       (format "importing%s · C-g cancels; finished sessions stay"
               (if treelined-import--progress
                   (format " %d%%" treelined-import--progress)
                 "…"))
     "import · RET opens a session")))

(defun treelined-import--notified (name params)
  "Show the progress of an import, from PARAMS of the notification NAME."
  (when-let* ((buffer (and (eq name 'progress) (get-buffer "*treelined import*"))))
    (with-current-buffer buffer
      (let ((total (plist-get params :total)))
        (when (and treelined-running (equal treelined-running (plist-get params :token))
                   total (> total 0))
          (setq treelined-import--progress (floor (* 100 (plist-get params :progress)) total))
          (force-mode-line-update))))))

(add-hook 'treelined-notification-functions #'treelined-import--notified)

(defun treelined-import--count (count one many)
  "Return COUNT and its noun, ONE or MANY."
  (format "%d %s" count (ngettext one many count)))

(defun treelined-import--session (row)
  "Return the line of the session ROW."
  (let ((recovered (plist-get row :recovered))
        (state (cond ((plist-get row :skipped))
                     ((plist-get row :created) "new")
                     ((> (plist-get row :entriesAdded) 0) "more")
                     (t ""))))
    (propertize
     (concat (format "%-12s " (plist-get row :tool))
             (propertize (format "%-8s" state) 'face 'treelined-active)
             (format "%14s %12s"
                     (treelined-import--count (plist-get row :entriesAdded) "entry" "entries")
                     (treelined-import--count (plist-get row :branches) "branch" "branches"))
             (if (> recovered 0) (format " (%d recovered)" recovered) "")
             "  " (or (plist-get row :name) (plist-get row :cwd)) "\n")
     'treelined-path (plist-get row :path))))

(defun treelined-import--report (result dry-run)
  "Show RESULT of `import_sessions'; nothing was written if DRY-RUN is non-nil."
  (let* ((inhibit-read-only t)
         (totals (plist-get result :totals))
         (failed (seq-filter (lambda (file) (plist-get file :error)) (plist-get result :files))))
    (erase-buffer)
    (insert (if dry-run "Would be imported: " "Imported: ")
            (treelined-import--count (plist-get totals :entriesAdded) "entry" "entries")
            " in "
            (treelined-import--count (plist-get totals :sessions) "session" "sessions")
            (format ", %d of them new.\n" (plist-get totals :created))
            (treelined-import--count (plist-get totals :branches) "branch" "branches")
            (format "; the tools no longer show %d of them.\n\n"
                    (plist-get totals :recovered)))
    (when-let* ((until (plist-get totals :heldUntil)))
      (insert (treelined-import--count (plist-get totals :held) "entry" "entries")
              " may still grow and wait for what the tool writes next, or for "
              (format-time-string "%H:%M" (encode-time (iso8601-parse until))) ".\n\n"))
    (mapc (lambda (row) (insert (treelined-import--session row))) (plist-get result :sessions))
    (when failed
      (insert (propertize (concat "\nNot imported, or not whole: "
                                  (treelined-import--count (length failed) "file" "files") "\n")
                          'face 'treelined-failed))
      (dolist (file failed)
        (insert (format "%s\n    %s\n" (plist-get file :path)
                        (plist-get (plist-get file :error) :message)))))
    (goto-char (point-min))))

(defun treelined-import-visit ()
  "Open the session at point."
  (interactive nil treelined-import-mode)
  (treelined-session-open (or (get-text-property (point) 'treelined-path)
                              (user-error "There is no session here"))
                          (lambda (session) (treelined-later #'treelined-tree-show session))))

;;;###autoload (autoload 'treelined-import "treelined" nil t)
(defun treelined-import (tool &optional path dry-run)
  "Import the conversations of TOOL, or of all tools if it is \"auto\".
Read them from PATH if it is not nil, else from where each tool keeps
them; they are not changed.  The export of an account needs PATH.  With
a prefix argument, ask for PATH, and whether to write nothing and only
report (DRY-RUN)."
  (interactive
   (let ((tool (completing-read "Import from (default auto): " treelined-import--tools nil t nil
                                nil "auto")))
     (cons tool
           (cond (current-prefix-arg
                  (list (read-file-name "File or folder: " nil nil t)
                        (y-or-n-p "Only report? ")))
                 ((member tool treelined-import--exports)
                  (list (read-file-name "Export, as it was downloaded: " nil nil t)))))))
  (pop-to-buffer-same-window (get-buffer-create "*treelined import*"))
  (unless (derived-mode-p 'treelined-import-mode)
    (treelined-import-mode))
  (when treelined-running
    (user-error "An import is running"))
  (setq treelined-import--progress nil
        treelined-running
        (treelined-request
         'import_sessions (list :from tool :paths (and path (vector (expand-file-name path)))
                                :dryRun (and dry-run t))
         (lambda (result)
           (setq treelined-running nil)
           (treelined-import--report result dry-run))
         (lambda (error)
           (setq treelined-running nil)
           (force-mode-line-update)
           (treelined-report error)))))

;;;###autoload (autoload 'treelined-export "treelined" nil t)
(defun treelined-export (format file)
  "Write this session to FILE in FORMAT."
  (interactive
   (let ((format (completing-read "Format: " '("html" "markdown" "jsonl" "text") nil t)))
     (list format
           (read-file-name "Write to: " nil nil nil
                           (concat (treelined-session-title treelined-session) "."
                                   (pcase format ("markdown" "md") ("text" "txt") (_ format)))))))
  (let ((exists (file-exists-p file)))
    (when (and exists (not (yes-or-no-p (format "Overwrite %s? " file))))
      (user-error "Nothing was written"))
    (treelined-session-request
     treelined-session 'export_session
     (append (list :format format :path (expand-file-name file))
             (and exists '(:overwrite t)))
     (lambda (result)
       (let ((redacted (length (plist-get result :redactions))))
         (message "treelined: wrote %s%s" file
                  (if (zerop redacted) ""
                    (format "; %d kinds of secrets were left out" redacted))))))))

(provide 'treelined-import)
;;; treelined-import.el ends here
