;;; treelined-scale-test.el --- A session of 100,000 entries without a pause  -*- lexical-binding: t; -*-

;;; Commentary:

;; A pause is the time that Emacs spends in one command, one timer, or one chunk of the
;; daemon's output.  During a pause Emacs reads no key.  It is measured in processor time,
;; since other programs may use the machine too.

;;; Code:

(require 'treelined-test-helper)

(defconst treelined-scale-test--entries 100000 "Entries of the session.")
(defconst treelined-scale-test--limit 0.1 "The longest pause, in seconds.")

(defvar treelined-scale-test--pauses nil "Names and lengths of pauses, in seconds.")

(defun treelined-scale-test--time (what function &rest arguments)
  "Call FUNCTION with ARGUMENTS, and note how long WHAT took."
  (let ((before (get-internal-run-time)))
    (prog1 (apply function arguments)
      (push (cons what (float-time (time-subtract (get-internal-run-time) before)))
            treelined-scale-test--pauses))))

(defun treelined-scale-test--write (file)
  "Write a session to FILE that branches every 50 entries."
  (with-temp-file file
    (insert "{\"type\":\"session\",\"version\":3,\"id\":\"large\",\"timestamp\":"
            "\"2026-11-22T08:00:00.000Z\",\"cwd\":\"/tmp\"}\n")
    (let ((parent "null")
          (trunk "null"))
      (dotimes (index treelined-scale-test--entries)
        (when (zerop (mod index 50))
          (setq parent trunk))
        (insert (format "{\"type\":\"message\",\"id\":\"e%d\",\"parentId\":%s,\"timestamp\":\"2026-11-22T08:%02d:%02d.%03dZ\",\"message\":{\"role\":\"%s\",\"content\":\"Message %d says something that fills a row of the tree more or less\"}}\n"
                        index parent (mod (/ index 60000) 60) (mod (/ index 1000) 60)
                        (mod index 1000) "user" index))
        (setq parent (format "\"e%d\"" index))
        (when (= 25 (mod index 50))
          (setq trunk parent))))))

(defun treelined-scale-test--type (keys)
  "Type KEYS, note how long that took, and wait for the tree."
  (treelined-scale-test--time keys #'execute-kbd-macro (kbd keys))
  (treelined-test-settle))

(defmacro treelined-scale-test--measuring (&rest body)
  "Run BODY, and note how long filters and timers of the package take."
  (declare (indent 0) (debug t))
  `(let ((filter (lambda (function &rest arguments)
                   (apply #'treelined-scale-test--time "output" function arguments)))
         (timer (lambda (function &rest arguments)
                  (apply #'treelined-scale-test--time "timer" function arguments))))
     (setq treelined-scale-test--pauses nil)
     (unwind-protect
         (progn
           (advice-add 'treelined-client--filter :around filter)
           (advice-add 'treelined-tree--catch-up :around timer)
           ,@body)
       (advice-remove 'treelined-client--filter filter)
       (advice-remove 'treelined-tree--catch-up timer))))

(ert-deftest treelined-scale-100000-entries-are-shown-without-a-pause ()
  (treelined-test-with
    (let ((file (expand-file-name "large.jsonl" treelined-test-directory)))
      (treelined-scale-test--write file)
      (treelined-scale-test--measuring
        (treelined-test-open file)
        (treelined-tree-unfold-all)
        (treelined-test-settle)
        (should (= treelined-scale-test--entries treelined-tree-total))
        (dolist (keys '("M-<" "C-v" "C-v" "C-v" "M->" "M-v" "M-v" "M-g g 50000 RET" "C-v"
                        "*" "*" "RET" "n" "p" "." "M-<" "g"))
          (cl-letf (((symbol-function 'read-multiple-choice)
                     (lambda (&rest _) (signal 'quit nil))))
            (condition-case nil
                (treelined-scale-test--type keys)
              (quit (treelined-test-settle)))))
        (treelined-test-go "e70000")
        (treelined-tree-search "99990")
        (treelined-test-wait (and (treelined-test-idle-p) (equal "e99990" (treelined-tree-id))))
        (dotimes (index 50)
          (treelined-request 'append_message
                             (list :sessionId "large"
                                   :message (list :role "user" :content (format "m%d" index)))
                             #'ignore))
        (treelined-test-wait (= (+ 50 treelined-scale-test--entries) treelined-tree-total))
        (treelined-test-settle))
      (let ((longest (seq-take (sort treelined-scale-test--pauses
                                     (lambda (a b) (> (cdr a) (cdr b))))
                               5)))
        (message "The longest pauses: %S" longest)
        (should (< (cdar longest) treelined-scale-test--limit)))
      (should (< (hash-table-count treelined-tree--rows) 1000)))))

(ert-deftest treelined-scale-no-answer-exceeds-a-megabyte ()
  (treelined-test-with
    (let ((file (expand-file-name "large.jsonl" treelined-test-directory))
          (largest 0))
      (treelined-scale-test--write file)
      (treelined-test-open file)
      (cl-letf* ((parse (symbol-function 'treelined-client--parse))
                 ((symbol-function 'treelined-client--parse)
                  (lambda ()
                    (setq largest (max largest (- (line-end-position) (point))))
                    (funcall parse))))
        (treelined-test-hears "get_path.*treelined-max-frame-bytes"
          (treelined-session-request treelined-session 'get_path nil #'ignore))
        ;; Without a limit, a page is as large as the daemon allows.
        (should (plist-get (treelined-test-call 'get_tree :sessionId "large") :nextCursor)))
      (should (< 900000 largest (* 1024 1024))))))

(provide 'treelined-scale-test)
;;; treelined-scale-test.el ends here
