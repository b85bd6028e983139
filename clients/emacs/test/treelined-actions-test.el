;;; treelined-actions-test.el --- Moves, entries and messages  -*- lexical-binding: t; -*-

;;; Code:

(require 'treelined-test-helper)

;;;; Moving

(defmacro treelined-actions-test--choosing (char &rest body)
  "Run BODY with CHAR as the choice of a summary."
  (declare (indent 1) (debug t))
  `(cl-letf (((symbol-function 'read-multiple-choice)
              (lambda (prompt choices)
                (setq treelined-actions-test--question prompt)
                (assq ,char choices))))
     ,@body))

(defvar treelined-actions-test--question nil "The last question.")

(defun treelined-actions-test--leaf (id)
  "Wait until the leaf is ID, and the tree is drawn."
  (treelined-test-wait (and (equal id (treelined-session-leaf-id treelined-session))
                            (not (treelined-session-navigation treelined-session))
                            (treelined-test-idle-p))))

(ert-deftest treelined-actions-going-back-says-how-much-is-left-and-moves-the-leaf ()
  (treelined-test-with-tree
    (treelined-test-go "a2")
    (treelined-actions-test--choosing ?n (treelined-test-keys "RET"))
    (treelined-actions-test--leaf "a2")
    (should (equal "2 entries are left behind; they stay in the tree.  Summarize?"
                   treelined-actions-test--question))
    (should (equal "a2" (treelined-tree-id)))
    (should (equal "◉ │  assistant  Cleared. It still fails. ← active"
                   (nth 3 (treelined-test-lines))))))

(ert-deftest treelined-actions-moves-are-undone-and-redone ()
  (treelined-test-with-tree
    (treelined-test-go "a2")
    (treelined-actions-test--choosing ?n (treelined-test-keys "RET"))
    (treelined-actions-test--leaf "a2")
    (treelined-test-keys "u")
    (treelined-actions-test--leaf "a3")
    (should (equal "a3" (treelined-tree-id)))
    (treelined-test-keys "r")
    (treelined-actions-test--leaf "a2")
    (treelined-test-keys "C-/")
    (treelined-actions-test--leaf "a3")
    (treelined-test-hears "undo"
      (treelined-test-keys "u u"))))

(ert-deftest treelined-actions-going-to-a-message-of-the-user-makes-it-a-draft ()
  (treelined-test-with-tree
    (let* ((drafts nil)
           (treelined-draft-function (lambda (text context)
                                       (push (cons text (plist-get context :session)) drafts))))
      (treelined-test-go "u2")
      (treelined-actions-test--choosing ?n (treelined-test-keys "RET"))
      (treelined-test-wait drafts)
      (should (equal "Clear the cache." (caar drafts)))
      (should (eq treelined-session (cdar drafts)))
      (treelined-actions-test--leaf "a1"))))

(ert-deftest treelined-actions-a-summary-is-shown-and-stays-in-the-tree ()
  (let ((treelined-arguments nil))
    (treelined-test-with
      (setq treelined-arguments '("--summarizer" "outline"))
      (treelined-test-converse "talk")
      (treelined-test-open "talk")
      (treelined-tree-unfold-all)
      (treelined-test-settle)
      (treelined-test-go "a2")
      (treelined-actions-test--choosing ?y (treelined-test-keys "RET"))
      (treelined-test-wait (get-buffer "*treelined summary: talk*"))
      (treelined-test-wait
       (with-current-buffer "*treelined summary: talk*"
         (string-match-p "Tried “Add the import.”" (buffer-string))))
      (treelined-test-wait (= 7 treelined-tree-total))
      (treelined-test-settle)
      (should (string-match-p "summary" (thing-at-point 'line))))))

(ert-deftest treelined-actions-a-summary-is-offered-only-where-somebody-can-write-it ()
  (treelined-test-with
    (setq treelined-arguments '("--summarizer" "none"))
    (treelined-test-converse "talk")
    (treelined-test-open "talk")
    (treelined-test-go "a2")
    (let (asked)
      (cl-letf (((symbol-function 'treelined-actions--read-summary)
                 (lambda (_count) (error "A summary is offered")))
                ((symbol-function 'y-or-n-p)
                 (lambda (question) (push question asked) (cdr asked))))
        (treelined-test-keys "RET")
        (should (equal "a3" (treelined-session-leaf-id treelined-session)))
        (should-error (call-interactively #'treelined-tree-compact) :type 'user-error)
        (treelined-test-keys "RET"))
      (should (equal "2 entries are left behind; they stay in the tree.  Go there? "
                     (car asked))))
    (treelined-test-wait (equal "a2" (treelined-session-leaf-id treelined-session)))))

(defun treelined-actions-test--slow-summarizer ()
  "Return arguments for a summarizer that writes a word, and goes on for a minute."
  (let ((program (expand-file-name "summarizer" treelined-test-directory))
        (config (expand-file-name "config.toml" treelined-test-directory)))
    (write-region "#!/bin/sh\necho First\nsleep 60\n" nil program nil 'quiet)
    (set-file-modes program #o700)
    (write-region (format "[summarizer]\nuse = \"command\"\n[summarizer.command]\nargv = [%S]\n"
                          program)
                  nil config nil 'quiet)
    (list "--config" config)))

(ert-deftest treelined-actions-a-running-move-is-aborted-by-quit ()
  (treelined-test-with
    (setq treelined-arguments (treelined-actions-test--slow-summarizer))
    (treelined-test-converse "talk")
    (treelined-test-open "talk")
    (treelined-test-go "a2")
    (treelined-actions-test--choosing ?y (treelined-test-keys "RET"))
    (should (string-match-p "moving… C-g aborts" (treelined-tree--header)))
    (treelined-test-hears "the move was aborted; nothing was changed"
      (execute-kbd-macro (kbd "C-g")))
    (should-not (treelined-session-navigation treelined-session))
    (should (equal "a3" (treelined-session-leaf-id treelined-session)))
    ;; Without a move the key quits.
    (should (condition-case nil
                (progn (treelined-quit) nil)
              (quit t)))))

(ert-deftest treelined-actions-emacs-goes-on-while-a-summary-is-written ()
  (treelined-test-with
    (setq treelined-arguments (treelined-actions-test--slow-summarizer))
    (treelined-test-converse "talk")
    (treelined-test-open "talk")
    (treelined-test-go "a2")
    (treelined-actions-test--choosing ?y (treelined-test-keys "RET"))
    (treelined-test-keys "p p")
    (should (equal "a1" (treelined-tree-id)))
    (treelined-test-go "a2")
    (treelined-test-hears "sessionBusy\\|wait until it ends, or abort the move with C-g"
      (treelined-test-keys "RET"))
    (treelined-abort)
    (treelined-test-wait (not (treelined-session-navigation treelined-session)))))

(ert-deftest treelined-actions-point-stays-if-it-is-elsewhere-at-the-end-of-a-move ()
  (treelined-test-with
    (setq treelined-arguments '("--summarizer" "outline"))
    (treelined-test-converse "talk")
    (treelined-test-open "talk")
    (treelined-tree-unfold-all)
    (treelined-test-settle)
    (treelined-test-go "a2")
    (cl-letf (((symbol-function 'treelined-actions--read-summary)
               (lambda (_count)
                 (treelined-tree--goto 0)
                 '(:summarize t))))
      (treelined-test-keys "RET"))
    (treelined-test-wait (= 7 treelined-tree-total))
    (treelined-test-wait (not (treelined-session-navigation treelined-session)))
    (treelined-test-settle)
    (should (equal "u1" (treelined-tree-id)))))

(ert-deftest treelined-actions-the-pieces-of-a-summary-are-put-together ()
  (treelined-test-with-tree
    (setf (treelined-session-navigation treelined-session) "n1")
    (let ((piece (lambda (index text)
                   (treelined-session--notified
                    'summary_delta (list :sessionId "talk" :navigationId "n1"
                                         :index index :delta text)))))
      (funcall piece 0 "First ")
      (funcall piece 1 "second.")
      (with-current-buffer "*treelined summary: talk*"
        (should (equal "First second." (buffer-string)))
        (should (string-match-p "being written" treelined-entry--title)))
      (treelined-entry-stream-end treelined-session nil)
      (with-current-buffer "*treelined summary: talk*"
        (should (equal "summary, not finished" treelined-entry--title)))
      (funcall piece 0 "Anew")
      (with-current-buffer "*treelined summary: talk*"
        (should (equal "Anew" (buffer-string)))))))

(ert-deftest treelined-actions-a-fork-is-shown-with-its-draft ()
  (treelined-test-with-tree
    (let* (drafts
           (treelined-draft-function (lambda (text context)
                                       (push (cons text (plist-get context :session)) drafts))))
      (treelined-test-go "u2")
      (treelined-tree-fork)
      (treelined-test-wait drafts)
      (treelined-test-wait (progn (set-buffer (window-buffer)) (treelined-test-idle-p)))
      (should (equal "Clear the cache." (caar drafts)))
      (should (eq treelined-session (cdar drafts)))
      (should-not (equal "talk" (treelined-session-id treelined-session)))
      (should (equal '("• user       Why does the build fail?"
                       "◉ assistant  A stale cache, or a missing import. ← active")
                     (treelined-test-lines))))))

(ert-deftest treelined-actions-a-compaction-is-cancelled-by-quit ()
  (treelined-test-with
    (setq treelined-arguments (treelined-actions-test--slow-summarizer))
    (treelined-test-converse "talk")
    (dotimes (index 3)
      (treelined-test-say "talk" (format "big%d" index) "user" (make-string 60000 ?x)))
    (treelined-test-open "talk")
    (treelined-tree-compact "")
    (should (string-match-p "compacting… C-g cancels" (treelined-tree--header)))
    (treelined-test-hears "compact: .*cancel"
      (execute-kbd-macro (kbd "C-g")))
    (should-not treelined-running)))

(ert-deftest treelined-actions-a-short-conversation-has-nothing-to-compact ()
  (treelined-test-with-tree
    (treelined-test-hears "when the conversation has grown"
      (treelined-tree-compact "the build"))))

;;;; Entries

(ert-deftest treelined-actions-the-entry-at-point-is-shown-in-another-window ()
  (treelined-test-with-tree
    (let ((tree (current-buffer)))
      (treelined-test-go "a1")
      (execute-kbd-macro (kbd "SPC"))
      (treelined-test-wait (get-buffer "*treelined entry: talk*"))
      (treelined-test-wait
       (with-current-buffer "*treelined entry: talk*"
         (equal "A stale cache, or a missing import." (buffer-string))))
      (should (eq tree (window-buffer)))
      (execute-kbd-macro (kbd "v"))
      (treelined-test-wait (not (eq tree (window-buffer)))))))

(ert-deftest treelined-actions-sessions-of-one-name-have-buffers-of-their-own ()
  (treelined-test-with-tree
    (let ((first (treelined-entry-buffer treelined-session "entry")))
      (treelined-test-converse "other")
      (treelined-test-call 'set_session_name :sessionId "other" :name "talk")
      (treelined-test-open "other")
      (let ((second (treelined-entry-buffer treelined-session "entry")))
        (should-not (eq first second))
        (should (eq second (treelined-entry-buffer treelined-session "entry")))
        (should-not (eq second (treelined-entry-buffer treelined-session "summary")))))))

(ert-deftest treelined-actions-the-preview-follows-point ()
  (treelined-test-with-tree
    (treelined-tree-follow-mode)
    (treelined-test-keys "p")
    (treelined-test-wait (get-buffer "*treelined entry: talk*"))
    (treelined-test-wait (with-current-buffer "*treelined entry: talk*"
                           (equal "Add the import." (buffer-string))))
    (treelined-test-keys "p p")
    (treelined-test-wait (with-current-buffer "*treelined entry: talk*"
                           (equal "Clear the cache." (buffer-string))))))

(ert-deftest treelined-actions-an-entry-of-each-kind-has-a-text ()
  (should (equal "$ ls\na b" (treelined-entry-text
                              '(:type "message" :message (:role "bashExecution" :command "ls"
                                                          :output "a b")))))
  (should (equal "Hm\n\n(thinking)\nWell\n\n(calls bash)\n{\n  \"command\": \"ls\"\n}\n\n(image)"
                 (treelined-entry-text
                  '(:message (:content [(:type "text" :text "Hm")
                                        (:type "thinking" :thinking "Well")
                                        (:type "toolCall" :name "bash"
                                               :arguments (:command "ls"))
                                        (:type "image" :data "x")])))))
  (should (equal "Tried it." (treelined-entry-text '(:type "branch_summary"
                                                     :summary "Tried it."))))
  (should (string-match-p "\"provider\": \"p\""
                          (treelined-entry-text '(:type "model_change" :provider "p")))))

(ert-deftest treelined-actions-labels-are-set-and-removed ()
  (treelined-test-with-tree
    (treelined-test-go "a1")
    (treelined-tree-label "two ideas")
    (treelined-test-wait (member "• assistant  [two ideas] A stale cache, or a missing import."
                                 (treelined-test-lines)))
    (treelined-test-settle)
    (should (equal "a1" (treelined-tree-id)))
    (treelined-tree-label "")
    (treelined-test-wait (equal treelined-test-drawn (treelined-test-lines)))))

(ert-deftest treelined-actions-a-percent-sign-in-a-name-is-shown ()
  (treelined-test-with-tree
    (treelined-tree-rename "100%b")
    (treelined-test-wait (equal "100%b" (treelined-session-title treelined-session)))
    (should (string-prefix-p " 100%%b · " (treelined-tree--header)))))

(ert-deftest treelined-actions-the-session-is-renamed ()
  (treelined-test-with-tree
    (treelined-tree-rename "The build")
    (treelined-test-wait (equal "The build" (treelined-session-title treelined-session)))))

(ert-deftest treelined-actions-two-branches-are-compared-from-where-they-part ()
  (treelined-test-with-tree
    (treelined-test-go "a2")
    (let ((windows (current-window-configuration))
          buffers)
      (let ((treelined-compare-function (lambda (&rest both) (setq buffers both))))
        (treelined-test-keys "=")
        (treelined-test-wait buffers))
      (should (equal '("user\nAdd the import.\n\nassistant\nAdded. The build passes.\n"
                       "user\nClear the cache.\n\nassistant\nCleared. It still fails.\n")
                     (mapcar (lambda (buffer) (with-current-buffer buffer (buffer-string)))
                             buffers)))
      (should (string-match-p "2 entries since they part"
                              (buffer-local-value 'treelined-entry--title (car buffers))))
      (apply #'treelined-compare-side-by-side buffers)
      (should (= 2 (length (window-list))))
      (treelined-test-keys "q")
      (should (compare-window-configurations windows (current-window-configuration))))))

(ert-deftest treelined-actions-an-entry-is-compared-with-the-marked-one-above-it ()
  (treelined-test-with-tree
    (treelined-test-go "a1")
    (treelined-test-keys "M")
    (treelined-test-go "a2")
    (let (buffers)
      (let ((treelined-compare-function (lambda (&rest both) (setq buffers both))))
        (treelined-test-keys "=")
        (treelined-test-wait buffers))
      (should (equal '("" "user\nClear the cache.\n\nassistant\nCleared. It still fails.\n")
                     (mapcar (lambda (buffer) (with-current-buffer buffer (buffer-string)))
                             buffers))))))

;;;; Writing

(ert-deftest treelined-actions-a-message-is-written-and-sent ()
  (treelined-test-with-tree
    (let ((tree (current-buffer)))
      (treelined-test-keys "i")
      (should (derived-mode-p 'treelined-compose-mode))
      (insert "And the tests?")
      (treelined-test-hears "sent" (treelined-test-keys "C-c C-c"))
      (should (equal "" (buffer-string)))
      (with-current-buffer tree
        (treelined-test-wait (string-match-p "◉    user       And the tests\\?"
                                             (buffer-string)))))))

(ert-deftest treelined-actions-an-empty-message-is-not-sent ()
  (treelined-test-with-tree
    (treelined-test-keys "i")
    (should-error (treelined-compose-send))))

(ert-deftest treelined-actions-a-message-is-kept-until-the-daemon-has-it ()
  (treelined-test-with-tree
    (treelined-test-keys "i")
    (insert "Still here?")
    (let ((treelined-command '("no-such-treelined")))
      (signal-process (oref (treelined-connection) process) 'KILL)
      (treelined-test-wait (not (treelined-running-p)))
      (treelined-test-hears "not sent: .*install treelined"
        (treelined-compose-send)))
    (should (equal "Still here?" (buffer-string)))
    (treelined-test-hears "sent" (treelined-compose-send))
    (should (= 7 (plist-get (treelined-test-call 'get_tree :sessionId "talk" :limit 1) :total)))))

(ert-deftest treelined-actions-a-message-below-others-entries-needs-a-decision ()
  (treelined-test-with-tree
    (let ((path (treelined-session-path treelined-session)))
      (treelined-test-keys "i")
      (insert "Mine")
      (write-region (concat "{\"type\":\"message\",\"id\":\"o1\",\"parentId\":\"a3\","
                            "\"timestamp\":\"2026-11-22T08:16:21.582Z\",\"message\":{\"role\":"
                            "\"user\",\"content\":\"Theirs\"}}\n")
                    nil path 'append 'quiet)
      (treelined-test-hears "not sent: others have written here"
        (treelined-compose-send))
      (should (equal "Mine" (buffer-string)))
      (treelined-test-hears "sent" (treelined-compose-send t)))))

(ert-deftest treelined-actions-text-typed-while-a-message-is-sent-is-kept ()
  (treelined-test-with-tree
    (treelined-test-keys "i")
    (insert "One")
    (treelined-test-hears "sent"
      (treelined-compose-send)
      (insert " two"))
    (should (equal "One two" (buffer-string)))))

(ert-deftest treelined-actions-a-draft-replaces-text-that-undo-restores ()
  (treelined-test-with-tree
    (treelined-test-keys "i")
    (insert "Mine")
    (treelined-compose-draft "Returned" (list :session treelined-session))
    (should (equal "Returned" (buffer-string)))
    (undo-boundary)
    (setq last-command nil)
    (undo)
    (should (equal "Mine" (buffer-string)))))

(ert-deftest treelined-actions-a-message-whose-answer-was-lost-is-in-the-session-once ()
  (skip-unless (not treelined-test-shared))
  (treelined-test-with-tree
    (let ((session treelined-session)
          (file (treelined-session-path treelined-session)))
      (treelined-stop)
      ;; The answers of this daemon to appends are lost.
      (let ((treelined-command
             (append '("sh" "-c" "\"$0\" \"$@\" | sed -u '/\"durability\"/d'")
                     treelined-command)))
        (treelined-session-await session 'get_leaf nil 60)
        (treelined-compose session)
        (insert "Only once")
        (treelined-compose-send)
        (treelined-test-wait (with-temp-buffer
                               (insert-file-contents file)
                               (search-forward "Only once" nil t)))
        (treelined-test-hears "not sent.*signal 9"
          (signal-process (oref (treelined-connection) process) 'KILL)))
      (should (equal "Only once" (buffer-string)))
      ;; The session is open again, and its leaf is the message.
      (treelined-session-await session 'get_leaf nil 60)
      (treelined-test-hears "sent" (treelined-compose-send))
      (with-temp-buffer
        (insert-file-contents file)
        (should (= 1 (how-many "Only once")))))))

(provide 'treelined-actions-test)
;;; treelined-actions-test.el ends here
