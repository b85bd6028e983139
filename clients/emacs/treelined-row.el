;;; treelined-row.el --- The text of a row of the tree  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The daemon sends the guides, previews, flags and matches.  This file makes a line from
;; them, and adds faces.

;;; Code:

(require 'treelined-errors)

(defgroup treelined-faces nil
  "Faces of treelined."
  :group 'treelined
  :group 'faces)

(defface treelined-user '((t :inherit font-lock-function-name-face :weight bold))
  "The speaker of a message of the user."
  :group 'treelined-faces)

(defface treelined-speaker '((t :inherit font-lock-keyword-face))
  "The speaker of any other row on the active path."
  :group 'treelined-faces)

(defface treelined-summary '((t :inherit font-lock-type-face))
  "The speaker of a summary."
  :group 'treelined-faces)

(defface treelined-label '((t :inherit font-lock-constant-face))
  "A label."
  :group 'treelined-faces)

(defface treelined-guide '((t :inherit shadow))
  "The lines that connect rows."
  :group 'treelined-faces)

(defface treelined-text '((t))
  "The text of a row on the active path."
  :group 'treelined-faces)

(defface treelined-inactive '((t :inherit shadow))
  "A row of a branch that is not active."
  :group 'treelined-faces)

(defface treelined-active '((t :inherit success))
  "The marks of the active path and of the leaf."
  :group 'treelined-faces)

(defface treelined-folded '((t :inherit warning))
  "The mark of branches that are folded or were opened."
  :group 'treelined-faces)

(defface treelined-failed '((t :inherit error))
  "The mark of an entry that failed."
  :group 'treelined-faces)

(defface treelined-odd '((t :inherit warning))
  "A mark of an entry that is odd, such as `orphan'."
  :group 'treelined-faces)

(defface treelined-match '((t :inherit match))
  "Text that a search has found."
  :group 'treelined-faces)

(defface treelined-heading '((t :inherit bold))
  "The heading of a session among the hits of a search."
  :group 'treelined-faces)

(defcustom treelined-render 'unicode
  "How trees are drawn."
  :group 'treelined
  :type '(choice (const unicode) (const ascii)))

(defconst treelined-row--marks
  '((unicode :path "•" :leaf "◉" :folded "⊞ " :opened "⊟ " :active "← active" :failed "✗ " :from "←"
             :born "↗ " :dot " · " :cut "…")
    (ascii :path "*" :leaf "@" :folded "+ " :opened "- " :active "<- active" :failed "! " :from "<-"
           :born "-> " :dot " - " :cut "$"))
  "The marks of rows, by `treelined-render'.")

(defun treelined-row-mark (name)
  "Return the mark NAME, a keyword."
  (plist-get (alist-get treelined-render treelined-row--marks) name))

(defun treelined-row-cut-lines ()
  "Cut the lines of this buffer at the edge of the window.
The mark is that of all clients."
  (setq-local truncate-lines t
              buffer-display-table (make-display-table))
  (set-display-table-slot buffer-display-table 'truncation
                          (make-glyph-code (string-to-char (treelined-row-mark :cut)))))

(defconst treelined-row--speakers
  '(("toolResult" . "tool") ("bashExecution" . "shell")
    ("branchSummary" . "summary") ("compactionSummary" . "compaction")
    ("branch_summary" . "summary") ("custom_message" . "note")
    ("thinking_level_change" . "thinking") ("model_change" . "model")
    ("mode_change" . "mode")
    ("session_info" . "name") ("context_edit" . "edit"))
  "Roles and types with another name in rows.")

(defconst treelined-row--speaker-columns 10
  "The width of the speaker.")

(defconst treelined-row--controls
  "[\u0000-\u001F\u007F-\u009F\u061C\u200E-\u200F\u2028-\u202E\u2066-\u206F\uFFF9-\uFFFB\U000E0000-\U000E007F]"
  "Characters that a terminal obeys instead of showing them.
The table equals the daemon's: the test tests/it/unseen.rs compares both.")

(defun treelined-row-shown (text &optional blank)
  "Return TEXT of a session with control characters replaced by U+FFFD.
If BLANK is not nil, line breaks and tabs are replaced too, all by BLANK."
  (replace-regexp-in-string
   treelined-row--controls
   (lambda (char) (or blank (if (member char '("\n" "\t")) char "\N{U+FFFD}")))
   text t t))

(defun treelined-row-speaker (node)
  "Return the speaker of NODE, a row or an entry, in one word."
  (let ((name (or (plist-get node :role)
                  (plist-get (plist-get node :message) :role)
                  (plist-get node :type)
                  "entry")))
    ;; Roles and types are texts that the writer of the file has chosen.
    (treelined-row-shown (or (cdr (assoc name treelined-row--speakers)) name) " ")))

(defun treelined-row--speaker-face (node speaker)
  "Return the face of SPEAKER of NODE."
  (cond ((not (plist-get node :onActivePath)) 'treelined-inactive)
        ((equal speaker "user") 'treelined-user)
        ((member speaker '("summary" "compaction")) 'treelined-summary)
        (t 'treelined-speaker)))

(defun treelined-row--fold (node)
  "Return the mark of NODE if it is folded or was opened, else nil."
  (when-let* ((mark (cond ((plist-get node :folded) :folded)
                          ((plist-get (plist-get node :opened) :expand) :opened))))
    (treelined-row-faced (treelined-row-mark mark) 'treelined-folded)))

;; Kinds are texts of the daemon, but ids of sessions are texts of a header.
(defun treelined-row-born (node)
  "Return how many sessions of each kind come from NODE; nil if there are none."
  (when-let* ((kinds (seq-map (lambda (each) (plist-get each :kind)) (plist-get node :sessions))))
    (mapconcat (lambda (group)
                 (let ((count (length (cdr group))))
                   (format "%d %s%s" count (car group) (if (> count 1) "s" ""))))
               (seq-group-by #'identity kinds) ", ")))

(defun treelined-row--lead (node)
  "Return the branch name of NODE and the sessions that come from it, or nil."
  (let ((dot (treelined-row-mark :dot))
        (name (plist-get node :branchName))
        (born (treelined-row-born node)))
    (concat
     (and name (treelined-row-faced (concat (treelined-row-shown name " ") dot) 'treelined-folded))
     (and born (treelined-row-faced (concat (treelined-row-mark :born) born dot) 'treelined-odd)))))

(defun treelined-row-snippet (match face)
  "Return the snippet of MATCH in FACE, with the match in another face."
  (let ((text (propertize (plist-get match :snippet) 'face face)))
    (seq-doseq (range (plist-get match :ranges))
      (add-face-text-property (aref range 0) (min (aref range 1) (length text))
                              'treelined-match nil text))
    text))

(defun treelined-row-faced (text face)
  "Return TEXT in FACE; nil if TEXT is nil."
  (and text (propertize text 'face face)))

(defun treelined-row--label (label match)
  "Return LABEL in brackets, nil if it is nil.
Mark the text that was found if the snippet of MATCH is the label."
  (when label
    (concat (treelined-row-faced "[" 'treelined-label)
            (if (equal label (plist-get match :snippet))
                (treelined-row-snippet match 'treelined-label)
              (treelined-row-faced label 'treelined-label))
            (treelined-row-faced "]" 'treelined-label)
            " ")))

(defconst treelined-row--styles
  '(("accent" . treelined-summary) ("success" . treelined-active)
    ("warning" . treelined-odd) ("error" . treelined-failed) ("dim" . shadow))
  "The faces of the styles of custom messages.")

(defun treelined-row-line (node found)
  "Return the line of the row NODE.  FOUND is the match of a search in it."
  (let* ((active (plist-get node :onActivePath))
         (leaf (plist-get node :isLeaf))
         (speaker (treelined-row-speaker node))
         (style (cdr (assoc (plist-get node :style) treelined-row--styles)))
         (text-face (cond ((not active) 'treelined-inactive)
                          (style)
                          (t 'treelined-text)))
         (label (plist-get node :label))
         ;; A folded row stands for a branch.  A match in its first entry is not marked.
         (match (or (plist-get node :match) (and (not (plist-get node :folded)) found)))
         (flags (plist-get node :flags)))
    (concat
     (treelined-row-faced (cond (leaf (treelined-row-mark :leaf))
                                (active (treelined-row-mark :path))
                                (t " "))
                          'treelined-active)
     " "
     (treelined-row-faced (or (plist-get node :prefix) "") 'treelined-guide)
     (treelined-row--fold node)
     (unless (plist-get node :folded)
       (concat
        (treelined-row-faced
         (truncate-string-to-width speaker treelined-row--speaker-columns nil ?\s)
         (treelined-row--speaker-face node speaker))
        " "
        (treelined-row--lead node)))
     (treelined-row--label label match)
     ;; The preview of a tool's result already has the mark.
     (and (plist-get node :isError)
          (not (plist-get node :toolCall))
          (treelined-row-faced (treelined-row-mark :failed) 'treelined-failed))
     (when-let* ((icon (plist-get node :icon)))
       (treelined-row-faced (concat icon " ") text-face))
     (if (and match (not (equal label (plist-get match :snippet))))
         (treelined-row-snippet match text-face)
       (treelined-row-faced (concat (when-let* ((tokens (plist-get node :tokens)))
                                      (format "%d tokens before: " tokens))
                                    (plist-get node :preview))
                            text-face))
     (unless (seq-empty-p flags)
       (treelined-row-faced (format " (%s)" (string-join flags ", ")) 'treelined-odd))
     ;; The mark is only on the row where a branch begins, since the other rows of the
     ;; branch are below it.
     (and (plist-get node :archived)
          (string-match-p "\\(?:─\\|[|`]-\\) \\'" (or (plist-get node :prefix) ""))
          (treelined-row-faced " (archived)" 'treelined-guide))
     (and leaf (concat " " (treelined-row-faced (treelined-row-mark :active)
                                                'treelined-active))))))

(provide 'treelined-row)
;;; treelined-row.el ends here
