;;; treelined-ask-test.el --- Commands and questions, with a stub of the daemon  -*- lexical-binding: t; -*-

;;; Commentary:

;; The stub answers each method with the value from the test, and records the calls that
;; it gets.

;;; Code:

(require 'treelined-test-helper)

(defclass treelined-ask-test--stub (treelined-client)
  ((answers :initarg :answers) (sent :initform nil))
  :documentation "A connection whose answers a test gives, by method.")

(cl-defmethod jsonrpc-running-p ((_stub treelined-ask-test--stub)) t)

(cl-defmethod jsonrpc-connection-send
  ((stub treelined-ask-test--stub) &key id method params &allow-other-keys)
  "Note METHOD and PARAMS that are sent to STUB, and answer the request ID."
  (oset stub last-id id)
  (push (cons method params) (oref stub sent))
  (when id
    (let ((answer (alist-get method (oref stub answers))))
      (run-at-time 0 nil
                   (lambda ()
                     (jsonrpc-connection-receive
                      stub (if (eq answer 'missing)
                               (list :jsonrpc "2.0" :id id
                                     :error '(:code -32601 :message "no method"
                                              :data (:kind "methodNotFound")))
                             (list :jsonrpc "2.0" :id id :result answer))))))))

(defmacro treelined-ask-test--with (answers &rest body)
  "Run BODY with a stub, bound to `stub', that gives ANSWERS."
  (declare (indent 1) (debug t))
  `(let* ((stub (apply #'make-instance 'treelined-ask-test--stub :name "stub"
                       :answers ,answers
                       (if (slot-exists-p 'treelined-client '-events-buffer-config)
                           '(:events-buffer-config (:size 0))
                         '(:events-buffer-scrollback-size 0))))
          (treelined-client--connection stub)
          (treelined-ask-idle nil)
          (treelined-ask--questions nil)
          (treelined-ask--shown nil))
     (cl-letf (((symbol-function 'treelined-stop) #'ignore))
       (save-window-excursion ,@body))))

(defun treelined-ask-test--sent (stub method)
  "Wait until METHOD was sent to STUB, and return its params."
  (cdr (treelined-test-wait (assq method (oref stub sent)))))

(defun treelined-ask-test--ask (&rest question)
  "Send QUESTION in the name of the daemon."
  (treelined-client--notified nil 'user_asked
                              (append '(:eventId "e1" :by "guard" :title "Go on?") question)))

(defun treelined-ask-test--answer (keys)
  "Answer the oldest question by typing KEYS."
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "<f5>") #'treelined-answer)
    (with-temp-buffer
      (switch-to-buffer (current-buffer))
      (use-local-map map)
      (execute-kbd-macro (kbd (concat "<f5> " keys))))))

;;;; Questions

(ert-deftest treelined-ask-a-choice-is-answered-in-the-minibuffer ()
  (treelined-ask-test--with nil
    (treelined-ask-test--ask :kind "select" :options ["red" "green"])
    (treelined-ask-test--answer "green RET")
    (should (equal '(:eventId "e1" :result (:value "green"))
                   (treelined-ask-test--sent stub 'answer_event)))
    (should-not treelined-ask--questions)))

(ert-deftest treelined-ask-a-confirmation-needs-a-whole-word ()
  (treelined-ask-test--with nil
    (treelined-ask-test--ask :kind "confirm")
    (treelined-ask-test--answer "yes RET")
    (should (equal '(:eventId "e1" :result (:value t))
                   (treelined-ask-test--sent stub 'answer_event)))
    (treelined-ask-test--ask :kind "confirm")
    (oset stub sent nil)
    (treelined-ask-test--answer "no RET")
    (should (equal '(:eventId "e1" :result (:value :json-false))
                   (treelined-ask-test--sent stub 'answer_event)))))

(ert-deftest treelined-ask-a-text-begins-with-the-given-one ()
  (treelined-ask-test--with nil
    (treelined-ask-test--ask :kind "input" :initial "main")
    (treelined-ask-test--answer "- 2 RET")
    (should (equal '(:eventId "e1" :result (:value "main-2"))
                   (treelined-ask-test--sent stub 'answer_event)))))

(ert-deftest treelined-ask-a-question-is-dismissed ()
  (treelined-ask-test--with nil
    (treelined-ask-test--ask :kind "input")
    (cl-letf (((symbol-function 'read-string) (lambda (&rest _) (signal 'quit nil))))
      (treelined-answer))
    (should (equal '(:eventId "e1" :result (:dismissed t))
                   (treelined-ask-test--sent stub 'answer_event)))
    (should-error (treelined-answer))))

(ert-deftest treelined-ask-a-long-answer-has-a-buffer ()
  (treelined-ask-test--with nil
    (treelined-ask-test--ask :kind "editor" :initial "One\n")
    (treelined-answer)
    (should (derived-mode-p 'treelined-ask-mode))
    (goto-char (point-max))
    (insert "Two")
    (execute-kbd-macro (kbd "C-c C-c"))
    (should (equal '(:eventId "e1" :result (:value "One\nTwo"))
                   (treelined-ask-test--sent stub 'answer_event)))))

(ert-deftest treelined-ask-a-long-answer-is-kept-if-the-question-is-over ()
  (treelined-ask-test--with nil
    (treelined-ask-test--ask :kind "editor")
    (treelined-answer)
    (insert "Much text")
    (treelined-client--notified nil 'event_resolved '(:eventId "e1" :outcome "answered"))
    (should-error (treelined-ask-finish))
    (should (equal "Much text" (buffer-string)))
    (should-not (assq 'answer_event (oref stub sent)))))

(ert-deftest treelined-ask-questions-are-answered-one-after-the-other ()
  (treelined-ask-test--with nil
    (treelined-ask-test--ask :kind "input")
    (treelined-client--notified nil 'user_asked '(:eventId "e2" :kind "input" :title "And?"))
    (let ((answers '("first" "second")))
      (cl-letf (((symbol-function 'read-string) (lambda (&rest _) (pop answers))))
        (treelined-answer)))
    (treelined-test-wait (= 2 (length (oref stub sent))))
    (should (equal '("second" "first")
                   (mapcar (lambda (call)
                             (plist-get (plist-get (cdr call) :result) :value))
                           (oref stub sent))))))

(ert-deftest treelined-ask-a-question-that-is-over-is-not-answered ()
  (treelined-ask-test--with nil
    (treelined-ask-test--ask :kind "input")
    (cl-letf (((symbol-function 'read-string)
               (lambda (&rest _)
                 (treelined-client--notified nil 'event_resolved '(:eventId "e1"))
                 "too late")))
      (treelined-answer))
    (should-not (assq 'answer_event (oref stub sent)))))

(ert-deftest treelined-ask-the-title-and-the-message-are-the-prompt ()
  (should (equal "There are changes.\nGo on?: "
                 (treelined-ask--prompt '(:title "Go on?" :message "There are changes."))))
  (should (equal "Branch (main): "
                 (treelined-ask--prompt '(:title "Branch" :placeholder "main")))))

(ert-deftest treelined-ask-messages-of-programs-are-shown ()
  (should (equal '("treelined: Tests fail")
                 (treelined-test-messages
                   (treelined-ask--notified 'user_notified
                                            '(:message "Tests fail" :level "error"))))))

;;;; Commands

(defconst treelined-ask-test--commands
  '(:commands [(:name "todo" :description "Adds a task" :argumentHint "TASK" :by "todo")
               (:name "state" :by "todo")])
  "The commands of the stub.")

(ert-deftest treelined-ask-a-command-runs-on-the-session-with-its-arguments ()
  (treelined-ask-test--with `((list_commands . ,treelined-ask-test--commands)
                              (run_command . (:output "Noted")))
    (with-temp-buffer
      (setq treelined-session (make-treelined-session :id "talk"))
      (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) "todo"))
                ((symbol-function 'read-string)
                 (lambda (prompt &rest _)
                   (should (equal "todo TASK: " prompt))
                   "buy milk")))
        (treelined-test-hears "Noted"
          (treelined-run-command)
          (should (equal '(:name "todo" :args "buy milk" :sessionId "talk")
                         (treelined-ask-test--sent stub 'run_command))))))))

(ert-deftest treelined-ask-a-command-can-offer-a-draft ()
  (treelined-ask-test--with `((list_commands . ,treelined-ask-test--commands)
                              (run_command . (:prompt "Please continue")))
    (let* (draft
           (treelined-draft-function (lambda (text _context) (setq draft text))))
      (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) "state")))
        (treelined-run-command)
        (treelined-test-wait draft))
      (should (equal "Please continue" draft))
      (should (equal '(:name "state" :args nil :sessionId nil)
                     (treelined-ask-test--sent stub 'run_command))))))

;; A draft without a session was once lost, and other commands ended with a type error.
(ert-deftest treelined-ask-without-a-session-no-command-has-a-type-error ()
  (with-temp-buffer
    (treelined-test-hears "in the kill ring"
      (treelined-ask--ran '(:prompt "Please continue") nil))
    (should (equal "Please continue" (current-kill 0)))
    (dolist (command '(treelined-tree-compare treelined-tree-unfold-all treelined-compose
                       treelined-abort))
      (should-error (call-interactively command) :type 'user-error))
    (should-error (treelined-tree-filter "all") :type 'user-error)
    (should-error (treelined-tree-query "words") :type 'user-error)))

(ert-deftest treelined-ask-long-output-has-a-buffer ()
  (treelined-ask-test--with nil
    (treelined-ask--ran '(:output "One\nTwo") nil)
    (with-current-buffer "*treelined output*"
      (should (equal "One\nTwo" (buffer-string))))))

(ert-deftest treelined-ask-without-commands-it-says-so ()
  (treelined-ask-test--with '((list_commands . (:commands [])))
    (treelined-test-hears "no program offers a command"
      (treelined-run-command))))

(ert-deftest treelined-ask-a-daemon-without-commands-is-too-old ()
  (treelined-ask-test--with '((list_commands . missing))
    (treelined-test-hears "too old for it; update"
      (treelined-run-command))))

(ert-deftest treelined-ask-a-command-runs-at-a-daemon-that-has-commands ()
  (treelined-test-with
    (skip-unless (car (treelined-await (lambda (then else)
                                         (treelined-request 'list_commands nil then else))
                                       60)))
    (treelined-test-call 'register_command :name "shout" :argumentHint "TEXT")
    (let ((owner (lambda (name params)
                   (when (eq name 'command_invoked)
                     (treelined-request 'answer_event
                                        (list :eventId (plist-get params :eventId)
                                              :result (list :output (upcase (plist-get params
                                                                                       :args))))
                                        #'ignore)))))
      (unwind-protect
          (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) "shout"))
                    ((symbol-function 'read-string) (lambda (&rest _) "hello")))
            (add-hook 'treelined-notification-functions owner)
            (treelined-test-hears "HELLO"
              (treelined-run-command)))
        (remove-hook 'treelined-notification-functions owner)))))

(provide 'treelined-ask-test)
;;; treelined-ask-test.el ends here
