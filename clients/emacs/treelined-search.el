;;; treelined-search.el --- The search over all sessions  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The hits are in a buffer, grouped by session in the order of the daemon.  RET opens the
;; tree of a hit at its entry, and `next-error' visits one hit after the other.  A query
;; is a question, and an entry need not contain all of its words.  The key x searches for
;; all words, and then for the exact text.  The daemon parses the filters in a query, and
;; completes them.

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

(defconst treelined-search--seconds 0.5
  "How long completion waits for the daemon.")

(defconst treelined-search--modes
  '(("ask" . nil) ("words" . "all words") ("literal" . "exactly this text"))
  "Ways to understand a query, and their names in the header.")

(defvar-local treelined-search--query nil "The query.")
(defvar-local treelined-search--how nil "How the query is understood.")
(defvar-local treelined-search--session nil "The only session that is searched, or nil.")
(defvar-local treelined-search--result nil "The result of the search.")

(defvar treelined-search-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'treelined-search-visit)
    (define-key map (kbd "SPC") #'treelined-search-preview)
    (define-key map "n" #'treelined-search-next)
    (define-key map "p" #'treelined-search-previous)
    (define-key map "s" #'treelined-search)
    (define-key map "x" #'treelined-search-exactly)
    (define-key map [remap keyboard-quit] #'treelined-quit)
    map)
  "The keys of `treelined-search-mode'.")

