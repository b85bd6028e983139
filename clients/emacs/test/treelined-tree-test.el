;;; treelined-tree-test.el --- The tree's buffer: drawing, following, rows  -*- lexical-binding: t; -*-

;;; Code:

(require 'treelined-test-helper)

;;;; Drawing

;; No program can be started in a directory that does not exist, and Emacs itself starts
;; some.  Each session of another machine once caused an error.
(ert-deftest treelined-tree-of-another-machine-is-in-a-directory-that-is-here ()
  (treelined-test-with
    (dolist (cwd '("/no/such/folder" "/ssh:nobody@nowhere.invalid:/tmp"))
      (treelined-test-call 'create_session :sessionId "far" :cwd cwd :write "now")
      (treelined-test-open "far")
      (should (equal (expand-file-name "~/") default-directory))
      (kill-buffer)
      (treelined-test-call 'delete_session :sessionId "far"))))

(ert-deftest treelined-tree-is-drawn-as-the-daemon-says-with-point-on-the-leaf ()
  (treelined-test-with-tree
    (should (equal treelined-test-drawn (treelined-test-lines)))
    (should (equal "a3" (treelined-tree-id)))
    (should (string-match-p "talk · 6 rows" (treelined-tree--header)))))

;; Each client once drew rows of its own tests only, so their marks and words stood at other
;; places.
(ert-deftest treelined-tree-draws-the-rows-of-the-fixture-as-all-clients ()
  (let* ((file (expand-file-name "../../tests/data/rows/left.json" treelined-test-folder))
         (fixture (with-temp-buffer
                    (insert-file-contents file)
                    (json-parse-buffer :object-type 'plist :null-object nil :false-object nil)))
         (drawn (seq-map (lambda (node)
                           ;; The mark of the active path and a space come first.
                           (substring-no-properties (treelined-row-line node nil) 2))
                         (plist-get fixture :nodes))))
    (should (equal (seq-into (plist-get fixture :lines) 'list) drawn))))

(ert-deftest treelined-tree-is-drawn-in-ascii-if-that-is-set ()
  (let ((treelined-render 'ascii))
    (treelined-test-with-tree
      (should (equal '("* user       Why does the build fail?"
                       "* assistant  A stale cache, or a missing import."
                       "  |- user       Clear the cache."
                       "  |  assistant  Cleared. It still fails."
                       "* `- user       Add the import."
                       "@    assistant  Added. The build passes. <- active")
                     (treelined-test-lines))))))

;; On a terminal, Emacs once cut rows with `$', and all other clients with `…'.
(ert-deftest treelined-tree-rows-are-cut-with-the-mark-of-all-clients ()
  (let ((mark (lambda ()
                (glyph-char (display-table-slot buffer-display-table 'truncation)))))
    (treelined-test-with-tree
      (should truncate-lines)
      (should (= ?… (funcall mark))))
    (let ((treelined-render 'ascii))
      (treelined-test-with-tree
        (should (= ?$ (funcall mark)))))))

(ert-deftest treelined-tree-active-path-and-branches-have-different-faces ()
  (treelined-test-with-tree
    (let ((face-of (lambda (text)
                     (goto-char (point-min))
                     (search-forward text)
                     (get-text-property (1- (point)) 'face))))
      (should (eq 'treelined-text (funcall face-of "Added. The build")))
      (should (eq 'treelined-inactive (funcall face-of "Clear the cache")))
      (should (eq 'treelined-active (funcall face-of "← active"))))))

(ert-deftest treelined-tree-of-an-empty-session-says-what-to-do ()
  (treelined-test-with
    (treelined-test-call 'create_session :sessionId "new" :cwd "/tmp" :write "now")
    (treelined-test-open "new")
    (should (equal '("Nothing has been said yet.  i writes a message.")
                   (treelined-test-lines)))))

;; Each client once cut the guides again.  Now the daemon makes them fit the width of the
;; window.
(ert-deftest treelined-tree-guides-fit-the-window ()
  (treelined-test-with-tree
    (should (= treelined-tree--columns (/ (window-width) 6)))
    (split-window-right 20)
    (treelined-tree--resized nil)
    (treelined-test-settle)
    (should (= 3 treelined-tree--columns))
    (should (equal treelined-test-drawn (treelined-test-lines)))))

(ert-deftest treelined-tree-a-role-with-a-line-break-is-one-row ()
  (treelined-test-with-tree
    (treelined-test-call 'append_message :sessionId "talk" :entryId "x"
                         :message '(:role "a\nnarrator" :content "Text"))
    (treelined-test-wait (and (= 7 treelined-tree-total) (treelined-test-idle-p)))
    (should (= 7 (length (treelined-test-lines))))
    (treelined-test-go "x")
    (should (string-match-p "a narrator Text" (thing-at-point 'line)))))

;; An open session once had its directory and id as its title, and in the list its first
;; message.
(ert-deftest treelined-tree-a-session-without-a-name-is-called-by-what-was-said-first ()
  (treelined-test-with
    (let* ((info (plist-get (treelined-test-call 'create_session :cwd "/tmp") :session))
           (session (treelined-session-adopt info))
           (id (plist-get info :sessionId)))
      (should (string-prefix-p "tmp " (treelined-session-title session)))
      (dolist (text '("Why does the build fail?" "And now?"))
        (treelined-test-call 'append_message :sessionId id
                             :message (list :role "user" :content text)))
      (treelined-test-wait (equal "Why does the build fail?" (treelined-session-title session))))))

(ert-deftest treelined-tree-a-session-without-a-name-is-called-by-directory-and-id ()
  (should (equal "project 15b5cac7dcdc"
                 (treelined-session-title
                  (make-treelined-session :id "2c4c64f2-d7d7-858b-8035-15b5cac7dcdc"
                                          :cwd "/tmp/em/project"))))
  (should (equal "x" (treelined-session-title (make-treelined-session :id "x")))))

(ert-deftest treelined-tree-flags-errors-labels-and-tokens-are-in-the-row ()
  (should (equal "  assistant  [it] ✗ 12 tokens before: No key (orphan, cycle)"
                 (substring-no-properties
                  (treelined-row-line '(:type "message" :role "assistant" :preview "No key"
                                        :label "it" :isError t :tokens 12
                                        :flags ["orphan" "cycle"])
                                      nil)))))

(ert-deftest treelined-tree-a-match-in-the-label-leaves-the-text ()
  (let ((line (treelined-row-line '(:type "message" :role "user" :preview "Text" :label "the cache")
                                  '(:snippet "the cache" :ranges [[4 9]]))))
    (should (equal "  user       [the cache] Text" (substring-no-properties line)))
    (should (memq 'treelined-match (ensure-list (get-text-property 18 'face line))))
    (should-not (memq 'treelined-match (ensure-list (get-text-property 15 'face line))))))

(ert-deftest treelined-tree-other-buffers-keep-their-settings ()
  (let ((settings (lambda ()
                    (mapcar #'default-value '(revert-buffer-function bookmark-make-record-function
                                              next-error-function header-line-format
                                              mode-line-process truncate-lines)))))
    (let ((before (funcall settings)))
      (treelined-test-with-tree
        (treelined)
        (treelined-search "cache")
        (treelined-test-wait (not treelined-running))
        (should (equal before (funcall settings)))))))

;;;; Following changes

(ert-deftest treelined-tree-follows-appends-and-point-stays-on-the-leaf ()
  (treelined-test-with-tree
    (treelined-test-say "talk" "u4" "user" "Thanks.")
    (treelined-test-wait (and (treelined-test-idle-p) (equal "u4" (treelined-tree-id))))
    (should (equal "◉    user       Thanks. ← active" (car (last (treelined-test-lines)))))))

(ert-deftest treelined-tree-point-stays-on-its-entry-if-that-is-not-the-leaf ()
  (treelined-test-with-tree
    (treelined-test-go "u2")
    (move-to-column 5)
    (treelined-test-say "talk" "u4" "user" "Thanks.")
    (treelined-test-wait (= 7 treelined-tree-total))
    (treelined-test-settle)
    (should (equal "u2" (treelined-tree-id)))
    (should (= 5 (current-column)))))

(ert-deftest treelined-tree-a-key-that-is-typed-while-the-tree-is-drawn-counts ()
  (treelined-test-with-tree
    (treelined-test-go "u2")
    (treelined-tree-reload)
    (execute-kbd-macro (kbd "n"))
    (treelined-test-settle)
    (should (equal "a2" (treelined-tree-id)))
    (treelined-tree-reload "u1")
    (execute-kbd-macro (kbd "n"))
    (treelined-test-settle)
    (should (equal "u3" (treelined-tree-id)))))

;; If a change came while a command moved point away from the leaf, the redraw once moved
;; point back to the leaf.
(ert-deftest treelined-tree-a-change-lets-point-go-where-it-is-sent ()
  (treelined-test-with-tree
    (treelined-tree-reload "u2")
    (treelined-tree--catch-up (current-buffer))
    (treelined-test-settle)
    (should (equal "u2" (treelined-tree-id)))))

(ert-deftest treelined-tree-point-on-a-row-that-is-not-drawn-stays-there ()
  (treelined-test-with
    (treelined-test-call 'create_session :sessionId "long" :cwd "/tmp" :write "now")
    (treelined-test-call 'append_entries :sessionId "long"
                         :entries (vconcat (cl-loop for index below 1000
                                                    collect (list :type "message"
                                                                  :id (format "e%d" index)
                                                                  :message '(:role "user"
                                                                             :content "x")))))
    (treelined-test-open "long")
    (goto-char (point-min))
    (should-not (treelined-tree-id))
    (treelined-test-say "long" "last" "user" "Thanks.")
    (treelined-test-wait (and (= 1001 treelined-tree-total) (treelined-test-idle-p)))
    (should (= 1 (line-number-at-pos)))
    (should (equal "e0" (treelined-tree-id)))))

(ert-deftest treelined-tree-shows-what-another-program-writes-and-can-go-there ()
  (treelined-test-with-tree
    (let ((path (treelined-session-path treelined-session)))
      (write-region (concat "{\"type\":\"message\",\"id\":\"o1\",\"parentId\":\"a3\","
                            "\"timestamp\":\"2026-11-22T08:16:21.582Z\",\"message\":{\"role\":"
                            "\"user\",\"content\":\"From elsewhere\"}}\n")
                    nil path 'append 'quiet)
      (treelined-test-wait (treelined-session-others-leaf-id treelined-session))
      (treelined-test-wait (= 7 treelined-tree-total))
      (should (string-match-p "others have written" (treelined-tree--header)))
      (treelined-test-keys "j")
      (treelined-test-wait (equal "o1" (treelined-session-leaf-id treelined-session)))
      (treelined-test-settle)
      (should (equal "o1" (treelined-tree-id)))
      (should-error (treelined-test-keys "j")))))

;; The state entry of a stale program once made a session open on an old branch, and no
;; text said where the newest turns are.
(ert-deftest treelined-tree-says-that-newer-turns-are-on-another-branch ()
  (treelined-test-with-tree
    (treelined-session--note-beside
     treelined-session
     (list '(:kind "leafBesideNewest" :newestTipId "u2" :newerTurns 12)))
    (should (string-match-p "12 newer turns are on another branch: o" (treelined-tree--header)))
    (treelined-test-keys "j")
    (treelined-test-wait (equal "u2" (treelined-session-leaf-id treelined-session)))
    (treelined-test-settle)
    (should-not (string-match-p "newer" (treelined-tree--header)))))

(ert-deftest treelined-tree-survives-the-end-of-the-daemon-with-its-place ()
  (treelined-test-with-tree
    (treelined-test-go "u2")
    (signal-process (oref (treelined-connection) process) 'KILL)
    (treelined-test-wait (not (treelined-running-p)))
    (should (string-match-p "the daemon has ended; g starts it" (treelined-tree--header)))
    (should (equal treelined-test-drawn (treelined-test-lines)))
    ;; Moving point does not start the daemon.
    (treelined-test-keys "n n")
    (should-not (treelined-running-p))
    (treelined-test-keys "p p g")
    (treelined-test-wait (treelined-session-open-p treelined-session))
    (treelined-test-settle)
    (should (equal "u2" (treelined-tree-id)))
    (treelined-test-say "talk" "u4" "user" "Thanks.")
    (treelined-test-wait (= 7 treelined-tree-total))))

(ert-deftest treelined-tree-survives-a-file-without-its-folded-entries ()
  (treelined-test-with-tree
    (treelined-test-go "a1")
    (setq treelined-tree-open-all nil
          treelined-tree-expand (list "gone"))
    (treelined-test-keys "g")
    (treelined-test-wait (and (null treelined-tree-expand) (treelined-test-idle-p)))
    (should (equal treelined-test-folded (treelined-test-lines)))))

(ert-deftest treelined-tree-two-windows-keep-their-places ()
  (treelined-test-with-tree
    (let ((other (split-window)))
      (treelined-test-go "u1")
      (with-selected-window other
        (goto-char (point-min))
        (forward-line 2)
        (should (equal "u2" (treelined-tree-id))))
      (treelined-test-say "talk" "u4" "user" "Thanks.")
      (treelined-test-wait (and (= 7 treelined-tree-total) (treelined-test-idle-p)))
      (should (equal "u1" (treelined-tree-id)))
      (with-selected-window other
        (should (equal "u2" (treelined-tree-id)))))))

;;;; Rows

;; Each branch was once indented further, so that a large tree consisted of guides.
(ert-deftest treelined-tree-a-branch-that-was-left-is-one-row-that-a-key-opens ()
  (treelined-test-with-folded-tree
    (should (equal treelined-test-folded (treelined-test-lines)))
    (treelined-test-go "u3")
    (should-error (treelined-test-keys "TAB"))
    (treelined-test-keys "p TAB")
    (should (equal '("  └─ ⊟ user       Clear the cache." "     assistant  Cleared. It still fails."
                     "• user       Add the import.")
                   (seq-subseq (treelined-test-lines) 2 5)))
    (should (equal "u2" (treelined-tree-id)))
    (treelined-test-keys "n TAB")
    (should (equal treelined-test-folded (treelined-test-lines)))
    ;; Point can go to an entry that is folded.
    (treelined-test-go "a2")
    (should (= 6 treelined-tree-total))
    (treelined-test-keys "*")
    (should (equal treelined-test-drawn (treelined-test-lines)))
    (treelined-test-keys "*")
    (should (equal treelined-test-folded (treelined-test-lines)))))

(ert-deftest treelined-tree-several-branches-at-a-fork-are-listed-before-they-are-opened ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (treelined-test-call 'set_leaf :sessionId "talk" :leafId "a1")
    (treelined-test-say "talk" "u4" "user" "Ask Eva.")
    (treelined-test-open "talk")
    (let ((one "  └─ ⊞ 2 branches · 4 entries · Clear the cache. · Add the import."))
      (should (equal one (nth 2 (treelined-test-lines))))
      (treelined-test-keys "p RET")
      (should (equal '("  ├─ ⊞ 2 entries · Clear the cache." "  └─ ⊞ 2 entries · Add the import.")
                     (seq-subseq (treelined-test-lines) 2 4)))
      (treelined-test-keys "C-u TAB")
      (should (equal one (nth 2 (treelined-test-lines)))))))

(ert-deftest treelined-tree-keys-go-from-prompt-to-prompt ()
  (treelined-test-with-folded-tree
    (treelined-test-keys "[")
    (should (equal "u3" (treelined-tree-id)))
    (treelined-test-keys "[")
    (should (equal "u1" (treelined-tree-id)))
    (treelined-test-keys "]")
    (should (equal "u3" (treelined-tree-id)))))

(ert-deftest treelined-tree-filters-choose-rows-and-point-moves-to-the-nearest-one ()
  (treelined-test-with-tree
    (treelined-test-go "a2")
    (treelined-tree-filter "user-only")
    (treelined-test-wait (= 3 treelined-tree-total))
    (treelined-test-settle)
    (should (equal "u2" (treelined-tree-id)))
    (should (string-match-p "4 hidden · user-only" (treelined-tree--header)))))

(ert-deftest treelined-tree-only-rows-that-match-are-shown-with-what-was-found ()
  (treelined-test-with-tree
    (treelined-tree-query "cache")
    (treelined-test-wait (= 2 treelined-tree-total))
    (treelined-test-settle)
    (goto-char (point-min))
    (search-forward "cache")
    (should (memq 'treelined-match (ensure-list (get-text-property (1- (point)) 'face))))
    (treelined-tree-query "/^Clear/")
    (treelined-test-wait (and (= 2 treelined-tree-total) (treelined-test-idle-p)))
    (treelined-tree-query "nothing like that")
    (treelined-test-wait (zerop treelined-tree-total))
    (should (string-match-p "filter and query hide 7 entries" (buffer-string)))
    (treelined-tree-query "")
    (treelined-test-wait (= 6 treelined-tree-total))))

(ert-deftest treelined-tree-a-pattern-that-is-refused-is-dropped ()
  (treelined-test-with-tree
    (treelined-test-hears "query"
      (treelined-tree-query "/(/"))
    (treelined-test-settle)
    (should-not treelined-tree-query)
    (should (= 6 treelined-tree-total))))

(ert-deftest treelined-tree-a-search-goes-from-match-to-match-and-around ()
  (treelined-test-with-tree
    (treelined-test-go "u1")
    (treelined-tree-search "the")
    (let ((at (lambda (id)
                (treelined-test-wait (and (treelined-test-idle-p)
                                          (equal id (treelined-tree-id)))))))
      (funcall at "u2")
      (should (string-match-p "“the” 2 of 4" (treelined-tree--header)))
      (should (gethash "a3" treelined-tree-found))
      (treelined-test-keys "M-n")
      (funcall at "u3")
      (next-error)
      (funcall at "a3")
      (treelined-test-keys "M-n")
      (funcall at "u1")
      (treelined-test-keys "M-p")
      (funcall at "a3")
      (treelined-test-keys "e")
      (should-not treelined-tree-found)
      (should (equal treelined-test-drawn (treelined-test-lines))))))

(ert-deftest treelined-tree-a-search-opens-branches ()
  (treelined-test-with-folded-tree
    (treelined-tree-search "cleared")
    (treelined-test-wait (and (treelined-test-idle-p) (equal "a2" (treelined-tree-id))))))

;; If the daemon ended while a tree was being drawn, the tree once started another daemon,
;; which the next test sometimes found while it ended.
(ert-deftest treelined-tree-a-daemon-that-was-ended-stays-ended ()
  (treelined-test-with-tree
    (let* ((connection (treelined-connection))
           (process (oref connection process)))
      (jsonrpc-shutdown connection)
      (treelined-tree-reload)
      (treelined-test-wait (not (process-live-p process)))
      (treelined-test-wait (not treelined-tree--loading))
      (should-not (treelined-running-p)))))

(ert-deftest treelined-tree-a-search-for-nothing-says-so ()
  (treelined-test-with-tree
    (treelined-test-hears "nothing matches “zebra”"
      (treelined-tree-search "zebra"))))

(ert-deftest treelined-tree-point-goes-to-branchings ()
  (treelined-test-with-tree
    (goto-char (point-min))
    (treelined-test-keys "}")
    (should (equal "a1" (treelined-tree-id)))
    (should-error (treelined-test-keys "}"))
    (should (equal "a1" (treelined-tree-id)))
    (treelined-test-go "a3")
    (treelined-test-keys "{")
    (should (equal "a1" (treelined-tree-id)))
    (treelined-test-keys ".")
    (treelined-test-wait (equal "a3" (treelined-tree-id)))))

(ert-deftest treelined-tree-a-bookmark-leads-back-to-the-entry ()
  (treelined-test-with-tree
    (treelined-test-go "u2")
    (let ((bookmark (bookmark-make-record)))
      (treelined-stop)
      (kill-buffer)
      (bookmark-handle-bookmark bookmark)
      (treelined-test-wait (progn (set-buffer (window-buffer))
                                  (and (treelined-test-idle-p) (equal "u2" (treelined-tree-id))))))))

(ert-deftest treelined-tree-damage-of-the-file-is-named ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (let ((path (plist-get (plist-get (treelined-test-call 'open_session :sessionId "talk")
                                      :session)
                           :path)))
      (treelined-stop)
      (write-region "{\"type\":" nil path 'append 'quiet)
      (treelined-test-hears "the session file is damaged (tornTail)"
        (treelined-test-open path))
      (should (equal treelined-test-folded (treelined-test-lines))))))

(ert-deftest treelined-tree-control-characters-are-not-shown ()
  (should (equal "a\N{U+FFFD}\N{U+FFFD}\N{U+FFFD}\n\tb"
                 (treelined-row-shown "a\N{U+202E}\N{U+E0041}\e\n\tb")))
  (should (equal "a  b" (treelined-row-shown "a\N{U+2028}\nb" " "))))

;;;; Renderers

(ert-deftest treelined-tree-a-renderer-gives-rows-their-icon-and-style ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (treelined-test-call 'register_renderer :customType "todo" :preview "{content}!"
                         :icon "☑" :style "success")
    (treelined-test-call 'append_entries :sessionId "talk"
                         :entries [(:type "custom_message" :customType "todo" :display t
                                          :content "Buy milk")])
    (treelined-test-open "talk")
    (goto-char (point-min))
    (search-forward "☑ Buy milk!")
    (should (eq 'treelined-active (get-text-property (match-beginning 0) 'face)))))

(ert-deftest treelined-tree-its-buffer-may-be-gone-when-a-request-fails ()
  "Once the end of an earlier daemon was an error while another one was running."
  (treelined-test-with
    (treelined-test-converse "talk")
    (treelined-test-open "talk")
    (let (fail)
      (cl-letf (((symbol-function 'treelined-tree-request)
                 (lambda (_place _then else) (setq fail else))))
        (treelined-tree-reload))
      (kill-buffer)
      (with-temp-buffer
        (should (treelined-running-p))
        (funcall fail '(:kind "disconnected" :message "the daemon has ended"))))))

(provide 'treelined-tree-test)
;;; treelined-tree-test.el ends here
