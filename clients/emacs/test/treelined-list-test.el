;;; treelined-list-test.el --- The list, the search over all sessions, imports  -*- lexical-binding: t; -*-

;;; Code:

(require 'treelined-test-helper)

(defun treelined-list-test--wait ()
  "Wait until the list is there."
  (treelined-test-wait (not treelined-list--loading)))

(defun treelined-list-test--titles ()
  "Return the titles of the list."
  (mapcar (lambda (entry)
            (substring-no-properties (aref (cadr entry) (1- (length (cadr entry))))))
          tabulated-list-entries))

;;;; The list

(ert-deftest treelined-list-shows-sessions-and-opens-one ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (treelined-test-call 'create_session :sessionId "empty" :cwd "/" :write "now")
    (treelined)
    (treelined-list-test--wait)
    (should (equal '("(empty)" "talk") (sort (treelined-list-test--titles) #'string<)))
    (should (string-match-p "       6 /tmp +talk" (buffer-string)))
    (goto-char (point-min))
    (search-forward "talk")
    (treelined-list-open)
    (treelined-test-wait (progn (set-buffer (window-buffer)) (treelined-test-idle-p)))
    (should (= 5 treelined-tree-total))))

(ert-deftest treelined-list-has-the-tool-of-each-session-and-less-where-there-is-no-room ()
  (treelined-test-with
    (let ((samples (expand-file-name "../../tests/data/import/codex" treelined-test-folder)))
      (skip-unless (file-exists-p samples))
      (treelined-test-call 'import_sessions :from "codex" :paths (vector samples)))
    (treelined)
    (treelined-list-test--wait)
    (should (string-match-p " codex +[^ ]" (buffer-string)))
    (should (= 5 (length tabulated-list-format)))
    (cl-letf (((symbol-function 'window-width) (lambda (&rest _) 40)))
      (treelined-list--resized nil)
      (should (equal '("When" "Tool" "Session") (mapcar #'car tabulated-list-format)))
      (should (string-match-p "^ *[0-9]+[hdwy] +codex +[^ ]" (buffer-string))))
    (treelined-list--resized nil)
    (should (= 5 (length tabulated-list-format)))))

;; The list once showed dates, and every other client ages.
(ert-deftest treelined-list-times-are-shown-as-ages ()
  (pcase-dolist (`(,passed . ,age) '((30 . "now") (90 . "1m") (3500 . "58m") (3700 . "1h")
                                     (86000 . "23h") (600000 . "6d") (604900 . "1w")
                                     (31535000 . "52w") (31537000 . "1y") (-100 . "now")))
    (let ((then (time-subtract nil passed)))
      (should (equal age (treelined-list--age
                          (format-time-string "%FT%T.000Z" then t))))))
  (should (equal "yesterday" (treelined-list--age "yesterday"))))

(ert-deftest treelined-list-without-sessions-says-what-to-do ()
  (treelined-test-with
    (treelined)
    (treelined-list-test--wait)
    (should (string-match-p "There are no sessions yet" (buffer-string)))
    (should (string-match-p "^i imports" (buffer-string)))))

(ert-deftest treelined-list-is-filtered-and-sorted-by-the-daemon ()
  (treelined-test-with
    (dolist (name '("banana" "apple" "cherry"))
      (treelined-test-call 'create_session :name name :cwd (concat "/" name) :write "now"))
    (treelined)
    (treelined-list-test--wait)
    (treelined-list-filter "APP")
    (treelined-list-test--wait)
    (should (equal '("apple") (treelined-list-test--titles)))
    (treelined-list-all)
    (treelined-list-test--wait)
    (setq treelined-list--sort "created")
    (treelined-list-sort)
    (treelined-list-test--wait)
    (should (equal '("apple" "banana" "cherry") (treelined-list-test--titles)))
    (setq default-directory "/cherry/")
    (treelined-list-here)
    (treelined-list-test--wait)
    (should (equal '("cherry") (treelined-list-test--titles)))))

(ert-deftest treelined-list-is-fetched-in-pages ()
  (treelined-test-with
    (dotimes (index 450)
      (treelined-request 'create_session (list :name (format "s%d" index) :cwd "/" :write "now")
                         #'ignore))
    (treelined-test-call 'list_sessions :limit 1)
    (treelined)
    (treelined-list-test--wait)
    (should (= 200 (length tabulated-list-entries)))
    (should treelined-list--cursor)
    (treelined-test-keys "n")
    (should-not treelined-list--loading)
    (treelined-test-keys "M->")
    (should treelined-list--loading)
    (treelined-list-test--wait)
    (should (= 400 (length tabulated-list-entries)))
    (treelined-test-keys "M->")
    (treelined-list-test--wait)
    (should (= 450 (length (delete-dups (treelined-list-test--titles)))))))

(ert-deftest treelined-list-deletes-and-restores ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (treelined)
    (treelined-list-test--wait)
    (cl-letf (((symbol-function 'yes-or-no-p) #'always))
      (treelined-list-delete))
    (treelined-test-wait (null tabulated-list-entries))
    (cl-letf (((symbol-function 'completing-read)
               (lambda (_prompt choices &rest _) (caar choices))))
      (treelined-restore)
      (treelined-test-wait tabulated-list-entries))
    (should (equal '("talk") (treelined-list-test--titles)))))

(ert-deftest treelined-list-a-new-session-is-shown-and-outlives-the-daemon ()
  (treelined-test-with
    (treelined-new "Plans")
    (treelined-test-wait (progn (set-buffer (window-buffer)) (treelined-test-idle-p)))
    (should (equal "Plans" (treelined-session-title treelined-session)))
    (treelined-stop)
    (should (= 1 (length (plist-get (treelined-test-call 'list_sessions) :sessions))))))

(ert-deftest treelined-list-a-session-is-opened-by-its-file ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (let ((path (plist-get (aref (plist-get (treelined-test-call 'list_sessions) :sessions) 0)
                           :path)))
      (treelined-stop)
      (treelined-test-open path)
      (should (= 5 treelined-tree-total)))))

(ert-deftest treelined-list-follows-other-programs-and-keeps-point ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (treelined-test-call 'create_session :sessionId "more" :cwd "/" :name "more" :write "now")
    (treelined)
    (treelined-list-test--wait)
    (goto-char (point-min))
    (search-forward "talk")
    (call-process-shell-command
     (format "printf '%%s\\n' '%s' '%s' | %s --session-dir %s"
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"create_session\",\"params\":{\"cwd\":\"/\",\"name\":\"of another\",\"write\":\"now\"}}"
             "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"open_session\",\"params\":{\"sessionId\":\"talk\"}}"
             (shell-quote-argument treelined-test-program)
             (shell-quote-argument treelined-test-directory)))
    (treelined-test-wait (member "of another" (treelined-list-test--titles)))
    ;; The row itself changes too.
    (treelined-test-call 'set_session_name :sessionId "talk" :name "renamed talk")
    (treelined-test-wait (member "renamed talk" (treelined-list-test--titles)))
    (should (equal "talk" (plist-get (tabulated-list-get-id) :sessionId)))
    ;; The list watches the sessions of the next daemon too.
    (treelined-stop)
    (treelined-list--fetch nil)
    (treelined-list-test--wait)
    (treelined-test-call 'create_session :cwd "/" :name "later" :write "now")
    (treelined-test-wait (member "later" (treelined-list-test--titles)))))

;;;; The search over all sessions

(defun treelined-list-test--search (query &optional how)
  "Search for QUERY, understood as HOW says, and wait for the hits."
  (treelined-search query how)
  (treelined-test-wait (not treelined-running)))

(ert-deftest treelined-search-a-question-says-why-a-branch-was-left-and-what-was-tried-instead ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (treelined-test-call 'append_label :sessionId "talk" :targetId "u2" :label "a dead end")
    ;; An entry need not contain every word.
    (treelined-list-test--search "should a zebra clear the cache role:user")
    (should (string-match-p (concat "^  text     Clear the cache.  ← a branch that was left\n"
                                    " +left because: a dead end\n"
                                    " +instead: Add the import.$")
                            (buffer-string)))
    (should (equal "u2" (plist-get (treelined-search--hit) :entryId)))
    ;; The lines below a hit belong to it, so they are one step.
    (forward-line 2)
    (should (equal "u2" (plist-get (treelined-search--hit) :entryId)))
    ;; The search is for all words, then for the text, and then for the question again.
    (dolist (expected '("all words · nothing" "exactly this text · nothing" "role:user” · [0-9]"))
      (treelined-test-keys "x")
      (treelined-test-wait (not treelined-running))
      (should (string-match-p expected (treelined-search--header))))))

(ert-deftest treelined-search-a-session-does-not-fill-the-list ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (dotimes (index 5)
      (treelined-test-say "talk" (format "n%d" index) "user" (format "A zebra, number %d" index)))
    (treelined-list-test--search "zebra")
    (should (string-match-p "5 hits in 1 session, the best 3 are here" (treelined-search--header)))
    (goto-char (point-min))
    (search-forward "RET shows 2 more entries")
    (treelined-test-keys "RET")
    (treelined-test-wait (not treelined-running))
    (should (= 5 (length (plist-get treelined-search--result :hits))))
    (should (string-match-p "one session" (treelined-search--header)))))

(ert-deftest treelined-search-a-word-that-no-entry-has-gets-near-ones ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (treelined-list-test--search "cacke")
    (should (string-match-p "Nothing has “cacke”; cache counts instead\n" (buffer-string)))
    (treelined-list-test--search "bache")
    (should (string-match-p "Nothing has “bache”; did you mean cache\\?" (buffer-string)))))

(ert-deftest treelined-search-completes-filters-where-a-query-is-read ()
  (treelined-test-with
    (treelined-test-call 'list_sessions :limit 1)
    (with-temp-buffer
      (insert "cache ro")
      (cl-letf (((symbol-function 'minibuffer-prompt-end) (lambda () (point-min))))
        (pcase-let ((`(,start ,end ,texts . ,rest) (treelined-search--complete)))
          (should (equal '("ro" ("role:")) (list (buffer-substring start end) texts)))
          (should (string-match-p
                   "role" (funcall (plist-get rest :annotation-function) "role:"))))
        (insert "le:us")
        (pcase-let ((`(,start ,end ,texts . ,_) (treelined-search--complete)))
          (should (equal '("us" ("user")) (list (buffer-substring start end) texts))))))
    (should (eq #'completion-at-point (lookup-key treelined-search--read-map (kbd "TAB"))))))

(ert-deftest treelined-search-groups-hits-by-session-and-marks-them ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (treelined-test-converse "other")
    (treelined-list-test--search "cache" "words")
    (should (string-match-p "4 hits in 2 sessions" (treelined-search--header)))
    (should (equal '("other" "talk")
                   (sort (seq-filter (lambda (line) (string-match-p "\\`[a-z]" line))
                                     (treelined-test-lines))
                         #'string<)))
    (should (string-match-p "^  text     Clear the cache.  ← a branch that was left$" (buffer-string)))
    (goto-char (point-min))
    (search-forward "cache")
    (should (memq 'treelined-match (ensure-list (get-text-property (1- (point)) 'face))))))

(ert-deftest treelined-search-opens-the-tree-at-the-hit-with-all-hits-marked ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (treelined-list-test--search "cache")
    (search-forward "Clear the")
    (treelined-test-keys "RET")
    (treelined-test-wait (progn (set-buffer (window-buffer))
                                (and (treelined-test-idle-p) (equal "u2" (treelined-tree-id)))))
    (save-excursion
      (save-window-excursion
        (xref-pop-marker-stack)
        (should (equal "*treelined search*" (buffer-name)))))
    (should (gethash "a1" treelined-tree-found))
    (goto-char (point-min))
    (search-forward "cache")
    (should (memq 'treelined-match (ensure-list (get-text-property (1- (point)) 'face))))))

(ert-deftest treelined-search-shows-all-rows-if-the-filter-hides-the-hit ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (treelined-test-call 'append_entries :sessionId "talk"
                         :entries [(:type "custom_message" :id "x1" :customType "note"
                                    :content "Hidden zebra" :display :json-false)])
    (treelined-list-test--search "zebra")
    (treelined-test-keys "RET")
    (treelined-test-wait (progn (set-buffer (window-buffer))
                                (and (treelined-test-idle-p) (equal "x1" (treelined-tree-id)))))
    (should (equal "all" treelined-tree-filter))))

