;;; treelined-tree-test.el --- The tree's buffer and its commands  -*- lexical-binding: t; -*-

;;; Code:

(require 'treelined-test-helper)

(defconst treelined-tree-test--drawn
  '("• user       Why does the build fail?"
    "• assistant  A stale cache, or a missing import."
    "  ├─ user       Clear the cache."
    "  │  assistant  Cleared. It still fails."
    "• └─ user       Add the import."
    "◉    assistant  Added. The build passes. ← active")
  "The tree of `treelined-test-converse'.")

(defmacro treelined-tree-test--with (&rest body)
  "Run BODY in the tree of a conversation."
  (declare (indent 0) (debug t))
  `(treelined-test-with
     (treelined-test-converse "talk")
     (treelined-test-open "talk")
     ,@body))

;;;; Drawing

(ert-deftest treelined-tree-is-drawn-as-the-daemon-says-with-point-on-the-leaf ()
  (treelined-tree-test--with
    (should (equal treelined-tree-test--drawn (treelined-test-lines)))
    (should (equal "a3" (treelined-tree-id)))
    (should (string-match-p "talk · 6 rows" (treelined-tree--header)))))

(ert-deftest treelined-tree-is-drawn-in-ascii-if-that-is-set ()
  (let ((treelined-render 'ascii))
    (treelined-tree-test--with
      (should (equal '("* user       Why does the build fail?"
                       "* assistant  A stale cache, or a missing import."
                       "  |- user       Clear the cache."
                       "  |  assistant  Cleared. It still fails."
                       "* `- user       Add the import."
                       "@    assistant  Added. The build passes. <- active")
                     (treelined-test-lines))))))

(ert-deftest treelined-tree-active-path-and-branches-have-different-faces ()
  (treelined-tree-test--with
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
    (should (equal '("Nothing has been said yet.  m writes a message.")
                   (treelined-test-lines)))))

(ert-deftest treelined-tree-deep-guides-are-cut-at-the-front ()
  (let ((line (treelined-row-line '(:type "message" :role "user" :preview "x"
                                    :prefix "│  │  │  │  └─ ")
                                  nil nil 9)))
    (should (equal "  …  │  └─ user       x" (substring-no-properties line)))))

(ert-deftest treelined-tree-guides-fit-the-window ()
  (treelined-tree-test--with
    (let ((width treelined-tree--columns))
      (should (= width (max 9 (/ (window-width) 3))))
      (split-window-right 20)
      (treelined-tree--resized nil)
      (treelined-test-settle)
      (should (= 9 treelined-tree--columns))
      (should (equal treelined-tree-test--drawn (treelined-test-lines))))))

