;;; treelined-sorting.el --- Tags, pins, families, candidates  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Tags are in the session; pins and archived sessions are marks of this machine.  The
;; sessions of a family come from each other.  Candidates are several answers to one
;; question, of which a person chooses one.

;;; Code:

(require 'cl-lib)
(require 'treelined-actions)
(require 'treelined-list)

(defun treelined-sorting--id ()
  "Return the id of the session of this buffer, or of the one at point in the list."
  (if (derived-mode-p 'treelined-list-mode)
      (plist-get (treelined-list--row) :sessionId)
    (treelined-session-id treelined-session)))

(defun treelined-sorting--with-row (id then)
  "Call THEN with the row of the session ID in the list of sessions."
  (treelined-request
   'list_sessions (list :query id :archived t)
   (lambda (result)
     (let ((row (seq-find (lambda (each) (equal id (plist-get each :sessionId)))
                          (plist-get result :sessions))))
       (if row
           (funcall then row)
         (message "treelined: this session is not in the list"))))))

;;;; Tags

(defun treelined-sorting--words (text)
  "Return the tags in TEXT."
  (mapcar (lambda (word) (downcase (string-remove-prefix "#" word)))
          (split-string text "[[:space:],]+" t)))

(defun treelined-sorting--set-tags (id before text)
  "Give the session ID, which has the tags BEFORE, exactly the tags in TEXT."
  (let* ((wanted (treelined-sorting--words text))
         (add (seq-difference wanted before))
         (remove (seq-difference before wanted))
         (session (gethash id treelined-session--table))
         (is-open (and session (treelined-session-open-p session)))
         (change (lambda (&optional _)
                   (treelined-request
                    'tag_session (list :sessionId id :add (vconcat add) :remove (vconcat remove))
                    (lambda (result)
                      (unless is-open
                        (treelined-request 'close_session (list :sessionId id) #'ignore))
                      (let ((tags (mapconcat (lambda (tag) (concat "#" tag))
                                             (plist-get result :tags) " ")))
                        (message "treelined: %s" (if (string-empty-p tags) "no tags"
                                                   (concat "tags: " tags)))))))))
    (cond ((not (or add remove)) (message "treelined: the tags are as they were"))
          (is-open (funcall change))
          (t (treelined-request 'open_session (list :sessionId id) change)))))

(defun treelined-sorting--ask-tags (row)
  "Ask for the tags of the session of ROW, and set them."
  (let* ((before (append (plist-get row :tags) nil))
         (text (read-string "Tags (empty: none): " (string-join before " "))))
    (treelined-sorting--set-tags (plist-get row :sessionId) before text)))

(defun treelined-tag-session ()
  "Change the tags of the session of this buffer, or of the one at point."
  (interactive nil treelined-tree-mode treelined-list-mode)
  (treelined-sorting--with-row
   (treelined-sorting--id)
   (lambda (row) (treelined-later #'treelined-sorting--ask-tags row))))

;;;; Marks

(defun treelined-sorting--mark (mark on off)
  "Set or remove MARK of a session, and show the message ON or OFF."
  (treelined-sorting--with-row
   (treelined-sorting--id)
   (lambda (row)
     (treelined-request
      'mark_session
      (list :sessionId (plist-get row :sessionId)
            mark (if (eq t (plist-get row mark)) :json-false t))
      (lambda (result)
        (message "treelined: %s" (if (eq t (plist-get result mark)) on off)))))))

(defun treelined-pin-session ()
  "Pin the session of this buffer, or the one at point, or not any more."
  (interactive nil treelined-tree-mode treelined-list-mode)
  (treelined-sorting--mark :pinned "the session is pinned" "the session is not pinned any more"))

(defun treelined-archive-session ()
  "Put the session of this buffer, or the one at point, away, or bring it back."
  (interactive nil treelined-tree-mode treelined-list-mode)
  (treelined-sorting--mark :archived "archived; lists leave the session out"
                           "the session is in the lists again"))

;;;; Families

(defun treelined-sorting--relative (row id born)
  "Return one line for ROW of the family of the session ID.
The sessions with the ids BORN come from the row at point."
  (let ((kind (plist-get (plist-get row :comesFrom) :kind)))
    (treelined-row-shown
     (concat (cond ((equal id (plist-get row :sessionId)) "◉ ")
                   ((member (plist-get row :sessionId) born) "↗ ")
                   (t "  "))
             (make-string (* 2 (min 16 (plist-get row :depth))) ?\s)
             (and kind (concat kind " · "))
             (treelined-list--title row)
             (format " · %s" (treelined-list--age (plist-get row :modified))))
     " ")))

(defun treelined-sorting--choose-relative (rows id born)
  "Choose one of ROWS, the family of the session ID, and show it.
The first one whose id is in BORN is the default.
The parent of ID is shown at the entry from which ID comes."
  (let* ((choices (seq-map-indexed
                   (lambda (row at)
                     ;; Several sessions may have the same title.
                     (cons (format "%s  (%d)" (treelined-sorting--relative row id born) (1+ at))
                           row))
                   rows))
         (own (seq-find (lambda (row) (equal id (plist-get row :sessionId))) rows))
         (from (plist-get own :comesFrom))
         (default (car (seq-find (lambda (choice)
                                   (member (plist-get (cdr choice) :sessionId) born))
                                 choices)))
         (chosen (cdr (assoc (completing-read "Family: " choices nil t nil nil default) choices)))
         (entry (and (equal (plist-get from :sessionId) (plist-get chosen :sessionId))
                     (plist-get from :entryId))))
    (treelined-session-open
     (plist-get chosen :path)
     (lambda (session) (treelined-later #'treelined-tree-show session entry)))))

(defun treelined-family ()
  "Show the sessions that come from each other, and open the chosen one.
They are forks, subagents, and conversations that went on in another tool."
  (interactive nil treelined-tree-mode treelined-list-mode)
  (let ((id (treelined-sorting--id))
        (born (and (derived-mode-p 'treelined-tree-mode)
                   (seq-map (lambda (each) (plist-get each :sessionId))
                            (plist-get (treelined-tree-node) :sessions)))))
    (treelined-request
     'get_family (list :sessionId id)
     (lambda (result)
       (let ((rows (append (plist-get result :sessions) nil)))
         (if (cdr rows)
             (treelined-later #'treelined-sorting--choose-relative rows id born)
           (message "treelined: no session comes from this one, and it comes from none")))))))

;;;; Candidates

(defun treelined-sorting--candidates (branches)
  "Return the BRANCHES that answer the newest question with several answers."
  (let ((groups (seq-group-by (lambda (each)
                                (and (plist-get each :group)
                                     (list (plist-get each :group) (plist-get each :forkId))))
                              branches))
        newest time)
    (dolist (group groups)
      (when (and (car group) (cddr group))
        (let ((last (car (sort (mapcar (lambda (each) (plist-get each :lastActivity)) (cdr group))
                               #'string-greaterp))))
          (when (or (null time) (string-greaterp last time))
            (setq newest (cdr group)
                  time last)))))
    newest))

(defun treelined-sorting--choose-candidate (branches compared)
  "Choose one of BRANCHES; COMPARED has their outcomes."
  (let* ((outcomes (append (list (plist-get compared :a) (plist-get compared :b))
                           (plist-get compared :more) nil))
         (choices (cl-mapcar
                   (lambda (branch side at)
                     (let ((outcome (plist-get side :outcome)))
                       (cons (treelined-row-shown
                              (format "%d  %s" at
                                      (if (string-empty-p outcome) (plist-get branch :name) outcome))
                              " ")
                             branch)))
                   branches outcomes (number-sequence 1 (length branches))))
         (branch (cdr (assoc (completing-read "Choose: " choices nil t) choices)))
         (reason (read-string "Why this one (may be empty): ")))
    (treelined-actions--call
     'choose (append (list :tipId (plist-get branch :tipId))
                     (unless (string-blank-p reason) (list :reason reason)))
     (lambda (result)
       (if (eq t (plist-get result :cancelled))
           (treelined-actions--say result)
         (message "treelined: chosen; %s"
                  (pcase (length (plist-get result :others))
                    (1 "the other one says why")
                    (count (format "%d others say why" count)))))))))

(defun treelined-tree-candidates ()
  "Show the answers to the newest question that has several, and choose one."
  (interactive nil treelined-tree-mode)
  (treelined-actions--call
   'list_branches nil
   (lambda (result)
     (let* ((found (seq-take (treelined-sorting--candidates (plist-get result :branches)) 32))
            (tips (mapcar (lambda (each) (plist-get each :tipId)) found)))
       (if (not (cdr found))
           (message "treelined: no question has several answers here")
         (treelined-actions--call
          'compare_branches
          (list :a (car tips) :b (cadr tips) :more (vconcat (cddr tips)))
          (lambda (compared)
            (treelined-later
             (let ((buffer (current-buffer)))
               (lambda ()
                 (with-current-buffer buffer
                   (treelined-sorting--choose-candidate found compared))))))))))))

(provide 'treelined-sorting)
;;; treelined-sorting.el ends here
