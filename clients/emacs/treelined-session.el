;;; treelined-session.el --- The open sessions of this Emacs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A `treelined-session' has the leaf of a session, and is updated by notifications.
;; Buffers about a session have it in the variable `treelined-session'.  They call the
;; daemon with `treelined-session-request', which opens the session again if the daemon
;; has ended since.

;;; Code:

(require 'cl-lib)
(require 'treelined-client)

(cl-defstruct treelined-session
  "An open session.
ID, PATH, NAME, FIRST-MESSAGE and CWD are texts.  PATH is nil for a session
in memory, and FIRST-MESSAGE is empty if there is no message.
LEAF-ID is the leaf of this daemon, nil before the first entry.
OTHERS-LEAF-ID is the leaf of the file, if other programs have moved it
elsewhere.  CONNECTION is the connection that has the session open.
NAVIGATION is the id of the running move that this Emacs has started."
  id path name (first-message "") cwd leaf-id others-leaf-id newer-turns read-only connection navigation)

(defvar-local treelined-session nil
  "The session that this buffer is about.")

(defvar treelined-session-functions nil
  "Functions called with a session, an event, and the params of a notification.
Events are the symbols `changed' (the tree), `delta' (a piece of a
summary) and `closed'.")

(defvar treelined-session--table (make-hash-table :test #'equal)
  "The sessions of this Emacs by id.")

(defun treelined-session-title (session)
  "Return the name of SESSION, or its first message.
Without both, return its directory and the end of its id."
  (let ((id (treelined-session-id session))
        (directory (treelined-session-cwd session)))
    (or (treelined-session-name session)
        (let ((said (treelined-session-first-message session)))
          (and (not (string-empty-p said)) (truncate-string-to-width said 40 nil nil t)))
        (concat (and directory (concat (file-name-nondirectory directory) " "))
                (substring id (max 0 (- (length id) 12)))))))

(defun treelined-session-directory (session)
  "Return the directory of SESSION, or the home directory if it does not exist.
The file has the directory, and may come from another machine.  Emacs would
connect to a remote directory."
  (let ((cwd (treelined-session-cwd session)))
    (file-name-as-directory
     (if (and cwd (not (file-remote-p cwd)) (file-directory-p cwd))
         cwd
       (expand-file-name "~/")))))

(defun treelined-session-open-p (session)
  "Return whether the running daemon has SESSION open."
  (and (treelined-running-p)
       (eq (treelined-session-connection session) (treelined-connection))))

(defun treelined-session-adopt (info)
  "Return the session that the daemon describes as INFO."
  (let* ((id (plist-get info :sessionId))
         (session (or (gethash id treelined-session--table)
                      (puthash id (make-treelined-session :id id) treelined-session--table))))
    (setf (treelined-session-path session) (plist-get info :path)
          (treelined-session-name session) (plist-get info :name)
          (treelined-session-first-message session) (plist-get info :firstMessage)
          (treelined-session-cwd session) (plist-get info :cwd)
          (treelined-session-leaf-id session) (plist-get info :leafId)
          (treelined-session-others-leaf-id session) nil
          (treelined-session-newer-turns session) nil
          (treelined-session-read-only session) (plist-get info :readOnly)
          (treelined-session-connection session) (treelined-connection))
    session))

(defun treelined-session--enter (method params then else)
  "Call METHOD with PARAMS, which opens a session, and THEN with the session.
Call ELSE with an error."
  (treelined-request method params
                     (lambda (result)
                       (let ((session (treelined-session-adopt (plist-get result :session)))
                             (diagnostics (plist-get result :diagnostics)))
                         (treelined-session--warn diagnostics)
                         (treelined-session--note-beside session diagnostics)
                         (funcall then session)))
                     else))

(defun treelined-session--warn (diagnostics)
  "Show the kinds of damage among DIAGNOSTICS, if there are any."
  (let* ((all (mapcar (lambda (each) (plist-get each :kind)) diagnostics))
         (kinds (seq-difference all '("leafBesideNewest" "logRewound"))))
    (when (member "logRewound" all)
      (message "treelined: the team's stream has lost entries of this session; %s"
               "`treelined push' gives them back"))
    (when kinds
      (message "treelined: the session file is damaged (%s); `treelined doctor' examines it"
               (string-join (seq-uniq kinds) ", ")))))

(defun treelined-session--note-beside (session diagnostics)
  "Note where the newest entries of SESSION are.
DIAGNOSTICS have this if the file opens beside them."
  (seq-doseq (each diagnostics)
    (when (equal (plist-get each :kind) "leafBesideNewest")
      (setf (treelined-session-others-leaf-id session) (plist-get each :newestTipId)
            (treelined-session-newer-turns session) (plist-get each :newerTurns)))))

(defun treelined-session-open (what then &optional else)
  "Open the session WHAT, an id or the path of a file, and call THEN with it.
Call ELSE with an error; without it the error is shown."
  (treelined-session--enter 'open_session
                            (if (string-search "/" what)
                                (list :path (expand-file-name what))
                              (list :sessionId what))
                            then else))

