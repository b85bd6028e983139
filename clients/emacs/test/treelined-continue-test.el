;;; treelined-continue-test.el --- Going on in another agent  -*- lexical-binding: t; -*-

;;; Code:

(require 'treelined-test-helper)

(defvar treelined-continue-test--home nil "The home of the running test.")
(defvar treelined-continue-test--asked nil "The questions and their keys, the latest first.")

(defmacro treelined-continue-test--with (keys &rest body)
  "Run BODY with a tree and a `codex' that prints its arguments.
KEYS answer the questions in turn."
  (declare (indent 1) (debug t))
  `(let* ((treelined-continue-test--home (make-temp-file "treelined-home" t))
          (exec-path (cons (expand-file-name "bin" treelined-continue-test--home) exec-path))
          (process-environment
           (append (list (concat "HOME=" treelined-continue-test--home)
                         (concat "CODEX_HOME=" treelined-continue-test--home "/codex")
                         (concat "PATH=" treelined-continue-test--home "/bin:" (getenv "PATH")))
                   process-environment))
          (keys ,keys))
     (make-directory (expand-file-name "bin" treelined-continue-test--home))
     (with-temp-file (expand-file-name "bin/codex" treelined-continue-test--home)
       (insert "#!/bin/sh\n[ \"$1\" = --version ] || echo \"codex got $# arguments: $*\"\n"))
     (set-file-modes (expand-file-name "bin/codex" treelined-continue-test--home) #o700)
     (setq treelined-continue-test--asked nil)
     (unwind-protect
         (cl-letf (((symbol-function 'read-multiple-choice)
                    (lambda (prompt choices)
                      (push (cons prompt (mapcar #'car choices)) treelined-continue-test--asked)
                      (assq (pop keys) choices))))
           (treelined-test-with-tree
             ,@body))
       (delete-directory treelined-continue-test--home t))))

(defun treelined-continue-test--written ()
  "Return the session files of the agent."
  (let ((folder (expand-file-name "codex" treelined-continue-test--home)))
    (and (file-directory-p folder) (directory-files-recursively folder "\\.jsonl\\'"))))

(defun treelined-continue-test--terminal ()
  "Wait until the agent has ended, and return what the terminal shows."
  (treelined-test-wait
   (when-let* ((buffer (get-buffer "*codex*")))
     (and (not (process-live-p (get-buffer-process buffer)))
          (with-current-buffer buffer
            (string-search "codex got" (buffer-string))))))
  (with-current-buffer "*codex*"
    (prog1 (string-replace "\n" "" (buffer-substring-no-properties (point-min) (point-max)))
      (kill-buffer))))

(ert-deftest treelined-continue-says-what-is-lost-and-runs-the-agent ()
  (treelined-continue-test--with '(?n ?y)
    (treelined-test-go "a1")
    (treelined-tree-continue "codex")
    (treelined-test-wait treelined-continue-test--asked)
    (should (string-match-p "\\`2 messages, about [0-9]+ tokens.*  Go on in Codex\\?\\'"
                            (caar treelined-continue-test--asked)))
    (should (equal '(?y ?l ?w ?n) (cdar treelined-continue-test--asked)))
    (should-not (treelined-continue-test--written))
    (should (eq 'treelined-tree-continue (lookup-key treelined-tree-mode-map "H")))
    (treelined-tree-continue "codex")
    (should (string-match-p "codex got 2 arguments: resume "
                            (treelined-continue-test--terminal)))
    (should (equal 1 (length (treelined-continue-test--written))))))

(ert-deftest treelined-continue-has-the-agent-hear-what-was-learned ()
  (treelined-continue-test--with '(?l)
    (let ((treelined-arguments '("--summarizer" "outline")))
      (treelined-test-go "a2")
      (treelined-tree-continue "codex")
      (should (string-match-p "codex got 3 arguments: resume .*Another way was tried"
                              (treelined-continue-test--terminal))))))

(ert-deftest treelined-continue-copies-the-command-and-shows-a-text ()
  (treelined-continue-test--with '(?w ?y)
    (treelined-tree-continue "codex")
    (treelined-test-wait treelined-continue-test--asked)
    ;; At the leaf no branch is left.
    (should (equal '(?y ?w ?n) (cdar treelined-continue-test--asked)))
    (should (string-match-p " continue --in codex -- " (car kill-ring)))
    (should-not (treelined-continue-test--written))
    ;; Without a terminal the command makes the session, and prints the command line to
    ;; run.
    (should (string-match-p "codex resume"
                            (shell-command-to-string (concat (car kill-ring) " </dev/null"))))
    (should (equal 1 (length (treelined-continue-test--written))))
    (with-current-buffer (car (treelined-session-buffers treelined-session 'treelined-tree-mode))
      (treelined-tree-continue "text"))
    (treelined-test-wait (get-buffer "*treelined handoff*"))
    (should (string-match-p "The build passes" (car kill-ring)))))

(ert-deftest treelined-continue-the-command-is-for-a-terminal ()
  (let ((treelined-command '("/bin/treelined" "connect" "--start"))
        (treelined-arguments '("--summarizer" "outline")))
    (should (equal '("/bin/treelined" "--summarizer" "outline" "continue" "--in" "codex" "--"
                     "/s.jsonl" "a1")
                   (treelined-continue--command (make-treelined-session :path "/s.jsonl")
                                                "a1" "codex" nil)))
    (dolist (id '("a\nb" "a\eb" "a\u009bb" "a\u202eb"))
      (should-error (treelined-continue--command (make-treelined-session :path "/s.jsonl")
                                                 id "codex" nil)
                    :type 'user-error))))

(ert-deftest treelined-continue-a-conversation-that-is-too-large-is-cut ()
  (treelined-continue-test--with '(?a ?y)
    (let ((id (treelined-session-id treelined-session))
          (words (apply #'concat (make-list 40000 "many words "))))
      (treelined-test-say id "u9" "user" words)
      (treelined-test-say id "a9" "assistant" words))
    (treelined-test-settle)
    (treelined-test-go "a9")
    (treelined-tree-continue "codex")
    (should (string-match-p "codex got 2 arguments: resume "
                            (treelined-continue-test--terminal)))
    (should (equal '(?n ?s ?a) (cdar (last treelined-continue-test--asked))))))

;; A message after going back once got no answer, and no text said how to get one.
(ert-deftest treelined-continue-a-line-says-what-to-do-after-going-back ()
  (treelined-continue-test--with '(?n)
    (let (said)
      (cl-letf (((symbol-function 'message)
                 (lambda (format &rest arguments)
                   (when format
                     (push (apply #'format format arguments) said)))))
        (treelined-test-go "u3")
        (treelined-tree-navigate)
        (treelined-test-wait
         (member "treelined: Send the text with C-c C-c, then H in the tree goes on in another agent."
                 said))))))

;; Only fetched rows were once searched, so the keys stopped below the window.
(ert-deftest treelined-continue-prompts-are-found-in-rows-that-were-not-fetched ()
  (treelined-test-with
    (let ((treelined-page-size 5))
      (treelined-test-converse "long")
      (dotimes (number 300)
        (treelined-test-say "long" (format "x%d" number) "assistant" "More."))
      (treelined-test-say "long" "u9" "user" "The last question.")
      (treelined-test-open "long")
      (should (equal "u9" (treelined-tree-id)))
      (treelined-tree-previous-prompt 1)
      (treelined-test-wait (equal "u3" (treelined-tree-id)))
      (treelined-tree-reload "u3")
      (treelined-test-settle)
      (treelined-tree-next-prompt 1)
      (treelined-test-wait (equal "u9" (treelined-tree-id)))
      (should-error (treelined-tree-next-prompt 1) :type 'user-error))))

;; Each client once had different names for the same agents.
(ert-deftest treelined-continue-agents-are-those-of-the-table-that-all-clients-share ()
  (with-temp-buffer
    (insert-file-contents (expand-file-name "../../schema/agents.tsv" treelined-test-folder))
    (let ((rows (seq-remove (lambda (line) (string-prefix-p "#" line))
                            (split-string (buffer-string) "\n" t))))
      (should (equal (mapcar (lambda (row)
                               (let ((cells (split-string row "\t")))
                                 (cons (nth 1 cells) (nth 0 cells))))
                             rows)
                     treelined-continue--tools)))))

;;; treelined-continue-test.el ends here
