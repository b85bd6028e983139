;;; treelined-search.el --- The search over all sessions  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The hits are in a buffer, grouped by session in the order of the daemon.
;; RET opens the tree of a hit at its entry; `next-error' goes through them.

;;; Code:

(require 'treelined-actions)
(require 'xref)

(defcustom treelined-search-limit 200
  "The most hits of a search over all sessions; the daemon returns the best."
  :group 'treelined
  :type 'natnum)

(defconst treelined-search--fields
  '(("toolCalls" . "call") ("toolResults" . "result") ("labels" . "label")
    ("summaries" . "summary"))
  "Kinds of fields with another name.")

(defvar treelined-search--history nil "The queries of searches.")

(defvar-local treelined-search--query nil "The query.")
(defvar-local treelined-search--result nil "The result of the search.")

(defvar treelined-search-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'treelined-search-visit)
    (define-key map (kbd "SPC") #'treelined-search-preview)
    (define-key map "n" #'treelined-search-next)
    (define-key map "p" #'treelined-search-previous)
    (define-key map "s" #'treelined-search)
    (define-key map [remap keyboard-quit] #'treelined-quit)
    map)
  "The keys of `treelined-search-mode'.")

(define-derived-mode treelined-search-mode special-mode "Treelined-Search"
  "Hits of a search over all sessions.

\\{treelined-search-mode-map}"
  :group 'treelined
  (buffer-disable-undo)
  (setq-local truncate-lines t
              bidi-paragraph-direction 'left-to-right
              header-line-format '(:eval (treelined-search--header))
              next-error-function #'treelined-search--next-error
              revert-buffer-function (lambda (&rest _) (treelined-search treelined-search--query)))
  (hl-line-mode 1))

(defun treelined-search--header ()
  "Return the header line."
  (let ((totals (plist-get treelined-search--result :totals))
        (shown (length (plist-get treelined-search--result :hits)))
        (partial (length (plist-get treelined-search--result :partial))))
    (treelined-header
     (format
      "“%s” · %s" treelined-search--query
      (cond (treelined-running "searching… C-g cancels")
            ((null treelined-search--result) "cancelled")
            ((zerop shown) "nothing matches")
            (t (concat
                (format (ngettext "%d hit" "%d hits" (plist-get totals :entries))
                        (plist-get totals :entries))
                (format (ngettext " in %d session" " in %d sessions"
                                  (plist-get totals :sessions))
                        (plist-get totals :sessions))
                (and (plist-get treelined-search--result :nextCursor)
                     (format ", the best %d are here" shown))
                (and (> partial 0) (format ", %d files cannot be read" partial)))))))))