(defun treelined-session-create (name directory then)
  "Create a session for DIRECTORY, call it NAME, and call THEN with it.
NAME may be nil."
  (treelined-session--enter 'create_session
                            ;; The file is written at once, so that the session survives
                            ;; the daemon.
                            (list :name name :cwd (directory-file-name (expand-file-name directory))
                                  :write "now")
                            then nil))

(defun treelined-session-request (session method params then &optional else)
  "Call METHOD with PARAMS on SESSION; see `treelined-request'.
If the daemon has ended, start it, and open the session again first."
  (let ((call (lambda ()
                (treelined-request method (append params (list :sessionId
                                                               (treelined-session-id session)))
                                   then else))))
    (if (treelined-session-open-p session)
        (funcall call)
      (treelined-session-open (or (treelined-session-path session)
                                  (treelined-session-id session))
                              (lambda (session)
                                (run-hook-with-args 'treelined-session-functions
                                                    session 'changed nil)
                                (funcall call))
                              (or else #'treelined-report)))))

(defun treelined-session-await (session method params seconds)
  "Call METHOD with PARAMS on SESSION and wait for the answer, at most SECONDS.
Return a value like `treelined-await'."
  (treelined-await (lambda (then else)
                     (treelined-session-request session method params then else))
                   seconds))

(defun treelined-session-buffers (session &optional mode)
  "Return the buffers about SESSION, only those with the major mode MODE if given."
  (seq-filter (lambda (buffer)
                (with-current-buffer buffer
                  (and treelined-session
                       (equal (treelined-session-id treelined-session)
                              (treelined-session-id session))
                       (or (null mode) (derived-mode-p mode)))))
              (buffer-list)))

(defun treelined-header (text)
  "Return TEXT for a header line, in which % has a meaning."
  (concat " " (string-replace "%" "%%" text)))

;;;; Aborting

(defun treelined-session-here ()
  "Return the session of this buffer; signal an error if there is none."
  (or treelined-session
      (user-error "This buffer is about no session")))

(defvar-local treelined-running nil
  "The id of the request that this buffer waits for, nil if there is none.")

(defun treelined-abort ()
  "Abort the running move of this buffer's session."
  (interactive)
  (treelined-session-request (treelined-session-here) 'abort_navigation nil
                             (lambda (result)
                               (unless (plist-get result :aborted)
                                 (message "treelined: no move is running")))))

(defun treelined-quit ()
  "Cancel the request of this buffer, or abort the move of its session; else quit."
  (interactive)
  (cond (treelined-running (treelined-cancel-request treelined-running))
        ((and treelined-session (treelined-session-navigation treelined-session))
         (treelined-abort))
        (t (keyboard-quit))))

;;;; Notifications

(defun treelined-session--appended (session params)
  "Note the leaf of SESSION from PARAMS of entries_appended."
  (let ((leaf (plist-get params :leafId))
        (file-leaf (plist-get params :fileLeafId)))
    (setf (treelined-session-leaf-id session) leaf
          (treelined-session-newer-turns session) nil
          (treelined-session-first-message session)
          (or (plist-get params :firstMessage) (treelined-session-first-message session))
          ;; Appends of other programs do not move the leaf of this daemon.
          (treelined-session-others-leaf-id session)
          (and (equal (plist-get params :origin) "other")
               (not (equal file-leaf leaf))
               file-leaf))))

(defun treelined-session--notified (name params)
  "Follow the notification NAME with PARAMS."
  (when-let* ((session (gethash (plist-get params :sessionId) treelined-session--table)))
    (pcase name
      ('session_tree
       (setf (treelined-session-leaf-id session) (plist-get params :newLeafId)
             (treelined-session-others-leaf-id session) nil
             (treelined-session-newer-turns session) nil))
      ('entries_appended (treelined-session--appended session params))
      ('diagnostics (treelined-session--warn (plist-get params :diagnostics)))
      ('session_info_changed (setf (treelined-session-name session) (plist-get params :name)))
      ('session_closed (setf (treelined-session-connection session) nil)))
    (when-let* ((event (pcase name
                         ((or 'session_tree 'entries_appended 'session_compact 'events_lost
                              'branches_changed 'session_info_changed
                              'session_reordered)
                          'changed)
                         ('summary_delta 'delta)
                         ('session_closed 'closed))))
      (run-hook-with-args 'treelined-session-functions session event params))))

(defun treelined-session--ended (_error)
  "Note that all sessions are closed: the daemon has ended."
  (maphash (lambda (_id session)
             (setf (treelined-session-navigation session) nil)
             (run-hook-with-args 'treelined-session-functions session 'closed nil))
           treelined-session--table))

(add-hook 'treelined-notification-functions #'treelined-session--notified)
(add-hook 'treelined-end-functions #'treelined-session--ended)

(provide 'treelined-session)
;;; treelined-session.el ends here