(ert-deftest treelined-search-next-error-goes-through-the-hits ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (treelined-list-test--search "the" "words")
    (let ((count (length (plist-get treelined-search--result :hits))))
      (should (= 4 count))
      (treelined-search-next 1)
      (treelined-search-next 2)
      (should-error (treelined-search-next 1))
      (treelined-search-previous 3)
      (should-error (treelined-search-previous 1)))))

(ert-deftest treelined-search-for-patterns-and-for-nothing ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (treelined-list-test--search "/^Clear the [a-z]+/")
    (should (= 1 (length (plist-get treelined-search--result :hits))))
    (treelined-list-test--search "zebra")
    (should (string-match-p "nothing matches" (treelined-search--header)))
    (should-error (treelined-search " "))
    (treelined-test-hears "query"
      (treelined-list-test--search "/(/"))))

(ert-deftest treelined-search-a-new-search-cancels-the-running-one ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (let (cancelled)
      (cl-letf (((symbol-function 'treelined-cancel-request)
                 (lambda (id) (push id cancelled))))
        (treelined-search "cache")
        (let ((first treelined-running))
          (treelined-search "import")
          (should (equal (list first) cancelled))))
      (treelined-test-wait (not treelined-running))
      (should (string-match-p "missing import" (buffer-string)))
      (should-not (string-match-p "Clear the" (buffer-string))))))