(defun treelined-search--line (hit)
  "Return the line of HIT."
  (let* ((branch (plist-get hit :branch))
         (active (plist-get branch :onActivePath))
         (field (plist-get hit :field)))
    (concat (treelined-row-faced (if active (treelined-row-mark :path) " ") 'treelined-active)
            " "
            (propertize (truncate-string-to-width
                         (or (cdr (assoc field treelined-search--fields)) field) 9 nil ?\s)
                        'face 'treelined-speaker)
            (treelined-row-snippet hit (if active 'treelined-text 'treelined-inactive))
            (unless active
              (treelined-row-faced (concat "  " (treelined-row-mark :from) " "
                                           (if (plist-get branch :leftAt)
                                               "a branch that was left"
                                             "another root"))
                                   'treelined-guide))
            "\n")))

(defun treelined-search--groups (hits)
  "Return HITS as lists, one for each session, in the order of their first hits."
  (mapcar #'cdr (seq-group-by (lambda (hit) (plist-get hit :sessionId)) hits)))

(defun treelined-search--show (result)
  "Show RESULT of `search'."
  (let ((inhibit-read-only t))
    (setq treelined-search--result result)
    (erase-buffer)
    (dolist (hits (treelined-search--groups (append (plist-get result :hits) nil)))
      (let ((name (plist-get (car hits) :sessionName)))
        (insert (propertize (if (string-empty-p name) (plist-get (car hits) :sessionId) name)
                            'face 'treelined-heading)
                "\n"))
      (dolist (hit hits)
        (insert (propertize (treelined-search--line hit) 'treelined-hit hit)))
      (insert "\n"))
    (goto-char (point-min))
    (unless (seq-empty-p (plist-get result :hits))
      (treelined-search-next 1))))

(defun treelined-search--hit ()
  "Return the hit at point."
  (or (get-text-property (point) 'treelined-hit)
      (user-error "There is no hit here")))

(defun treelined-search-next (count)
  "Move point to the next hit, COUNT times."
  (interactive "p" treelined-search-mode)
  (let ((step (if (< count 0) -1 1))
        (start (point)))
    (dotimes (_ (abs count))
      (while (and (zerop (forward-line step))
                  (not (or (eobp) (get-text-property (point) 'treelined-hit))))))
    (unless (get-text-property (point) 'treelined-hit)
      (goto-char start)
      (user-error "No more hits"))))

(defun treelined-search-previous (count)
  "Move point to the previous hit, COUNT times."
  (interactive "p" treelined-search-mode)
  (treelined-search-next (- count)))

(defun treelined-search--found (id)
  "Return the matches in the session ID, by entry id."
  (let ((found (make-hash-table :test #'equal)))
    (seq-doseq (hit (plist-get treelined-search--result :hits))
      (when (equal id (plist-get hit :sessionId))
        (puthash (plist-get hit :entryId) hit found)))
    found))

(defun treelined-search--go-to (id)
  "Put point of this tree on the entry ID.
Show all rows if the filter hides it."
  (treelined-tree-go-to
   id (lambda ()
        (unless (or (equal id (treelined-tree-id)) (equal treelined-tree-filter "all"))
          (setq treelined-tree-filter "all")
          (treelined-tree-go-to id)))))

(defun treelined-search--open (session id found)
  "Show the tree of SESSION with point on the entry ID and the matches FOUND."
  (treelined-tree-show session id)
  (setq treelined-tree-query nil
        treelined-tree-search nil
        treelined-tree-found found)
  (treelined-search--go-to id))

(defun treelined-search-visit ()
  "Open the tree of the hit at point, with point on its entry.
\\<global-map>\\[xref-pop-marker-stack] comes back."
  (interactive nil treelined-search-mode)
  (let* ((hit (treelined-search--hit))
         (id (plist-get hit :entryId))
         (found (treelined-search--found (plist-get hit :sessionId))))
    (xref-push-marker-stack)
    (setq next-error-last-buffer (current-buffer))
    (treelined-session-open (plist-get hit :sessionId)
                            (lambda (session)
                              (treelined-later #'treelined-search--open session id found)))))

(defun treelined-search-preview ()
  "Show the whole entry of the hit at point in another window."
  (interactive nil treelined-search-mode)
  (let ((id (plist-get (treelined-search--hit) :entryId)))
    (treelined-session-open (plist-get (treelined-search--hit) :sessionId)
                            (lambda (session) (treelined-entry-show session id nil)))))

(defun treelined-search--next-error (count &optional reset)
  "Visit the hit COUNT behind point, from the first one on if RESET is not nil."
  (when reset
    (goto-char (point-min)))
  (treelined-search-next count)
  (treelined-search-visit))

;;;###autoload (autoload 'treelined-search "treelined" nil t)
(defun treelined-search (query)
  "Search all sessions for QUERY: words, or /a regular expression/."
  (interactive (list (read-string "Search all sessions (words or /regexp/): " nil
                                  'treelined-search--history)))
  (when (string-blank-p query)
    (user-error "There is nothing to search for"))
  (pop-to-buffer-same-window (get-buffer-create "*treelined search*"))
  (unless (derived-mode-p 'treelined-search-mode)
    (treelined-search-mode))
  (when treelined-running
    (treelined-cancel-request treelined-running))
  (setq treelined-search--query query
        treelined-search--result nil)
  (let (id)
    (setq id (treelined-request
              'search (append (treelined-parse-query query)
                              (list :limit treelined-search-limit))
              (lambda (result)
                (when (eql id treelined-running)
                  (setq treelined-running nil)
                  (treelined-search--show result)))
              (lambda (error)
                (when (eql id treelined-running)
                  (setq treelined-running nil)
                  (force-mode-line-update)
                  (treelined-report error)))))
    (setq treelined-running id)))

(provide 'treelined-search)
;;; treelined-search.el ends here
