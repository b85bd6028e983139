;;; treelined-entry.el --- The text of entries and summaries  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A session has one buffer for the entry that was shown last, one for the summary that is
;; being written, and two for the branches that were compared last.

;;; Code:

(require 'json)
(require 'treelined-row)
(require 'treelined-session)

(defcustom treelined-compare-function #'treelined-compare-side-by-side
  "A function that shows two buffers with the branches that are compared."
  :group 'treelined
  :type '(choice (const :tag "Side by side" treelined-compare-side-by-side)
                 (const ediff-buffers) (const diff-buffers) function))

(defconst treelined-entry--steps 1000
  "The most entries that are read above two entries for their common ancestor.")

;;;; The text of an entry

(defun treelined-entry--arguments (arguments)
  "Return the ARGUMENTS of a tool call as text."
  (let ((json-encoding-pretty-print t))
    (json-encode arguments)))

(defun treelined-entry--block (block)
  "Return the text of BLOCK of a message."
  (pcase (and (consp block) (plist-get block :type))
    ("text" (format "%s" (or (plist-get block :text) "")))
    ("thinking" (format "(thinking)\n%s" (plist-get block :thinking)))
    ("toolCall" (format "(calls %s)\n%s" (plist-get block :name)
                        (treelined-entry--arguments (plist-get block :arguments))))
    ('nil (format "%s" block))
    (type (format "(%s)" type))))

(defun treelined-entry-text (entry)
  "Return the text of ENTRY for people."
  (let* ((message (or (plist-get entry :message) entry))
         (content (plist-get message :content)))
    (cond ((plist-get message :command)
           (format "$ %s\n%s" (plist-get message :command) (or (plist-get message :output) "")))
          ((stringp content) content)
          ((vectorp content) (mapconcat #'treelined-entry--block content "\n\n"))
          ((stringp (plist-get message :summary)) (plist-get message :summary))
          ((stringp (plist-get message :errorMessage)) (plist-get message :errorMessage))
          (t (treelined-entry--arguments entry)))))

(defun treelined-entry-title (entry)
  "Return the speaker and the time of ENTRY."
  (format "%s · %s" (treelined-row-speaker entry) (plist-get entry :timestamp)))

;;;; Buffers

(defvar-local treelined-entry-id nil "The id of the entry that this buffer shows.")
(defvar-local treelined-entry--title "" "The header of this buffer.")
(defvar-local treelined-entry--what nil "The kind of text in this buffer.")

(defvar-local treelined-entry--windows nil
  "The window configuration from before a comparison.")

(defvar treelined-entry-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map [remap quit-window] #'treelined-entry-quit)
    (define-key map [remap keyboard-quit] #'treelined-quit)
    map)
  "The keys of `treelined-entry-mode'.")

(define-derived-mode treelined-entry-mode special-mode "Treelined-Entry"
  "The text of an entry, or of a summary that is being written."
  :group 'treelined
  (buffer-disable-undo)
  (visual-line-mode 1)
  (setq-local header-line-format '(:eval (treelined-header treelined-entry--title))))

(defun treelined-entry-quit ()
  "Leave the buffer; after a comparison, restore the windows."
  (interactive nil treelined-entry-mode)
  (if treelined-entry--windows
      (set-window-configuration treelined-entry--windows)
    (quit-window)))

(defun treelined-entry-buffer (session what)
  "Return the buffer of SESSION for WHAT."
  (or (seq-find (lambda (buffer)
                  (equal what (buffer-local-value 'treelined-entry--what buffer)))
                (treelined-session-buffers session 'treelined-entry-mode))
      ;; Several sessions may have the same name.
      (with-current-buffer (generate-new-buffer
                            (format "*treelined %s: %s*" what (treelined-session-title session)))
        (treelined-entry-mode)
        (setq treelined-session session
              treelined-entry--what what)
        (current-buffer))))

(defun treelined-entry--fill (buffer title text)
  "Show TEXT under TITLE in BUFFER."
  (with-current-buffer buffer
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert (treelined-row-shown text))
      (goto-char (point-min)))
    (setq treelined-entry--title title)
    (dolist (window (get-buffer-window-list nil nil t))
      (set-window-point window (point-min)))))

(defun treelined-entry-show (session id select)
  "Show the entry ID of SESSION in another window; SELECT that window if not nil."
  (let ((buffer (treelined-entry-buffer session "entry")))
    (with-current-buffer buffer
      (setq treelined-entry-id id))
    (treelined-session-request
     session 'get_entry (list :entryId id)
     (lambda (result)
       ;; Point may have moved since.
       (when (and (buffer-live-p buffer)
                  (equal id (buffer-local-value 'treelined-entry-id buffer)))
         (let ((entry (plist-get result :entry)))
           (treelined-entry--fill buffer (treelined-entry-title entry)
                                  (treelined-entry-text entry)))
         (if select
             (pop-to-buffer buffer)
           (display-buffer buffer)))))))

;;;; Summaries

(defconst treelined-entry--written "summary, being written · C-g aborts"
  "The header while a summary is written.")

(defun treelined-entry-stream (session piece first)
  "Append PIECE to the summary of SESSION that is being written.
FIRST says that it is the first piece."
  (let ((buffer (treelined-entry-buffer session "summary")))
    (when first
      (treelined-entry--fill buffer treelined-entry--written "")
      (display-buffer buffer))
    (with-current-buffer buffer
      (let ((inhibit-read-only t)
            (following (eobp)))
        (save-excursion
          (goto-char (point-max))
          (insert (treelined-row-shown piece)))
        (when following
          (goto-char (point-max))
          (dolist (window (get-buffer-window-list nil nil t))
            (set-window-point window (point-max))))))))

(defun treelined-entry-stream-end (session entry)
  "Show ENTRY as the summary of SESSION.
ENTRY is nil if the summary was not finished."
  (let ((buffer (treelined-entry-buffer session "summary")))
    (cond (entry
           (treelined-entry--fill buffer (treelined-entry-title entry)
                                  (treelined-entry-text entry))
           (display-buffer buffer))
          ((with-current-buffer buffer
             (equal treelined-entry--title treelined-entry--written))
           (with-current-buffer buffer
             (setq treelined-entry--title "summary, not finished")
             (force-mode-line-update)))
          ((zerop (buffer-size buffer))
           (kill-buffer buffer)))))

;;;; Comparing

(defun treelined-entry--climb (session walks then)
  "Read entries of SESSION upwards along two WALKS, until the walks meet.
Each walk is a cons (NEXT . ENTRIES): ENTRIES are the entries so far, the
topmost first, and NEXT is the id of the entry above them.  Call THEN with the
common entry, nil if there is none, and the entries below it of both walks."
  (let* ((seen (lambda (id walk)
                 (cl-member id (cdr walk) :key (lambda (entry) (plist-get entry :id))
                            :test #'equal)))
         (below (lambda (id walk)
                  (let ((tail (funcall seen id walk)))
                    (if tail (cdr tail) (cdr walk)))))
         (meeting (cl-loop for (walk other) in (list walks (reverse walks))
                           for next = (car walk)
                           when (and next (or (equal next (car other)) (funcall seen next other)))
                           return next))
         (next (and (not meeting)
                    (< (length (cdr (car walks))) treelined-entry--steps)
                    ;; The shorter walk continues, so that both meet soon.
                    (car (sort (seq-filter #'car (copy-sequence walks))
                               (lambda (a b) (< (length a) (length b))))))))
    (if (null next)
        (funcall then meeting (funcall below meeting (nth 0 walks))
                 (funcall below meeting (nth 1 walks)))
      (treelined-session-request
       session 'get_entry (list :entryId (car next))
       (lambda (result)
         (let ((entry (plist-get result :entry)))
           (push entry (cdr next))
           (setcar next (plist-get entry :parentId))
           (treelined-entry--climb session walks then)))
       (lambda (error)
         (if (not (equal (plist-get error :kind) "entryNotFound"))
             (treelined-report error)
           ;; The parent is not in the file, so the walk has reached its root.
           (setcar next nil)
           (treelined-entry--climb session walks then)))))))

(defun treelined-compare-side-by-side (left right)
  "Show the buffers LEFT and RIGHT beside each other."
  (dolist (buffer (list left right))
    (with-current-buffer buffer
      (setq treelined-entry--windows (current-window-configuration))))
  (delete-other-windows)
  (switch-to-buffer left)
  (set-window-buffer (split-window-right) right))

(defun treelined-entry--branch (session what ancestor entries)
  "Return a buffer of SESSION for WHAT with the texts of ENTRIES.
ANCESTOR is nil if the branches have no entry in common."
  (let ((buffer (treelined-entry-buffer session what)))
    (treelined-entry--fill
     buffer
     (format (ngettext "%d entry since %s" "%d entries since %s" (length entries))
             (length entries) (if ancestor "they part" "the beginning"))
     (mapconcat (lambda (entry)
                  (concat (propertize (treelined-row-speaker entry) 'face 'treelined-user)
                          "\n" (treelined-entry-text entry) "\n"))
                entries "\n"))
    buffer))

(defun treelined-entry-compare (session left right)
  "Show the branches of SESSION that end with the entries LEFT and RIGHT."
  (when (equal left right)
    (user-error "Go to an entry of another branch to compare it with this one"))
  (treelined-entry--climb
   session (list (list left) (list right))
   (lambda (ancestor left-entries right-entries)
     (funcall treelined-compare-function
              (treelined-entry--branch session "left branch" ancestor left-entries)
              (treelined-entry--branch session "right branch" ancestor right-entries)))))

(provide 'treelined-entry)
;;; treelined-entry.el ends here