;;;; Imports and exports

(ert-deftest treelined-import-reports-files-that-failed-and-why ()
  (with-temp-buffer
    (treelined-import--report
     '(:sessions [] :files [(:path "/tmp/good" :records 1)
                            (:path "/tmp/bad.jsonl"
                             :error (:kind "pathDenied" :message "permission denied"))]
       :totals (:entriesAdded 0 :sessions 0 :created 0 :branches 0 :recovered 0
                :held 2 :heldUntil "2026-01-02T03:04:05.000Z"))
     t)
    (should (string-match-p "^2 entries may still grow and wait for .* or for [0-9]+:[0-9]+\\.$"
                            (buffer-string)))
    (should (string-match-p "Would be imported: 0 entries in 0 sessions" (buffer-string)))
    (should (string-match-p "Not imported, or not whole: 1 file\n/tmp/bad.jsonl\n +permission"
                            (buffer-string)))
    (should-not (string-match-p "good" (buffer-string)))))

(ert-deftest treelined-import-reports-sessions-and-opens-them ()
  (treelined-test-with
    (let* ((folder (make-temp-file "treelined-claude" t))
           (file (expand-file-name "0b1c2d3e-0000-4000-8000-000000000001.jsonl" folder)))
      (unwind-protect
          (progn
            (write-region
             (concat "{\"type\":\"user\",\"uuid\":\"11111111-0000-4000-8000-000000000001\","
                     "\"parentUuid\":null,\"sessionId\":\"0b1c2d3e-0000-4000-8000-000000000001\","
                     "\"cwd\":\"/tmp\",\"version\":\"2.0.0\",\"isSidechain\":false,"
                     "\"timestamp\":\"2026-01-02T03:04:05.000Z\","
                     "\"message\":{\"role\":\"user\",\"content\":\"An old question\"}}\n")
             nil file nil 'quiet)
            (treelined-import "auto" folder)
            (should treelined-running)
            (treelined-test-wait (not treelined-running))
            (should (string-match-p "1 entry in 1 session, 1 of them new" (buffer-string)))
            (should (string-match-p "^claude-code +new" (buffer-string)))
            (goto-char (point-min))
            (search-forward "claude-code")
            (treelined-test-keys "RET")
            (treelined-test-wait (progn (set-buffer (window-buffer)) (treelined-test-idle-p)))
            (should (string-match-p "An old question" (buffer-string))))
        (delete-directory folder t)))))

(ert-deftest treelined-import-shows-its-progress-and-is-cancelled-by-quit ()
  (treelined-test-with
    (let (cancelled)
      (cl-letf (((symbol-function 'treelined-request) (lambda (&rest _) 7))
                ((symbol-function 'treelined-cancel-request)
                 (lambda (id) (setq cancelled id))))
        (treelined-import "auto")
        (treelined-import--notified 'progress '(:token 6 :progress 10 :total 40))
        (should (string-match-p "importing…" (treelined-import--header)))
        (treelined-import--notified 'progress '(:token 7 :progress 10 :total 40))
        (should (string-match-p "25%%" (treelined-import--header)))
        (should-error (treelined-import "auto"))
        (execute-kbd-macro (kbd "C-g"))
        (should (eql 7 cancelled))))))

(ert-deftest treelined-export-needs-a-daemon-that-can ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (treelined-test-open "talk")
    (let ((file (expand-file-name "talk.md" treelined-test-directory))
          said)
      (cl-letf (((symbol-function 'message)
                 (lambda (&rest arguments) (setq said (apply #'format-message arguments)))))
        (treelined-export "markdown" file)
        (treelined-test-wait said))
      (should (if (file-exists-p file)
                  (string-match-p "wrote" said)
                (string-match-p "export_session.*update treelined" said))))))

(provide 'treelined-list-test)
;;; treelined-list-test.el ends here