(define-derived-mode treelined-search-mode special-mode "Treelined-Search"
  "Hits of a search over all sessions.

\\{treelined-search-mode-map}"
  :group 'treelined
  (buffer-disable-undo)
  (treelined-row-cut-lines)
  (setq-local bidi-paragraph-direction 'left-to-right
              header-line-format '(:eval (treelined-search--header))
              next-error-function #'treelined-search--next-error
              revert-buffer-function #'treelined-search--revert)
  (hl-line-mode 1))

(defun treelined-search--found-text (result)
  "Return the number of hits in RESULT, and what the list does not show."
  (let* ((totals (plist-get result :totals))
         (entries (plist-get totals :entries))
         (sessions (plist-get totals :sessions))
         (shown (length (plist-get result :hits)))
         (partial (length (plist-get result :partial))))
    (if (zerop shown)
        "nothing matches"
      (concat
       (and (plist-get totals :atLeast) (< shown entries) "at least ")
       (format (ngettext "%d hit" "%d hits" entries) entries)
       (format (ngettext " in %d session" " in %d sessions" sessions) sessions)
       (and (< shown entries) (format ", the best %d are here" shown))
       (and (> partial 0) (format ", %d files cannot be read" partial))))))

(defun treelined-search--header ()
  "Return the header line."
  (treelined-header
   (string-join
    (delq nil
          (list (format "“%s”" treelined-search--query)
                (cdr (assoc treelined-search--how treelined-search--modes))
                (and treelined-search--session "one session")
                (cond (treelined-running "searching… C-g cancels")
                      ((null treelined-search--result) "cancelled")
                      (t (treelined-search--found-text treelined-search--result)))))
    " · ")))

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

(defun treelined-search--part (kind text)
  "Return the line for TEXT of KIND about the hit above; nil if TEXT is nil."
  (and text
       (concat (make-string 11 ?\s)
               (treelined-row-faced (concat kind ": ") 'treelined-guide)
               (treelined-row-faced (treelined-row-shown text " ") 'treelined-inactive)
               "\n")))

(defun treelined-search--insert (hit)
  "Insert HIT: its line, why its branch was left, and what was tried instead."
  (let ((branch (plist-get hit :branch)))
    (insert (propertize (treelined-search--line hit) 'treelined-hit hit 'treelined-first t)
            (propertize (concat (treelined-search--part
                                 "left because" (plist-get (plist-get branch :reason) :text))
                                (treelined-search--part
                                 "instead" (plist-get (plist-get branch :instead) :text)))
                        'treelined-hit hit))))

(defun treelined-search--insert-session (hits more)
  "Insert HITS, those of one session.
MORE has the numbers of the other hits of sessions."
  (let* ((id (plist-get (car hits) :sessionId))
         (name (plist-get (car hits) :sessionName))
         (rest (seq-find (lambda (each) (equal id (plist-get each :sessionId))) more))
         (count (plist-get rest :count)))
    (insert (propertize (if (string-empty-p name) id name) 'face 'treelined-heading) "\n")
    (mapc #'treelined-search--insert hits)
    (when rest
      (insert (propertize (format (ngettext "           RET shows %d more entry\n"
                                            "           RET shows %d more entries\n" count)
                                  count)
                          'face 'treelined-guide 'treelined-more id)))
    (insert "\n")))

(defun treelined-search--groups (hits)
  "Return HITS as lists, one for each session, in the order of their first hits."
  (mapcar #'cdr (seq-group-by (lambda (hit) (plist-get hit :sessionId)) hits)))

(defun treelined-search--show (result)
  "Show RESULT of `search'."
  (let ((inhibit-read-only t))
    (setq treelined-search--result result)
    (erase-buffer)
    (seq-doseq (each (plist-get result :didYouMean))
      (let* ((taken (plist-get each :taken))
             (others (seq-remove (lambda (near) (equal near taken)) (plist-get each :near))))
        (insert (format "Nothing has “%s”" (plist-get each :word))
                (if taken (format "; %s counts instead" taken) "")
                (if others (format "; did you mean %s?" (string-join others ", ")) "")
                "\n\n")))
    (dolist (hits (treelined-search--groups (append (plist-get result :hits) nil)))
      (treelined-search--insert-session hits (plist-get result :more)))
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
                  (not (or (eobp) (get-text-property (point) 'treelined-first))))))
    (unless (get-text-property (point) 'treelined-first)
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
\\<global-map>\\[xref-pop-marker-stack] comes back.  On the line that says so, show
the other hits of the session."
  (interactive nil treelined-search-mode)
  (let ((more (get-text-property (point) 'treelined-more)))
    (if more
        (treelined-search treelined-search--query treelined-search--how more)
      (treelined-search--visit))))

(defun treelined-search--visit ()
  "Open the tree of the hit at point."
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

(defun treelined-search--complete ()
  "Complete the filter, or its value, before point in the minibuffer."
  (let* ((begin (minibuffer-prompt-end))
         (params (list :query (buffer-substring-no-properties begin (point-max))
                       :position (- (point) begin)))
         (answer (treelined-await
                  (lambda (then else) (treelined-request 'complete_query params then else))
                  treelined-search--seconds)))
    (when (car answer)
      (let* ((result (cdr answer))
             (about (mapcar (lambda (item) (cons (plist-get item :text) (plist-get item :about)))
                            (plist-get result :items))))
        (list (+ begin (plist-get result :start)) (+ begin (plist-get result :end))
              (mapcar #'car about)
              :annotation-function (lambda (text)
                                     (when-let* ((what (cdr (assoc text about))))
                                       (concat "  " what))))))))

(defvar treelined-search--read-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map minibuffer-local-map)
    (define-key map (kbd "TAB") #'completion-at-point)
    map)
  "The keys with which a query is read.")

(defun treelined-search--read ()
  "Read a query, with completion."
  (minibuffer-with-setup-hook
      (lambda ()
        (add-hook 'completion-at-point-functions #'treelined-search--complete nil t))
    (read-from-minibuffer "Search all sessions (TAB completes filters): " nil
                          treelined-search--read-map nil 'treelined-search--history)))

(defun treelined-search--params (query how session)
  "Return the params of a search for QUERY.
HOW and SESSION are as in `treelined-search'."
  (append (list :query query :mode how :sessionId session :limit treelined-search-limit)
          ;; A literal search has no filters.
          (unless (equal how "literal")
            (list :syntax "filters"
                  :directory (directory-file-name (expand-file-name default-directory))))))

;;;###autoload (autoload 'treelined-search "treelined" nil t)
(defun treelined-search (query &optional how session)
  "Search all sessions for QUERY, and show the entries that answer it best.
Not every word must occur.  With a prefix argument, all words must.
QUERY may have filters, such as role:user or since:2w, which TAB completes,
or be /a regular expression/.

HOW is the mode of `search': \"ask\" if it is nil, \"words\" or \"literal\".
SESSION is the id of the only session to search, or nil."
  (interactive (list (treelined-search--read) (and current-prefix-arg "words")))
  (when (string-blank-p query)
    (user-error "There is nothing to search for"))
  (let ((directory default-directory))
    (pop-to-buffer-same-window (get-buffer-create "*treelined search*"))
    (unless (derived-mode-p 'treelined-search-mode)
      (treelined-search-mode))
    (setq default-directory directory))
  (when treelined-running
    (treelined-cancel-request treelined-running))
  (setq treelined-search--query query
        treelined-search--how (or how "ask")
        treelined-search--session session
        treelined-search--result nil)
  (let (id)
    (setq id (treelined-request
              'search (treelined-search--params query treelined-search--how session)
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

(defun treelined-search-exactly ()
  "Search for the same query exactly: for all its words, then for its text.
After that it is a question again."
  (interactive nil treelined-search-mode)
  (treelined-search treelined-search--query
                    (or (car (cadr (seq-drop-while
                                    (lambda (mode) (not (equal (car mode) treelined-search--how)))
                                    treelined-search--modes)))
                        "ask")
                    treelined-search--session))

(defun treelined-search--revert (&rest _)
  "Search again."
  (treelined-search treelined-search--query treelined-search--how treelined-search--session))

(provide 'treelined-search)
;;; treelined-search.el ends here
