;;; treelined-client-test.el --- Calls, errors and the daemon's life  -*- lexical-binding: t; -*-

;;; Code:

(require 'treelined-test-helper)

(ert-deftest treelined-client-a-call-returns-the-result ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (should (equal "a3" (plist-get (treelined-test-call 'get_leaf :sessionId "talk") :leafId)))))

(ert-deftest treelined-client-false-null-and-empty-arrive-as-lisp ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (let ((node (aref (plist-get (treelined-test-call 'get_tree :sessionId "talk") :nodes) 0)))
      (should-not (plist-get node :isLeaf))
      (should-not (plist-get node :parentId))
      (should (eq t (plist-get node :onActivePath))))))

(ert-deftest treelined-client-texts-that-emacs-cannot-read-are-shown-with-marks ()
  "json-parse-buffer refuses NUL and halves of surrogate pairs; tools write both."
  (treelined-test-with
    (treelined-test-call 'create_session :sessionId "talk" :cwd "/tmp" :write "now")
    (let ((file (plist-get (plist-get (treelined-test-call 'open_session :sessionId "talk")
                                      :session)
                           :path)))
      (write-region (concat "{\"type\":\"message\",\"id\":\"n1\",\"parentId\":null,"
                            "\"timestamp\":\"2026-11-22T08:16:21.582Z\",\"message\":{\"role\":"
                            "\"user\",\"content\":\"a\\u0000b\\ud800c\\ud83d\\ude00\\\\u0000\"}}\n")
                    nil file 'append 'quiet))
    (let ((entry (plist-get (treelined-test-call 'get_entry :sessionId "talk" :entryId "n1")
                            :entry)))
      (should (equal "a\ufffdb\ufffdc😀\\u0000" (treelined-entry-text entry))))))

(ert-deftest treelined-client-a-call-does-not-wait ()
  (treelined-test-with
    (let (answers)
      (dotimes (index 50)
        (treelined-request 'list_sessions '(:limit 1) (lambda (_) (push index answers))))
      (should-not answers)
      (treelined-test-wait (= 50 (length answers))))))

(ert-deftest treelined-client-callbacks-run-in-the-buffer-of-the-call ()
  (treelined-test-with
    (let (seen)
      (with-temp-buffer
        (rename-buffer "treelined-caller" t)
        (treelined-request 'list_sessions nil (lambda (_) (setq seen (buffer-name))))
        (treelined-test-wait seen)
        (should (string-prefix-p "treelined-caller" seen))))))

(ert-deftest treelined-client-an-error-in-a-callback-does-not-stop-later-answers ()
  (treelined-test-with
    (let ((debug-on-error nil)
          (answers 0))
      (dotimes (_ 3)
        (treelined-request 'list_sessions nil
                           (lambda (_)
                             (setq answers (1+ answers))
                             (error "Of the callback"))))
      (treelined-test-wait (= 3 answers)))))

(ert-deftest treelined-client-an-error-says-what-to-do ()
  (treelined-test-with
    (treelined-test-hears "no session \"nope\".*lists the sessions"
      (treelined-request 'get_leaf '(:sessionId "nope") #'ignore))
    (treelined-test-hears "no_such_method.*update treelined"
      (treelined-request 'no_such_method nil #'ignore))))

(ert-deftest treelined-client-every-kind-of-error-has-a-hint ()
  (let ((file (expand-file-name "../../schema/methods.json" treelined-test-folder)))
    (skip-unless (file-exists-p file))
    (let ((errors (with-temp-buffer
                    (insert-file-contents file)
                    (plist-get (json-parse-buffer :object-type 'plist) :errors))))
      (should (> (length errors) 30))
      (seq-doseq (error errors)
        (should (assoc (plist-get error :kind) treelined-error-hints))))))

(ert-deftest treelined-client-an-unknown-kind-is-judged-by-whether-it-can-be-retried ()
  (should (equal "so — try again"
                 (treelined-error-text (treelined-failure "newKind" "so" nil t))))
  (should (equal "so" (treelined-error-text (treelined-failure "newKind" "so")))))

(ert-deftest treelined-client-a-missing-program-is-named ()
  (let ((treelined-command '("no-such-treelined")))
    (treelined-test-hears "cannot start no-such-treelined.*install treelined"
      (treelined-request 'list_sessions nil #'ignore))))

(ert-deftest treelined-client-another-program-is-no-daemon ()
  (let ((treelined-command '("sh" "-c" "echo Hello there; cat")))
    (treelined-test-hears "sh is not a treelined daemon: it wrote \"Hello there\""
      (treelined-request 'list_sessions nil #'ignore))
    (treelined-test-clean)))

(ert-deftest treelined-client-another-version-is-refused ()
  (let ((treelined-command
         '("sh" "-c" "read line; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":2}}'; cat")))
    (treelined-test-hears "speaks protocol version 2, not 1.*update"
      (treelined-request 'list_sessions nil #'ignore))
    (treelined-test-clean)))

(ert-deftest treelined-client-a-call-ends-at-its-deadline-and-a-late-answer-is-ignored ()
  (let ((treelined-timeout 1)
        (treelined-command
         '("sh" "-c" "read a; read b; sleep 2; echo '{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}'; cat")))
    (let (error)
      (treelined-request 'list_sessions nil #'ignore (lambda (why) (setq error why)))
      (treelined-test-wait error)
      (should (equal "timeout" (plist-get error :kind)))
      (should-not (treelined-test-messages (sleep-for 2))))
    (treelined-test-clean)))

(ert-deftest treelined-client-a-dead-daemon-ends-all-calls-and-the-next-one-starts-it ()
  (treelined-test-with
    (let ((treelined-command '("sh" "-c" "cat >&2"))
          errors)
      (dotimes (_ 3)
        (treelined-request 'list_sessions nil #'ignore (lambda (error) (push error errors))))
      (signal-process (oref (treelined-connection) process) 'KILL)
      (treelined-test-wait (= 3 (length errors)))
      (dolist (error errors)
        (should (equal "disconnected" (plist-get error :kind)))
        (should (equal "the daemon was ended by signal 9" (plist-get error :message)))))
    (should-not (treelined-running-p))
    (should (treelined-test-call 'list_sessions))
    (should (treelined-running-p))))

(ert-deftest treelined-client-a-session-is-opened-again-after-a-restart ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (let ((session (cdr (treelined-await (lambda (then else)
                                           (treelined-session-open "talk" then else))
                                         60))))
      (treelined-stop)
      (should-not (treelined-session-open-p session))
      (should (equal '(t . "a3")
                     (let ((answer (treelined-session-await session 'get_leaf nil 60)))
                       (cons (car answer) (plist-get (cdr answer) :leafId)))))
      (should (treelined-session-open-p session)))))

(ert-deftest treelined-client-ending-emacs-loses-nothing-that-was-sent ()
  (treelined-test-with
    (treelined-test-converse "talk")
    (dotimes (index 200)
      (treelined-request 'append_message
                         (list :sessionId "talk"
                               :message (list :role "user" :content (format "m%d" index)))
                         #'ignore))
    (run-hooks 'kill-emacs-hook)
    (should-not (treelined-running-p))
    (treelined-test-call 'open_session :sessionId "talk")
    (should (= 206 (plist-get (treelined-test-call 'get_tree :sessionId "talk" :limit 1)
                              :total)))))

(ert-deftest treelined-client-questions-of-the-daemon-are-answered ()
  (let* (asked
         (treelined-answer-functions
          `((session_before_tree
             . ,(lambda (params reply)
                  (push (plist-get (plist-get params :preparation) :abandonedCount) asked)
                  (funcall reply '(:cancel t)))))))
    (treelined-test-with
      (treelined-test-converse "talk")
      (should (equal "cancelledByClient"
                     (plist-get (treelined-test-call 'navigate_tree :sessionId "talk"
                                                     :targetId "a2")
                                :reason)))
      (should (equal '(2) asked)))))

;; A guard that signalled an error, or whose answer was refused, once counted as having no
;; opinion, so the move happened.
(ert-deftest treelined-client-an-answer-that-fails-cancels-unless-failures-proceed ()
  (dolist (treelined-answer-failure '(cancel proceed))
    (pcase-dolist
        (`(,answer ,words ,stays)
         `((,(lambda (_reply) (error "Of the answer\nand more")) "Of the answer" nil)
           (,(lambda (_reply) (signal 'quit nil)) "Quit" nil)
           (,(lambda (reply) (funcall reply '(:cancle t))) "cancle" nil)
           (,(lambda (reply) (run-at-time 0.01 nil reply 5)) "refused" nil)
           (,(lambda (reply) (funcall reply '(:cancel t :because "building"))) "because" t)))
      (let ((treelined-answer-functions
             `((session_before_tree . ,(lambda (_params reply) (funcall answer reply))))))
        (treelined-test-with
          (treelined-test-converse "talk")
          (treelined-test-hears words
            (let* ((moved (treelined-test-call 'navigate_tree :sessionId "talk" :targetId "a2"
                                               :onNoAnswer "cancel"))
                   (said (plist-get moved :message)))
              (if (and (eq treelined-answer-failure 'proceed) (not stays))
                  (should (equal "a2" (plist-get moved :newLeafId)))
                (should (equal '("cancelledByClient" "treelined.el")
                               (list (plist-get moved :reason) (plist-get moved :by))))
                (unless stays
                  (should (string-search words said))
                  (should-not (string-search "\n" said)))))))))))

(ert-deftest treelined-client-a-long-reason-is-cut ()
  (let ((treelined-answer-functions
         `((session_before_tree
            . ,(lambda (_params reply)
                 (funcall reply (list :cancel t :reason (make-string 501 ?ü))))))))
    (treelined-test-with
      (treelined-test-converse "talk")
      (should (equal (make-string 500 ?ü)
                     (plist-get (treelined-test-call 'navigate_tree :sessionId "talk"
                                                     :targetId "a2")
                                :message))))))

(ert-deftest treelined-client-later-waits-for-the-minibuffer ()
  (let (called)
    (cl-letf (((symbol-function 'minibuffer-depth) (lambda () 1)))
      (treelined-later (lambda () (setq called t)))
      (accept-process-output nil 0.1)
      (should-not called))
    (run-hooks 'minibuffer-exit-hook)
    (treelined-test-wait called)))

;; Emacs reads output while it sends.  If a callback caused this, and a part of a line
;; came, point was once left after the complete lines, which were then handled only after
;; the next output.
(ert-deftest treelined-client-lines-behind-a-callback-that-reads-are-handled-at-once ()
  (treelined-test-with
    (treelined-test-call 'list_sessions)
    (let* ((process (oref (treelined-connection) process))
           (line (lambda (name)
                   (format "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":{}}\n" name)))
           heard
           (treelined-notification-functions
            (list (lambda (name _params)
                    (push name heard)
                    (when (eq name 'first)
                      (treelined-client--filter process
                                                (substring (funcall line "third") 0 20)))))))
      (treelined-client--filter process (concat (funcall line "first") (funcall line "second")))
      (should (equal '(second first) heard))
      (treelined-client--filter process (substring (funcall line "third") 20))
      (should (equal '(third second first) heard)))))

(provide 'treelined-client-test)
;; A call that a timer made while a long message was being sent once took the place of the
;; message's call, and the answer to the message was lost.
(ert-deftest treelined-client-calls-during-the-send-of-a-long-message-keep-their-answers ()
  (treelined-test-with
    (treelined-test-call 'create_session :sessionId "long" :cwd "/tmp" :name "long" :write "now")
    (let* ((words (apply #'concat (make-list 200000 "many words ")))
           (asked 0)
           (answered 0)
           (timer (run-at-time 0 0.001
                               (lambda ()
                                 ;; A busy machine answers more slowly than the timer asks.
                                 (when (< asked 200)
                                   (setq asked (1+ asked))
                                   (treelined-request 'get_tree '(:sessionId "long" :limit 1)
                                                      (lambda (_) (setq answered (1+ answered)))))))))
      (unwind-protect
          (dotimes (number 5)
            (treelined-test-say "long" (format "u%d" number) "user" words))
        (cancel-timer timer))
      (treelined-test-wait (= asked answered))
      (should (> asked 5))
      (should (equal "u4" (plist-get (treelined-test-call 'get_tree :sessionId "long" :limit 1)
                                     :leafId))))))

;;; treelined-client-test.el ends here
