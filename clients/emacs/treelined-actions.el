;;; treelined-actions.el --- Commands of the tree  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The commands of `treelined-tree-mode'.  `treelined-menu' has their keys.

;;; Code:

(require 'bookmark)
(require 'treelined-compose)
(require 'treelined-entry)
(require 'treelined-tree)

(defvar treelined-actions--reasons
  '(("cancelledByClient" . "the move was refused")
    ("noAnswer" . "the move was not answered in time")
    ("hookFailed" . "a hook failed, and nothing was moved; `treelined config' may say why")
    ("aborted" . "the move was aborted; nothing was changed")
    ("alreadyThere" . "the leaf is here already")
    ("nothingToSummarize" . "moved; there was nothing to summarize"))
  "The meanings of the `reason' of a navigation.")

(defconst treelined-actions--preparation-seconds 0.08
  "How long a question waits for the number of entries that are left behind.
Emacs blocks during the wait, so that keys typed meanwhile answer it.")

(defun treelined-actions--node ()
  "Return the row at point; signal an error if there is none."
  (or (treelined-tree-node)
      (user-error "There is no entry here")))

(defun treelined-actions--call (method params &optional then)
  "Call METHOD with PARAMS on the session of this buffer, and THEN with the result.
Errors are shown."
  (treelined-session-request (treelined-session-here) method params (or then #'ignore)))

;;;; Moving the leaf

(defun treelined-actions--say (result)
  "Show the reason in the RESULT of a navigation, and who cancelled or failed."
  (let* ((reason (plist-get result :reason))
         (by (plist-get result :by))
         (deed (cdr (assoc reason '(("cancelledByClient" . " cancelled") ("hookFailed" . " failed")))))
         (why (plist-get result :message)))
    (message "treelined: %s"
             (if (and by deed)
                 (treelined-row-shown (concat by deed (and why (concat ": " why))) " ")
               (or (cdr (assoc reason treelined-actions--reasons)) reason)))))

(defun treelined-actions--moved (session target result)
  "Show the RESULT of a navigation of SESSION to the entry TARGET."
  (treelined-entry-stream-end session (plist-get result :summaryEntry))
  (when (and (plist-get result :reason) (not (plist-get result :editorText)))
    (treelined-actions--say result))
  (when (and (derived-mode-p 'treelined-tree-mode) (not (plist-get result :cancelled)))
    ;; A summary takes time, so point may have moved.
    (treelined-tree-reload (and (equal target (treelined-tree-id))
                                (plist-get result :newLeafId))))
  (let ((text (plist-get result :editorText)))
    (when text
      (treelined-later treelined-draft-function text
                       (list :session session :images (plist-get result :editorImages))))
    ;; Treelined does not run a model, so this says how to continue (protocol.md §3.18).
    (when (or text (not (plist-get result :reason)))
      (treelined-later
       #'message "treelined: %s"
       (substitute-command-keys
        (if text
            "Send the text with \\<treelined-compose-mode-map>\\[treelined-compose-send], then \
\\<treelined-tree-mode-map>\\[treelined-tree-continue] in the tree goes on in another agent."
          "\\<treelined-tree-mode-map>\\[treelined-compose] writes a message here, \
\\[treelined-tree-continue] goes on in another agent."))))))

(defun treelined-navigate (session params)
  "Move the leaf of SESSION with PARAMS of `navigate_tree'.
A summary is shown while it is written.  If the leaf moves before a user
message, `treelined-draft-function' gets the text of this message."
  (let* ((id (format "emacs-%d-%s" (emacs-pid) (format-time-string "%s%N")))
         (end (lambda ()
                (when (equal (treelined-session-navigation session) id)
                  (setf (treelined-session-navigation session) nil)
                  (force-mode-line-update t)))))
    (unless (treelined-session-navigation session)
      (setf (treelined-session-navigation session) id))
    (force-mode-line-update t)
    (treelined-session-request
     session 'navigate_tree (append params (list :navigationId id))
     (lambda (result)
       (funcall end)
       (treelined-actions--moved session (plist-get params :targetId) result))
     (lambda (error)
       (funcall end)
       (treelined-entry-stream-end session nil)
       (treelined-report error)))))

(defun treelined-actions--stream (session event params)
  "Show the piece of SESSION's summary that PARAMS of EVENT contain."
  (when (and (eq event 'delta)
             (equal (plist-get params :navigationId) (treelined-session-navigation session)))
    (treelined-entry-stream session (plist-get params :delta)
                            (eql (plist-get params :index) 0))))

(add-hook 'treelined-session-functions #'treelined-actions--stream)

(defun treelined-actions--question (count &optional end)
  "Return the question before COUNT entries are left behind.
COUNT is nil if it is not known.  END is the text if there is no summary."
  (pcase count
    ('nil "Summarize the branch that is left behind?")
    (1 (concat "1 entry is left behind; it stays in the tree.  " (or end "Summarize it?")))
    (_ (format "%d entries are left behind; they stay in the tree.  %s" count
               (or end "Summarize?")))))

(defun treelined-actions--read-summary (count)
  "Ask how to leave COUNT entries; return params of `navigate_tree'."
  (pcase (car (read-multiple-choice
               (treelined-actions--question count)
               '((?y "yes") (?n "no") (?f "focus on…"))))
    (?y '(:summarize t))
    (?f (list :summarize t :customInstructions (read-string "Focus of the summary: ")))))

(defun treelined-tree-navigate ()
  "Go to the entry at point, and choose whether to summarize the branch left.
Going to a message of the user takes it back, to be edited.  A row that
stands for branches is opened instead."
  (interactive nil treelined-tree-mode)
  (if (plist-get (treelined-actions--node) :folded)
      (treelined-tree-toggle-fold)
    (treelined-actions--navigate)))

(defun treelined-actions--navigate ()
  "Go to the entry at point."
  (let* ((node (treelined-actions--node))
         ;; If the entry is the leaf, only a user message can be a target: the leaf moves
         ;; before it.
         (params (append (list :targetId (plist-get node :id))
                         (and (plist-get node :isLeaf) (equal (plist-get node :role) "user")
                              '(:rewind t))))
         (answer (treelined-session-await treelined-session 'navigate_tree
                                          (append params '(:dryRun t))
                                          treelined-actions--preparation-seconds))
         (result (cdr answer))
         (count (and (car answer)
                     (plist-get (plist-get result :preparation) :abandonedCount))))
    (cond ((and answer (not (car answer))) (treelined-report result))
          ((plist-get result :reason) (treelined-actions--say result))
          ((eql count 0) (treelined-navigate treelined-session params))
          ((and (car answer) (not (plist-get result :canSummarize)))
           (when (y-or-n-p (treelined-actions--question count "Go there? "))
             (treelined-navigate treelined-session params)))
          (t (treelined-navigate treelined-session
                                 (append params (treelined-actions--read-summary count)))))))

(defun treelined-actions--step (method)
  "Move the leaf with METHOD."
  (treelined-actions--call method nil
                           (lambda (result)
                             (when (derived-mode-p 'treelined-tree-mode)
                               (treelined-tree-reload (plist-get result :newLeafId))))))

(defun treelined-tree-undo ()
  "Undo the last move of the leaf."
  (interactive nil treelined-tree-mode)
  (treelined-actions--step 'undo_navigation))

(defun treelined-tree-redo ()
  "Undo the last undo of a move."
  (interactive nil treelined-tree-mode)
  (treelined-actions--step 'redo_navigation))

(defun treelined-tree-join ()
  "Move the leaf behind the entries of other programs, to go on from there."
  (interactive nil treelined-tree-mode)
  (let ((leaf (treelined-session-others-leaf-id treelined-session)))
    (unless leaf
      (user-error "No other program has written here"))
    (treelined-actions--call 'set_leaf (list :leafId leaf)
                             (lambda (_) (treelined-tree-reload leaf)))))

(defun treelined-actions--forked (result)
  "Show the session in RESULT of `fork_session', and its draft."
  (if (plist-get result :cancelled)
      (treelined-actions--say result)
    (let ((fork (treelined-session-adopt (plist-get result :session)))
          (text (plist-get result :editorText)))
      (treelined-later #'treelined-tree-show fork)
      (when text
        (treelined-later treelined-draft-function text
                         (list :session fork :images (plist-get result :editorImages)))))))

(defun treelined-tree-fork ()
  "Copy the path to the entry at point into a new session, and show that.
If it is a message of the user, copy the path above it, and its text is a
draft."
  (interactive nil treelined-tree-mode)
  (treelined-actions--call 'fork_session
                           (list :entryId (plist-get (treelined-actions--node) :id))
                           #'treelined-actions--forked))

(defun treelined-tree-compact (focus)
  "Replace the older part of the conversation by a summary with FOCUS.
FOCUS may be empty.  The older messages stay in the tree."
  (interactive (progn
                 (unless (slot-value (treelined-connection) 'summarizer)
                   (user-error "No summarizer is configured; set `treelined-arguments' to (\"--summarizer\" \"outline\")"))
                 (list (read-string "Focus of the compaction (may be empty): ")))
               treelined-tree-mode)
  (setq treelined-running
        (treelined-session-request
         treelined-session 'compact
         (and (not (string-blank-p focus)) (list :customInstructions focus))
         (lambda (result)
           (setq treelined-running nil)
           (force-mode-line-update)
           (when (plist-get result :cancelled)
             (treelined-actions--say result)))
         (lambda (error)
           (setq treelined-running nil)
           (force-mode-line-update)
           (treelined-report error)))))

;;;; Entries

(defun treelined-tree-visit ()
  "Show the whole entry at point in another window, and select it."
  (interactive nil treelined-tree-mode)
  (treelined-entry-show treelined-session (plist-get (treelined-actions--node) :id) t))

(defun treelined-tree-preview ()
  "Show the whole entry at point in another window.
Scroll it if it is shown already."
  (interactive nil treelined-tree-mode)
  (let* ((id (plist-get (treelined-actions--node) :id))
         (buffer (treelined-entry-buffer treelined-session "entry"))
         (window (get-buffer-window buffer)))
    (if (and window (equal id (buffer-local-value 'treelined-entry-id buffer)))
        (condition-case nil
            (with-selected-window window (scroll-up))
          (end-of-buffer (with-selected-window window (goto-char (point-min)))))
      (treelined-entry-show treelined-session id nil))))

(defvar-local treelined-actions--followed nil "The entry that was previewed last.")

(defun treelined-actions--follow ()
  "Show the entry at point, if it is another one."
  (let ((id (treelined-tree-id)))
    (unless (or (null id) (equal id treelined-actions--followed)
                (not (treelined-session-open-p treelined-session)))
      (setq treelined-actions--followed id)
      (treelined-entry-show treelined-session id nil))))

(define-minor-mode treelined-tree-follow-mode
  "Show the whole entry at point in another window, as point moves."
  :lighter " Follow"
  (setq treelined-actions--followed nil)
  (if treelined-tree-follow-mode
      (add-hook 'post-command-hook #'treelined-actions--follow nil t)
    (remove-hook 'post-command-hook #'treelined-actions--follow t)))

(defun treelined-tree-label (label)
  "Label the entry at point with LABEL, or remove its label if LABEL is empty."
  (interactive (list (read-string "Label (empty: none): "
                                  (plist-get (treelined-actions--node) :label))))
  (treelined-actions--call 'append_label (list :targetId (plist-get (treelined-actions--node) :id)
                                               :label label)))

(defun treelined-tree-rename (name)
  "Call the session NAME, or remove its name if NAME is empty."
  (interactive (list (read-string "Name: " (treelined-session-name treelined-session))))
  (treelined-actions--call 'set_session_name (list :name name)))

(defvar-local treelined-actions--marked nil "The entry to compare with.")

(defun treelined-tree-mark ()
  "Mark the entry at point, to compare another one with it."
  (interactive nil treelined-tree-mode)
  (setq treelined-actions--marked (plist-get (treelined-actions--node) :id))
  (message "%s" (substitute-command-keys
                 "Marked; \\<treelined-tree-mode-map>\\[treelined-tree-compare] on another \
entry compares the two branches")))

(defun treelined-tree-compare ()
  "Compare the branch of the entry at point with that of the marked one.
If none is marked, compare it with the active branch."
  (interactive nil treelined-tree-mode)
  (treelined-entry-compare (treelined-session-here)
                           (or treelined-actions--marked
                               (treelined-session-leaf-id treelined-session))
                           (plist-get (treelined-actions--node) :id)))

;;;; Rows

(defun treelined-tree--head ()
  "Return the first row of the branch of the row at point, if it was opened."
  (save-excursion
    (beginning-of-line)
    (let ((indent (plist-get (treelined-tree-node) :indent)))
      (while (and (treelined-tree-node)
                  (not (and (string-match-p "[─-] \\'" (plist-get (treelined-tree-node) :prefix))
                            (equal indent (plist-get (treelined-tree-node) :indent))))
                  (zerop (forward-line -1))))
      (let ((node (treelined-tree-node)))
        (and (plist-get (plist-get node :opened) :expand) node)))))

(defun treelined-tree-toggle-fold ()
  "Open the branches of the row at point, or close the branch of the row.
A row that is one of several branches at a fork is opened; with a prefix
argument, the fork has one row again."
  (interactive nil treelined-tree-mode)
  (let* ((node (treelined-actions--node))
         (folded (plist-get node :folded))
         (opened (plist-get node :opened))
         (id (plist-get node :id)))
    (cond ((and folded opened current-prefix-arg)
           (setq treelined-tree-each
                 (seq-difference treelined-tree-each (plist-get opened :each))))
          ((null folded)
           (let ((head (or (treelined-tree--head) (user-error "Nothing is folded here"))))
             (setq id (plist-get head :id)
                   treelined-tree-expand
                   (seq-difference treelined-tree-expand
                                   (plist-get (plist-get head :opened) :expand)))))
          ((> (plist-get folded :branches) 1) (push id treelined-tree-each))
          (t (push id treelined-tree-expand)))
    (treelined-tree-reload id)))

(defun treelined-tree-unfold-all ()
  "Open all branches, or fold those that were left."
  (interactive nil treelined-tree-mode)
  (setq treelined-tree-open-all (not treelined-tree-open-all)
        treelined-tree-expand nil
        treelined-tree-each nil)
  (treelined-tree-reload))

(defun treelined-tree-next-prompt (count)
  "Put point on the next message of the user, COUNT times."
  (interactive "p" treelined-tree-mode)
  (treelined-tree--next count "No more messages of the user here"
                        (lambda (node)
                          (and (equal (plist-get node :role) "user")
                               (not (plist-get node :folded))
                               (not (equal (plist-get node :style) "dim"))))))

(defun treelined-tree-previous-prompt (count)
  "Put point on the previous message of the user, COUNT times."
  (interactive "p" treelined-tree-mode)
  (treelined-tree-next-prompt (- count)))

(defun treelined-tree-filter (filter)
  "Show the rows of FILTER."
  (interactive
   (list (completing-read "Rows: " '("default" "no-tools" "user-only" "labeled-only" "all")
                          nil t)))
  (setq treelined-tree-filter filter)
  (treelined-tree-reload))

(defun treelined-tree-query (query)
  "Show only rows that match QUERY: words, or /a regular expression/.
An empty query shows all rows again."
  (interactive (list (read-string "Only rows with (words or /regexp/): " treelined-tree-query)))
  (setq treelined-tree-query (and (not (string-blank-p query)) query))
  (treelined-tree-reload))

(defun treelined-tree-leaf ()
  "Put point on the leaf."
  (interactive nil treelined-tree-mode)
  (when-let* ((leaf (treelined-session-leaf-id treelined-session)))
    (treelined-tree-go-to leaf)))

(defun treelined-tree--next (count none wantedp)
  "Put point on the next row that WANTEDP accepts, COUNT times.
Rows that were not fetched are fetched, page by page, until there is one or
point has moved.  If there is none, point stays, and the error says NONE."
  (treelined-tree--seek (if (< count 0) -1 1) (abs count) none wantedp
                        (treelined-tree--index) (treelined-tree--index)))

(defun treelined-tree--seek (step count none wantedp start from &optional limit)
  "Find the row number COUNT that WANTEDP accepts, from the index FROM by STEP.
START is the index of point.  NONE is the error if there are too few rows.
At most LIMIT rows are fetched at once, or a page if LIMIT is nil."
  (let ((index from)
        (limit (or limit treelined-page-size))
        node)
    (save-excursion
      (treelined-tree--goto from)
      (while (and (> count 0)
                  (< -1 (setq index (+ index step)) treelined-tree-total)
                  (zerop (forward-line step))
                  (setq node (treelined-tree-node)))
        (when (funcall wantedp node)
          (setq count (1- count)))))
    (cond ((zerop count)
           (treelined-tree--goto index)
           (treelined-tree-fetch)
           (when hl-line-mode
             (hl-line-highlight)))
          ((not (< -1 index treelined-tree-total))
           (user-error none))
          (t
           (treelined-tree--fetch-page
            (if (> step 0) index (max 0 (- index (1- limit))))
            (min limit (if (> step 0) (- treelined-tree-total index) (1+ index)))
            (lambda ()
              ;; If an answer would be too large, the daemon ends it before the wanted
              ;; row.  A further request returns this row alone, or not at all.
              (when-let* (((eql start (treelined-tree--index)))
                          (size (cond ((eq 'drawn (gethash index treelined-tree--rows))
                                       treelined-page-size)
                                      ((> limit 1) 1))))
                (condition-case error
                    (treelined-tree--seek step count none wantedp start (- index step) size)
                  (user-error (message "%s" (error-message-string error)))))))))))

(defun treelined-tree-next-branch (count)
  "Put point on the next row where the tree branches, COUNT times."
  (interactive "p" treelined-tree-mode)
  (treelined-tree--next count "No more branches here"
                        (lambda (node) (plist-get node :isBranchPoint))))

(defun treelined-tree-previous-branch (count)
  "Put point on the previous row where the tree branches, COUNT times."
  (interactive "p" treelined-tree-mode)
  (treelined-tree-next-branch (- count)))

;;;; Bookmarks

(defun treelined-actions--bookmark ()
  "Return a bookmark of the entry at point."
  `(,(treelined-session-title treelined-session)
    (filename . ,(treelined-session-path treelined-session))
    (treelined-entry . ,(plist-get (treelined-actions--node) :id))
    (handler . treelined-bookmark-jump)))

;;;###autoload (autoload 'treelined-bookmark-jump "treelined")
(defun treelined-bookmark-jump (bookmark)
  "Show the tree with the entry of BOOKMARK."
  (let ((entry (bookmark-prop-get bookmark 'treelined-entry)))
    (treelined-session-open (bookmark-prop-get bookmark 'filename)
                            (lambda (session)
                              (treelined-later #'treelined-tree-show session entry)))))

;;;; Searching the tree

(defconst treelined-actions--marked-matches 200
  "The number of matches around the one at point that are marked.")

(defun treelined-actions--both (query search)
  "Return a query for rows that match SEARCH and QUERY, which may be nil."
  (cond ((null query) search)
        ((or (string-prefix-p "/" query) (string-prefix-p "/" search))
         (user-error "A regular expression cannot be combined with the query of the rows"))
        (t (concat query " " search))))

(defun treelined-actions--search-request (place then)
  "Request the rows of the running search at PLACE; call THEN with the result."
  (let ((text (treelined-actions--both treelined-tree-query
                                       (plist-get treelined-tree-search :query))))
    (treelined-actions--call
     'get_tree (append place (treelined-parse-query text)
                       (list :filter treelined-tree-filter :order treelined-order)
                       (and treelined-tree-archived '(:archived t)))
     (lambda (result)
       (when (derived-mode-p 'treelined-tree-mode)
         (funcall then result))))))

(defun treelined-actions--mark-matches (id index)
  "Mark the matches around the match INDEX, and go to its entry ID."
  (treelined-actions--search-request
   (list :offset (max 0 (- index (/ treelined-actions--marked-matches 2)))
         :limit treelined-actions--marked-matches)
   (lambda (result)
     (setq treelined-tree-found (make-hash-table :test #'equal))
     (seq-doseq (node (plist-get result :nodes))
       (puthash (plist-get node :id) (plist-get node :match) treelined-tree-found))
     (treelined-tree-go-to id))))

(defun treelined-actions--go-to-match (place &optional from)
  "Go to the match at PLACE, or to the next one if that is the entry FROM.
PLACE are params of a page."
  (treelined-actions--search-request
   (append place '(:limit 1))
   (lambda (result)
     (let* ((nodes (plist-get result :nodes))
            (total (plist-get result :total))
            (index (plist-get result :offset))
            (id (and (> (length nodes) 0) (plist-get (aref nodes 0) :id))))
       (cond ((null id)
              (message "treelined: nothing matches “%s”" (plist-get treelined-tree-search :query))
              (treelined-tree-end-search))
             ((and (equal id from) (> total 1))
              (treelined-actions--go-to-match (list :offset (mod (1+ index) total))))
             (t
              (setq treelined-tree-search
                    (list :query (plist-get treelined-tree-search :query)
                          :index (1+ index) :total total))
              (treelined-actions--mark-matches id index)))))))

(defun treelined-tree-search (query)
  "Go to the next row that matches QUERY: words, or /a regular expression/.
All rows are searched, and the whole texts of their entries.
\\[next-error] goes to the next match, \\[previous-error] to the previous one."
  (interactive (list (read-string "Search (words or /regexp/): ")))
  (if (string-blank-p query)
      (treelined-tree-end-search)
    (setq treelined-tree-search (list :query query)
          next-error-last-buffer (current-buffer))
    (let ((id (treelined-tree-id)))
      (treelined-actions--go-to-match (and id (list :around id)) id))))

(defun treelined-tree-end-search ()
  "Forget the search, and draw the rows without its matches."
  (interactive nil treelined-tree-mode)
  (setq treelined-tree-search nil
        treelined-tree-found nil)
  (treelined-tree-reload))

(defun treelined-tree-next-match (count &optional reset)
  "Go to the match COUNT behind this one.
Count from the first match on if RESET is not nil."
  (interactive "p" treelined-tree-mode)
  (let ((search treelined-tree-search))
    (unless (plist-get search :total)
      (user-error "There is no search"))
    (treelined-actions--go-to-match
     (list :offset (mod (+ count (if reset -1 (1- (plist-get search :index))))
                        (plist-get search :total))))))

(defun treelined-tree-previous-match (count)
  "Go to the match COUNT before this one."
  (interactive "p" treelined-tree-mode)
  (treelined-tree-next-match (- count)))

(defun treelined-actions--set-up ()
  "Let `next-error' go through the matches of this tree, and bookmarks be set."
  (setq-local next-error-function #'treelined-tree-next-match
              bookmark-make-record-function #'treelined-actions--bookmark))

(add-hook 'treelined-tree-mode-hook #'treelined-actions--set-up)

(provide 'treelined-actions)
;;; treelined-actions.el ends here
