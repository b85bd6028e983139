;;; treelined-tree.el --- The buffer of a session's tree  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The buffer has a line for each row of the tree.  Rows are fetched in pages when a
;; window comes near them; until then their lines are empty.  Filters, folds and queries
;; are params of `get_tree': the daemon selects the rows.  `treelined-actions' has the
;; commands.

;;; Code:

(require 'hl-line)
(require 'treelined-row)
(require 'treelined-session)

(defcustom treelined-filter "default"
  "The rows that a new tree shows."
  :group 'treelined
  :type '(choice (const "default") (const "no-tools") (const "user-only")
                 (const "labeled-only") (const "all")))

(defcustom treelined-order "time"
  "The order of branches in trees."
  :group 'treelined
  :type '(choice (const :tag "The oldest first" "time")
                 (const :tag "The active one first" "active-first")))

(defcustom treelined-page-size 100
  "Rows that are fetched at once.
Much more than a window shows makes Emacs pause to collect garbage."
  :group 'treelined
  :type 'natnum)

(defconst treelined-tree--delay 0.02
  "How long changes are collected before the tree is drawn, in seconds.")

(defvar-local treelined-tree-filter nil "The filter, as in `treelined-filter'.")
(defvar-local treelined-tree-query nil "The query that rows match, as typed, or nil.")
(defvar-local treelined-tree-open-all nil "Whether no branch is folded.")
(defvar-local treelined-tree-expand nil
  "The ids of entries; the branches that hold them are open.")
(defvar-local treelined-tree-each nil
  "The ids of rows; the branches at their forks have one row each.")
(defvar-local treelined-tree--names-sessions nil
  "Whether rows name the sessions that come from them.
At first they do not, since the daemon must read the list of sessions.")
(defvar-local treelined-tree-archived nil "Whether archived branches are shown.")
(defvar-local treelined-tree-archived-count 0 "The number of archived branches.")
(defvar-local treelined-tree-shed-count 0 "The number of shed branches.")
(defvar-local treelined-tree-search nil
  "The running search: a plist with `:query', `:index' and `:total', or nil.")
(defvar-local treelined-tree-found nil "The matches of a search, by entry id.")
(defvar-local treelined-tree-total 0 "The number of rows.")
(defvar-local treelined-tree--hidden 0 "The number of entries without a row.")
(defvar-local treelined-tree--rows nil "By index, whether rows are `drawn' or `asked' for.")
(defvar-local treelined-tree--indices nil "The indices of fetched rows by entry id.")
(defvar-local treelined-tree--revision nil "The revision of the rows.")
(defvar-local treelined-tree--columns nil "The width of guides.")
(defvar-local treelined-tree--loading nil "Whether a first page is under way.")
(defvar-local treelined-tree--again nil
  "The entry for point, or t, if the tree has to be drawn once more.")
(defvar-local treelined-tree--after nil "Functions to call when the tree is drawn.")
(defvar-local treelined-tree--timer nil "The timer of the next drawing.")
(defvar-local treelined-tree--followed nil "The leaf to which point has moved last.")

;;;; Places

(defun treelined-tree--index (&optional position)
  "Return the index of the row at POSITION, else at point."
  (min (1- (line-number-at-pos position)) (max (1- treelined-tree-total) 0)))

(defun treelined-tree-node ()
  "Return the row at point, nil if it was not fetched."
  (get-text-property (line-beginning-position) 'treelined-node))

(defun treelined-tree-id ()
  "Return the id of the entry at point, or nil."
  (plist-get (treelined-tree-node) :id))

(defun treelined-tree--window ()
  "Return the selected window, or another one, with this buffer, or nil."
  (if (eq (window-buffer) (current-buffer))
      (selected-window)
    (get-buffer-window nil t)))

(defun treelined-tree--goto (index)
  "Move point to the row INDEX."
  (goto-char (point-min))
  (forward-line index))

(defun treelined-tree--place (window)
  "Return the place of point in WINDOW, or in the buffer if WINDOW is nil."
  (save-excursion
    (when window
      (goto-char (window-point window)))
    (let ((index (treelined-tree--index)))
      (list :window window :id (treelined-tree-id) :index index :column (current-column)
            :above (if window (- index (treelined-tree--index (window-start window))) 0)))))

(defun treelined-tree--places ()
  "Return the places of all windows, or of the buffer if it has no window."
  (mapcar #'treelined-tree--place (or (get-buffer-window-list nil nil t) '(nil))))

(defun treelined-tree--anchor (place)
  "Return the index of the entry of PLACE, or the index that it had before."
  (or (gethash (plist-get place :id) treelined-tree--indices)
      (plist-get place :index)))

(defun treelined-tree--restore (place index)
  "Put point of PLACE on the row INDEX."
  (let ((window (plist-get place :window))
        (position (save-excursion
                    (treelined-tree--goto index)
                    (move-to-column (plist-get place :column))
                    (point))))
    (if (null window)
        (goto-char position)
      ;; `goto-char' would move point in the selected window, not in this one.
      (set-window-point window position)
      (treelined-tree--scroll window index
                              (- (treelined-tree--anchor place) (plist-get place :above))))))

(defun treelined-tree--scroll (window index top)
  "Scroll WINDOW to the rows from TOP on, or to others that contain INDEX.
No lines are shown after the last row if there are more rows above."
  (let ((height (window-body-height window)))
    (unless (< (1- top) index (+ top height))
      (setq top (- index (/ height 2))))
    (save-excursion
      (treelined-tree--goto (max 0 (min top (- treelined-tree-total height))))
      (set-window-start window (point) t))))

;;;; Drawing

(defun treelined-tree--guide-columns ()
  "Return the maximal width of guides: a sixth of the window."
  (/ (window-width (treelined-tree--window)) 6))

(defun treelined-tree--line (node)
  "Return the line of NODE with its newline."
  (let ((id (plist-get node :id)))
    (propertize (concat (treelined-row-line
                         node (and treelined-tree-found (gethash id treelined-tree-found)))
                        "\n")
                'treelined-node node)))

(defun treelined-tree--draw (first nodes)
  "Draw NODES from the row FIRST on.  Point may move."
  (let ((inhibit-read-only t)
        (index first))
    (treelined-tree--goto first)
    (delete-region (point) (line-beginning-position (1+ (length nodes))))
    (insert (mapconcat #'treelined-tree--line nodes ""))
    (seq-doseq (node nodes)
      (puthash index 'drawn treelined-tree--rows)
      (puthash (plist-get node :id) index treelined-tree--indices)
      (setq index (1+ index)))))

(defun treelined-tree--draw-page (first nodes)
  "Draw NODES from the row FIRST on.  Point stays in its place in all windows."
  (let ((places (treelined-tree--places)))
    (treelined-tree--draw first nodes)
    (dolist (place places)
      (treelined-tree--restore place (plist-get place :index)))))

(defun treelined-tree--clear (result)
  "Empty the lines of all rows of RESULT of `get_tree'."
  (let ((inhibit-read-only t)
        (total (plist-get result :total)))
    (setq treelined-tree-total total
          treelined-tree--hidden (plist-get result :hidden)
          treelined-tree-archived-count (or (plist-get result :archivedBranches) 0)
          treelined-tree-shed-count (or (plist-get result :shedBranches) 0)
          treelined-tree--revision (plist-get result :revision)
          treelined-tree--rows (make-hash-table)
          treelined-tree--indices (make-hash-table :test #'equal))
    (erase-buffer)
    (if (> total 0)
        (insert (make-string total ?\n))
      (insert (propertize (treelined-tree--nothing) 'face 'treelined-inactive) "\n"))))

(defun treelined-tree--draw-archived ()
  "Show below the rows how many branches are archived or shed, and the way back.
The text is an overlay, since every line of the buffer is a row."
  (remove-overlays nil nil 'treelined-archived t)
  (when-let* ((lines (delq nil (list (unless (zerop treelined-tree-archived-count)
                                       (treelined-tree-archived-line))
                                     (unless (zerop treelined-tree-shed-count)
                                       (treelined-tree-shed-line)))))
              (overlay (make-overlay (point-max) (point-max) nil t)))
    (overlay-put overlay 'treelined-archived t)
    (overlay-put overlay 'after-string
                 (propertize (string-join lines "\n") 'face 'treelined-guide))))

(defun treelined-tree-archived-line ()
  "Return the line about archived branches."
  (format (ngettext "  %d archived branch · %s %s it" "  %d archived branches · %s %s them"
                    treelined-tree-archived-count)
          treelined-tree-archived-count
          (substitute-command-keys
           "\\<treelined-tree-mode-map>\\[treelined-tree-show-archived]")
          (if treelined-tree-archived "hides" "shows")))

(defun treelined-tree-shed-line ()
  "Return the line about shed branches."
  (format (ngettext "  %d shed branch · treelined unshed brings it back"
                    "  %d shed branches · treelined unshed brings them back"
                    treelined-tree-shed-count)
          treelined-tree-shed-count))

(defun treelined-tree--nothing ()
  "Return the text of a tree without rows."
  (if (and (> treelined-tree--hidden 0)
           (or treelined-tree-query (not (equal treelined-tree-filter "default"))))
      (substitute-command-keys
       (format "\\<treelined-tree-mode-map>No row: filter and query hide %d entries.  \
\\[treelined-tree-filter] chooses the filter, \\[treelined-tree-query] the query."
               treelined-tree--hidden))
    (substitute-command-keys
     "\\<treelined-tree-mode-map>Nothing has been said yet.  \\[treelined-compose] writes a message.")))

(defun treelined-tree--show (result anchor main)
  "Draw the first page RESULT of `get_tree'.
MAIN is the place of a window.  Its point moves to the row ANCHOR, unless
ANCHOR is nil or a key has moved point since."
  (let ((places (treelined-tree--places)))
    (treelined-tree--clear result)
    (unless (zerop treelined-tree-total)
      (treelined-tree--draw (plist-get result :offset) (plist-get result :nodes)))
    (dolist (place places)
      (treelined-tree--restore
       place (or (and (eq (plist-get place :window) (plist-get main :window))
                      (equal (plist-get place :id) (plist-get main :id))
                      anchor)
                 (treelined-tree--anchor place))))
    (treelined-tree--draw-archived)
    (when hl-line-mode
      (hl-line-highlight))))

;;;; Fetching

(defun treelined-parse-query (typed)
  "Return the params of the query TYPED: words, or /a regular expression/."
  (if (string-match "\\`/\\(.+\\)/\\'" typed)
      (list :query (match-string 1 typed) :mode "regex")
    (list :query typed :mode "words")))

(defun treelined-tree-params ()
  "Return the params of `get_tree', except the params of the page."
  (append (list :filter treelined-tree-filter
                :order treelined-order
                :render (symbol-name treelined-render)
                :prefixColumns treelined-tree--columns)
          (unless treelined-tree-open-all
            (list :fold "left"
                  ;; The branch in which other programs continue is open.
                  :expand (vconcat (ensure-list
                                    (treelined-session-others-leaf-id treelined-session))
                                   treelined-tree-expand)
                  :each (vconcat treelined-tree-each)))
          (and treelined-tree--names-sessions '(:sessions t))
          (and treelined-tree-archived '(:archived t))
          (and treelined-tree-query (treelined-parse-query treelined-tree-query))))

(defun treelined-tree-request (place then &optional else)
  "Request the rows of PLACE, which are params of a page.
THEN and ELSE are as in `treelined-request'."
  (treelined-session-request treelined-session 'get_tree
                             (append place (treelined-tree-params)) then else))

(defun treelined-tree-reload (&optional focus after)
  "Fetch the tree again and draw it.
Point stays on its entry, or moves to the entry FOCUS, or to the nearest
one above it.  Call AFTER, if it is not nil, in the buffer when it is drawn."
  (treelined-session-here)
  (when after
    (push after treelined-tree--after))
  (if treelined-tree--loading
      (setq treelined-tree--again (or focus treelined-tree--again t))
    (setq treelined-tree--loading t
          treelined-tree--columns (treelined-tree--guide-columns))
    (let* ((main (treelined-tree--place (treelined-tree--window)))
           (around (or focus (plist-get main :id))))
      (if (null around)
          (treelined-tree--load
           (list :offset (max 0 (- (plist-get main :index) (/ treelined-page-size 2)))) nil main)
        ;; An entry may have no row.  A page of one row tells the nearest entry with a
        ;; row.  The page for drawing is requested only after this answer, since answers
        ;; come in any order.
        (let ((load (lambda (anchor) (treelined-tree--load (list :around around) anchor main))))
          (treelined-tree-request (list :around around :limit 1)
                                  (lambda (result)
                                    ;; The buffer may be gone.
                                    (when (derived-mode-p 'treelined-tree-mode)
                                      (funcall load (plist-get result :offset))))
                                  (lambda (error)
                                    ;; Only commands start a daemon that has ended.
                                    (cond ((not (derived-mode-p 'treelined-tree-mode)))
                                          ((treelined-session-open-p treelined-session)
                                           (funcall load nil))
                                          (t (treelined-tree--failed error))))))))))

(defun treelined-tree--load (place anchor main)
  "Fetch the page at PLACE, params of a page, and draw it.
ANCHOR and MAIN are as in `treelined-tree--show'."
  (treelined-tree-request
   (append place (list :limit treelined-page-size))
   (lambda (result)
     (when (derived-mode-p 'treelined-tree-mode)
       (treelined-tree--show result anchor main)
       (treelined-tree--settle)))
   (lambda (error)
     (when (derived-mode-p 'treelined-tree-mode)
       (treelined-tree--failed error)))))

(defun treelined-tree--failed (error)
  "Drop the params that ERROR refuses, and draw the tree; else show ERROR."
  (let ((kind (plist-get error :kind)))
    (cond
     ;; The file was replaced, so folded entries or the entry at point may not exist.
     ((and (equal kind "entryNotFound")
           (or treelined-tree-expand treelined-tree-each (treelined-tree-id)))
      (let ((inhibit-read-only t))
        (erase-buffer))
      (setq treelined-tree-expand nil treelined-tree-each nil
            treelined-tree-found nil treelined-tree-search nil
            treelined-tree--again t))
     ;; The daemon would refuse the pattern again, so it is dropped.
     ((and (equal kind "invalidParams") treelined-tree-query)
      (treelined-report error)
      (setq treelined-tree-query nil
            treelined-tree--again t))
     (t (treelined-report error)))
    (treelined-tree--settle)))

(defun treelined-tree--settle ()
  "Draw the tree again if it has changed since; else fetch visible rows."
  (setq treelined-tree--loading nil)
  (let ((again treelined-tree--again))
    (setq treelined-tree--again nil)
    ;; Only commands start a daemon that has ended.
    (if (and again (treelined-session-open-p treelined-session))
        (treelined-tree-reload (and (stringp again) again))
      (treelined-tree-fetch)
      (let ((after treelined-tree--after))
        (setq treelined-tree--after nil)
        (mapc #'funcall (nreverse after)))
      (unless (or treelined-tree--names-sessions (zerop treelined-tree-total)
                  (not (treelined-session-open-p treelined-session)))
        (setq treelined-tree--names-sessions t)
        (treelined-tree-reload))))
  (force-mode-line-update))

(defun treelined-tree--fetch-page (first limit &optional then)
  "Fetch LIMIT rows from the index FIRST on, and call THEN when they are drawn."
  (let ((rows treelined-tree--rows))
    (dotimes (index limit)
      (puthash (+ first index) 'asked rows))
    (treelined-tree-request
     (list :offset first :limit limit)
     (lambda (result)
       ;; Another tree has another table.
       (when (and (derived-mode-p 'treelined-tree-mode) (eq rows treelined-tree--rows))
         (if (equal (plist-get result :revision) treelined-tree--revision)
             (progn
               (treelined-tree--draw-page first (plist-get result :nodes))
               ;; A page may end before the limit.
               (dotimes (index limit)
                 (when (eq 'asked (gethash (+ first index) rows))
                   (remhash (+ first index) rows)))
               (when then
                 (funcall then)))
           (treelined-tree-reload))))
     (lambda (error)
       (dotimes (index limit)
         (remhash (+ first index) rows))
       (treelined-report error)))))

(defun treelined-tree--fetch-range (first last)
  "Fetch the rows from FIRST to LAST, exclusive, that were not requested yet."
  (let ((first (max first 0))
        (last (min last treelined-tree-total)))
    (while (< first last)
      (let ((end first))
        (while (and (< end last) (< (- end first) treelined-page-size)
                    (null (gethash end treelined-tree--rows)))
          (setq end (1+ end)))
        (when (> end first)
          (treelined-tree--fetch-page first (- end first)))
        (setq first (max end (1+ first)))))))

(defun treelined-tree-fetch (&optional window start)
  "Fetch the rows around point, and those that windows show.
If WINDOW is not nil, it shows the rows from START on, as in
`window-scroll-functions'."
  (when (and (not treelined-tree--loading) (> treelined-tree-total 0)
             (treelined-session-open-p treelined-session))
    (let ((height (frame-height))
          (index (treelined-tree--index)))
      (treelined-tree--fetch-range (- index height) (+ index height))
      (dolist (each (if window (list window) (get-buffer-window-list nil nil t)))
        (let ((top (treelined-tree--index (or start (window-start each)))))
          (treelined-tree--fetch-range (- top height) (+ top height height)))))))

(defun treelined-tree--resized (_window)
  "Draw the tree again if the width of the guides has changed."
  (unless (or (zerop treelined-tree-total)
              (not (treelined-session-open-p treelined-session))
              (eql treelined-tree--columns (treelined-tree--guide-columns)))
    (treelined-tree-reload)))

;;;; Changes

(defun treelined-tree--changed (session event _params)
  "Draw the trees of SESSION after EVENT."
  (unless (eq event 'delta)
    (dolist (buffer (treelined-session-buffers session 'treelined-tree-mode))
      (with-current-buffer buffer
        (force-mode-line-update)
        (when (eq event 'changed)
          (treelined-tree--catch-up-soon))))))

(defun treelined-tree--at-leaf-p ()
  "Return whether point is at the leaf, or at the previous leaf."
  (save-excursion
    (when-let* ((window (treelined-tree--window)))
      (goto-char (window-point window)))
    (let ((node (treelined-tree-node)))
      (or (zerop treelined-tree-total)
          (plist-get node :isLeaf)
          (and node (equal (plist-get node :id) treelined-tree--followed))))))

(defun treelined-tree--catch-up-soon ()
  "Draw the tree of this buffer soon, once for several notifications."
  (unless treelined-tree--timer
    (setq treelined-tree--timer (run-at-time treelined-tree--delay nil #'treelined-tree--catch-up
                                             (current-buffer)))))

(defun treelined-tree--catch-up (buffer)
  "Draw the tree of BUFFER.  If point is at the leaf, it follows the leaf."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (setq treelined-tree--timer nil)
      (cond ((not (treelined-session-open-p treelined-session)))
            ;; A running load may move point away from the leaf.
            (treelined-tree--loading (treelined-tree--catch-up-soon))
            ((treelined-tree--at-leaf-p)
             (let ((leaf (or (treelined-session-others-leaf-id treelined-session)
                             (treelined-session-leaf-id treelined-session))))
               (setq treelined-tree--followed leaf)
               (treelined-tree-reload leaf)))
            (t (treelined-tree-reload))))))

(add-hook 'treelined-session-functions #'treelined-tree--changed)

(defun treelined-tree-go-to (id &optional after)
  "Put point on the entry ID, and open the branches that hide it.
Call AFTER when it is there."
  (treelined-tree-request
   (list :around id :limit 1)
   (lambda (result)
     (let* ((nodes (plist-get result :nodes))
            (shown (and (> (length nodes) 0) (aref nodes 0))))
       (when (plist-get shown :folded)
         (push id treelined-tree-expand))
       (treelined-tree-reload id after)))))

;;;; The mode

(defun treelined-tree--elsewhere (session)
  "Return a text about the leaf of others in SESSION, and the key to it."
  (let ((turns (treelined-session-newer-turns session)))
    (cond ((null (treelined-session-others-leaf-id session)) nil)
          ((null turns) "others have written: o")
          ((zerop turns) "newer entries are on another branch: o")
          (t (format (ngettext "%d newer turn is on another branch: o"
                               "%d newer turns are on another branch: o" turns)
                     turns)))))

(defun treelined-tree--header ()
  "Return the header line."
  (let ((session treelined-session))
    (treelined-header
     (string-join
      (delq nil
            (list
             (propertize (treelined-session-title session) 'face 'bold)
             (if (treelined-session-open-p session)
                 (format (ngettext "%d row" "%d rows" treelined-tree-total)
                         treelined-tree-total)
               "the daemon has ended; g starts it again")
             (and (> treelined-tree--hidden 0) (format "%d hidden" treelined-tree--hidden))
             (and (not (equal treelined-tree-filter "default")) treelined-tree-filter)
             (and treelined-tree-query (format "only “%s”" treelined-tree-query))
             (when-let* ((search treelined-tree-search))
               (format "“%s” %d of %d" (plist-get search :query) (plist-get search :index)
                       (plist-get search :total)))
             (treelined-tree--elsewhere session)
             (and (treelined-session-read-only session) "read only")
             (and treelined-running "compacting… C-g cancels")
             (and (treelined-session-navigation session) "moving… C-g aborts")))
      " · "))))

(defun treelined-tree--revert (&rest _)
  "Draw the tree again."
  (treelined-tree-reload))

(defvar treelined-tree-mode-map (make-sparse-keymap)
  "The keys of `treelined-tree-mode'; `treelined-menu' defines them.")

(define-derived-mode treelined-tree-mode special-mode "Treelined"
  "The tree of a session.
\\<treelined-tree-mode-map>\\[treelined-tree-menu] shows all commands.

\\{treelined-tree-mode-map}"
  :group 'treelined
  (buffer-disable-undo)
  (treelined-row-cut-lines)
  (setq-local bidi-paragraph-direction 'left-to-right
              header-line-format '(:eval (treelined-tree--header))
              revert-buffer-function #'treelined-tree--revert
              treelined-tree-filter treelined-filter)
  (hl-line-mode 1)
  (add-hook 'post-command-hook #'treelined-tree-fetch nil t)
  (add-hook 'window-scroll-functions #'treelined-tree-fetch nil t)
  (add-hook 'window-size-change-functions #'treelined-tree--resized nil t))

(defun treelined-tree-buffer (session)
  "Return the buffer of the tree of SESSION; make it if there is none."
  (or (car (treelined-session-buffers session 'treelined-tree-mode))
      (with-current-buffer (generate-new-buffer
                            (format "*treelined: %s*" (treelined-session-title session)))
        (treelined-tree-mode)
        (setq treelined-session session
              default-directory (treelined-session-directory session))
        (current-buffer))))

(defun treelined-tree-show (session &optional focus after)
  "Show the tree of SESSION, with point on the entry FOCUS, else on the leaf.
Call AFTER when it is drawn."
  (pop-to-buffer-same-window (treelined-tree-buffer session))
  (if focus
      (treelined-tree-go-to focus after)
    (treelined-tree-reload (treelined-session-leaf-id session) after)))

(provide 'treelined-tree)
;;; treelined-tree.el ends here
