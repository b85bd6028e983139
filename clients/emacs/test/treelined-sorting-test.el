;;; treelined-sorting-test.el --- Tags, pins, families, candidates  -*- lexical-binding: t; -*-

;;; Code:

(require 'treelined-test-helper)

(defmacro treelined-sorting-test--with-list (&rest body)
  "Run BODY in the list of one session, \"talk\", with point on it."
  (declare (indent 0) (debug t))
  `(treelined-test-with
     (treelined-test-converse "talk")
     (treelined)
     (treelined-sorting-test--wait "talk")
     (goto-char (point-min))
     ,@body))

(defun treelined-sorting-test--wait (text)
  "Wait until the list has TEXT."
  (treelined-test-wait (string-match-p (regexp-quote text) (buffer-string))))

(defmacro treelined-sorting-test--answering (answers &rest body)
  "Run BODY, and answer its questions with ANSWERS, parts of the choices."
  (declare (indent 1) (debug t))
  `(let ((answers ,answers))
     (cl-letf (((symbol-function 'read-string) (lambda (&rest _) (pop answers)))
               ((symbol-function 'completing-read)
                (lambda (_ choices &rest _)
                  (let ((wanted (pop answers)))
                    (car (seq-find (lambda (each) (string-search wanted (car each))) choices))))))
       ,@body
       (treelined-test-wait (null answers)))))

(ert-deftest treelined-sorting-a-session-of-the-list-is-tagged-pinned-and-put-away ()
  (treelined-sorting-test--with-list
    (treelined-sorting-test--answering '("build #UI")
      (treelined-test-hears "tags: #build #ui" (treelined-tag-session)))
    (treelined-sorting-test--wait "talk  #build  #ui")
    (treelined-test-hears "the session is pinned" (treelined-pin-session))
    (treelined-sorting-test--wait "#ui  pinned")
    (treelined-test-hears "not pinned any more" (treelined-pin-session))
    (treelined-test-hears "lists leave the session out" (treelined-archive-session))
    (treelined-sorting-test--wait "There are no sessions")
    (treelined-list-archived)
    (treelined-sorting-test--wait "#ui  archived")
    (should (string-match-p "archived ones too" (treelined-list--header)))
    (goto-char (point-min))
    (treelined-test-hears "in the lists again" (treelined-archive-session))))

(ert-deftest treelined-sorting-a-family-is-shown-and-a-fork-leads-back-to-its-entry ()
  (treelined-test-with-folded-tree
    (treelined-test-call 'fork_session :sessionId "talk" :entryId "a1" :newSessionId "fork"
                         :name "the fork")
    (treelined-sorting-test--answering '("fork · the fork")
      (treelined-family))
    (treelined-test-wait (progn (set-buffer (window-buffer))
                                (and treelined-session
                                     (equal "fork" (treelined-session-id treelined-session))
                                     (treelined-test-idle-p))))
    (treelined-sorting-test--answering '("talk")
      (treelined-family))
    (treelined-test-wait (progn (set-buffer (window-buffer))
                                (and (equal "talk" (treelined-session-id treelined-session))
                                     (treelined-test-idle-p)
                                     (equal "a1" (plist-get (treelined-tree-node) :id)))))))

;; Rows once did not show that sessions come from them.
(ert-deftest treelined-sorting-a-row-says-that-sessions-come-from-it ()
  (treelined-test-with-folded-tree
    (treelined-test-call 'fork_session :sessionId "talk" :entryId "a1" :newSessionId "fork"
                         :name "the fork")
    (treelined-test-keys "g")
    (treelined-test-wait (string-search "assistant  ↗ 1 fork · A stale cache" (buffer-string)))
    (treelined-test-go "a1")
    (should (equal "1 fork" (treelined-row-born (treelined-tree-node))))
    (let (default)
      (cl-letf (((symbol-function 'completing-read)
                 (lambda (_ choices &rest more)
                   (setq default (nth 4 more))
                   (caar choices))))
        (treelined-family)
        (treelined-test-wait default))
      (should (string-match-p "\\`↗   fork · the fork" default)))))

(ert-deftest treelined-sorting-of-several-answers-one-is-chosen ()
  (treelined-test-with-folded-tree
    (treelined-test-hears "no question has several answers" (treelined-tree-candidates))
    (dolist (id '("c1" "c2" "c3"))
      (treelined-test-call 'append_message :sessionId "talk" :entryId id :parentId "a1"
                           :keepLeaf t :group "why"
                           :message (list :role "assistant"
                                          :content (vector (list :type "text" :text id)))))
    (treelined-sorting-test--answering '("c2" "the shortest")
      (treelined-test-hears "chosen; 2 others say why" (treelined-tree-candidates)))
    (treelined-test-wait (equal "a1" (plist-get (plist-get (treelined-test-call 'get_entry :sessionId "talk" :entryId "c2") :entry) :parentId)))))

;; At 40 columns the columns of the menu were cut off, and at ten lines its lines.
(ert-deftest treelined-menu-is-one-column-in-a-small-frame ()
  (pcase-dolist (`(,rows ,width ,height)
                 `((,treelined-menu--tree 40 24) (,treelined-menu--list 40 24)
                   (,treelined-menu--tree 80 10)))
    (cl-letf (((symbol-function 'frame-width) (lambda (&rest _) width))
              ((symbol-function 'frame-height) (lambda (&rest _) height)))
      (treelined-menu--show (lambda () (interactive) (ert-fail "a menu that is cut off")) rows))
    (with-current-buffer "*treelined keys*"
      (let ((lines (split-string (buffer-string) "\n" t)))
        (should (> (length lines) 20))
        (dolist (line lines)
          (should (<= (string-width line) 40))))
      (should (string-match-p "^  RET +\\(go to this entry\\|open\\)$" (buffer-string)))))
  (let (shown)
    (cl-letf (((symbol-function 'frame-width) (lambda (&rest _) 80))
              ((symbol-function 'frame-height) (lambda (&rest _) 23)))
      (treelined-menu--show (lambda () (interactive) (setq shown t)) treelined-menu--tree))
    (should shown)))

(defun treelined-menu-test--width (group)
  "Return the columns of GROUP of a menu, with the gap after it."
  (+ 3 (apply #'max (length (aref group 0))
              (mapcar (lambda (command) (+ 2 (length (car command)) (length (cadr command))))
                      (seq-drop group 1)))))

;; The last lines of the menu were cut off at 80x24.
(ert-deftest treelined-menu-fits-where-it-is-shown ()
  (dolist (rows (list treelined-menu--tree treelined-menu--list))
    (let ((heights (mapcar (lambda (row) (apply #'max (mapcar #'length row))) rows)))
      ;; Besides it there are four lines of the tree, and its mode line.
      (should (<= (+ (apply #'+ heights) (1- (length rows)) 5) treelined-menu--low)))
    (dolist (row rows)
      (should (<= (- (apply #'+ (mapcar #'treelined-menu-test--width row)) 3)
                  treelined-menu--narrow)))))

(provide 'treelined-sorting-test)
;;; treelined-sorting-test.el ends here