(ert-deftest treelined-tree-a-role-with-a-line-break-is-one-row ()
  (treelined-tree-test--with
    (treelined-test-call 'append_message :sessionId "talk" :entryId "x"
                         :message '(:role "sys\ntem" :content "Text"))
    (treelined-test-wait (and (= 7 treelined-tree-total) (treelined-test-idle-p)))
    (should (= 7 (length (treelined-test-lines))))
    (treelined-test-go "x")
    (should (string-match-p "sys tem    Text" (thing-at-point 'line)))))

(ert-deftest treelined-tree-flags-errors-labels-and-tokens-are-in-the-row ()
  (should (equal "  assistant  [it] ✗ (12 tokens) No key (orphan, cycle)"
                 (substring-no-properties
                  (treelined-row-line '(:type "message" :role "assistant" :preview "No key"
                                        :label "it" :isError t :tokens 12
                                        :flags ["orphan" "cycle"])
                                      nil nil 30)))))

(ert-deftest treelined-tree-a-match-in-the-label-leaves-the-text ()
  (let ((line (treelined-row-line '(:type "message" :role "user" :preview "Text" :label "the cache")
                                  nil '(:snippet "the cache" :ranges [[4 9]]) 30)))
    (should (equal "  user       [the cache] Text" (substring-no-properties line)))
    (should (memq 'treelined-match (ensure-list (get-text-property 18 'face line))))
    (should-not (memq 'treelined-match (ensure-list (get-text-property 15 'face line))))))

(ert-deftest treelined-tree-other-buffers-keep-their-settings ()
  (let ((settings (lambda ()
                    (mapcar #'default-value '(revert-buffer-function bookmark-make-record-function
                                              next-error-function header-line-format
                                              mode-line-process truncate-lines)))))
    (let ((before (funcall settings)))
      (treelined-tree-test--with
        (treelined)
        (treelined-search "cache")
        (treelined-test-wait (not treelined-running))
        (should (equal before (funcall settings)))))))

;;;; Following changes

(ert-deftest treelined-tree-follows-appends-and-point-stays-on-the-leaf ()
  (treelined-tree-test--with
    (treelined-test-say "talk" "u4" "user" "Thanks.")
    (treelined-test-wait (and (treelined-test-idle-p) (equal "u4" (treelined-tree-id))))
    (should (equal "◉    user       Thanks. ← active" (car (last (treelined-test-lines)))))))

(ert-deftest treelined-tree-point-stays-on-its-entry-if-that-is-not-the-leaf ()
  (treelined-tree-test--with
    (treelined-test-go "u2")
    (move-to-column 5)
    (treelined-test-say "talk" "u4" "user" "Thanks.")
    (treelined-test-wait (= 7 treelined-tree-total))
    (treelined-test-settle)
    (should (equal "u2" (treelined-tree-id)))
    (should (= 5 (current-column)))))

(ert-deftest treelined-tree-a-key-that-is-typed-while-the-tree-is-drawn-counts ()
  (treelined-tree-test--with
    (treelined-test-go "u2")
    (treelined-tree-reload)
    (execute-kbd-macro (kbd "n"))
    (treelined-test-settle)
    (should (equal "a2" (treelined-tree-id)))
    (treelined-tree-reload "u1")
    (execute-kbd-macro (kbd "n"))
    (treelined-test-settle)
    (should (equal "u3" (treelined-tree-id)))))

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
  (treelined-tree-test--with
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

(ert-deftest treelined-tree-survives-the-end-of-the-daemon-with-its-place ()
  (treelined-tree-test--with
    (treelined-test-go "u2")
    (signal-process (oref (treelined-connection) process) 'KILL)
    (treelined-test-wait (not (treelined-running-p)))
    (should (string-match-p "the daemon has ended; g starts it" (treelined-tree--header)))
    (should (equal treelined-tree-test--drawn (treelined-test-lines)))
    ;; Moving about does not start it.
    (treelined-test-keys "n n")
    (should-not (treelined-running-p))
    (treelined-test-keys "p p g")
    (treelined-test-wait (treelined-session-open-p treelined-session))
    (treelined-test-settle)
    (should (equal "u2" (treelined-tree-id)))
    (treelined-test-say "talk" "u4" "user" "Thanks.")
    (treelined-test-wait (= 7 treelined-tree-total))))

(ert-deftest treelined-tree-survives-a-file-without-its-folded-entries ()
  (treelined-tree-test--with
    (treelined-test-go "a1")
    (setq treelined-tree-fold (list "gone"))
    (treelined-test-keys "g")
    (treelined-test-wait (and (null treelined-tree-fold) (treelined-test-idle-p)))
    (should (equal treelined-tree-test--drawn (treelined-test-lines)))))

;;;; Moving

(defmacro treelined-tree-test--choosing (char &rest body)
  "Run BODY with CHAR as the choice of a summary."
  (declare (indent 1) (debug t))
  `(cl-letf (((symbol-function 'read-multiple-choice)
              (lambda (prompt choices)
                (setq treelined-tree-test--question prompt)
                (assq ,char choices))))
     ,@body))

(defvar treelined-tree-test--question nil "The last question.")

(defun treelined-tree-test--leaf (id)
  "Wait until the leaf is ID, and the tree is drawn."
  (treelined-test-wait (and (equal id (treelined-session-leaf-id treelined-session))
                            (not (treelined-session-navigation treelined-session))
                            (treelined-test-idle-p))))

(ert-deftest treelined-tree-going-back-says-how-much-is-left-and-moves-the-leaf ()
  (treelined-tree-test--with
    (treelined-test-go "a2")
    (treelined-tree-test--choosing ?n (treelined-test-keys "RET"))
    (treelined-tree-test--leaf "a2")
    (should (equal "2 entries are left behind; they stay in the tree.  Summarize?"
                   treelined-tree-test--question))
    (should (equal "a2" (treelined-tree-id)))
    (should (equal "◉ │  assistant  Cleared. It still fails. ← active"
                   (nth 3 (treelined-test-lines))))))

(ert-deftest treelined-tree-moves-are-undone-and-redone ()
  (treelined-tree-test--with
    (treelined-test-go "a2")
    (treelined-tree-test--choosing ?n (treelined-test-keys "RET"))
    (treelined-tree-test--leaf "a2")
    (treelined-test-keys "u")
    (treelined-tree-test--leaf "a3")
    (should (equal "a3" (treelined-tree-id)))
    (treelined-test-keys "r")
    (treelined-tree-test--leaf "a2")
    (treelined-test-keys "C-/")
    (treelined-tree-test--leaf "a3")
    (treelined-test-hears "undo"
      (treelined-test-keys "u u"))))

(ert-deftest treelined-tree-going-to-a-message-of-the-user-makes-it-a-draft ()
  (treelined-tree-test--with
    (let* ((drafts nil)
           (treelined-draft-function (lambda (text context)
                                       (push (cons text (plist-get context :session)) drafts))))
      (treelined-test-go "u2")
      (treelined-tree-test--choosing ?n (treelined-test-keys "RET"))
      (treelined-test-wait drafts)
      (should (equal "Clear the cache." (caar drafts)))
      (should (eq treelined-session (cdar drafts)))
      (treelined-tree-test--leaf "a1"))))

(ert-deftest treelined-tree-a-summary-is-shown-and-stays-in-the-tree ()
  (let ((treelined-arguments nil))
    (treelined-test-with
      (setq treelined-arguments '("--summarizer" "outline"))
      (treelined-test-converse "talk")
      (treelined-test-open "talk")
      (treelined-test-go "a2")
      (treelined-tree-test--choosing ?y (treelined-test-keys "RET"))
      (treelined-test-wait (get-buffer "*treelined summary: talk*"))
      (treelined-test-wait
       (with-current-buffer "*treelined summary: talk*"
         (string-match-p "Tried “Add the import.”" (buffer-string))))
      (treelined-test-wait (= 7 treelined-tree-total))
      (treelined-test-settle)
      (should (string-match-p "summary" (thing-at-point 'line))))))

(ert-deftest treelined-tree-a-summary-without-summarizer-says-what-to-do ()
  (treelined-tree-test--with
    (treelined-test-go "a2")
    (treelined-test-hears "go without a summary, or set"
      (treelined-tree-test--choosing ?y (treelined-test-keys "RET")))
    (should-not (treelined-session-navigation treelined-session))
    (should (equal "a3" (treelined-session-leaf-id treelined-session)))))

(defun treelined-tree-test--slow-summarizer ()
  "Return arguments for a summarizer that writes a word, and goes on for a minute."
  (let ((program (expand-file-name "summarizer" treelined-test-directory))
        (config (expand-file-name "config.toml" treelined-test-directory)))
    (write-region "#!/bin/sh\necho First\nsleep 60\n" nil program nil 'quiet)
    (set-file-modes program #o700)
    (write-region (format "[summarizer]\nuse = \"command\"\n[summarizer.command]\nargv = [%S]\n"
                          program)
                  nil config nil 'quiet)
    (list "--config" config)))

(ert-deftest treelined-tree-a-running-move-is-aborted-by-quit ()
  (treelined-test-with
    (setq treelined-arguments (treelined-tree-test--slow-summarizer))
    (treelined-test-converse "talk")
    (treelined-test-open "talk")
    (treelined-test-go "a2")
    (treelined-tree-test--choosing ?y (treelined-test-keys "RET"))
    (should (string-match-p "moving… C-g aborts" (treelined-tree--header)))
    (treelined-test-hears "the move was aborted; nothing was changed"
      (execute-kbd-macro (kbd "C-g")))
    (should-not (treelined-session-navigation treelined-session))
    (should (equal "a3" (treelined-session-leaf-id treelined-session)))
    ;; Without a move the key quits.
    (should (condition-case nil
                (progn (treelined-quit) nil)
              (quit t)))))

(ert-deftest treelined-tree-emacs-goes-on-while-a-summary-is-written ()
  (treelined-test-with
    (setq treelined-arguments (treelined-tree-test--slow-summarizer))
    (treelined-test-converse "talk")
    (treelined-test-open "talk")
    (treelined-test-go "a2")
    (treelined-tree-test--choosing ?y (treelined-test-keys "RET"))
    (treelined-test-keys "p p")
    (should (equal "a1" (treelined-tree-id)))
    (treelined-test-go "a2")
    (treelined-test-hears "sessionBusy\\|wait until it ends, or abort the move with C-g"
      (treelined-test-keys "RET"))
    (treelined-abort)
    (treelined-test-wait (not (treelined-session-navigation treelined-session)))))

(ert-deftest treelined-tree-point-stays-if-it-is-elsewhere-at-the-end-of-a-move ()
  (treelined-test-with
    (setq treelined-arguments '("--summarizer" "outline"))
    (treelined-test-converse "talk")
    (treelined-test-open "talk")
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

(ert-deftest treelined-tree-the-pieces-of-a-summary-are-put-together ()
  (treelined-tree-test--with
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

(ert-deftest treelined-tree-a-fork-is-shown-with-its-draft ()
  (treelined-tree-test--with
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

(ert-deftest treelined-tree-a-compaction-is-cancelled-by-quit ()
  (treelined-test-with
    (setq treelined-arguments (treelined-tree-test--slow-summarizer))
    (treelined-test-converse "talk")
    (dotimes (index 3)
      (treelined-test-say "talk" (format "big%d" index) "user" (make-string 60000 ?x)))
    (treelined-test-open "talk")
    (treelined-tree-compact "")
    (should (string-match-p "compacting… C-g cancels" (treelined-tree--header)))
    (treelined-test-hears "compact: .*cancel"
      (execute-kbd-macro (kbd "C-g")))
    (should-not treelined-running)))

(ert-deftest treelined-tree-a-short-conversation-has-nothing-to-compact ()
  (treelined-tree-test--with
    (treelined-test-hears "when the conversation has grown"
      (treelined-tree-compact "the build"))))

;;;; Entries

(ert-deftest treelined-tree-the-entry-at-point-is-shown-in-another-window ()
  (treelined-tree-test--with
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

(ert-deftest treelined-tree-the-preview-follows-point ()
  (treelined-tree-test--with
    (treelined-tree-follow-mode)
    (treelined-test-keys "p")
    (treelined-test-wait (get-buffer "*treelined entry: talk*"))
    (treelined-test-wait (with-current-buffer "*treelined entry: talk*"
                           (equal "Add the import." (buffer-string))))
    (treelined-test-keys "p p")
    (treelined-test-wait (with-current-buffer "*treelined entry: talk*"
                           (equal "Clear the cache." (buffer-string))))))

(ert-deftest treelined-tree-an-entry-of-each-kind-has-a-text ()
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

(ert-deftest treelined-tree-labels-are-set-and-removed ()
  (treelined-tree-test--with
    (treelined-test-go "a1")
    (treelined-tree-label "two ideas")
    (treelined-test-wait (member "• assistant  [two ideas] A stale cache, or a missing import."
                                 (treelined-test-lines)))
    (treelined-test-settle)
    (should (equal "a1" (treelined-tree-id)))
    (treelined-tree-label "")
    (treelined-test-wait (equal treelined-tree-test--drawn (treelined-test-lines)))))

(ert-deftest treelined-tree-a-percent-sign-in-a-name-is-shown ()
  (treelined-tree-test--with
    (treelined-tree-rename "100%b")
    (treelined-test-wait (equal "100%b" (treelined-session-title treelined-session)))
    (should (string-prefix-p " 100%%b · " (treelined-tree--header)))))

(ert-deftest treelined-tree-the-session-is-renamed ()
  (treelined-tree-test--with
    (treelined-tree-rename "The build")
    (treelined-test-wait (equal "The build" (treelined-session-title treelined-session)))))

(ert-deftest treelined-tree-two-branches-are-compared-from-where-they-part ()
  (treelined-tree-test--with
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

(ert-deftest treelined-tree-an-entry-is-compared-with-the-marked-one-above-it ()
  (treelined-tree-test--with
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

;;;; Rows

(ert-deftest treelined-tree-rows-below-an-entry-are-folded ()
  (treelined-tree-test--with
    (treelined-test-go "u2")
    (treelined-test-keys "TAB")
    (should (equal " ▸├─ user       Clear the cache." (nth 2 (treelined-test-lines))))
    (should (= 5 treelined-tree-total))
    (should (equal "u2" (treelined-tree-id)))
    ;; An entry that is hidden by a fold can be gone to.
    (treelined-test-go "a2")
    (should (equal treelined-tree-test--drawn (treelined-test-lines)))
    (should-error (treelined-test-keys "TAB"))
    (treelined-test-go "a1")
    (treelined-test-keys "TAB")
    (should (= 2 treelined-tree-total))
    (treelined-test-keys "U")
    (should (= 6 treelined-tree-total))))

(ert-deftest treelined-tree-filters-choose-rows-and-point-moves-to-the-nearest-one ()
  (treelined-tree-test--with
    (treelined-test-go "a2")
    (treelined-tree-filter "user-only")
    (treelined-test-wait (= 3 treelined-tree-total))
    (treelined-test-settle)
    (should (equal "u2" (treelined-tree-id)))
    (should (string-match-p "4 hidden · user-only" (treelined-tree--header)))))

(ert-deftest treelined-tree-only-rows-that-match-are-shown-with-what-was-found ()
  (treelined-tree-test--with
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
  (treelined-tree-test--with
    (treelined-test-hears "query"
      (treelined-tree-query "/(/"))
    (treelined-test-settle)
    (should-not treelined-tree-query)
    (should (= 6 treelined-tree-total))))

(ert-deftest treelined-tree-a-search-goes-from-match-to-match-and-around ()
  (treelined-tree-test--with
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
      (should (equal treelined-tree-test--drawn (treelined-test-lines))))))

(ert-deftest treelined-tree-a-search-opens-folds ()
  (treelined-tree-test--with
    (treelined-test-go "u2")
    (treelined-test-keys "TAB")
    (treelined-tree-search "cleared")
    (treelined-test-wait (and (treelined-test-idle-p) (equal "a2" (treelined-tree-id))))))

(ert-deftest treelined-tree-a-search-for-nothing-says-so ()
  (treelined-tree-test--with
    (treelined-test-hears "nothing matches “zebra”"
      (treelined-tree-search "zebra"))))

(ert-deftest treelined-tree-point-goes-to-branchings ()
  (treelined-tree-test--with
    (goto-char (point-min))
    (treelined-test-keys "]")
    (should (equal "a1" (treelined-tree-id)))
    (should-error (treelined-test-keys "]"))
    (should (equal "a1" (treelined-tree-id)))
    (treelined-test-go "a3")
    (treelined-test-keys "[")
    (should (equal "a1" (treelined-tree-id)))
    (treelined-test-keys ".")
    (treelined-test-wait (equal "a3" (treelined-tree-id)))))

(ert-deftest treelined-tree-a-bookmark-leads-back-to-the-entry ()
  (treelined-tree-test--with
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
      (should (equal treelined-tree-test--drawn (treelined-test-lines))))))

;;;; Writing

(ert-deftest treelined-tree-a-message-is-written-and-sent ()
  (treelined-tree-test--with
    (let ((tree (current-buffer)))
      (treelined-test-keys "m")
      (should (derived-mode-p 'treelined-compose-mode))
      (insert "And the tests?")
      (treelined-test-hears "sent" (treelined-test-keys "C-c C-c"))
      (should (equal "" (buffer-string)))
      (with-current-buffer tree
        (treelined-test-wait (string-match-p "◉    user       And the tests\\?"
                                             (buffer-string)))))))

(ert-deftest treelined-tree-an-empty-message-is-not-sent ()
  (treelined-tree-test--with
    (treelined-test-keys "m")
    (should-error (treelined-compose-send))))

(ert-deftest treelined-tree-a-message-is-kept-until-the-daemon-has-it ()
  (treelined-tree-test--with
    (treelined-test-keys "m")
    (insert "Still here?")
    (let ((treelined-command '("no-such-treelined")))
      (signal-process (oref (treelined-connection) process) 'KILL)
      (treelined-test-wait (not (treelined-running-p)))
      (treelined-test-hears "not sent: .*install treelined"
        (treelined-compose-send)))
    (should (equal "Still here?" (buffer-string)))
    (treelined-test-hears "sent" (treelined-compose-send))
    (should (= 7 (plist-get (treelined-test-call 'get_tree :sessionId "talk" :limit 1) :total)))))

(ert-deftest treelined-tree-a-message-below-others-entries-needs-a-decision ()
  (treelined-tree-test--with
    (let ((path (treelined-session-path treelined-session)))
      (treelined-test-keys "m")
      (insert "Mine")
      (write-region (concat "{\"type\":\"message\",\"id\":\"o1\",\"parentId\":\"a3\","
                            "\"timestamp\":\"2026-11-22T08:16:21.582Z\",\"message\":{\"role\":"
                            "\"user\",\"content\":\"Theirs\"}}\n")
                    nil path 'append 'quiet)
      (treelined-test-hears "not sent: others have written here"
        (treelined-compose-send))
      (should (equal "Mine" (buffer-string)))
      (treelined-test-hears "sent" (treelined-compose-send t)))))

(ert-deftest treelined-tree-text-typed-while-a-message-is-sent-is-kept ()
  (treelined-tree-test--with
    (treelined-test-keys "m")
    (insert "One")
    (treelined-test-hears "sent"
      (treelined-compose-send)
      (insert " two"))
    (should (equal "One two" (buffer-string)))))

(ert-deftest treelined-tree-a-draft-replaces-text-that-undo-restores ()
  (treelined-tree-test--with
    (treelined-test-keys "m")
    (insert "Mine")
    (treelined-compose-draft "Returned" (list :session treelined-session))
    (should (equal "Returned" (buffer-string)))
    (undo-boundary)
    (setq last-command nil)
    (undo)
    (should (equal "Mine" (buffer-string)))))

(ert-deftest treelined-tree-two-windows-keep-their-places ()
  (treelined-tree-test--with
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

(provide 'treelined-tree-test)
;;; treelined-tree-test.el ends here
